"""Schedule, stopping rule and results of a measurement without a study.

`TrialSchedule` returns the next process to start, until every comparison is settled or the budget is spent. It is an
ask/tell object without I/O. Verdicts are read only at the interim analyses of a `Rule`. If the budget allows fewer
pairs, the rule is adapted to that number. The number depends on the cost of runs, not on their result.

A round consists of units, and the runs of a unit are adjacent in time. A reference R runs between two others (``B R
C``): each pair is adjacent, and R runs half as often. With a single other, it is ``R B``. A fair coin, drawn from the
trial's seed, decides the direction of each unit: comparisons bet on that coin. Every second round reverses its units,
so that drift affects all alike. Warm-up runs are detected: a series is stable from its k-th value on if a window from
there has no trend, and its first value is within the spread of the others. The smallest such k is discarded, once,
from the first values alone. A pair is discarded as a whole, so that no verdict depends on this choice.
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

    from perftrail.model.trial import Entry, Group, Trial, TrialSample
    from perftrail.stats.comparison import Comparison

    Unit = tuple[int, ...]

WINDOW = 8
"""Number of values that must be stable together."""

MOST = 10
"""Largest number of discarded runs: a longer warm-up is the program's normal behaviour."""

SPREADS = 5.0
"""Largest deviation of a stable first value, in robust standard deviations (median absolute deviation)."""

LEAST_DISTANCE = 0.05
"""Deviations below this share are stable, for any spread of the others."""

_STEADY = 20
"""Sum of signs over the 28 pairs of eight values; a stable series reaches it in 1 of 70 cases."""

_SHORT_LEAST = 4
_SHORT_LEAST_DISTANCE = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Warmup:
    """Number of discarded first values; `first_ratio` is the very first value over the stable one.

    `stable`: the remaining values are stable. `first_ratio` is 1 if nothing is discarded.
    """

    count: int
    first_ratio: float = 1.0
    stable: bool = True


def find_warmup(values: Sequence[float]) -> Warmup | None:
    """Return the warm-up of a series; None if there are too few values to decide.

    Values must be positive. A prefix decides: later values never change the result.

    >>> find_warmup([1.8, 1.01, 0.99, 1.0, 1.02, 0.98, 1.0, 1.01, 0.99])
    Warmup(count=1, first_ratio=1.8, stable=True)
    """
    logs = [math.log(value) for value in values]
    for count in range(MOST + 1):
        window = logs[count : count + WINDOW]
        if len(window) < WINDOW:
            return None
        if _is_stable(window):
            return _warmup(logs, count, window, stable=True)
    return _warmup(logs, MOST, logs[MOST : MOST + WINDOW], stable=False)


def provisional_warmup(values: Sequence[float]) -> Warmup:
    """Return the warm-up of a finished series. A short series only shows a large first value.

    >>> provisional_warmup([3.0, 1.0, 1.02, 0.99])
    Warmup(count=1, first_ratio=3.0, stable=True)
    """
    found = find_warmup(values)
    if found is not None:
        return found
    if len(values) < _SHORT_LEAST:
        return Warmup(count=0, stable=False)
    logs = [math.log(value) for value in values]
    count = 0
    while count < min(MOST, len(logs) - _SHORT_LEAST + 1) and _first_is_off(
        logs[count:], least=_SHORT_LEAST_DISTANCE
    ):
        count += 1
    return _warmup(
        logs, count, logs[count:], stable=not _first_is_off(logs[count:], least=_SHORT_LEAST_DISTANCE)
    )


def fixed_warmup(values: Sequence[float], count: int) -> Warmup:
    """Return a warm-up of a fixed number of values."""
    if not 0 < count < len(values):
        return Warmup(count=count)
    logs = [math.log(value) for value in values]
    return _warmup(logs, count, logs[count:], stable=True)


def _warmup(logs: Sequence[float], count: int, rest: Sequence[float], *, stable: bool) -> Warmup:
    first = math.exp(logs[0] - median(rest)) if count else 1.0
    return Warmup(count=count, first_ratio=round(first, 4), stable=stable)


def _is_stable(window: Sequence[float]) -> bool:
    return not _first_is_off(window, least=LEAST_DISTANCE) and abs(_signs(window)) < _STEADY


def _first_is_off(window: Sequence[float], *, least: float) -> bool:
    """Return whether the first value is outside the spread of the others."""
    others = window[1:]
    middle = median(others)
    spread = 1.4826 * median(abs(value - middle) for value in others)
    return abs(window[0] - middle) > max(SPREADS * spread, least)


def _signs(values: Sequence[float]) -> int:
    """Return Kendall's S (Biometrika 30, 1938): the number of rising pairs minus falling pairs."""
    return sum(
        (later > earlier) - (later < earlier)
        for index, earlier in enumerate(values)
        for later in values[index + 1 :]
    )


