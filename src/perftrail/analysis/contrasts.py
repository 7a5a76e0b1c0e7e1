"""Comparisons of a trial's entries with their references, read at the looks of a rule and settled for good."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.analysis.compare import Verdict, compare
from perftrail.model.trial import COMPARED

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from perftrail.analysis.compare import Comparison, Rule
    from perftrail.model.trial import Group, Taken, Trial

DRIVING = ("wall", "cpu")
"""The metrics whose verdicts are measured for; another one is told from the pairs that these needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """A comparison of one entry with its reference in one metric."""

    entry: int
    against: int
    metric: str
    comparison: Comparison


class Contrasts:
    """Every comparison of a trial.

    `samples` gives an entry's starts without the warm-ups, in the order of time. `rule` may be replaced as long as
    no look has come.
    """

    def __init__(self, trial: Trial, rule: Rule, samples: Callable[[int], Sequence[Taken]]) -> None:
        self.rule = rule
        self._trial = trial
        self._least = trial.pace.least
        self._samples = samples
        self._settled: dict[tuple[int, str], Comparison] = {}

    def all(self) -> tuple[Contrast, ...]:
        """Compare every entry with its reference, each metric by itself, where there are pairs to compare.

        A verdict once settled stands. Otherwise it is read at the last look that there was, so that stopping
        anywhere between two looks is no further look.
        """
        return tuple(
            Contrast(entry=other, against=group.reference, metric=metric, comparison=comparison)
            for group in self._trial.groups
            for other in group.others
            for metric in COMPARED
            if (comparison := self._comparison(group, other, metric)) is not None
        )

    def pairs(self, reference: int, other: int) -> list[tuple[Taken, Taken]]:
        """The starts of both that share a unit, in the order of time; a warm-up takes its partner with it."""
        by_unit = {taken.unit: taken for taken in self._samples(reference)}
        return [(by_unit[taken.unit], taken) for taken in self._samples(other) if taken.unit in by_unit]

    def settles(self, group: Group, other: int) -> bool:
        """Look at every metric; tell whether those that are measured for have their verdicts.

        Without figures above zero there is no ratio, and nothing that more pairs would settle.
        """
        unsettled = set()
        for metric in COMPARED:
            found = self._comparison(group, other, metric)
            if found is not None and found.verdict is not Verdict.UNCLEAR:
                self._settled[other, metric] = found
            elif found is not None:
                unsettled.add(metric)
        return not unsettled.intersection(DRIVING)

    def _comparison(self, group: Group, other: int, metric: str) -> Comparison | None:
        return self._settled.get((other, metric)) or self._compared(group, other, metric)

    def _compared(self, group: Group, other: int, metric: str) -> Comparison | None:
        pairs = self.pairs(group.reference, other)
        looked = [count for count in self.rule.looks if self._least <= count <= len(pairs)]
        pairs = pairs[: looked[-1]] if looked else pairs
        first = [pair[0].values.get(metric, 0.0) for pair in pairs]
        second = [pair[1].values.get(metric, 0.0) for pair in pairs]
        if not pairs or min(first) <= 0.0 or min(second) <= 0.0:
            return None
        return compare(first, second, self.rule)
