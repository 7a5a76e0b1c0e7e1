"""A study of samples as every other study is looked at: its files are read anew each time it is opened.

Samples as they were arranged, held for whatever looks at a study: its objects are made when they are asked for.

A builder for subjects that were measured elsewhere: it names them, and makes none.

Revisions that somebody else lists: their names and their order are known, what is in them is not.
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


NO_SOURCES: Mapping[str, Revision] = {}


class NothingToMake:
    """A `perftrail.ports.Builder` for whom every subject is there already, in no directory.

    Each subject is an artefact of its own: what others measured is never known to be alike.
    """

    hands = 1

    def key(self, subject: Subject, recipe: Recipe) -> str:  # noqa: ARG002 - nothing is made by it
        """Name a subject by its revision and variant."""
        return _name(subject)

    def made(self, subject: Subject) -> Prepared:
        """Give a subject and its benchmarks, which are all alike, as they are."""
        name = _name(subject)
        built = Built(key=name, artefact=name, directory="", seconds=0.0)
        return Prepared(built=built, out="", artefact=_benchmarks(built))

    def begin(self, subjects: Iterable[tuple[Subject, Recipe]]) -> None:
        """Do nothing."""

    def make(self, subject: Subject, recipe: Recipe) -> Built:  # noqa: ARG002 - nothing is made by it
        """Give a subject as it is."""
        return self.made(subject).built

    def layout_key(self, built: Built, recipe: Recipe, layout: int) -> str:  # noqa: ARG002 - nothing is linked
        """Name nothing that could ever be made."""
        return content_key("imported layout", built.key, layout)

    def relink(
        self,
        subject: Subject,
        recipe: Recipe,  # noqa: ARG002 - as above
        built: Built,  # noqa: ARG002 - as above
        layouts: Sequence[int],  # noqa: ARG002 - as above
    ) -> Mapping[int, Built | Failure]:
        """Refuse. Raises `UsageError`."""
        raise UsageError(f"{subject}: its samples were taken elsewhere; there is nothing to relink")

    def prepare(
        self,
        built: Built,
        *,
        steps: Sequence[str],
        env: Mapping[str, str],
        files: Collection[str],
        timeout_seconds: float,  # noqa: ARG002 - nothing is made in it
        sources: Mapping[str, Revision] = NO_SOURCES,
    ) -> Prepared:
        """Give a benchmark of a subject as it is."""
        artefact = self.link_key(built, steps=steps, env=env, files=files, sources=sources)
        return Prepared(built=built, out="", artefact=artefact)

    def need(self, subjects: Iterable[tuple[Subject, Recipe]]) -> None:
        """Do nothing."""

    def news(self) -> tuple[str, ...]:
        """Give nothing: nothing was done."""
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
        """Name a subject's benchmarks by the subject."""
        return _benchmarks(built)

    def lay_out(self, subject: Subject, recipe: Recipe, directory: str) -> Workplace:  # noqa: ARG002 - there is none
        """Refuse. Raises `UsageError`."""
        raise UsageError(f"{subject}: its samples were taken elsewhere; there is nothing to build")

    def command_placeholders(self, prepared: Prepared) -> Mapping[str, str]:  # noqa: ARG002 - no command is run
        """Give none: no command is run."""
        return {}


def _name(subject: Subject) -> str:
    return content_key("imported", subject.revision.id, subject.variant)


def _benchmarks(built: Built) -> str:
    return content_key("imported benchmark", built.key)


class ListedSource(Unrelated):
    """A `perftrail.ports.Source` of revisions that are given, oldest first; none of them can be had."""

    def __init__(self, revisions: Sequence[Revision]) -> None:
        super().__init__(no_range="revisions that are only listed have no ranges; leave it out")
        self._revisions = tuple(revisions)

    def history(self, range: str | None = None) -> tuple[Revision, ...]:
        """Give the revisions. Raises `SourceError` for a part of them."""
        self.refuse_range(range)
        return self._revisions

    def materialise(self, revision: Revision, directory: str, log: str) -> None:
        """Refuse, as nothing is there. Raises `CheckoutFailed`."""
        raise CheckoutFailed(
            f"{revision.short}: only its samples are known; {directory} stays empty, see {log}"
        )


def samples_view(study: Study) -> View:
    """Read a study's files and arrange them so that whatever looks at a study can look at this one.

    Its benchmarks and variants are those of the files, its store holds their samples and is in memory. Raises
    `SourceError` for files that cannot be read, or that hold nothing.
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
    """Give a machine that is never this one; its facts are what the files say."""
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
