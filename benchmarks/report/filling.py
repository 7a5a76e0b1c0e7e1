"""A study of a long history with a store full of samples: a real repository and real keys, but no builds."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from sqlalchemy import insert

from benchmarks.store.filling import store_runnables
from perftrail import studyfile
from perftrail.builds.toolchain import local_tools
from perftrail.measure.build_inputs import BuildInputs
from perftrail.measure.build_workers import open_builder
from perftrail.measure.sources import NO_ERAS, open_sources
from perftrail.model.build import BuildRecord, Built, Prepared, content_key
from perftrail.model.measurement import Draw, InvocationKey, Measurement, Runnable
from perftrail.model.plan import cells, recipe_of
from perftrail.model.runnable_key import runnable_key
from perftrail.model.subject import Subject
from perftrail.opening import results_database, results_directory
from perftrail.process.launcher import Launcher
from perftrail.process.machine import read_machine
from perftrail.results_directory import create
from perftrail.store import schema
from perftrail.store.databases import to_write
from perftrail.store.identifiers import insert_many
from perftrail.store.rows import build_outcome_to_json
from perftrail.store.sql import SqlStore

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from perftrail.model.measurement import Origin
    from perftrail.model.plan import Cell
    from perftrail.model.study import Study
    from perftrail.model.subject import Revision
    from perftrail.ports import Builder
    from perftrail.store.retried_transactions import Database

BATCH = 20_000
NOISE = 0.01
CHANGES = 6
"""Number of revisions that change each benchmark, by 5 to 15 %."""

STUDY = """\
[study]
title = "How did twenty benchmarks change in ten thousand revisions?"

[source]
kind = "git"
location = "history"

[build]
steps = ["make"]
outputs = ["program"]

