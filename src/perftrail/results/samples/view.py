"""Serve imported samples as a view of a study, read from the files each time it is opened.

`ArrangedStore` creates its objects on demand. `NothingToMake` is a builder whose subjects all exist.
`ListedSource` is a source whose revisions have names and an order, but no content.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from perftrail.errors import CheckoutFailed, UsageError
from perftrail.measure.session import View
from perftrail.measure.subjects import Workshop
from perftrail.model.build import BuildRecord, Built, Prepared, content_key
from perftrail.model.measurement import InvocationKey, Machine, Measurement, Runnable, Samples
from perftrail.model.plan import RunnableKeys
from perftrail.model.recipe import Variant
from perftrail.results.samples.reading import MACHINE, arrange, read_samples
from perftrail.sources.ranges import Unrelated
from perftrail.store.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from perftrail.model.benchmark import Point
    from perftrail.model.build import Failure, Recipe, Workplace
    from perftrail.model.measurement import Outcome
    from perftrail.model.plan import Cell
    from perftrail.model.study import Study
    from perftrail.model.subject import Revision, Subject
    from perftrail.results.samples.reading import Arranged, Read, Taken


class ArrangedStore(MemoryStore):
    """A `perftrail.ports.Store` in memory whose samples were all taken on one other `machine`."""

    def __init__(self, machine: Machine) -> None:
        super().__init__()
        self.add_machine(machine)
        self._taken_on = machine.id
        self._standing: list[Runnable] = []
        self._taken: dict[str, tuple[Taken, ...]] = {}

    def hold(self, runnable: Runnable, taken: tuple[Taken, ...]) -> None:
        """Add the samples of a runnable, once."""
        self._standing.append(runnable)
        self._taken[runnable.key] = taken

    def runnables(self, benchmark: str | None = None) -> Sequence[Runnable]:
        """Return every runnable in the store, or those of one benchmark."""
        return [each for each in self._standing if benchmark in (None, each.benchmark)]

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


NO_SOURCES: Mapping[str, Revision] = {}


class NothingToMake:
    """A `perftrail.ports.Builder` whose subjects all exist already, in no directory.

    Each subject is a separate artefact: equality of imported builds is never known.
    """

    hands = 1

    def key(self, subject: Subject, recipe: Recipe) -> str:  # noqa: ARG002 - nothing is built
        """Return a subject's key, from its revision and variant."""
        return _name(subject)

    def made(self, subject: Subject) -> Prepared:
        """Return a subject and its benchmarks, which share one build."""
        name = _name(subject)
        built = Built(key=name, artefact=name, directory="", seconds=0.0)
        return Prepared(built=built, out="", artefact=_benchmarks(built))

    def begin(self, subjects: Iterable[tuple[Subject, Recipe]]) -> None:
        """Do nothing."""

    def make(self, subject: Subject, recipe: Recipe) -> Built:  # noqa: ARG002 - nothing is built
        """Return a subject's build."""
        return self.made(subject).built

    def layout_key(self, built: Built, recipe: Recipe, layout: int) -> str:  # noqa: ARG002 - nothing is linked
        """Return a key that no build ever has."""
        return content_key("imported layout", built.key, layout)

    def relink(
        self,
        subject: Subject,
        recipe: Recipe,  # noqa: ARG002 - as above
        built: Built,  # noqa: ARG002 - as above
        layouts: Sequence[int],  # noqa: ARG002 - as above
    ) -> Mapping[int, Built | Failure]:
        """Raise `UsageError`: imported samples cannot be relinked."""
        raise UsageError(f"{subject}: its samples are imported; there is nothing to relink")

    def prepare(
        self,
        built: Built,
        *,
        steps: Sequence[str],
        env: Mapping[str, str],
        files: Collection[str],
        timeout_seconds: float,  # noqa: ARG002 - nothing is built
        sources: Mapping[str, Revision] = NO_SOURCES,
    ) -> Prepared:
        """Return a benchmark of a subject."""
        artefact = self.link_key(built, steps=steps, env=env, files=files, sources=sources)
        return Prepared(built=built, out="", artefact=artefact)

    def need(self, subjects: Iterable[tuple[Subject, Recipe]]) -> None:
        """Do nothing."""

    def news(self) -> tuple[str, ...]:
        """Return no messages: nothing was done."""
        return ()

    def confirm(self, witnesses: Iterable[tuple[Subject, Recipe]] = ()) -> None:
        """Do nothing."""

    def link_key(
        self,
        built: Built,
        *,
        steps: Sequence[str],  # noqa: ARG002 - none is run
        env: Mapping[str, str],  # noqa: ARG002 - as above
        files: Collection[str],  # noqa: ARG002 - as above
        sources: Mapping[str, Revision] = NO_SOURCES,  # noqa: ARG002 - as above
    ) -> str:
        """Return the key of a subject's benchmarks."""
        return _benchmarks(built)

    def lay_out(self, subject: Subject, recipe: Recipe, directory: str) -> Workplace:  # noqa: ARG002 - there is none
        """Raise `UsageError`: imported samples have no tree."""
        raise UsageError(f"{subject}: its samples are imported; there is nothing to build")

    def command_placeholders(self, prepared: Prepared) -> Mapping[str, str]:  # noqa: ARG002 - no command is run
        """Return no placeholders: no command runs."""
        return {}


def _name(subject: Subject) -> str:
    return content_key("imported", subject.revision.id, subject.variant)


def _benchmarks(built: Built) -> str:
    return content_key("imported benchmark", built.key)


class ListedSource(Unrelated):
    """A `perftrail.ports.Source` of given revisions, oldest first, which cannot be checked out."""

    def __init__(self, revisions: Sequence[Revision]) -> None:
        super().__init__(no_range="imported revisions have no ranges; omit the range")
        self._revisions = tuple(revisions)

    def history(self, range: str | None = None) -> tuple[Revision, ...]:
        """Return the revisions. Raises `SourceError` for a range."""
        self.refuse_range(range)
        return self._revisions

    def materialise(self, revision: Revision, directory: str, log: str) -> None:
        """Raise `CheckoutFailed`: the revisions have no content."""
        raise CheckoutFailed(
            f"{revision.short}: only its samples are available; {directory} stays empty, see {log}"
        )


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
    source, store, builder = ListedSource(arranged.revisions), ArrangedStore(machine), NothingToMake()
    made: dict[Subject, Prepared] = {}
    keys: dict[tuple[str, str, Point], RunnableKeys] = {}
    for cell, taken in arranged.taken.items():
        subject, alike = cell.subject, (cell.subject.variant, cell.benchmark, cell.point)
        if subject not in made:
            made[subject] = prepared = builder.made(subject)
            store.add_build(_record(subject, prepared.built.key, prepared.built))
            store.add_build(_record(subject, prepared.artefact, prepared))
        if alike not in keys:
            keys[alike] = RunnableKeys(known, cell)
        key = keys[alike].key(made[subject], subject.revision)
        store.hold(_runnable(cell, key, made[subject]), taken)
    workshop = Workshop(known, source, builder, store)
    return View(study=known, machine=machine, source=source, store=store, workshop=workshop)


def _runnable(cell: Cell, key: str, prepared: Prepared) -> Runnable:
    return Runnable(
        key=key,
        revision=cell.subject.revision.id,
        variant=cell.subject.variant,
        benchmark=cell.benchmark,
        point=cell.point,
        artefact=prepared.artefact,
    )


def _record(subject: Subject, key: str, outcome: Built | Prepared) -> BuildRecord:
    return BuildRecord(key=key, revision=subject.revision.id, variant=subject.variant, outcome=outcome)


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
