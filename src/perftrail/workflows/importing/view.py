"""A study of samples as every other study is looked at: its files are read anew each time it is opened."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from perftrail.model.build import content_key
from perftrail.model.measurement import InvocationKey, Machine, Measurement
from perftrail.model.recipe import Variant
from perftrail.sources.listed import ListedSource
from perftrail.store.memory import MemoryStore
from perftrail.workflows.importing.arranging import MACHINE, arrange
from perftrail.workflows.importing.nothing_to_make import NothingToMake
from perftrail.workflows.importing.reading import read_samples
from perftrail.workflows.session import View
from perftrail.workflows.workshop import Ready, Workshop

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from perftrail.model.plan import Cell
    from perftrail.model.study import Study
    from perftrail.workflows.events import Event
    from perftrail.workflows.importing.arranging import Arranged, Round
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
    source, store = ListedSource(arranged.revisions), MemoryStore()
    machine = _machine(arranged, read)
    store.add_machine(machine)
    workshop = Workshop(known, source, NothingToMake(), store)
    for cell, rounds in arranged.rounds.items():
        for _ in _keep(cell, rounds, workshop=workshop, store=store, machine=machine):
            pass
    return View(study=known, machine=machine, source=source, store=store, workshop=workshop)


def _machine(arranged: Arranged, read: Read) -> Machine:
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


def _keep(
    cell: Cell, rounds: Sequence[Round], *, workshop: Workshop, store: MemoryStore, machine: Machine
) -> Generator[Event, None, None]:
    ready = yield from workshop.ready(cell)
    assert isinstance(ready, Ready), "what is only named cannot fail"
    store.add_all(
        Measurement(
            key=InvocationKey(
                runnable=ready.runnable.key, machine=machine.id, phase="sample", ordinal=ordinal
            ),
            started=each.started,
            seconds=0.0,
            values=each.values,
            methods=each.methods,
            flags=each.flags,
        )
        for ordinal, each in enumerate(rounds)
    )
