"""Samples as they were arranged, held for whatever looks at a study: its objects are made when they are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.model.measurement import InvocationKey, Measurement, Samples
from perftrail.store.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from perftrail.model.measurement import Machine, Outcome, Runnable
    from perftrail.workflows.importing.arranging import Taken


class ArrangedStore(MemoryStore):
    """A `perftrail.ports.Store` in memory whose samples were all taken elsewhere, on one `machine`."""

    def __init__(self, machine: Machine) -> None:
        super().__init__()
        self.add_machine(machine)
        self._taken_on = machine.id
        self._standing: list[Runnable] = []
        self._taken: dict[str, tuple[Taken, ...]] = {}

    def hold(self, runnable: Runnable, taken: tuple[Taken, ...]) -> None:
        """Keep what was taken of a runnable, once."""
        self._standing.append(runnable)
        self._taken[runnable.key] = taken

    def runnables(self, benchmark: str | None = None) -> Sequence[Runnable]:
        """Give every runnable that is held, or those of one benchmark."""
        return [each for each in self._standing if benchmark in (None, each.benchmark)]

    def revisions(self) -> frozenset[str]:
        """Give the ids of the revisions that runnables stand for."""
        return frozenset(each.revision for each in self._standing)

    def outcomes(self, runnables: Collection[str], machine: str) -> Mapping[str, tuple[Outcome, ...]]:
        """Give what is held of runnables as invocations, by ordinal."""
        return {key: tuple(self._measurements(key, machine)) for key in runnables}

    def samples(
        self, runnables: Collection[str], machine: str, metrics: Collection[str]
    ) -> Mapping[str, Samples]:
        """Give what the samples of runnables are of some metrics; nothing of what is not held."""
        return {
            key: _samples(self._held(key, machine), metrics) for key in runnables if self._held(key, machine)
        }

    def _held(self, runnable: str, machine: str) -> tuple[Taken, ...]:
        return self._taken.get(runnable, ()) if machine == self._taken_on else ()

    def _measurements(self, runnable: str, machine: str) -> Iterator[Measurement]:
        ordinal = 0
        for each in self._held(runnable, machine):
            for place in range(len(each)):
                values = {name: taken[place] for name, taken in each.values.items() if place < len(taken)}
                yield Measurement(
                    key=InvocationKey(runnable=runnable, machine=machine, phase="sample", ordinal=ordinal),
                    started=each.started,
                    seconds=0.0,
                    values=values,
                    methods={name: each.methods[name] for name in values},
                    flags=each.flags,
                )
                ordinal += 1


def _samples(taken: Sequence[Taken], metrics: Collection[str]) -> Samples:
    values: dict[str, dict[int, float]] = {}
    flags: dict[int, tuple[str, ...]] = {}
    first = 0
    for each in taken:
        for name in metrics:
            if name in each.values:
                values.setdefault(name, {}).update(enumerate(each.values[name], first))
        if each.flags:
            flags.update(dict.fromkeys(range(first, first + len(each)), each.flags))
        first += len(each)
    return Samples(values=values, flags=flags)
