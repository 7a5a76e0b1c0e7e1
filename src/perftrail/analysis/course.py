"""What a trial starts next: interleaved, in pairs, until every question is answered. Asked and told, pure.

Starts come in rounds and rounds consist of units: the starts of a unit are adjacent in time. A reference R
stands between two others, ``B R C``, so that each of both pairs is adjacent and R is started half as often;
one that is left alone makes the unit ``R B``. Every second round runs backwards, so that drift hits both
sides of a pair alike. Two commands give ``A B  B A  A B``; a command alone is only repeated.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from perftrail.analysis.compare import Rule, Verdict, compare
from perftrail.analysis.estimate import estimate
from perftrail.analysis.warmup import WINDOW, Warmup, find_warmup, given, last_word
from perftrail.model.trial import COMPARED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from perftrail.analysis.compare import Comparison
    from perftrail.model.trial import Group, Taken, Trial

DRIVING = ("wall", "cpu")
"""The metrics whose verdicts are measured for; another one is told from the pairs that these needed."""


class Why(StrEnum):
    """Why measuring an entry ended."""

    SETTLED = "settled"
    PRECISE = "precise"
    MOST = "most"
    BUDGET = "budget"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What to start: the entry's number, the shell's own when it is `len(entries)`, and in which unit."""

    entry: int
    unit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """How many starts are left, and how long they take: if the next look settles everything, and at most."""

    done: int
    starts_least: int
    starts_most: int
    seconds_least: float
    seconds_most: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """A comparison of one entry with its reference in one metric."""

    entry: int
    against: int
    metric: str
    comparison: Comparison


