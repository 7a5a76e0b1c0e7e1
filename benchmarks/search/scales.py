"""Zeros, negative values, rates and time-outs through `find`: `python -m benchmarks.search scales`.

Each search is `perftrail find` as users run it, with programs that only print: builds, samples, rounds and answers are
real. From the culprit on, a program prints other values, or exceeds its time. A claim is every answer except "unclear".
It is right if it names the culprit, or if it is "none" and nothing changed.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.markdown import table
from benchmarks.search.goals import interval
from perftrail.errors import NoAnswer
from perftrail.find.answer import FindAnswer, FindRequest
from perftrail.find.find import Find
from perftrail.model.benchmark import Benchmark
from perftrail.model.metrics import Metric
from perftrail.model.process import Exited, TimedOut
from perftrail.model.target import resolve_goal
from perftrail.search import Budget
from tests.fakes.subject_builder import FakeSource, FakeStarter, number_of
from tests.measure.fake_session import a_session, a_study, drain

if TYPE_CHECKING:
    from collections.abc import Sequence

LIMIT = 3.0
"""Seconds after which a run is ended; a usual one takes 0.1 s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A kind of change: levels before and after it, their standard deviation, and the share of runs that hang after.

    A row of rates prints 1 with probability `before` or `after`, else 0.
    """

    name: str
    before: float = 0.0
    after: float = 0.0
    spread: float = 0.0
    hangs: float = 0.0
    rate: bool = False
    threshold: float = 0.5

    @property
    def changes(self) -> bool:
        """Whether anything changes at the culprit."""
        return self.before != self.after or self.hangs > 0.0

    @property
    def metric(self) -> str:
        """The metric that is searched."""
        return "wall" if self.hangs else "printed"

    def value(self, rng: random.Random, *, after: bool) -> float:
        """Return what one run prints."""
        level = self.after if after else self.before
        return float(rng.random() < level) if self.rate else level + rng.gauss(0.0, self.spread)


ROWS = (
    Row(name="0 → 5 errors", after=5.0),
    Row(name="0 → 5 errors, σ 1", after=5.0, spread=1.0),
    Row(name="-3 → 2, σ 0.5", before=-3.0, after=2.0, spread=0.5),
    Row(name="2 → 0, σ 0.3", before=2.0, spread=0.3),
    Row(name="0 in all, σ 0.5", spread=0.5, threshold=1.0),
    Row(name="printed 1 in 95 % → 30 % of the runs", before=0.95, after=0.3, rate=True, threshold=0.1),
    Row(name="all runs time out", hangs=1.0, threshold=0.05),
    Row(name="30 % of the runs time out", hangs=0.3, threshold=0.05),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A judged search: whether it claimed something and was right, and its invocations and builds."""

    claimed: bool
    right: bool
    runs: int
    builds: int


def search(row: Row, *, revisions: int, runs: int, seed: int, directory: Path) -> Outcome:
    """Search one random history."""
    rng = random.Random(seed)
    culprit = rng.randrange(1, revisions)

    def is_after(words: tuple[str, ...]) -> bool:
        return number_of(words) >= culprit

    starter = FakeStarter(
        seconds=lambda _: 0.1,
        prints=lambda words: f"value {row.value(rng, after=is_after(words))}\n",
        ended=lambda words: TimedOut() if is_after(words) and rng.random() < row.hangs else Exited(code=0),
        chance=random.Random(seed),
    )
    metric = Metric(pattern="value (-?[0-9.e-]+)")
    benchmark = Benchmark(command="{build}/work", metrics={"printed": metric}, timeout_seconds=LIMIT)
    study = a_study(benchmarks={"work": benchmark})
    session = a_session(study, directory, source=FakeSource(revisions), starter=starter)
    request = FindRequest(
        goal=resolve_goal(study, (row.metric,)),
        range=None,
        threshold=row.threshold,
        confidence=0.99,
        budget=Budget(invocations=runs),
    )
    try:
        answer = drain(Find(session, request).events())[1]
    except NoAnswer:
        return Outcome(claimed=False, right=False, runs=len(starter.started), builds=0)
    assert isinstance(answer, FindAnswer)
    named = [change.positions for change in answer.answer.changes]
    return Outcome(
        claimed=not answer.unclear,
        right=named == [(culprit,)] if row.changes else not named,
        runs=answer.invocations,
        builds=answer.builds,
    )


def main(arguments: Sequence[str]) -> None:
    """Print a row for each kind of change."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search scales", description=__doc__)
    parser.add_argument("--searches", type=int, default=100)
    parser.add_argument("--revisions", type=int, default=60)
    parser.add_argument("--runs", type=int, default=300)
    options = parser.parse_args(arguments)
    lines: list[tuple[str, ...]] = [("change", "claims right", "95 %", "unclear", "runs", "builds")]
    for row in ROWS:
        found = []
        for seed in range(options.searches):
            with tempfile.TemporaryDirectory() as directory:
                found.append(
                    search(
                        row,
                        revisions=options.revisions,
                        runs=options.runs,
                        seed=seed,
                        directory=Path(directory),
                    )
                )
        claims = [each for each in found if each.claimed]
        right = sum(each.right for each in claims)
        low, high = interval(right, len(claims)) if claims else (0.0, 1.0)
        lines.append(
            (
                row.name,
                f"{right} of {len(claims)}",
                f"[{low:.3f}, {high:.3f}]",
                f"{1 - len(claims) / len(found):.0%}",
                f"{sum(each.runs for each in found) / len(found):.0f}",
                f"{sum(each.builds for each in found) / len(found):.1f}",
            )
        )
    print(table(lines))
