"""The bench: each planned start happens once; what the store holds is not done again."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from perftrail.model.measurement import UNDRAWN, InvocationKey
from perftrail.workflows.events import Invoked
from perftrail.workflows.workshop import Start

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping, Sequence

    from perftrail.model.measurement import Draw, Machine, Outcome, Phase
    from perftrail.ports import Engine, Pending, Store
    from perftrail.workflows.events import Event
    from perftrail.workflows.invoker import Invoker
    from perftrail.workflows.workshop import Ready


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