class Course:
    """Says what to start next and takes in what it gave. `ask` gives None at the end."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._pace = trial.pace
        self._rule = Rule(
            most=trial.pace.most, comparisons=max(1, trial.comparisons), smallest=trial.pace.smallest
        )
        entries = len(trial.entries) + (trial.shell is not None)
        self._taken: list[list[Taken]] = [[] for _ in range(entries)]
        self._warmups: dict[int, Warmup] = {}
        self._queue: list[Start] = []
        self._units = 0
        self._rounds = 0
        self._spent = 0.0
        self._ended: dict[int, Why] = {}
        self._settled: dict[tuple[int, str], Comparison] = {}

    @property
    def taken(self) -> Sequence[Sequence[Taken]]:
        """Every start of each entry in the order of time, warm-ups first; the shell's own last."""
        return self._taken

    @property
    def spent_seconds(self) -> float:
        """What all starts cost so far."""
        return self._spent

    def ask(self) -> Start | None:
        """Give the next start, None when nothing is left to be learnt or the budget is spent."""
        if not self._queue:
            self._look()
            self._queue = list(self._next_round())
        return self._queue[0] if self._queue else None

    def tell(self, taken: Taken) -> None:
        """Take in what the start that was asked for gave."""
        start = self._queue.pop(0)
        assert (start.entry, start.unit) == (taken.entry, taken.unit)
        self._taken[taken.entry].append(taken)
        self._spent += taken.seconds

    def why(self, entry: int) -> Why:
        """Say why measuring an entry ended; stopped from outside when it had not."""
        return self._ended.get(entry, Why.STOPPED)

    def warmup(self, entry: int) -> Warmup:
        """Say how many of an entry's first starts are left out."""
        return self._found(entry) or last_word(self._walls(entry))

    def samples(self, entry: int) -> Sequence[Taken]:
        """Give an entry's starts without the warm-ups."""
        return self._taken[entry][self.warmup(entry).count :]

    def contrasts(self) -> tuple[Contrast, ...]:
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

    def outlook(self) -> Outlook:
        """Say how much is left, by what starts cost so far."""
        open_ones = self._open()
        least = most = 0
        seconds_least = seconds_most = 0.0
        for number in open_ones:
            mean = _mean_seconds(self._taken[number])
            done = self._measured(number)
            to_look = max(0, self._next_look(done) - done)
            to_most = max(0, self._pace.most - done)
            least, most = least + to_look, most + to_most
            seconds_least, seconds_most = seconds_least + to_look * mean, seconds_most + to_most * mean
        left = max(0.0, self._budget() - self._spent)
        return Outlook(
            done=sum(map(len, self._taken)),
            starts_least=least,
            starts_most=most,
            seconds_least=min(seconds_least, left),
            seconds_most=min(seconds_most, left),
        )

    def _next_round(self) -> Iterator[Start]:
        units = [unit for group in self._trial.groups for unit in self._units_of(group)]
        if not units:
            return
        if self._trial.shell is not None:
            units.append((len(self._trial.entries),))
        if self._rounds % 2:
            units = [unit[::-1] for unit in reversed(units)]
        self._rounds += 1
        for unit in units:
            self._units += 1
            yield from (Start(entry=entry, unit=self._units) for entry in unit)

    def _units_of(self, group: Group) -> Iterator[tuple[int, ...]]:
        if not group.others:
            if group.reference not in self._ended:
                yield (group.reference,)
            return
        others = [other for other in group.others if other not in self._ended]
        if len(others) == 1:
            yield (group.reference, others[0])
            return
        for at in range(0, len(others), 2):
            two = others[at : at + 2]
            yield (two[0], group.reference, *two[1:])

    def _look(self) -> None:
        """Decide what has ended, between rounds: only there every pair is whole."""
        if not self._rounds:
            return
        for group in self._trial.groups:
            if group.others:
                self._look_at_pairs(group)
            else:
                self._look_at_one(group.reference)
        if self._out_of_budget():
            for number in self._open():
                self._ended[number] = Why.BUDGET
        for group in self._trial.groups:
            if group.others and all(other in self._ended for other in group.others):
                ends = {self._ended[other] for other in group.others}
                self._ended[group.reference] = next(why for why in reversed(Why) if why in ends)

    def _look_at_one(self, number: int) -> None:
        if number in self._ended or self._found(number) is None:
            return
        count = len(self.samples(number))
        if count in self._rule.looks and count >= self._pace.least:
            walls = [taken.values["wall"] for taken in self.samples(number)]
            if estimate(walls).relative_half_width <= self._pace.precision:
                self._ended[number] = Why.PRECISE
        if count >= self._pace.most:
            self._ended.setdefault(number, Why.MOST)

    def _look_at_pairs(self, group: Group) -> None:
        for other in group.others:
            if other in self._ended or not (self._found(other) and self._found(group.reference)):
                continue
            count = len(self._pairs(group.reference, other))
            due = count in self._rule.looks and count >= self._pace.least
            if due and self._settles(group, other):
                self._ended[other] = Why.SETTLED
            if count >= self._pace.most:
                self._ended.setdefault(other, Why.MOST)

    def _settles(self, group: Group, other: int) -> bool:
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
        pairs = self._pairs(group.reference, other)
        looked = [count for count in self._rule.looks if self._pace.least <= count <= len(pairs)]
        pairs = pairs[: looked[-1]] if looked else pairs
        first = [pair[0].values.get(metric, 0.0) for pair in pairs]
        second = [pair[1].values.get(metric, 0.0) for pair in pairs]
        if not pairs or min(first) <= 0.0 or min(second) <= 0.0:
            return None
        return compare(first, second, self._rule)

    def _pairs(self, reference: int, other: int) -> list[tuple[Taken, Taken]]:
        """The starts of both that share a unit, in the order of time; a warm-up takes its partner with it."""
        by_unit = {taken.unit: taken for taken in self.samples(reference)}
        return [(by_unit[taken.unit], taken) for taken in self.samples(other) if taken.unit in by_unit]

    def _found(self, entry: int) -> Warmup | None:
        """The warm-up, once it is decided."""
        if entry in self._warmups:
            return self._warmups[entry]
        walls = self._walls(entry)
        if self._pace.warmups is not None:
            return given(walls, self._pace.warmups)
        few = self._pace.most
        found = find_warmup(walls) if few >= WINDOW else last_word(walls[:few]) if len(walls) >= few else None
        if found is not None:
            self._warmups[entry] = found
        return found

    def _walls(self, entry: int) -> list[float]:
        return [max(taken.values["wall"], 1e-9) for taken in self._taken[entry]]

    def _open(self) -> list[int]:
        """The entries that are measured for their own sake; a reference is as long as others need it."""
        return [
            number
            for group in self._trial.groups
            for number in (group.others or (group.reference,))
            if number not in self._ended
        ]

    def _measured(self, number: int) -> int:
        return len(self.samples(number)) if self._taken[number] else 0

    def _next_look(self, done: int) -> int:
        later = [count for count in self._rule.looks if count > done and count >= self._pace.least]
        return later[0] if later else self._pace.most

    def _budget(self) -> float:
        return self._pace.budget_seconds * len(self._trial.entries)

    def _out_of_budget(self) -> bool:
        """Whether the next round would not fit; what is sure is measured all the same."""
        open_ones = self._open()
        if not open_ones or min(self._measured(number) for number in open_ones) < self._pace.sure:
            return False
        needed = set(open_ones) | {
            group.reference for group in self._trial.groups if set(group.others) & set(open_ones)
        }
        expected = sum(_mean_seconds(self._taken[number]) for number in needed)
        return self._spent + expected > self._budget()


def _mean_seconds(taken: Sequence[Taken]) -> float:
    return sum(each.seconds for each in taken) / len(taken) if taken else 0.0
