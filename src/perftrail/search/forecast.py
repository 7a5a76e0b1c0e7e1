"""Forecast how much work a search still needs, from simulated searches and from the pace of its rounds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.search.rounds import EXACT_ROUNDS, MOST_PROMISING, MOST_ROUNDS
from perftrail.stats.comparison import STAKES

if TYPE_CHECKING:
    from perftrail.search.posterior import Belief
    from perftrail.search.question import Question
    from perftrail.search.rounds import Gap, Rounds

FORECAST_ROUNDS = 3
"""Fewer rounds show no pace from which the number of further rounds could be forecast."""

USUAL_BUILDS = (2, 12)
"""Builds of most searches beyond log2 of the number of revisions.

From benchmarks/results/searching.md: 2 in the history of cmark; 12 in 95 % of the searches for a change of 3.2 σ.
"""

USUAL_RUNS = (40, 160)
"""Invocations of most searches of one metric.

From benchmarks/results/searching.md: 41 in the history of more-itertools; 157 in 95 % of the searches for a change of
3.2 σ.
"""

USUAL_ROUNDS = (8, 24)
"""Rounds of a claim: the fewest that can certify it, and those after which its size is decided."""

SLOWEST_PACE = 4
"""At first the evidence of a claim grows slowly: in simulations 95 % of all claims needed at most this multiple of the
rounds that their pace promised."""

LARGEST = 50.0
"""Larger logarithms of evidence and of ratios are not distinguished, so that all stay finite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkLeft:
    """A forecast of the runs and builds until a search is settled: the least and the largest number of each."""

    runs: tuple[int, int]
    builds: tuple[int, int]


NOTHING_LEFT = WorkLeft(runs=(0, 0), builds=(0, 0))


def rounds_left(gap: Gap, level: float) -> int | None:
    """Forecast the rounds until a change is certain, at the present pace; `None` if it is too slow."""
    count = max(len(gap.differences), 1)
    pace = (min(gap.evidence, LARGEST) + math.log(len(STAKES))) / count
    left = max(1, math.ceil(math.log(len(STAKES) / level) / pace) - count)
    most = MOST_PROMISING if gap.rounds_to_certainty(level) <= MOST_PROMISING else MOST_ROUNDS
    return left if left <= most else None


def rounds_to_equality(gap: Gap, threshold: float) -> int | None:
    """Forecast the further rounds until two builds are equal within the threshold; `None` if they are not."""
    count, wanted = len(gap.differences), gap.rounds_to_equality(threshold)
    if count < FORECAST_ROUNDS:
        return USUAL_ROUNDS[0]
    return max(1, math.ceil(min(wanted, MOST_PROMISING)) - count) if abs(gap.size) < threshold else None


def open_rounds(gap: Gap, threshold: float, level: float) -> tuple[int, int]:
    """Forecast the least and the largest number of rounds until two builds are decided."""
    known = [
        each for each in (rounds_left(gap, level), rounds_to_equality(gap, threshold)) if each is not None
    ]
    least = min(known, default=USUAL_ROUNDS[0])
    return least, min(MOST_PROMISING, SLOWEST_PACE * least)


def work_left(
    question: Question, belief: Belief | None, *, invocations: int, rounds: Rounds | None = None
) -> WorkLeft:
    """Forecast the work of an open search: as simulated searches needed, or from the pace of its rounds.

    `belief` is `None` before two revisions were measured; `invocations` is the number of those that ended.
    """
    candidates = question.revisions - 1 if belief is None else belief.candidates
    halvings, each = math.ceil(math.log2(max(candidates, 1))), question.invocations_per_sample
    pairs = [] if rounds is None else rounds.open_pairs()
    if rounds is None or not pairs:
        least, most = (EXACT_ROUNDS, EXACT_ROUNDS) if question.counted else USUAL_ROUNDS
        runs = max(4 * most * each, USUAL_RUNS[1] - invocations)
        return WorkLeft(runs=(2 * least * each, runs), builds=(0, halvings + USUAL_BUILDS[1]))
    forecasts = [open_rounds(gap, question.threshold_on_scale, rounds.level) for gap in pairs]
    builds = len({end for gap in pairs for end in (gap.first, gap.last)})
    dividing = 0 if belief is None or belief.no_change > 0.5 else halvings
    most = max(most for _, most in forecasts) + dividing * FORECAST_ROUNDS
    return WorkLeft(
        runs=(2 * max(least for least, _ in forecasts) * each, builds * most * each),
        builds=(0, dividing * builds),
    )