[measure]
invocations = {invocations}
warmups = 0
"""

BENCHMARK = """
[benchmark.{name}]
command = "{{build}}/program {name}"
metrics = {{ seconds = {{ pattern = 'took ([0-9.]+)', unit = "s" }} }}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The size of a store. Each invocation has one reported metric and `more` others."""

    revisions: int
    benchmarks: int
    invocations: int
    more: int = 0

    @property
    def samples(self) -> int:
        """The number of values of the reported metric."""
        return self.revisions * self.benchmarks * self.invocations


def fill(directory: Path, size: Size, *, seed: int, store: str | None = None) -> Study:
    """Create a study in an empty directory and fill its store, as if this machine had measured it.

    The store is that of the study, or an empty database of a server by its address.
    """
    _commit(directory / "history", size.revisions)
    text = STUDY.format(invocations=size.invocations)
    names = [f"bench-{number:02}" for number in range(size.benchmarks)]
    file = directory / "perftrail.toml"
    file.write_text(text + "".join(BENCHMARK.format(name=name) for name in names), encoding="utf-8")
    study = studyfile.load(str(file))
    root = results_directory(study, store)
    create(root)
    database = to_write(results_database(study, store))
    with Launcher() as starter, SqlStore(database) as results:
        sources = open_sources(study, cache=str(root / "sources"), starter=starter)
        builder = open_builder(study, root, sources, starter, isolation=None)
        machine = read_machine()
        results.add_machine(machine)
        revisions = sources.searched_source.history()
        inputs = BuildInputs(
            study, NO_ERAS, sources.pins, sources.others, local_tools(starter, study=directory)
        )
        _store_builds(database, study, builder, inputs, revisions)
        rng = np.random.default_rng(seed)
        for batch in _invocations(results, size, machine.id, rng):
            results.add_all(batch)
    return study


def _commit(repository: Path, count: int) -> None:
    """Create a history of `count` commits that change one file each."""
    parts = []
    for number in range(1, count + 1):
        message = f"Change number {number}: <b>&amp; more</b>"
        text = f"int revision = {number};\n"
        parts.append(
            f"commit refs/heads/main\ncommitter A <a@example.invalid> {1_500_000_000 + 3600 * number} +0000\n"
            f"data {len(message)}\n{message}\nM 644 inline program.c\ndata {len(text)}\n{text}\n"
        )
        if number % (count // 20 or 1) == 0:
            parts.append(f"reset refs/tags/v1.{number}\nfrom refs/heads/main\n\n")
    git = ["git", "-C", str(repository)]
    subprocess.run(["git", "init", "-q", "-b", "main", str(repository)], check=True)
    subprocess.run([*git, "fast-import", "--quiet"], input="".join(parts).encode(), check=True)
    subprocess.run([*git, "reset", "-q", "--hard"], check=True)


def _store_builds(
    database: Database, study: Study, builder: Builder, inputs: BuildInputs, revisions: Sequence[Revision]
) -> None:
    """Store a finished build of every revision and its runnables, with real keys."""
    builds: list[dict[str, object]] = []
    measured_cells: list[Runnable] = []
    how = recipe_of(study, "plain", [])
    for revision in revisions:
        subject = Subject(revision=revision, variant="plain")
        key = builder.key(subject, how)
        built = Built(key=key, artefact=content_key(key), directory=f"builds/{key}/tree", seconds=1.0)
        link = builder.benchmark_build_key(built, steps=(), env={}, files=())
        prepared = Prepared(built=built, out=f"builds/{key}/bench", artefact=content_key("nothing"))
        builds += [_build(key, revision, built), _build(link, revision, prepared, benchmark=BENCHMARKS)]
        measured_cells += [
            _runnable(study, cell, prepared, inputs.origin(cell)) for cell in cells(study, subject)
        ]
    with database.writing.begin() as connection:
        version = connection.execute(insert(schema.perftrail).values(version="filled")).inserted_primary_key
        assert version is not None
        insert_many(connection, schema.build, [{**row, "perftrail_id": version[0]} for row in builds])
    store_runnables(database, measured_cells)


BENCHMARKS = "every benchmark"
"""Name of the benchmark build, which all benchmarks share here."""


def _build(
    key: str, revision: Revision, outcome: Built | Prepared, *, benchmark: str = ""
) -> dict[str, object]:
    record = BuildRecord(key=key, revision=revision.id, variant="plain", outcome=outcome)
    return {
        "key": key,
        "revision": revision.id,
        "variant": "plain",
        "benchmark": benchmark,
        "finished": "",
        "succeeded": True,
        "outcome": build_outcome_to_json(record),
    }


def _runnable(study: Study, cell: Cell, prepared: Prepared, origin: Origin) -> Runnable:
    return Runnable(
        key=runnable_key(study, cell, prepared),
        revision=cell.subject.revision.id,
        variant=cell.subject.variant,
        benchmark=cell.benchmark,
        point=cell.point,
        artefact=prepared.artefact,
        origin=origin,
    )


def _invocations(
    store: SqlStore, size: Size, machine: str, rng: np.random.Generator
) -> Iterator[list[Measurement]]:
    """Return every invocation, in batches: levels with some changes, and noise."""
    levels = np.ones((size.benchmarks, size.revisions))
    for level in levels:
        for start in rng.integers(1, size.revisions, CHANGES):
            level[start:] *= 1.0 + rng.choice([-1.0, 1.0]) * rng.uniform(0.05, 0.15)
    batch: list[Measurement] = []
    for number, runnable in enumerate(store.runnables()):
        revision, benchmark = divmod(number, size.benchmarks)
        values = levels[benchmark, revision] * rng.lognormal(0.0, NOISE, size.invocations)
        for ordinal, value in enumerate(values.tolist()):
            key = InvocationKey(runnable=runnable.key, machine=machine, phase="sample", ordinal=ordinal)
            others = {f"more-{metric}": 1.0 for metric in range(size.more)}
            draw = Draw(block=f"{benchmark} {ordinal}", turn=revision, seed=1 + ordinal)
            batch.append(
                Measurement(
                    key=key,
                    started="2025-11-21",
                    seconds=value,
                    values={"seconds": value, **others},
                    draw=draw,
                )
            )
        if len(batch) >= BATCH:
            yield batch
            batch = []
    yield batch
