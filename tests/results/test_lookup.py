"""Cells and rows of a history that are looked up at once equal those looked up one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from perftrail.local_engine import LocalEngine
from perftrail.model.benchmark import Benchmark
from perftrail.model.measurement import Runnable
from perftrail.model.metrics import Derived
from perftrail.model.plan import cells, subjects
from perftrail.model.recipe import Variant, VariantRun
from perftrail.model.study import Invocations, MeasurePolicy
from perftrail.ports import Done, Job, Pending
from perftrail.results.changes import begin_changes
from perftrail.results.measured import MeasuredHere
from perftrail.results.rows import Row, in_order, rows, rows_by_benchmark
from perftrail.results.selection import Selection
from perftrail.verbs.run import Run
from tests.fakes.subject_builder import FakeSource, FakeStarter
from tests.measure.fake_session import a_session, a_study, drain

BENCHMARKS = {
    "work": Benchmark(command="{build}/work", parameters={"threads": (1, 2)}),
    "named": Benchmark(command="{build}/work --of {revision}"),
    "linked": Benchmark(command="{out}/linked", build=("cc -o {out}/linked x.c -DREV={revision}",)),
    "part": Benchmark(command="{out}/part {kind}", build=("cc -o {out}/part x.c",)),
}


def test_every_cell_has_the_key_that_it_has_alone(tmp_path: Path) -> None:
    study = a_study(
        benchmarks=BENCHMARKS,
        variants={
            "plain": Variant(run=VariantRun(parts={"kind": "--plain"})),
            "other": Variant(run=VariantRun(parts={"kind": "--other {revision}"})),
        },
        measure=MeasurePolicy(invocations=Invocations(least=2, most=2), warmups=0),
    )
    session = a_session(study, tmp_path, source=FakeSource(4), starter=FakeStarter(seconds=lambda _: 0.1))
    drain(Run(session, Selection()).events())
    revisions = session.source.history()
    alone = {
        cell: known.key
        for subject in subjects(study, revisions)
        for cell in cells(study, subject)
        if isinstance(known := session.subject_builder.known_runnable(cell), Runnable)
    }
    assert len(alone) == 4 * 2 * 5
    assert len(set(alone.values())) == 18  # artefacts that are alike share theirs
    assert dict(MeasuredHere(session).cells) == alone


def test_samples_are_read_once_and_more_metrics_are_added(tmp_path: Path) -> None:
    study = a_study(measure=MeasurePolicy(invocations=Invocations(least=2, most=2), warmups=1))
    session = a_session(study, tmp_path, source=FakeSource(3), starter=FakeStarter(seconds=lambda _: 0.1))
    drain(Run(session, Selection()).events())
    measured = MeasuredHere(session)
    assert [cell.subject.revision.id for cell, _ in measured.cells] == ["r0", "r1", "r2"]
    first = measured.samples("work", ["wall"])
    assert all(set(each.values) == {"wall"} and len(each.values["wall"]) == 2 for each in first.values())
    assert measured.samples("work", ["wall"]) is first
    more = measured.samples("work", ["peak_memory"])
    assert all(set(each.values) == {"wall", "peak_memory"} for each in more.values())


def test_rows_by_benchmark_are_all_rows_and_come_back_into_their_order(tmp_path: Path) -> None:
    study = a_study(
        benchmarks=BENCHMARKS,
        variants={"plain": Variant(), "other": Variant()},
        derived={"twice": Derived(benchmark="part", value="2 * wall", unit="s")},
        measure=MeasurePolicy(invocations=Invocations(least=2, most=2), warmups=0),
    )
    session = a_session(study, tmp_path, source=FakeSource(3), starter=FakeStarter(seconds=lambda _: 0.1))
    drain(Run(session, Selection()).events())
    measured = MeasuredHere(session)
    parts = list(rows_by_benchmark(session, measured, ["wall", "twice"], ["peak_memory"]))
    assert [{row.benchmark for row in part} for part in parts] == [
        {"work"},
        {"named"},
        {"linked"},
        {"part"},
        {"part"},
    ]
    every = rows(session, metrics=["wall", "twice"], optional=["peak_memory"], measured=measured)
    assert in_order(measured, parts) == every
    assert {row.metric for row in every} == {"wall", "peak_memory", "twice"}


def test_a_benchmarks_series_are_handed_out_before_the_next_one_is_made(tmp_path: Path) -> None:
    study = a_study(
        benchmarks=BENCHMARKS, measure=MeasurePolicy(invocations=Invocations(least=2, most=2), warmups=0)
    )
    session = a_session(study, tmp_path, source=FakeSource(3), starter=FakeStarter(seconds=lambda _: 0.1))
    drain(Run(session, Selection()).events())
    measured, events = MeasuredHere(session), list[str]()

    def parts() -> Iterator[Sequence[Row]]:
        for part in rows_by_benchmark(session, measured, ["wall"], []):
            events.extend({f"made {row.benchmark}" for row in part})
            yield part

    class Telling(LocalEngine):
        def begin(self, perform: Callable[[Job], Done], job: Job) -> Pending[Done]:
            events.append("begun")
            return super().begin(perform, job)

    begin_changes(measured.history, parts(), Telling())
    assert events == [
        *("made work", "begun", "begun", "made named", "begun"),
        *("made linked", "begun", "made part", "begun"),
    ]
