"""A study of samples as every other study is looked at: its files are read anew each time it is opened."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from perftrail.model.build import BuildRecord, content_key
from perftrail.model.measurement import Machine, Runnable
from perftrail.model.plan import RunnableKeys
from perftrail.model.recipe import Variant
from perftrail.sources.listed import ListedSource
from perftrail.workflows.importing.arranging import MACHINE, arrange
from perftrail.workflows.importing.held import ArrangedStore
from perftrail.workflows.importing.nothing_to_make import NothingToMake
from perftrail.workflows.importing.reading import read_samples
from perftrail.workflows.session import View
from perftrail.workflows.workshop import Workshop

if TYPE_CHECKING:
    from perftrail.model.benchmark import Point
    from perftrail.model.build import Built, Prepared
    from perftrail.model.plan import Cell
    from perftrail.model.study import Study
    from perftrail.model.subject import Subject
    from perftrail.workflows.importing.arranging import Arranged
    from perftrail.workflows.importing.reading import Read


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