def units_of_round(trial: Trial, number: int, ended: Collection[int]) -> tuple[Unit, ...]:
    """Return the units of a round, numbered from 0, as entries to start; empty if every entry has ended.

    The entry of the empty shell, if any, is `len(trial.entries)` and runs once in each round.
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
"""Metrics whose verdicts decide when to stop. The other metrics use the same pairs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """Comparison of one entry with its reference in one metric."""

    entry: int
    against: int
    metric: str
    comparison: Comparison


class Contrasts:
    """Every comparison of a trial.

    `samples` returns an entry's runs without warm-ups, in the order of time. `rule` may be replaced before the
    first interim analysis.
    """

    def __init__(self, trial: Trial, rule: Rule, samples: Callable[[int], Sequence[TrialSample]]) -> None:
        self.rule = rule
        self._trial = trial
        self._least = trial.stopping_rule.least
        self._samples = samples
        self._settled: dict[tuple[int, str], Comparison] = {}

    def all(self) -> tuple[Contrast, ...]:
        """Compare every entry with its reference in each metric that has pairs.

        A settled verdict does not change. Other verdicts are those of the last interim analysis, so that stopping
        between two analyses is not another analysis.
        """
        return tuple(
            Contrast(entry=other, against=group.reference, metric=metric, comparison=comparison)
            for group in self._trial.groups
            for other in group.others
            for metric in COMPARED
            if (comparison := self._comparison(group, other, metric)) is not None
        )

    def pairs(self, reference: int, other: int) -> list[tuple[TrialSample, TrialSample]]:
        """Return the runs of both entries that share a unit, in the order of time, without warm-up pairs."""
        by_unit = {sample.unit: sample for sample in self._samples(reference)}
        return [(by_unit[sample.unit], sample) for sample in self._samples(other) if sample.unit in by_unit]

    def settles(self, group: Group, other: int) -> bool:
        """Analyse every metric; return whether the metrics in `DRIVING` are settled.

        Without values above zero there is no ratio, and more pairs would not help.
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
        pairs = pairs[: self.rule.analysed(len(pairs), least=self._least)]
        first = [pair[0].values.get(metric, 0.0) for pair in pairs]
        second = [pair[1].values.get(metric, 0.0) for pair in pairs]
        if not pairs or min(first) <= 0.0 or min(second) <= 0.0:
            return None
        return compare(first, second, self.rule)


ROUNDS_TO_JUDGE = 5
"""Number of rounds after which the cost of a round is known."""

FITTING = 0.9
"""Share of the rounds that fit into the budget at the measured cost."""


class EndReason(StrEnum):
    """Why the measurement of an entry ended."""

    SETTLED = "settled"
    PRECISE = "precise"
    MOST = "most"
    BUDGET = "budget"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class NextRun:
    """The next run: the number of its entry (`len(entries)` for the empty shell), and its unit."""

    entry: int
    unit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialProgress:
    """Finished runs (`done`), and remaining runs and seconds.

    `least`: if the next analysis settles everything. `most`: at most.
    """

    done: int
    runs_least: int
    runs_most: int
    seconds_least: float
    seconds_most: float


class TrialSchedule:
    """Ask/tell object: `ask` returns the next run, or None at the end; `tell` stores its result."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._stopping_rule = trial.stopping_rule
        rule = Rule(
            most=trial.stopping_rule.most,
            comparisons=max(1, trial.comparisons),
            threshold=trial.stopping_rule.threshold,
        )
        self._contrasts = Contrasts(trial, rule, self.samples)
        entries = len(trial.entries) + (trial.shell is not None)
        self._runs: list[list[TrialSample]] = [[] for _ in range(entries)]
        self._warmups: dict[int, Warmup] = {}
        self._queue: list[NextRun] = []
        self._units = 0
        self._rounds = 0
        self._spent = 0.0
        self._end_reason_at_most = EndReason.MOST
        self._ended: dict[int, EndReason] = {}

    @property
    def runs(self) -> Sequence[Sequence[TrialSample]]:
        """Every run of each entry in the order of time, warm-ups first; the empty shell is last."""
        return self._runs

    @property
    def _rule(self) -> Rule:
        return self._contrasts.rule

    @property
    def spent_seconds(self) -> float:
        """Cost of all runs so far."""
        return self._spent

    def ask(self) -> NextRun | None:
        """Return the next run; None if everything is settled or the budget is spent."""
        if not self._queue:
            self._analyse()
            self._queue = list(self._next_round())
        return self._queue[0] if self._queue else None

    def tell(self, sample: TrialSample) -> None:
        """Store the result of the run that `ask` returned."""
        start = self._queue.pop(0)
        assert (start.entry, start.unit) == (sample.entry, sample.unit)
        self._runs[sample.entry].append(sample)
        self._spent += sample.seconds

    def end_reason(self, entry: int) -> EndReason:
        """Return why the measurement of an entry ended; `STOPPED` if it did not end by itself."""
        return self._ended.get(entry, EndReason.STOPPED)

    def warmup(self, entry: int) -> Warmup:
        """Return the warm-up of an entry."""
        return self._decided_warmup(entry) or provisional_warmup(self._walls(entry))

    def samples(self, entry: int) -> Sequence[TrialSample]:
        """Return an entry's runs without warm-ups."""
        return self._runs[entry][self.warmup(entry).count :]

    def contrasts(self) -> tuple[Contrast, ...]:
        """Compare every entry with its reference in each metric, like `Contrasts.all`."""
        return self._contrasts.all()

    def progress(self) -> TrialProgress:
        """Return the remaining runs and seconds, from the cost of runs so far."""
        least = most = seconds_least = seconds_most = 0.0
        for number, starts in self._runs_per_round().items():
            left_least, left_most = self._remaining_rounds(number)
            mean = _mean_seconds(self._runs[number]) * starts
            least, most = least + left_least * starts, most + left_most * starts
            seconds_least, seconds_most = seconds_least + left_least * mean, seconds_most + left_most * mean
        left = max(0.0, self._budget() - self._spent)
        return TrialProgress(
            done=sum(map(len, self._runs)),
            runs_least=round(least),
            runs_most=round(most),
            seconds_least=min(seconds_least, left),
            seconds_most=min(seconds_most, left),
        )

    def _next_round(self) -> Iterator[NextRun]:
        units = units_of_round(self._trial, self._rounds, self._ended)
        self._rounds += bool(units)
        for unit in units:
            self._units += 1
            yield from (NextRun(entry=entry, unit=self._units) for entry in unit)

    def _analyse(self) -> None:
        """Decide which entries have ended. This happens between rounds, where every pair is complete."""
        if not self._rounds:
            return
        if self._rounds == ROUNDS_TO_JUDGE:
            self._adapt_rule()
        for group in self._trial.groups:
            if group.others:
                self._analyse_pairs(group)
            else:
                self._analyse_single(group.reference)
        if self._out_of_budget():
            for number in self._open():
                self._ended[number] = EndReason.BUDGET
        for group in self._trial.groups:
            if group.others and all(other in self._ended for other in group.others):
                ends = {self._ended[other] for other in group.others}
                self._ended[group.reference] = next(
                    reason for reason in reversed(EndReason) if reason in ends
                )

    def _analyse_single(self, number: int) -> None:
        if number in self._ended or self._decided_warmup(number) is None:
            return
        count = len(self.samples(number))
        if count in self._rule.analyses and count >= self._stopping_rule.least:
            walls = [sample.values["wall"] for sample in self.samples(number)]
            if estimate(walls).relative_half_width <= self._stopping_rule.precision:
                self._ended[number] = EndReason.PRECISE
        if count >= self._rule.most:
            self._ended.setdefault(number, self._end_reason_at_most)

    def _analyse_pairs(self, group: Group) -> None:
        for other in group.others:
            if other in self._ended or not (
                self._decided_warmup(other) and self._decided_warmup(group.reference)
            ):
                continue
            count = len(self._contrasts.pairs(group.reference, other))
            due = count in self._rule.analyses and count >= self._stopping_rule.least
            if due and self._contrasts.settles(group, other):
                self._ended[other] = EndReason.SETTLED
            if count >= self._rule.most:
                self._ended.setdefault(other, self._end_reason_at_most)

    def _adapt_rule(self) -> None:
        """Adapt the rule, once, to the number of pairs that the budget allows."""
        rounds = self._rounds * self._budget() / max(self._spent, 1e-9)
        fits = max(self._stopping_rule.guaranteed_runs, int(FITTING * rounds))
        if fits < self._rule.most:
            self._contrasts.rule = replace(self._rule, most=fits)
            self._end_reason_at_most = EndReason.BUDGET

    def _decided_warmup(self, entry: int) -> Warmup | None:
        """Return the warm-up as soon as it is decided."""
        if entry in self._warmups:
            return self._warmups[entry]
        walls = self._walls(entry)
        if self._stopping_rule.warmups is not None:
            return fixed_warmup(walls, self._stopping_rule.warmups)
        most = self._stopping_rule.most
        found = (
            find_warmup(walls)
            if most >= WINDOW
            else provisional_warmup(walls[:most])
            if len(walls) >= most
            else None
        )
        if found is not None:
            self._warmups[entry] = found
        return found

    def _walls(self, entry: int) -> list[float]:
        return [max(sample.values["wall"], 1e-9) for sample in self._runs[entry]]

    def _open(self) -> list[int]:
        """Return the entries that need more runs; a reference runs as long as others need it."""
        return [
            number
            for group in self._trial.groups
            for number in (group.others or (group.reference,))
            if number not in self._ended
        ]

    def _runs_per_round(self) -> dict[int, float]:
        """Return the runs per round of each entry that is still needed."""
        weights: dict[int, float] = {}
        for group in self._trial.groups:
            others = [other for other in group.others if other not in self._ended]
            weights |= dict.fromkeys(others, 1.0)
            if others or (not group.others and group.reference not in self._ended):
                weights[group.reference] = 1.0 if len(others) < 2 else math.ceil(len(others) / 2)
        if weights and self._trial.shell is not None:
            weights[len(self._trial.entries)] = 1.0
        return weights

    def _remaining_rounds(self, number: int) -> tuple[int, int]:
        """Return the remaining rounds of an entry: until the next analysis, and at most."""
        group = next(
            (group for group in self._trial.groups if group.reference == number and group.others), None
        )
        if number == len(self._trial.entries):
            lefts = [self._remaining_rounds(other) for other in self._open()]
        elif group is not None:
            lefts = [self._remaining_rounds(other) for other in group.others if other not in self._ended]
        else:
            done = len(self.samples(number))
            later = [
                count for count in self._rule.analyses if count > done and count >= self._stopping_rule.least
            ]
            analysis = later[0] if later else self._rule.most
            return max(0, analysis - done), max(0, self._rule.most - done)
        return max(least for least, _ in lefts), max(most for _, most in lefts)

    def _budget(self) -> float:
        return self._stopping_rule.budget_seconds * len(self._trial.entries)

    def _out_of_budget(self) -> bool:
        """Return whether the next round exceeds the budget; `guaranteed_runs` are always measured."""
        open_ones = self._open()
        if (
            not open_ones
            or min(len(self.samples(number)) for number in open_ones) < self._stopping_rule.guaranteed_runs
        ):
            return False
        expected = sum(
            _mean_seconds(self._runs[number]) * starts for number, starts in self._runs_per_round().items()
        )
        return self._spent + expected > self._budget()


