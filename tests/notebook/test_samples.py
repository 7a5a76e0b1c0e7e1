"""Samples as columns equal those of the store, value by value."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import perftrail
from perftrail import studyfile
from perftrail.model.measurement import Draw, InvocationKey, Machine, Measurement, Runnable
from perftrail.model.noisy_samples import weight
from perftrail.model.plan import Cell
from perftrail.model.subject import Revision, Subject
from perftrail.notebook.opened import MeasuredCells, samples_table
from perftrail.store import columns, open_store
from tests.notebook.example import write_study
from tests.store.examples import failed

HERE, ELSEWHERE = Machine(id="here", facts={}), Machine(id="other_machines", facts={})
REVISIONS = [Revision(id=f"r{number}", label=f"v{number}") for number in range(5)]
MARKS = [(), (), ("busy",), ("output-cut",), ("busy", "stolen")]


def key_of(revision: str, size: int) -> str:
    """The runnable of a cell; the last two revisions are equal."""
    return f"{'r3' if revision == 'r4' else revision}-{size}"


class Filled:
    """A study of five revisions, and a store with samples of them in the order in which a run takes them."""

    def __init__(self, directory: Path) -> None:
        write_study(directory)
        study = studyfile.load(str(directory))
        self.study = replace(study, variants={"near": study.variants["near"]})
        [benchmark] = study.benchmarks.values()
        self.cells = tuple(
            Cell(subject=Subject(revision=revision, variant="near"), benchmark="count", point=point)
            for revision in REVISIONS
            for point in benchmark.points("near")[:2]
        )
        self.path = str(directory / "results.db")
        with open_store(self.path, access="write") as store:
            store.add_machine(HERE)
            store.add_machine(ELSEWHERE)
            for cell in self.cells:
                size = int(cell.point["size"])
                revision = cell.subject.revision.id
                store.add_runnable(
                    Runnable(
                        key=key_of(revision, size),
                        revision=revision,
                        variant="near",
                        benchmark="count",
                        point=cell.point,
                        artefact="a",
                    )
                )
            store.add_runnable(
                Runnable(
                    key="stale",
                    revision="r0",
                    variant="near",
                    benchmark="count",
                    point=cell.point,
                    artefact="b",
                )
            )
            store.add_all(self.outcomes())

    @property
    def measured_cells(self) -> MeasuredCells:
        return MeasuredCells(
            cells=self.cells,
            keys=tuple(key_of(cell.subject.revision.id, int(cell.point["size"])) for cell in self.cells),
            positions={revision.id: position for position, revision in enumerate(REVISIONS)},
        )

    def outcomes(self) -> list[Measurement | Any]:
        rng = random.Random(1)
        keys = [*dict.fromkeys(self.measured_cells.keys), "stale"]
        taken: list[Measurement | Any] = []
        for ordinal in range(7):
            for runnable in keys if ordinal % 2 else reversed(keys):
                for machine, phase in (("here", "sample"), ("other_machines", "sample"), ("here", "warmup")):
                    invocation = InvocationKey(
                        runnable=runnable,
                        machine=machine,
                        phase="warmup" if phase == "warmup" else "sample",
                        ordinal=ordinal,
                    )
                    if rng.random() < 0.1:
                        taken.append(failed(invocation))
                    else:
                        taken.append(a_measurement(invocation, rng))
        return taken

    def table(self, metrics: tuple[str, ...] | None = None) -> list[dict[str, Any]]:
        found = columns.sample_columns(self.path, "here", metrics=metrics)
        assert found is not None
        rows: list[dict[str, Any]] = samples_table(
            self.study, self.measured_cells, found, machine="here", about={}
        ).to_pylist()
        return rows


def a_measurement(invocation: InvocationKey, rng: random.Random) -> Measurement:
    values = {"wall": rng.random(), "cpu": rng.random(), "peak_memory": 4096.0 * rng.randrange(9)}
    return Measurement(
        key=invocation,
        started=f"2025-11-21T02:00:00.{rng.randrange(1000):03}+00:00",
        seconds=1.0,
        values={**values, "unknown": 1.0} if rng.random() < 0.7 else {"cpu": 0.5},
        methods={"cpu": "rusage"},
        flags=rng.choice(MARKS),
    )


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Filled:
    return Filled(tmp_path_factory.mktemp("filled") / "study")


def expected(filled: Filled, metrics: tuple[str, ...]) -> list[tuple[object, ...]]:
    """The rows as the store reads them, one value at a time."""
    with open_store(filled.path, access="read") as store:
        held: Mapping[str, Any] = store.outcomes(filled.measured_cells.keys, "here")
    return [
        (
            cell.subject.revision.id,
            cell.point["size"],
            metric,
            each.values[metric],
            each.key.ordinal,
            each.flags,
            each.methods.get(metric),
            each.started,
        )
        for cell, runnable in zip(filled.cells, filled.measured_cells.keys, strict=True)
        for each in held[runnable]
        if isinstance(each, Measurement) and each.key.phase == "sample"
        for metric in metrics
        if metric in each.values
    ]


@pytest.mark.parametrize("batch", [columns.BATCH, 7])
def test_samples_are_those_of_the_store(filled: Filled, batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "BATCH", batch)
    reported = [
        (
            row["revision"],
            row["size"],
            row["metric"],
            row["value"],
            row["invocation"],
            tuple(row["flags"]),
            row["method"],
            row["started"].isoformat(timespec="milliseconds"),
        )
        for row in filled.table()
    ]
    assert reported == expected(filled, ("wall", "cpu", "peak_memory"))
    assert len(reported) > 100


def test_imported_outcomes_make_the_same_table(filled: Filled) -> None:
    """A study of files of other tools has no store."""
    with open_store(filled.path, access="read") as store:
        held = store.outcomes(dict.fromkeys(filled.measured_cells.keys), "here")
    found = columns.columns_of(outcome for outcomes in held.values() for outcome in outcomes)
    table = samples_table(filled.study, filled.measured_cells, found, machine="here", about={})
    assert table.to_pylist() == filled.table()
    assert samples_table(
        filled.study, filled.measured_cells, columns.columns_of(()), machine="here", about={}
    ).schema.equals(table.schema)


def test_columns_have_blocks_and_turns_of_stored_and_imported_outcomes(tmp_path: Path) -> None:
    filled = Filled(tmp_path / "study")
    draws = [Draw(block="b", turn=0), Draw(block="b", turn=1), Draw(block="c"), Draw(seed=4)]
    keys = [InvocationKey(runnable="r0-500", machine="there", phase="sample", ordinal=at) for at in range(4)]
    drawn = [
        Measurement(key=key, started="", seconds=1.0, values={"wall": 1.0}, draw=draw)
        for key, draw in zip(keys, draws, strict=True)
    ]
    with open_store(filled.path, access="write") as store:
        store.add_machine(Machine(id="there", facts={}))
        store.add_all(drawn)
    for found in (columns.sample_columns(filled.path, "there"), columns.columns_of(drawn)):
        assert found is not None
        one, other, alone, none = found.block.tolist()
        assert one == other != alone
        assert none == columns.NO_BLOCK
        assert columns.NO_BLOCK not in {one, alone}
        assert found.turn.tolist() == [0, 1, 0, 0]


def test_metrics_are_chosen_by_name(filled: Filled) -> None:
    assert [(row["revision"], row["value"]) for row in filled.table(("cpu",))] == [
        (revision, value) for revision, _, _, value, *_ in expected(filled, ("cpu",))
    ]


def test_equal_builds_share_their_samples(filled: Filled) -> None:
    rows = filled.table(("wall",))
    one, other = ([row for row in rows if row["revision"] == revision] for revision in ("r3", "r4"))
    same = ("runnable", "invocation", "metric", "value", "started", "size")
    assert [[row[name] for name in same] for row in one] == [[row[name] for name in same] for row in other]
    assert {row["position"] for row in other} == {4}
    assert {row["label"] for row in other} == {"v4"}


def test_marks_tell_whether_a_sample_is_quiet(filled: Filled) -> None:
    rows = filled.table(("cpu",))
    assert {(*row["flags"], row["quiet"]) for row in rows} == {
        (*marks, weight(marks) > 0.0) for marks in MARKS
    }


def test_each_metric_has_its_unit(filled: Filled) -> None:
    assert {(row["metric"], row["unit"]) for row in filled.table()} == {
        ("wall", "s"),
        ("cpu", "s"),
        ("peak_memory", "B"),
    }


def test_a_time_that_is_none_is_null(tmp_path: Path) -> None:
    filled = Filled(tmp_path / "study")
    odd = InvocationKey(runnable="r0-500", machine="here", phase="sample", ordinal=99)
    with open_store(filled.path, access="write") as store:
        store.add(Measurement(key=odd, started="some day", seconds=1.0, values={"wall": 1.0}))
    times = {row["invocation"]: row["started"] for row in filled.table(("wall",)) if row["revision"] == "r0"}
    assert times.pop(99) is None
    assert None not in times.values()


def test_another_machine_has_its_own_samples(filled: Filled) -> None:
    here, other_machines = (
        columns.sample_columns(filled.path, machine) for machine in ("here", "other_machines")
    )
    nobody = columns.sample_columns(filled.path, "nobody")
    assert here is not None
    assert other_machines is not None
    assert nobody is not None
    assert set(here.value.tolist()) & set(other_machines.value.tolist()) <= {
        0.5,
        1.0,
        *(4096.0 * n for n in range(9)),
    }
    assert (len(nobody.value), len(nobody.runnable)) == (0, 0)


def test_a_real_run_has_every_metric_of_every_invocation(measured: Path) -> None:
    samples = perftrail.open(measured).samples(metrics=["wall", "peak_memory"])
    rows = [
        (row["variant"], row["size"], row["invocation"], row["metric"])
        for row in samples.select(["variant", "size", "invocation", "metric"]).to_pylist()
    ]
    assert rows == [
        (variant, size, invocation, metric)
        for variant in ("near", "far")
        for size in (500, 1000, 2000, 4000)
        for invocation in range(6)
        for metric in ("wall", "peak_memory")
    ]
