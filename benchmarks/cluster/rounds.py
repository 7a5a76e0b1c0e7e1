"""Searches of simulated histories with parallel builds, on a simulated clock.

All builds of a round run in parallel, then one machine measures them, as in `find`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.markdown import table as as_table
from benchmarks.search.cases_with_goals import PLAIN
from benchmarks.search.histories import draw
from benchmarks.search.simulator import Machine
from benchmarks.search.strategies.running import perform, question
from perftrail.search import Measure, Search

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.search.histories import Settings

SETTINGS = replace(PLAIN, build_cost=60.0)
"""A build takes as long as sixty samples: then several machines help most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """The result of one search: its rounds, those with builds, its time, and whether it was right."""

    rounds: int
    building: int
    seconds: float
    right: bool
    wrong: bool


class Workers:
    """Does the work of a search with parallel builds, and counts the time."""

    def __init__(self, settings: Settings, *, seed: tuple[int, ...], count: int) -> None:
        self._history = draw(settings, np.random.default_rng(seed))
        self._machine = Machine(self._history, np.random.default_rng([*seed, 1]))
        self._search = Search(question(self._machine))
        self._count = count
        self._built: set[int] = set()

    def search(self) -> SearchResult:
        """Search until the answer is final."""
        rounds, building, seconds = 0, 0, 0.0
        while isinstance(action := self._search.ask(), Measure):
            fresh = set(action.positions) - self._built
            ahead = self._search.builds_ahead(fresh, self._count - len(fresh)) if fresh else ()
            measures = [action, *(Measure(order=(position,)) for position in ahead)]
            rounds += 1
            building += bool(fresh)
            seconds += self._take(measures) + (self._machine.settings.build_cost if fresh else 0.0)
        culprits = set(self._history.culprits)
        found = [set(change.positions) for change in action.answer.changes]
        right = bool(found) and all(each & culprits for each in found)
        return SearchResult(
            rounds=rounds, building=building, seconds=seconds, right=right, wrong=bool(found) and not right
        )

    def _take(self, measures: Sequence[Measure]) -> float:
        """Take the samples and pass them to the search; return how long they all take."""
        for measure in measures:
            for observation in perform(measure, self._machine, self._built):
                self._search.tell(observation)
        return float(sum(len(measure.order) for measure in measures))


def table(revisions: Sequence[int], workers: Sequence[int], *, trials: int, seed: int) -> str:
    """Search `trials` histories of each length with each number of workers; return the results as a table."""
    lines = [
        [
            "revisions",
            "parallel builds",
            "rounds",
            "with builds",
            "log2 N / log2(k+1)",
            "time",
            "right",
            "wrong",
        ]
    ]
    for length in revisions:
        alone = None
        for count in workers:
            settings = replace(SETTINGS, revisions=length)
            results = [
                Workers(settings, seed=(seed, number), count=count).search() for number in range(trials)
            ]
            seconds = fmean(each.seconds for each in results)
            alone = alone or seconds
            lines.append(
                [
                    f"{length}",
                    f"{count}",
                    f"{median(each.rounds for each in results):g}",
                    f"{median(each.building for each in results):g}",
                    f"{math.log2(length) / math.log2(count + 1):.1f}",
                    f"{seconds / alone:.2f}",
                    f"{sum(each.right for each in results)} of {trials}",
                    f"{sum(each.wrong for each in results)}",
                ]
            )
    return as_table(lines)
