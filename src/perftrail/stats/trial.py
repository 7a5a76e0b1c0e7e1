"""What a trial starts next, until every question is answered or the budget is spent. Asked and told, pure.

Verdicts are read at the looks of a `Rule` only. Where the budget fits fewer pairs than there might be, the rule is
made for as many as fit: that depends on what starts cost, not on which side of a pair was slower.

The order in which a trial's commands are started: rounds of units of adjacent starts.

Starts of one unit are adjacent in time. A reference R runs between two others, ``B R C``, so that each of both
pairs is adjacent and R is started half as often; one that is left alone makes the unit ``R B``. A fair coin, drawn
from the trial's seed, decides for each unit whether it runs backwards: comparisons bet on that coin. Every second
round has its units in the opposite order, so that drift hits them alike. A command alone is only repeated.

Comparisons of a trial's entries with their references, read at the looks of a rule and settled for good.

What a trial found: an estimate of each metric of each entry, and the comparisons.

Warm-up, found rather than guessed: how many first runs differ from those that follow.

A series is level from its k-th value on when, in a window that begins there, the first value lies within
the others' spread and no trend runs through the window. The smallest such k is how many are left out. It is
decided from the first values alone and once for all; when two commands are compared, what is left out of a
pair is left out of both, so that no verdict leans on this choice.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import median
from typing import TYPE_CHECKING

from perftrail.model.measurement import seed_of
from perftrail.model.trial import COMPARED, UNITS
from perftrail.stats.comparison import Rule, Verdict, compare
from perftrail.stats.estimate import Estimate, estimate

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from perftrail.model.trial import Entry, Group, Taken, Trial
    from perftrail.stats.comparison import Comparison

    Unit = tuple[int, ...]

WINDOW = 8
"""How many values must be level together."""

MOST = 10
"""More than these are never left out: what takes longer is no warm-up but the program."""

SPREADS = 5.0
"""How many standard deviations, by the median absolute deviation, a first value may lie off the others."""

TELLING = 0.05
"""A first value closer to the others than this is level, however little they spread."""

_STEADY = 20
"""The sum of signs over the 28 pairs of eight values that a level series reaches in 1 of 70 cases."""

_SHORT_LEAST = 4
_SHORT_TELLING = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Warmup:
    """How many first values to leave out, and how the very first compares with the level: 1.8 is 1.8 times.

    `level`: the rest was found level. `first` is 1 when nothing is left out.
    """

    count: int
    first: float = 1.0
    level: bool = True


def find_warmup(values: Sequence[float]) -> Warmup | None:
    """Tell how many of the first values are warm-up, None while too few values are there to tell.

    Values are above zero. A given prefix decides; what follows never changes the answer.

    >>> find_warmup([1.8, 1.01, 0.99, 1.0, 1.02, 0.98, 1.0, 1.01, 0.99])
    Warmup(count=1, first=1.8, level=True)
    """
    logs = [math.log(value) for value in values]
    for count in range(MOST + 1):
        window = logs[count : count + WINDOW]
        if len(window) < WINDOW:
            return None
        if _level(window):
            return _warmup(logs, count, window, level=True)
    return _warmup(logs, MOST, logs[MOST : MOST + WINDOW], level=False)


def last_word(values: Sequence[float]) -> Warmup:
    """Decide with what there is when measuring has ended: too short a series shows only a large first value.

    >>> last_word([3.0, 1.0, 1.02, 0.99])
    Warmup(count=1, first=3.0, level=True)
    """
    found = find_warmup(values)
    if found is not None:
        return found
    if len(values) < _SHORT_LEAST:
        return Warmup(count=0, level=False)
    logs = [math.log(value) for value in values]
    count = 0
    while count < min(MOST, len(logs) - _SHORT_LEAST + 1) and _off(logs[count:], telling=_SHORT_TELLING):
        count += 1
    return _warmup(logs, count, logs[count:], level=not _off(logs[count:], telling=_SHORT_TELLING))


def given(values: Sequence[float], count: int) -> Warmup:
    """Leave out as many as somebody asked for."""
    if not 0 < count < len(values):
        return Warmup(count=count)
    logs = [math.log(value) for value in values]
    return _warmup(logs, count, logs[count:], level=True)


def _warmup(logs: Sequence[float], count: int, rest: Sequence[float], *, level: bool) -> Warmup:
    first = math.exp(logs[0] - median(rest)) if count else 1.0
    return Warmup(count=count, first=round(first, 4), level=level)


def _level(window: Sequence[float]) -> bool:
    return not _off(window, telling=TELLING) and abs(_signs(window)) < _STEADY


def _off(window: Sequence[float], *, telling: float) -> bool:
    """Whether the first of some values lies outside the spread of the others."""
    others = window[1:]
    middle = median(others)
    spread = 1.4826 * median(abs(value - middle) for value in others)
    return abs(window[0] - middle) > max(SPREADS * spread, telling)


def _signs(values: Sequence[float]) -> int:
    """Kendall's S (Biometrika 30, 1938): how many pairs rise, less how many fall."""
    return sum(
        (later > earlier) - (later < earlier)
        for index, earlier in enumerate(values)
        for later in values[index + 1 :]
    )


