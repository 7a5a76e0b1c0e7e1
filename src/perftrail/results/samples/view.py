"""Serve imported samples as a view of a study, read from the files each time it is opened.

`ArrangedStore` creates its objects on demand.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from perftrail.measure.session import View
from perftrail.model.build import content_key
from perftrail.model.measurement import InvocationKey, Machine, Measurement, Runnable, Samples
from perftrail.model.recipe import Variant
from perftrail.results.samples.reading import MACHINE, arrange, read_samples
from perftrail.sources.listed import ListedSource
from perftrail.store.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from perftrail.model.measurement import Outcome
    from perftrail.model.plan import Cell
    from perftrail.model.study import Study
    from perftrail.results.samples.reading import Arranged, FileValues, Read


NO_RANGES = "imported revisions have no ranges; omit the range"


class ArrangedStore(MemoryStore):
    """A `perftrail.ports.Store` in memory whose samples were all taken on one other `machine`."""

    def __init__(self, machine: Machine) -> None:
        super().__init__()
        self.add_machine(machine)
        self._taken_on = machine.id
        self._standing: list[Runnable] = []
        self._taken: dict[str, tuple[FileValues, ...]] = {}

    def hold(self, runnable: Runnable, taken: tuple[FileValues, ...]) -> None:
        """Add the samples of a runnable, once."""
        self._standing.append(runnable)
        self._taken[runnable.key] = taken

    def runnables(self, benchmark: str | None = None) -> Sequence[Runnable]:
        """Return every runnable in the store, or those of one benchmark."""
        return [each for each in self._standing if benchmark in (None, each.benchmark)]

    def ran(self, runnables: Collection[str], machine: str) -> frozenset[str]:
        """Return the runnables, among these, that have samples."""
        return frozenset(key for key in runnables if self._held(key, machine))

    def sampled_machines(self) -> frozenset[str]:
        """Return the one machine."""
        return frozenset({self._taken_on})

    def revisions(self) -> frozenset[str]:
        """Return the ids of the runnables' revisions."""
        return frozenset(each.revision for each in self._standing)

    def outcomes(self, runnables: Collection[str], machine: str) -> Mapping[str, tuple[Outcome, ...]]:
        """Return the samples of runnables as invocations, by ordinal."""
        return {key: tuple(self._measurements(key, machine)) for key in runnables}

    def samples(
        self, runnables: Collection[str], machine: str, metrics: Collection[str]
    ) -> Mapping[str, Samples]:
        """Return the samples of runnables for some metrics; unknown runnables are missing."""
        return {
            key: _samples(self._held(key, machine), metrics) for key in runnables if self._held(key, machine)
        }

    def _held(self, runnable: str, machine: str) -> tuple[FileValues, ...]:
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


def _samples(taken: Sequence[FileValues], metrics: Collection[str]) -> Samples:
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


def samples_view(study: Study) -> View:
    """Read a study's files and arrange them as a view, so that every reading command can use them.

    Its benchmarks and variants are those of the files; its store has their samples and is in memory. Raises
    `SourceError` for unreadable files, or for files without samples.
    """
    read = read_samples(study)
    arranged = arrange(read.files)
    known = replace(
        study, benchmarks=arranged.benchmarks, variants={name: Variant() for name in arranged.variants}
    )
    machine = machine_of(arranged, read)
    source, store = ListedSource(arranged.revisions, no_range=NO_RANGES), ArrangedStore(machine)
    for cell, taken in arranged.taken.items():
        store.hold(_runnable(cell), taken)
    return View(study=known, machine=machine, source=source, store=store)


def _runnable(cell: Cell) -> Runnable:
    """Return a cell's runnable. Each subject is a separate artefact: equality of imported builds is never known."""
    subject, point = cell.subject, cell.point.as_dict()
    artefact = content_key("imported", subject.revision.id, subject.variant)
    return Runnable(
        key=content_key("imported cell", artefact, cell.benchmark, point),
        revision=subject.revision.id,
        variant=subject.variant,
        benchmark=cell.benchmark,
        point=cell.point,
        artefact=artefact,
    )


def machine_of(arranged: Arranged, read: Read) -> Machine:
    """Return a machine that never equals this one; its facts come from the files."""
    formats = ", ".join(dict.fromkeys(file.format for file in read.files))
    left_out = {"left out": ", ".join(read.left_out)} if read.left_out else {}
    return Machine(
        id=f"imported-{content_key(*arranged.machines)[:16]}",
        facts={
            MACHINE: ", ".join(arranged.machines),
            "imported from": f"{len(read.files)} files ({formats})",
            **left_out,
        },
    )
