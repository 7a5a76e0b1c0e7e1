"""Run planned invocations once each, and record their outcomes.

`InvocationRunner` performs invocations that the store does not contain yet. `RunnableOutcomes` computes which
invocation a runnable needs next. `Disagreement` is a difference in metrics that must be equal for all variants and
revisions.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, TypedDict

from perftrail.errors import NoAnswer
from perftrail.measure.events import Invoked, Invoking
from perftrail.measure.subjects import PlannedInvocation
from perftrail.model.benchmark import Value
from perftrail.model.measurement import UNDRAWN, FailedInvocation, InvocationKey, Measurement
from perftrail.model.noisy_samples import enough_quiet, weight
from perftrail.stats.estimate import enough

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping

    from perftrail.measure.events import Event
    from perftrail.measure.invocation import Invoker
    from perftrail.measure.opened_inputs import OpenedInputs
    from perftrail.measure.subjects import Ready
    from perftrail.model.benchmark import Point
    from perftrail.model.build import Failure
    from perftrail.model.measurement import Draw, Machine, Outcome, Phase
    from perftrail.model.plan import Cell
    from perftrail.model.study import MeasurePolicy, Study
    from perftrail.model.subject import Subject
    from perftrail.ports import Engine, Pending, Store


MOST_REPEATED = 20
"""Repetitions in a row of an invocation whose end is no result."""


class InvocationRunner:
    """Performs invocations through the engine, and commits each outcome before the next one starts.

    A failure that this machine caused is not stored, so that the next command repeats the invocation.

    `begin` starts an invocation on another `machine`; default: the engine starts it on this one. `opened` observes
    which files the benchmarks open. `repeated` counts the runs whose end was no result (`retry_on`).
    """

    def __init__(
        self,
        *,
        store: Store,
        engine: Engine,
        invoker: Invoker,
        machine: Machine,
        begin: Callable[[PlannedInvocation], Pending[Outcome]] | None = None,
        opened: OpenedInputs | None = None,
    ) -> None:
        self._store = store
        self._begin = begin or partial(engine.begin, invoker.invoke)
        self.invoker = invoker
        self.machine = machine
        self._submitted: dict[InvocationKey, Pending[Outcome]] = {}
        self._known: dict[str, dict[tuple[Phase, int], Outcome]] = {}
        self._performed: set[InvocationKey] = set()
        self.repeated = 0
        self._not_kept = 0
        self._opened = opened
        self._is_local = begin is None

    @property
    def started(self) -> int:
        """Number of invocations that this runner performed."""
        return len(self._performed) + self._not_kept

    def performed(self, key: InvocationKey) -> bool:
        """Whether `perform` started an invocation; otherwise its outcome was stored before."""
        return key in self._performed

    def plan(self, ready: Ready, phase: Phase, ordinal: int, *, draw: Draw = UNDRAWN) -> PlannedInvocation:
        """Return an invocation on this machine, with its key in the store."""
        key = InvocationKey(
            runnable=ready.runnable.key, machine=self.machine.id, phase=phase, ordinal=ordinal
        )
        return PlannedInvocation(ready=ready, key=key, draw=draw)

    def load_outcomes(self, ready_cells: Iterable[Ready]) -> None:
        """Read the stored outcomes of several prepared cells in one query."""
        unknown = {ready.runnable.key for ready in ready_cells} - self._known.keys()
        if not unknown:
            return
        stored = self._store.outcomes(tuple(unknown), self.machine.id)
        for key in unknown:
            self._known[key] = {(each.key.phase, each.key.ordinal): each for each in stored.get(key, ())}

    def stored(self, ready_cells: Iterable[Ready]) -> Mapping[str, tuple[Outcome, ...]]:
        """Read the stored outcomes of several prepared cells, by runnable; the runner does not keep them in memory."""
        keys = tuple({ready.runnable.key: None for ready in ready_cells})
        return self._store.outcomes(keys, self.machine.id) if keys else {}

    def known(self, ready: Ready) -> Mapping[tuple[Phase, int], Outcome]:
        """Return every outcome of a prepared cell on this machine, by phase and ordinal."""
        self.load_outcomes((ready,))
        return self._known[ready.runnable.key]

    def next_ordinal(self, *ready_cells: Ready) -> int:
        """Return the ordinal after the last sample of several prepared cells."""
        known = (key for ready in ready_cells for key in self.known(ready))
        return 1 + max((ordinal for phase, ordinal in known if phase == "sample"), default=-1)

    def perform(self, invocations: Iterable[PlannedInvocation]) -> Generator[Event, None, None]:
        """Perform the invocations that have no outcome yet, in order; commit each before the next begins.

        Invocations that were submitted before may already run. One that ends as `retry_on` of its benchmark says is
        repeated: it is no result. Raises `NoAnswer` after too many of these in a row.
        """
        for planned in invocations:
            if not self._is_known(planned):
                yield Invoking(cell=planned.ready.cell)
                outcome = self._perform(planned)
                self._known[outcome.key.runnable][outcome.key.phase, outcome.key.ordinal] = outcome
                self._performed.add(outcome.key)
                yield Invoked(cell=planned.ready.cell, outcome=outcome)
                yield from self._observe(planned.ready, outcome)

    def perform_new(self, invocations: Iterable[PlannedInvocation]) -> Generator[Event, None, None]:
        """Perform invocations without outcomes, as `perform` does, for a caller that counts the outcomes itself.

        The runner keeps none of them in memory; it reads them from the store if somebody requests them later.
        """
        for planned in invocations:
            self._known.pop(planned.key.runnable, None)
            yield Invoking(cell=planned.ready.cell)
            outcome = self._perform(planned)
            self._not_kept += 1
            yield Invoked(cell=planned.ready.cell, outcome=outcome)
            yield from self._observe(planned.ready, outcome)

    def _perform(self, planned: PlannedInvocation) -> Outcome:
        """Return an outcome, and store it, unless this machine caused a failure. Raises `InputChanged`."""
        outcome = (self._submitted.pop(planned.key, None) or self._begin(planned)).outcome()
        ends, repeated = self.invoker.study.benchmarks[planned.ready.cell.benchmark].retry_on, 0
        while isinstance(outcome, FailedInvocation) and outcome.failure.ended_with(ends):
            if repeated == MOST_REPEATED:
                raise NoAnswer(
                    f"{planned.ready.cell}: {outcome.failure.message.partition(':')[0]} in {repeated + 1} runs in a "
                    f"row, which retry_on of [benchmark.{planned.ready.cell.benchmark}] repeats"
                )
            repeated += 1
            self.repeated += 1
            outcome = self._begin(planned).outcome()
        planned.ready.check_inputs()
        if not (isinstance(outcome, FailedInvocation) and outcome.failure.may_pass):
            self._store.add(outcome)
        return outcome

    def _observe(self, ready: Ready, outcome: Outcome) -> Iterator[Event]:
        """Observe which files a runnable opens, once: after an invocation that did not fail, and outside of it."""
        if self._opened is not None and isinstance(outcome, Measurement):
            opened_files = partial(self.invoker.opened_files, ready) if self._is_local else None
            yield from self._opened.observe(ready.cell, ready.runnable.key, opened_files)

    def submit(self, invocations: Iterable[PlannedInvocation]) -> None:
        """Submit the invocations that have no outcome yet, in this order; `perform` then waits for each."""
        for planned in invocations:
            if not self._is_known(planned) and planned.key not in self._submitted:
                self._submitted[planned.key] = self._begin(planned)

    def withdraw(self) -> None:
        """Withdraw submitted invocations that no caller has requested and that have not begun."""
        self._submitted.clear()

    def outcome(
        self, ready: Ready, phase: Phase, ordinal: int, *, draw: Draw = UNDRAWN
    ) -> Generator[Event, None, Outcome]:
        """Return one outcome; start the invocation with this draw only if the outcome is unknown."""
        yield from self.perform((self.plan(ready, phase, ordinal, draw=draw),))
        return self.known(ready)[phase, ordinal]

    def _is_known(self, planned: PlannedInvocation) -> bool:
        return (planned.key.phase, planned.key.ordinal) in self.known(planned.ready)


@dataclass(slots=True, kw_only=True)
class RunnableOutcomes:
    """The outcomes of one runnable in a compact form, and the invocations that it still needs for its `metrics`.

    It keeps a few numbers of each outcome: a run of 50,000 invocations would fill the memory with whole outcomes.
    `same_values` are the different values of the metrics in `same`.
    """

    policy: MeasurePolicy
    metrics: tuple[str, ...]
    same: tuple[str, ...] = ()
    same_values: dict[str, dict[float, None]] = field(default_factory=dict)
    done: int = 0
    _warmups: int = 0
    _samples: int = 0
    _measured: int = 0
    _quiet: int = 0
    _failures: int = 0
    _reached_limit: bool = False
    _seconds: float = 0.0
    _quiet_values: dict[str, array[float]] = field(default_factory=dict)
    _noisy_values: dict[str, array[float]] = field(default_factory=dict)
    _next: dict[Phase, int] = field(default_factory=dict)
    _beyond: set[tuple[Phase, int]] = field(default_factory=set)

    @classmethod
    def of(
        cls, outcomes: Iterable[Outcome], *, policy: MeasurePolicy, metrics: tuple[str, ...]
    ) -> RunnableOutcomes:
        """Return the state of a runnable with these outcomes."""
        found = RunnableOutcomes(policy=policy, metrics=metrics)
        for outcome in outcomes:
            found.add(outcome)
        return found

    def add(self, outcome: Outcome) -> None:
        """Count an outcome. Each key is added once."""
        self.skip(outcome)
        self._seconds += outcome.seconds
        is_sample = outcome.key.phase == "sample"
        if is_sample:
            self._samples += 1
        else:
            self._warmups += 1
        if isinstance(outcome, FailedInvocation):
            self._failures += 1
            self._reached_limit = self._reached_limit or outcome.failure.is_limit
            return
        for name in self.same:
            self.same_values.setdefault(name, {})[outcome.values[name]] = None
        if is_sample:
            self._add_sample(outcome)

    def skip(self, outcome: Outcome) -> None:
        """Only mark the outcome's ordinal as used: perftrail repeats the invocation with another ordinal."""
        self.done += 1
        phase, ordinal = outcome.key.phase, outcome.key.ordinal
        if ordinal != self._next.get(phase, 0):
            self._beyond.add((phase, ordinal))
            return
        ordinal += 1
        while (phase, ordinal) in self._beyond:
            self._beyond.remove((phase, ordinal))
            ordinal += 1
        self._next[phase] = ordinal

    def _add_sample(self, sample: Measurement) -> None:
        self._measured += 1
        is_quiet = weight(sample.flags) > 0.0
        self._quiet += is_quiet
        values = self._quiet_values if is_quiet else self._noisy_values
        for metric in self.metrics:
            if metric in sample.values:
                values.setdefault(metric, array("d")).append(sample.values[metric])

    @property
    def measured(self) -> int:
        """Number of samples with values."""
        return self._measured

    @property
    def broken(self) -> bool:
        """Whether further invocations are pointless, because most failed."""
        return 2 * self._failures > self._warmups + self._samples

    @property
    def gave_up(self) -> bool:
        """Whether an invocation reached a limit; `give_up` then skips larger points."""
        return self.broken and self._reached_limit

    @property
    def left(self) -> tuple[int, int]:
        """Return the minimum and the maximum number of invocations that are missing."""
        if self.broken or self._enough():
            return (0, 0)
        warmups = max(0, self.policy.warmups - self._warmups)
        invocations = self.policy.invocations
        return (
            warmups + max(1, invocations.least - self._samples),
            warmups + invocations.most - self._samples,
        )

    @property
    def seconds_each(self) -> float:
        """Mean seconds of one invocation so far; zero before the first."""
        count = self._warmups + self._samples
        return self._seconds / count if count else 0.0

    @property
    def next(self) -> tuple[Phase, int]:
        """Return the next missing invocation: warm-ups before samples, lowest free ordinal first."""
        phase: Phase = "warmup" if self._warmups < self.policy.warmups else "sample"
        return phase, self._next.get(phase, 0)

    def _enough(self) -> bool:
        wanted, count = self.policy.invocations, self._samples
        if count >= wanted.most:
            return True
        lacking = self._quiet < self._measured and not enough_quiet(self._quiet, least=wanted.least)
        if lacking and count < 2 * wanted.least:
            # Noisy samples are repeated, but not without limit: on a machine that is always noisy, all are used.
            return False
        return count >= wanted.least and all(self._precise(metric) for metric in self.metrics)

    def _precise(self, metric: str) -> bool:
        """Whether one metric is precise enough in the samples that `select_samples` chooses for its estimate."""
        least = self.policy.invocations.least
        quiet = self._quiet_values.get(metric, ())
        noisy = self._noisy_values.get(metric, ())
        values = quiet if enough_quiet(len(quiet), least=least) else (*quiet, *noisy)
        return enough(
            values,
            least=min(least, len(values)),
            most=self.policy.invocations.most,
            precision=self.policy.precision,
        )


