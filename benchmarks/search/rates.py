"""Programs that fail in a share of their runs: `python -m benchmarks.search rates`.

Simulated runs fail with one probability before the culprit and with another from it on; builds cost ten runs. The
search is the real one, with a budget of runs. A claim is every answer except "unclear". It is right if it names the
culprit, or if it is "none" and the rates differ by less than the difference that it excludes. With 5 % of
infrastructure failures, each run also fails for a reason that no revision changes. A second table shows how many rounds
of two builds certify that their rates differ, or that they differ by less than ten points.
"""

from __future__ import annotations

import argparse
import math
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.markdown import table
from benchmarks.search.goals import interval
from perftrail.search import Batch, Budget, Built, Measure, Question, Sample, Search
from perftrail.search.answer import Verdict
from perftrail.search.rounds import MOST_SHARE
from perftrail.stats.rates import rate_bounds, rate_evidence
from perftrail.stats.scale import Scale

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.search import Answer

ROWS = (
    (0.0, 0.03),
    (0.02, 0.1),
    (0.05, 0.2),
    (0.2, 0.5),
    (0.05, 0.4),
    (1.0, 0.6),
    (0.0, 1.0),
    (0.0, 0.0),
    (0.03, 0.03),
    (0.1, 0.1),
    (0.5, 0.5),
)
"""The probability to fail before the culprit, and from it on."""

INFRASTRUCTURE = 0.05
BUILD_RUNS = 10.0

PAIRS = ((0.0, 1.0), (0.05, 0.4), (0.2, 0.5), (0.05, 0.2), (0.0, 0.0), (0.5, 0.5))
"""The probability that each of two builds fails."""

MOST_ROUNDS = 2000
LEVEL = 0.005
"""The error of one direction, at a confidence of 99 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A judged search: whether it claimed something and was right, and its cost."""

    claimed: bool
    right: bool
    runs: int
    builds: int


def search(before: float, after: float, *, revisions: int, threshold: float, runs: int, seed: int) -> Outcome:
    """Search one random history."""
    rng = random.Random(seed)
    culprit = rng.randrange(1, revisions)
    question = Question(
        revisions=revisions,
        threshold=threshold,
        scale=Scale.RATE,
        budget=Budget(invocations=runs),
        seed=seed,
    )
    search = Search(question)
    while isinstance(action := search.ask(), Measure):
        for position in action.positions:
            if position not in search.evidence.built:
                search.tell(Built(position=position, seconds=BUILD_RUNS))
        samples = tuple(
            Sample(position=each, value=float(rng.random() >= (before if each < culprit else after)))
            for each in action.order
        )
        search.tell(Batch(samples=samples, seconds=len(samples), certificate=action.certificate))
    answer = action.answer
    return Outcome(
        claimed=answer.verdict is not Verdict.UNCLEAR,
        right=_is_right(answer, culprit, abs(after - before)),
        runs=search.evidence.invocations,
        builds=search.evidence.builds,
    )


def rounds_to_certify(before: float, after: float, *, seed: int, within: float = 0.1) -> int:
    """Return after how many rounds two builds certainly differ, or, with equal rates, by less than `within`."""
    rng = np.random.default_rng(seed)
    fails = (rng.random(MOST_ROUNDS) < after).astype(float) - (rng.random(MOST_ROUNDS) < before)
    for count in range(1, MOST_ROUNDS):
        found = fails[:count]
        if before == after and count % 10 == 0 and rate_bounds(found, 2 * LEVEL).within(within):
            return count
        if before != after and rate_evidence(found) + math.log(2 * MOST_SHARE) >= math.log(1 / LEVEL):
            return count
    return MOST_ROUNDS


def _is_right(answer: Answer, culprit: int, difference: float) -> bool:
    if answer.verdict is Verdict.NONE:
        return difference <= answer.minimum_detectable
    return difference > 0 and [change.positions for change in answer.changes] == [(culprit,)]


def main(arguments: Sequence[str]) -> None:
    """Print a row for each pair of rates."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search rates", description=__doc__)
    parser.add_argument("--searches", type=int, default=300)
    parser.add_argument("--revisions", type=int, default=100)
    parser.add_argument("--threshold", type=float, default=0.1)
    parser.add_argument("--runs", type=int, default=300)
    options = parser.parse_args(arguments)
    lines: list[tuple[str, ...]] = [
        ("fails before, after", "infrastructure", "claims right", "95 %", "unclear", "runs", "builds")
    ]
    for before, after in ROWS:
        for noise in (0.0, INFRASTRUCTURE):
            rates = [1 - (1 - rate) * (1 - noise) for rate in (before, after)]
            found = [
                search(
                    *rates,
                    revisions=options.revisions,
                    threshold=options.threshold,
                    runs=options.runs,
                    seed=seed,
                )
                for seed in range(options.searches)
            ]
            lines.append((f"{before:.0%}, {after:.0%}", f"{noise:.0%}", *_cells(found)))
    print(table(lines))
    rounds: list[tuple[str, ...]] = [("builds fail", "rounds, median", "quartiles")]
    for before, after in PAIRS:
        counts = [rounds_to_certify(before, after, seed=seed) for seed in range(options.searches)]
        low, middle, high = np.percentile(counts, [25, 50, 75])
        rounds.append((f"{before:.0%}, {after:.0%}", f"{middle:.0f}", f"{low:.0f} to {high:.0f}"))
    print(f"\n{table(rounds)}")


def _cells(found: Sequence[Outcome]) -> tuple[str, ...]:
    claims = [each for each in found if each.claimed]
    right = sum(each.right for each in claims)
    low, high = interval(right, len(claims)) if claims else (0.0, 1.0)
    return (
        f"{right} of {len(claims)}",
        f"[{low:.3f}, {high:.3f}]",
        f"{1 - len(claims) / len(found):.0%}",
        f"{sum(each.runs for each in found) / len(found):.0f}",
        f"{sum(each.builds for each in found) / len(found):.1f}",
    )