def _mean_seconds(samples: Sequence[TrialSample]) -> float:
    return sum(each.seconds for each in samples) / len(samples) if samples else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialMetric:
    """Results of one metric of one entry: values in the order of time, estimate and method."""

    unit: str
    values: tuple[float, ...]
    estimate: Estimate
    method: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """Results of one entry. `metrics` is empty if no run counted.

    `flags` limit the meaning of the values; each has the number of affected runs.
    """

    entry: Entry
    runs: int
    metrics: Mapping[str, TrialMetric]
    warmup: Warmup
    end_reason: EndReason
    flags: Mapping[str, int]
    exit_codes: tuple[int | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """Results of a trial; `shell` is the cost of an empty shell, if one was used."""

    trial: Trial
    results: tuple[CommandResult, ...]
    contrasts: tuple[Contrast, ...]
    shell: CommandResult | None
    seconds: float

    @property
    def stopped(self) -> bool:
        """Whether the trial was interrupted."""
        return any(result.end_reason is EndReason.STOPPED for result in self.results)


def trial_result(schedule: TrialSchedule, trial: Trial) -> TrialResult:
    """Return the results of a trial so far."""
    shell = trial.shell
    return TrialResult(
        trial=trial,
        results=tuple(_command_result(schedule, number, entry) for number, entry in enumerate(trial.entries)),
        contrasts=schedule.contrasts(),
        shell=None if shell is None else _command_result(schedule, len(trial.entries), shell),
        seconds=schedule.spent_seconds,
    )


def _command_result(schedule: TrialSchedule, number: int, entry: Entry) -> CommandResult:
    samples = schedule.samples(number)
    return CommandResult(
        entry=entry,
        runs=len(samples),
        metrics=_metrics(samples),
        warmup=schedule.warmup(number),
        end_reason=schedule.end_reason(number),
        flags=Counter(flag for sample in samples for flag in sample.flags),
        exit_codes=tuple(sample.exit_code for sample in samples),
    )


def _metrics(samples: Sequence[TrialSample]) -> Mapping[str, TrialMetric]:
    metrics = {}
    for metric, unit in UNITS.items():
        values = tuple(sample.values[metric] for sample in samples if metric in sample.values)
        methods = dict.fromkeys(sample.methods[metric] for sample in samples if metric in sample.methods)
        if values:
            metrics[metric] = TrialMetric(
                unit=unit, values=values, estimate=estimate(values), method=", ".join(methods)
            )
    return metrics
