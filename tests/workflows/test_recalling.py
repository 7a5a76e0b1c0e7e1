"""All cells of a history looked up at once are those that each would be alone."""

from __future__ import annotations

from pathlib import Path

from perftrail.model.benchmark import Benchmark
from perftrail.model.measurement import Runnable
from perftrail.model.plan import cells, subjects
from perftrail.model.policies import Invocations, MeasurePolicy
from perftrail.model.recipe import Variant, VariantRun
from perftrail.workflows.recalling import Recollection
from perftrail.workflows.run import Run
from perftrail.workflows.selection import Selection
from perftrail.workflows.showing.measured import MeasuredHere
from tests.fakes.workshop import FakeSource, FakeStarter
from tests.workflows.bench import a_session, a_study, drain

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
        if isinstance(known := session.workshop.known_runnable(cell), Runnable)
    }
    assert len(alone) == 4 * 2 * 5
    assert len(set(alone.values())) == 18  # artefacts that are alike share theirs
    assert dict(Recollection(session).cells(revisions)) == alone


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
