"""The bench: each planned start happens once; what the store holds is not done again.

Which start comes next: the state of each runnable, from the store and from what was just measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from perftrail.measure.events import Invoked
from perftrail.measure.subjects import Start
from perftrail.model.measurement import (
    UNDRAWN,
    FailedInvocation,
    InvocationKey,
    Marked,
    Measurement,
    enough_quiet,
    sift,
    weight,
)
from perftrail.stats.estimate import enough

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from perftrail.measure.events import Event
    from perftrail.measure.invoker import Invoker
    from perftrail.measure.subjects import Ready
    from perftrail.model.measurement import Draw, Machine, Outcome, Phase
    from perftrail.model.study import MeasurePolicy
    from perftrail.ports import Engine, Pending, Store


class Bench:
    """Performs starts through the engine, commits each outcome before the next, and knows all of them.

    `begin` hands a start out where another machine performs it, which `machine` then is.
    """

    def __init__(
        self,
        *,
        store: Store,
        engine: Engine,
        invoker: Invoker,
        machine: Machine,
        begin: Callable[[Start], Pending[Outcome]] | None = None,
    ) -> None:
        self._store = store
        self._begin = begin or partial(engine.begin, invoker.invoke)
        self.invoker = invoker
        self.machine = machine
        self._handed: dict[InvocationKey, Pending[Outcome]] = {}
        self._known: dict[str, dict[tuple[Phase, int], Outcome]] = {}
        self.started = 0

    def key(self, ready: Ready, phase: Phase, ordinal: int) -> InvocationKey:
        """Name a start of something ready on this machine."""
        return InvocationKey(
            runnable=ready.runnable.key, machine=self.machine.id, phase=phase, ordinal=ordinal
        )

    def recall(self, readies: Iterable[Ready]) -> None:
        """Read what the store holds of things that are ready, all in one go."""
        unknown = {ready.runnable.key for ready in readies} - self._known.keys()
        if not unknown:
            return
        held = self._store.outcomes(tuple(unknown), self.machine.id)
        for key in unknown:
            self._known[key] = {(each.key.phase, each.key.ordinal): each for each in held.get(key, ())}

    def known(self, ready: Ready) -> Mapping[tuple[Phase, int], Outcome]:
        """Every outcome of something ready on this machine, by phase and ordinal."""
        self.recall((ready,))
        return self._known[ready.runnable.key]

    def perform(self, starts: Sequence[Start] | Iterable[Start]) -> Generator[Event, None, None]:
        """Perform starts in order, each committed before the next begins, but for those handed out ahead."""
        for start in starts:
            outcome = (self._handed.pop(start.key, None) or self._begin(start)).outcome()
            self._store.add(outcome)
            self._known[outcome.key.runnable][outcome.key.phase, outcome.key.ordinal] = outcome
            self.started += 1
            yield Invoked(cell=start.ready.cell, outcome=outcome)

    def hand_out(self, ready: Ready, wanted: Iterable[tuple[Phase, int]], *, draw: Draw = UNDRAWN) -> None:
        """Hand starts out that are not known, in this order; `outcome` then waits for what came of each."""
        keys = (self.key(ready, phase, ordinal) for phase, ordinal in wanted)
        self.begin(Start(ready=ready, key=key, draw=draw) for key in keys)

    def begin(self, starts: Iterable[Start]) -> None:
        """Hand starts out that are not known, in this order; `perform` then waits for the outcome of each."""
        for start in starts:
            known = self.known(start.ready)
            if (start.key.phase, start.key.ordinal) not in known and start.key not in self._handed:
                self._handed[start.key] = self._begin(start)

    def take_back(self) -> None:
        """Forget what was handed out and not asked for; what of it was not begun yet will not be."""
        self._handed.clear()

    def outcome(
        self, ready: Ready, phase: Phase, ordinal: int, *, draw: Draw = UNDRAWN
    ) -> Generator[Event, None, Outcome]:
        """Give one outcome, started now, with this draw, only when it is not known."""
        known = self.known(ready)
        if (phase, ordinal) not in known:
            start = Start(ready=ready, key=self.key(ready, phase, ordinal), draw=draw)
            yield from self.perform((start,))
        return known[phase, ordinal]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What is known of one runnable so far, and what it still lacks. `metrics` decide when it is enough.

    Failures that are `forgiven` do not count: what failed is tried again.
    """

    known: Mapping[tuple[Phase, int], Outcome]
    policy: MeasurePolicy
    metrics: tuple[str, ...]
    forgiven: AbstractSet[tuple[Phase, int]] = frozenset()

    @property
    def warmups(self) -> Sequence[Outcome]:
        """The warm-ups so far, by ordinal."""
        return self._of("warmup")

    @property
    def samples(self) -> Sequence[Outcome]:
        """The samples so far, by ordinal."""
        return self._of("sample")

    @property
    def measurements(self) -> Sequence[Measurement]:
        """The samples that gave values."""
        return [outcome for outcome in self.samples if isinstance(outcome, Measurement)]

    @property
    def broken(self) -> bool:
        """Whether starting it again is pointless: its first start failed, or most did."""
        failed = sum(not isinstance(outcome, Measurement) for outcome in (*self.warmups, *self.samples))
        return failed > len(self.measurements)

    @property
    def gave_up(self) -> bool:
        """Whether it ran into a limit, beyond which larger points are not tried where the study says `give_up`."""
        outcomes = (*self.warmups, *self.samples)
        failed = (outcome for outcome in outcomes if isinstance(outcome, FailedInvocation))
        return self.broken and any(outcome.failure.is_limit for outcome in failed)

    @property
    def left(self) -> tuple[int, int]:
        """How many starts it lacks: at least, and at most."""
        if self.broken or self._enough():
            return (0, 0)
        warmups = max(0, self.policy.warmups - len(self.warmups))
        invocations = self.policy.invocations
        count = len(self.samples)
        return (warmups + max(1, invocations.least - count), warmups + invocations.most - count)

    @property
    def seconds_each(self) -> float:
        """What one start takes, from those there are; zero when there is none yet."""
        seconds = [outcome.seconds for outcome in (*self.warmups, *self.samples)]
        return sum(seconds) / len(seconds) if seconds else 0.0

    @property
    def next(self) -> tuple[Phase, int]:
        """The start that it lacks first: warm-ups before samples, then the first ordinal that is free."""
        phase: Phase = "warmup" if len(self.warmups) < self.policy.warmups else "sample"
        ordinal = 0
        while (phase, ordinal) in self.known:
            ordinal += 1
        return phase, ordinal

    def _of(self, phase: Phase) -> Sequence[Outcome]:
        return [self.known[key] for key in sorted(self.known) if key[0] == phase and key not in self.forgiven]

    def _enough(self) -> bool:
        count, taken = self.policy.invocations, len(self.samples)
        if taken >= count.most:
            return True
        quiet = sum(weight(measurement.flags) > 0.0 for measurement in self.measurements)
        lacking = quiet < len(self.measurements) and not enough_quiet(quiet, least=count.least)
        if lacking and taken < 2 * count.least:
            # Marked samples are made up for, but not for ever: where it is always busy, all are used.
            return False
        return taken >= count.least and all(self._precise(metric) for metric in self.metrics)

    def _precise(self, metric: str) -> bool:
        """Whether one metric is known well enough from the samples that its estimate will use."""
        marked = marked_values(self.measurements, metric)
        values = sift(marked, least=self.policy.invocations.least).values
        return enough(
            values,
            least=min(self.policy.invocations.least, len(values)),
            most=self.policy.invocations.most,
            precision=self.policy.precision,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally(Standing):
    """The standing of a runnable that is at hand, to be started."""

    ready: Ready


def marked_values(measurements: Sequence[Measurement], metric: str) -> Sequence[Marked]:
    """Give the values of a metric, each with the marks of its sample."""
    return [
        Marked(value=each.values[metric], flags=each.flags) for each in measurements if metric in each.values
    ]