def units_of_round(trial: Trial, number: int, ended: Collection[int]) -> tuple[Unit, ...]:
    """Give the units of a round, numbered from 0, as entries to start; empty when every entry has ended.

    The shell's own entry, where there is one, is `len(trial.entries)` and comes once in each round.
    """
    units = [unit for group in trial.groups for unit in _units(group, ended)]
    if units and trial.shell is not None:
        units.append((len(trial.entries),))
    drawn = [unit[::-1] if seed_of("order", trial.seed, number, *unit) % 2 else unit for unit in units]
    return tuple(reversed(drawn)) if number % 2 else tuple(drawn)


def _units(group: Group, ended: Collection[int]) -> Iterator[Unit]:
    if not group.others:
        if group.reference not in ended:
            yield (group.reference,)
        return
    others = [other for other in group.others if other not in ended]
    if len(others) == 1:
        yield (group.reference, others[0])
        return
    for at in range(0, len(others), 2):
        two = others[at : at + 2]
        yield (two[0], group.reference, *two[1:])


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


ROUNDS_TO_JUDGE = 5
"""After so many rounds it is known what a round costs."""

FITTING = 0.9
"""The part of the rounds that would fit by what they cost so far that is counted on."""


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


class Course:
    """Says what to start next and takes in what it gave. `ask` gives None at the end."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._pace = trial.pace
        rule = Rule(
            most=trial.pace.most, comparisons=max(1, trial.comparisons), threshold=trial.pace.threshold
        )
        self._contrasts = Contrasts(trial, rule, self.samples)
        entries = len(trial.entries) + (trial.shell is not None)
        self._taken: list[list[Taken]] = [[] for _ in range(entries)]
        self._warmups: dict[int, Warmup] = {}
        self._queue: list[Start] = []
        self._units = 0
        self._rounds = 0
        self._spent = 0.0
        self._full = Why.MOST
        self._ended: dict[int, Why] = {}

    @property
    def taken(self) -> Sequence[Sequence[Taken]]:
        """Every start of each entry in the order of time, warm-ups first; the shell's own last."""
        return self._taken

    @property
    def _rule(self) -> Rule:
        return self._contrasts.rule

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
        """Compare every entry with its reference, each metric by itself, as `Contrasts.all` does."""
        return self._contrasts.all()

    def outlook(self) -> Outlook:
        """Say how much is left, by what starts cost so far."""
        least = most = seconds_least = seconds_most = 0.0
        for number, starts in self._weights().items():
            left_least, left_most = self._left(number)
            mean = _mean_seconds(self._taken[number]) * starts
            least, most = least + left_least * starts, most + left_most * starts
            seconds_least, seconds_most = seconds_least + left_least * mean, seconds_most + left_most * mean
        left = max(0.0, self._budget() - self._spent)
        return Outlook(
            done=sum(map(len, self._taken)),
            starts_least=round(least),
            starts_most=round(most),
            seconds_least=min(seconds_least, left),
            seconds_most=min(seconds_most, left),
        )

    def _next_round(self) -> Iterator[Start]:
        units = units_of_round(self._trial, self._rounds, self._ended)
        self._rounds += bool(units)
        for unit in units:
            self._units += 1
            yield from (Start(entry=entry, unit=self._units) for entry in unit)

    def _look(self) -> None:
        """Decide what has ended, between rounds: only there every pair is whole."""
        if not self._rounds:
            return
        if self._rounds == ROUNDS_TO_JUDGE:
            self._fit()
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
        if count >= self._rule.most:
            self._ended.setdefault(number, self._full)

    def _look_at_pairs(self, group: Group) -> None:
        for other in group.others:
            if other in self._ended or not (self._found(other) and self._found(group.reference)):
                continue
            count = len(self._contrasts.pairs(group.reference, other))
            due = count in self._rule.looks and count >= self._pace.least
            if due and self._contrasts.settles(group, other):
                self._ended[other] = Why.SETTLED
            if count >= self._rule.most:
                self._ended.setdefault(other, self._full)

    def _fit(self) -> None:
        """Make the rule for as many pairs as the budget lets through, once."""
        rounds = self._rounds * self._budget() / max(self._spent, 1e-9)
        fits = max(self._pace.sure, int(FITTING * rounds))
        if fits < self._rule.most:
            self._contrasts.rule = replace(self._rule, most=fits)
            self._full = Why.BUDGET

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

    def _weights(self) -> dict[int, float]:
        """How often each entry still needed is started in a round."""
        weights: dict[int, float] = {}
        for group in self._trial.groups:
            others = [other for other in group.others if other not in self._ended]
            weights |= dict.fromkeys(others, 1.0)
            if others or (not group.others and group.reference not in self._ended):
                weights[group.reference] = 1.0 if len(others) < 2 else math.ceil(len(others) / 2)
        if weights and self._trial.shell is not None:
            weights[len(self._trial.entries)] = 1.0
        return weights

    def _left(self, number: int) -> tuple[int, int]:
        """How many rounds an entry is still in: until the next look, and at most."""
        group = next(
            (group for group in self._trial.groups if group.reference == number and group.others), None
        )
        if number == len(self._trial.entries):
            lefts = [self._left(other) for other in self._open()]
        elif group is not None:
            lefts = [self._left(other) for other in group.others if other not in self._ended]
        else:
            done = len(self.samples(number))
            later = [count for count in self._rule.looks if count > done and count >= self._pace.least]
            look = later[0] if later else self._rule.most
            return max(0, look - done), max(0, self._rule.most - done)
        return max(least for least, _ in lefts), max(most for _, most in lefts)

    def _budget(self) -> float:
        return self._pace.budget_seconds * len(self._trial.entries)

    def _out_of_budget(self) -> bool:
        """Whether the next round would not fit; what is sure is measured anyway."""
        open_ones = self._open()
        if not open_ones or min(len(self.samples(number)) for number in open_ones) < self._pace.sure:
            return False
        expected = sum(
            _mean_seconds(self._taken[number]) * starts for number, starts in self._weights().items()
        )
        return self._spent + expected > self._budget()