@dataclass(slots=True, kw_only=True)
class ReadyOutcomes(RunnableOutcomes):
    """The outcomes of a runnable that is ready to start."""

    ready: Ready


def most_failed(outcomes: Collection[Outcome]) -> Failure | None:
    """Return the first failure if more than half of the invocations failed, warm-ups included; else `None`.

    Further invocations of such a runnable are pointless. If the first invocation failed, there are no others.
    """
    failures = [each.failure for each in outcomes if isinstance(each, FailedInvocation)]
    return failures[0] if 2 * len(failures) > len(outcomes) else None


def mean_seconds(outcomes: Collection[Outcome]) -> float:
    """Return the mean seconds of invocations; zero without any."""
    return sum(each.seconds for each in outcomes) / len(outcomes) if outcomes else 0.0


class DisagreeingValueJson(TypedDict):
    """A value, and the subjects that printed it."""

    value: float
    subjects: list[str]


class DisagreementJson(TypedDict):
    """Subjects that printed different values of a metric that must be equal."""

    benchmark: str
    metric: str
    point: dict[str, Value]
    values: list[DisagreeingValueJson]


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """A metric whose values differ at a point, with the subjects that printed each value."""

    benchmark: str
    metric: str
    point: Point
    subjects_by_value: Mapping[float, tuple[Subject, ...]]

    def as_json(self) -> DisagreementJson:
        """Return the disagreement as `run --json` prints it."""
        return {
            "benchmark": self.benchmark,
            "metric": self.metric,
            "point": dict(self.point.values),
            "values": [
                {"value": value, "subjects": [str(subject) for subject in subjects]}
                for value, subjects in self.subjects_by_value.items()
            ],
        }


def disagreements(
    study: Study, measured: Iterable[tuple[Cell, RunnableOutcomes]]
) -> tuple[Disagreement, ...]:
    """Return the disagreements of metrics declared as ``same``, over all invocations, warm-ups included."""
    found: dict[tuple[str, str, Point], dict[float, dict[Subject, None]]] = {}
    for cell, outcomes in measured:
        metrics = study.benchmarks[cell.benchmark].metrics
        for name in (name for name, metric in metrics.items() if metric.same):
            given = found.setdefault((cell.benchmark, name, cell.point), {})
            for value in outcomes.same_values.get(name, ()):
                given.setdefault(value, {})[cell.subject] = None
    return tuple(
        Disagreement(
            benchmark=benchmark,
            metric=metric,
            point=point,
            subjects_by_value={value: tuple(subjects) for value, subjects in given.items()},
        )
        for (benchmark, metric, point), given in found.items()
        if len(given) > 1
    )
