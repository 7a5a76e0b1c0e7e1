"""Forecast how much work a search still needs, from simulated searches and from the pace of a certificate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.search.rounds import EXACT_ROUNDS

if TYPE_CHECKING:
    from perftrail.search.posterior import Belief
    from perftrail.search.question import Question

FORECAST_BLOCKS = 3
"""Fewer blocks show no pace from which the number of further blocks could be forecast."""

USUAL_BUILDS = (2, 12)
"""Builds of most searches beyond log2 of the number of revisions.

From benchmarks/results/searching.md: 2 in the history of cmark; 12 in 95 % of the searches for a change of 3.2 σ.
"""

USUAL_RUNS = (40, 160)
"""Invocations of most searches of one metric.

From benchmarks/results/searching.md: 41 in the history of more-itertools; 157 in 95 % of the searches for a change of
3.2 σ.
"""

USUAL_BLOCKS = (8, 16)
"""Blocks of 90 % of all claims that a search confirmed in simulations, of changes of 2 to 30 standard deviations."""

SLOWEST_PACE = 4
"""At first the evidence of a claim grows slowly: in simulations 95 % of all claims needed at most this multiple of the
blocks that their pace promised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkLeft:
    """A forecast of the runs and builds until a search is settled: the least and the largest number of each."""

    runs: tuple[int, int]
    builds: tuple[int, int]


NOTHING_LEFT = WorkLeft(runs=(0, 0), builds=(0, 0))


def work_left(question: Question, belief: Belief | None, *, invocations: int) -> WorkLeft:
    """Forecast the work of an open search: as simulated searches needed, or as its certificate does.

    `belief` is `None` before two revisions were measured; `invocations` is the number of those that ended.
    """
    candidates = question.revisions - 1 if belief is None else belief.candidates
    halvings = math.ceil(math.log2(max(candidates, 1)))
    if belief is not None and belief.claim is not None and belief.claim.blocks_left is not None:
        blocks, runs = belief.claim.blocks_left, 0
    else:
        blocks = (EXACT_ROUNDS, EXACT_ROUNDS) if question.counted else USUAL_BLOCKS
        runs = max(0, USUAL_RUNS[1] - invocations)
    each = question.invocations_per_sample
    return WorkLeft(
        runs=(2 * blocks[0] * each, max(4 * blocks[1] * each, runs)), builds=(0, halvings + USUAL_BUILDS[1])
    )