def _mean_seconds(taken: Sequence[Taken]) -> float:
    return sum(each.seconds for each in taken) / len(taken) if taken else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One metric of one entry: its values in the order of time, where they lie, and how they were got."""

    unit: str
    values: tuple[float, ...]
    estimate: Estimate
    method: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One entry measured. `figures` is empty when it ended before a single run counted.

    `flags` are what limits the figures' meaning, each with the number of runs that it marks.
    """

    entry: Entry
    runs: int
    figures: Mapping[str, Figure]
    warmup: Warmup
    why: Why
    flags: Mapping[str, int]
    exit_codes: tuple[int | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """All that a trial found; `shell` is what the shell takes to do nothing, where one was used."""

    trial: Trial
    results: tuple[Finding, ...]
    contrasts: tuple[Contrast, ...]
    shell: Finding | None
    seconds: float

    @property
    def stopped(self) -> bool:
        """Whether somebody ended it before it had come to an end."""
        return any(result.why is Why.STOPPED for result in self.results)


def findings(course: Course, trial: Trial) -> Findings:
    """Read off what a course has found so far."""
    shell = trial.shell
    return Findings(
        trial=trial,
        results=tuple(_finding(course, number, entry) for number, entry in enumerate(trial.entries)),
        contrasts=course.contrasts(),
        shell=None if shell is None else _finding(course, len(trial.entries), shell),
        seconds=course.spent_seconds,
    )


def _finding(course: Course, number: int, entry: Entry) -> Finding:
    samples = course.samples(number)
    return Finding(
        entry=entry,
        runs=len(samples),
        figures=_figures(samples),
        warmup=course.warmup(number),
        why=course.why(number),
        flags=Counter(flag for taken in samples for flag in taken.flags),
        exit_codes=tuple(taken.exit_code for taken in samples),
    )


def _figures(samples: Sequence[Taken]) -> Mapping[str, Figure]:
    figures = {}
    for metric, unit in UNITS.items():
        values = tuple(taken.values[metric] for taken in samples if metric in taken.values)
        methods = dict.fromkeys(taken.methods[metric] for taken in samples if metric in taken.methods)
        if values:
            figures[metric] = Figure(
                unit=unit, values=values, estimate=estimate(values), method=", ".join(methods)
            )
    return figures
