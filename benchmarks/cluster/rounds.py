"""Searches over simulated histories with several builds at once, on a simulated clock.

All builds of a round go on beside each other, then one machine reads what was built, as `find` does it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.markdown import table as as_table
from benchmarks.search.histories import draw
from benchmarks.search.rows import PLAIN
from benchmarks.search.simulator import Machine
from benchmarks.search.strategies.asking import question, take
from perftrail.search import Measure, Search

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.search.histories import Settings

SETTINGS = replace(PLAIN, build_cost=60.0)
"""A build takes as long as sixty readings: where several machines are worth most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """How one search went: its rounds, those in which something was built, its time, and whether it was right."""

    rounds: int
    building: int
    seconds: float
    right: bool
    wrong: bool


class Workers:
    """Does what a search asks for, several builds at once, and counts the time."""

    def __init__(self, settings: Settings, *, seed: tuple[int, ...], count: int) -> None:
        self._history = draw(settings, np.random.default_rng(seed))
        self._machine = Machine(self._history, np.random.default_rng([*seed, 1]))
        self._search = Search(question(self._machine))
        self._count = count
        self._built: set[int] = set()

    def search(self) -> Course:
        """Search until it is settled."""
        rounds, building, seconds = 0, 0, 0.0
        while isinstance(action := self._search.ask(), Measure):
            fresh = set(action.positions) - self._built
            ahead = self._search.builds_ahead(fresh, self._count - len(fresh)) if fresh else ()
            measures = [action, *(self._search.first_batch(position) for position in ahead)]
            rounds += 1
            building += bool(fresh)
            seconds += self._take(measures) + (self._machine.settings.build_cost if fresh else 0.0)
        culprits = set(self._history.culprits)
        told = [set(change.positions) for change in action.answer.changes]
        right = bool(told) and all(each & culprits for each in told)
        return Course(
            rounds=rounds, building=building, seconds=seconds, right=right, wrong=bool(told) and not right
        )

    def _take(self, measures: Sequence[Measure]) -> float:
        """Do what is asked, and tell it; return how long all samples take."""
        for measure in measures:
            for observation in take(measure, self._machine, self._built):
                self._search.tell(observation)
        return float(sum(len(measure.order) for measure in measures))


def table(revisions: Sequence[int], workers: Sequence[int], *, trials: int, seed: int) -> str:
    """Search so many histories of each length with so many workers; give what it took, as a table."""
    lines = [
        [
            "revisions",
            "builds at once",
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
            courses = [
                Workers(settings, seed=(seed, number), count=count).search() for number in range(trials)
            ]
            seconds = fmean(course.seconds for course in courses)
            alone = alone or seconds
            lines.append(
                [
                    f"{length}",
                    f"{count}",
                    f"{median(course.rounds for course in courses):g}",
                    f"{median(course.building for course in courses):g}",
                    f"{math.log2(length) / math.log2(count + 1):.1f}",
                    f"{seconds / alone:.2f}",
                    f"{sum(course.right for course in courses)} of {trials}",
                    f"{sum(course.wrong for course in courses)}",
                ]
            )
    return as_table(lines)
