"""Cells that are linked in other orders: one runnable, several programs; recorded, built in batches, with failures."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from perftrail.measure.events import BenchmarkBuildFailed, Relinked, RelinkedWithoutEffect
from perftrail.measure.subjects import Ready
from perftrail.model.benchmark import Benchmark
from perftrail.model.build import Built, Failure, Prepared
from perftrail.model.measurement import Draw, Measurement
from perftrail.model.plan import Cell, cells, subjects
from perftrail.model.recipe import Build
from tests.fakes.memory_store import MemoryStore
from tests.fakes.subject_builder import FakeBuilder, FakeSource, FakeStarter
from tests.measure.fake_session import a_session, a_study, drain

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from perftrail.measure.events import Event
    from perftrail.measure.session import Session
    from perftrail.model.build import Recipe
    from perftrail.model.study import Study
    from perftrail.model.subject import Revision

STUDY = a_study(build=Build(steps=("make",), outputs=("work",), relink=("link {layout}",)))
OWN = a_study(
    benchmarks={
        "work": Benchmark(command="{out}/work", build=("cc -c a.c",), relink=("ld --seed={layout} a.o",))
    }
)


class Linking(FakeBuilder):
    """A builder whose benchmark builds differ by their lines, and fail where these say so."""

    def prepare(
        self,
        built: Built,
        *,
        steps: Sequence[str],
        env: Mapping[str, str],
        files: Collection[str],
        timeout_seconds: float,
        sources: Mapping[str, Revision] | None = None,
    ) -> Prepared | Failure:
        if any("seed=13" in step for step in steps):
            return Failure(stage="link", message="ld: unlucky", log="/logs/link.log")
        return Prepared(built=built, out=f"{built.directory}/out", artefact=" ".join(steps))


def relinking_session(
    tmp_path: Path, study: Study = STUDY, *, builder: FakeBuilder | None = None, **kept: object
) -> tuple[Session, FakeBuilder]:
    source = FakeSource(2)
    builder = builder or FakeBuilder(source)
    session = a_session(
        study,
        tmp_path,
        source=source,
        starter=FakeStarter(seconds=lambda _: 1.0),
        builder=builder,
        **kept,  # type: ignore[arg-type] # a store, and whether to try again
    )
    return session, builder


def cells_of(session: Session) -> list[Cell]:
    every = subjects(session.study, session.source.history())
    return [cell for subject in every for cell in cells(session.study, subject)]


def ready(session: Session, cell: Cell, *, layout: int = 0) -> tuple[list[Event], Ready]:
    events, found = drain(session.subject_builder.ready(cell, layout=layout))
    assert isinstance(found, Ready), found
    return events, found


def test_every_layout_has_the_runnable_of_the_build_as_linked(tmp_path: Path) -> None:
    session, _ = relinking_session(tmp_path)
    cell = cells_of(session)[0]
    _, linked = ready(session, cell)
    _, first = ready(session, cell, layout=1)
    _, second = ready(session, cell, layout=2)
    assert linked.runnable == first.runnable == second.runnable
    assert [each.layout for each in (linked, first, second)] == [0, 1, 2]
    assert len({each.prepared.built.directory for each in (linked, first, second)}) == 3
    assert linked.content == linked.runnable.key
    assert len({each.content for each in (linked, first, second)}) == 3


def test_an_invocation_is_stored_with_the_layout_that_ran(tmp_path: Path) -> None:
    session, _ = relinking_session(tmp_path)
    _, found = ready(session, cells_of(session)[0], layout=5)
    start = session.runner.plan(found, "sample", 0, draw=Draw(block="b", seed=3))
    session.runner.load_outcomes((found,))
    drain(session.runner.perform((start,)))
    outcome = session.runner.known(found)["sample", 0]
    assert isinstance(outcome, Measurement)
    assert outcome.draw == Draw(block="b", seed=3, layout=5)


def test_several_layouts_of_several_cells_are_linked_in_one_batch_each(tmp_path: Path) -> None:
    session, builder = relinking_session(tmp_path)
    both = cells_of(session)
    events, _ = drain(session.subject_builder.relink(both, range(1, 5)))
    assert builder.relinks == [("r0", (1, 2, 3, 4)), ("r1", (1, 2, 3, 4))]
    assert [list(each.outcomes) for each in events if isinstance(each, Relinked)] == [[1, 2, 3, 4]] * 2
    for layout in range(1, 5):
        ready(session, both[0], layout=layout)
    assert len(builder.relinks) == 2


def test_layouts_are_recorded_as_builds_with_their_time(tmp_path: Path) -> None:
    session, _ = relinking_session(tmp_path)
    cell = cells_of(session)[0]
    _, found = ready(session, cell, layout=4)
    record = session.store.build(found.prepared.built.key)
    assert record is not None
    assert record.revision == "r0"
    assert isinstance(record.outcome, Built)
    assert (record.outcome.layout, record.outcome.seconds) == (4, 0.1)


def test_a_layout_that_is_known_is_not_recorded_again(tmp_path: Path) -> None:
    store = MemoryStore()
    for _ in range(2):
        session, _ = relinking_session(tmp_path, store=store)
        ready(session, cells_of(session)[0], layout=1)
        builds = store.progress().builds
    again, _ = relinking_session(tmp_path, store=store)
    ready(again, cells_of(again)[0], layout=1)
    assert store.progress().builds == builds


def test_a_relink_that_fails_is_a_recorded_failure(tmp_path: Path) -> None:
    store = MemoryStore()
    session, builder = relinking_session(tmp_path, store=store)
    builder.unlinkable = (2,)
    cell = cells_of(session)[0]
    ready(session, cell, layout=1)
    events, failure = drain(session.subject_builder.ready(cell, layout=2))
    assert isinstance(failure, Failure)
    assert (failure.stage, failure.message, failure.log) == (
        "relink",
        "ld: no such option",
        "/logs/relink.log",
    )
    assert [each.outcomes for each in events if isinstance(each, Relinked)] == [{2: failure}]
    _, linked = ready(session, cell)
    assert linked.layout == 0
    again, untouched = relinking_session(tmp_path, store=store)
    _, known = drain(again.subject_builder.ready(cell, layout=2))
    assert known == failure
    assert untouched.relinks == []


def test_a_failed_relink_is_tried_again_on_request(tmp_path: Path) -> None:
    store = MemoryStore()
    session, builder = relinking_session(tmp_path, store=store)
    builder.unlinkable = (2,)
    cell = cells_of(session)[0]
    drain(session.subject_builder.ready(cell, layout=2))
    again, _ = relinking_session(tmp_path, store=store, retry_failed=True)
    ready(again, cell, layout=2)


def test_layouts_after_a_failed_one_are_linked_on_request(tmp_path: Path) -> None:
    session, builder = relinking_session(tmp_path)
    builder.unlinkable = (2,)
    cell = cells_of(session)[0]
    drain(session.subject_builder.relink([cell], (1, 2, 3)))
    _, found = ready(session, cell, layout=3)
    assert found.layout == 3
    assert builder.relinks == [("r0", (1, 2, 3)), ("r0", (3,))]


def test_a_subject_that_does_not_build_is_not_relinked(tmp_path: Path) -> None:
    source = FakeSource(2)
    session, builder = relinking_session(tmp_path, builder=FakeBuilder(source, broken={"r0"}))
    cell = cells_of(session)[0]
    drain(session.subject_builder.relink([cell], (1, 2)))
    _, failure = drain(session.subject_builder.ready(cell, layout=1))
    assert isinstance(failure, Failure)
    assert failure.stage == "build"
    assert builder.relinks == []


# Benchmarks that link by themselves


def test_a_benchmark_that_relinks_needs_no_relinked_build(tmp_path: Path) -> None:
    source = FakeSource(2)
    session, builder = relinking_session(tmp_path, OWN, builder=Linking(source))
    cell = cells_of(session)[0]
    _, linked = ready(session, cell)
    _, found = ready(session, cell, layout=3)
    assert builder.relinks == []
    assert found.prepared.built == linked.prepared.built
    assert found.prepared.artefact == "cc -c a.c ld --seed=3 a.o"
    assert found.runnable == linked.runnable
    assert found.content != linked.content


def test_a_benchmark_that_cannot_be_relinked_fails_at_that_stage(tmp_path: Path) -> None:
    session, _ = relinking_session(tmp_path, OWN, builder=Linking(FakeSource(2)))
    events, failure = drain(session.subject_builder.ready(cells_of(session)[0], layout=13))
    assert failure == Failure(stage="relink", message="ld: unlucky", log="/logs/link.log")
    assert [each.benchmark for each in events if isinstance(each, BenchmarkBuildFailed)] == ["work"]


def test_both_the_build_and_the_benchmark_are_relinked_where_both_say_how(tmp_path: Path) -> None:
    study = replace(STUDY, benchmarks=OWN.benchmarks)
    session, builder = relinking_session(tmp_path, study, builder=Linking(FakeSource(2)))
    _, found = ready(session, cells_of(session)[0], layout=3)
    assert builder.relinks == [("r0", (3,))]
    assert found.prepared.built.layout == 3
    assert found.prepared.artefact == "cc -c a.c ld --seed=3 a.o"


class Recording(FakeBuilder):
    """A builder that records links, and cannot place the code of some revisions."""

    unplaced: Mapping[str, str] = {}

    @property
    def records_links(self) -> bool:
        return True

    def unpinned(self, prepared: Prepared, recipe: Recipe) -> str:
        return self.unplaced.get(prepared.built.artefact, "") if recipe.pin else "off"


def test_recorded_links_are_repeated_where_no_line_relinks(tmp_path: Path) -> None:
    session, builder = relinking_session(tmp_path, a_study(), builder=Recording(FakeSource(2)))
    cell = cells_of(session)[0]
    subject_builder = session.subject_builder
    assert (subject_builder.pins(cell), subject_builder.can_relink(cell)) == (True, True)
    drain(subject_builder.relink([cell], (1, 2)))
    _, found = ready(session, cell, layout=2)
    assert (builder.relinks, found.layout) == ([("r0", (1, 2))], 2)


def test_a_program_that_cannot_be_pinned_has_no_layout(tmp_path: Path) -> None:
    builder = Recording(FakeSource(2))
    session, _ = relinking_session(tmp_path, a_study(), builder=builder)
    cell = cells_of(session)[0]
    _, linked = ready(session, cell)
    builder.unplaced = {linked.prepared.built.artefact: "gold linked it"}
    assert session.subject_builder.can_relink(cell) is False
    assert session.subject_builder.unpinned(cell) == "gold linked it"
    drain(session.subject_builder.relink([cell], (1, 2)))
    assert builder.relinks == []
    _, failed = drain(session.subject_builder.ready(cell, layout=1))
    assert failed == Failure(stage="relink", message="gold linked it")


def test_relink_lines_replace_recorded_links(tmp_path: Path) -> None:
    session, _ = relinking_session(tmp_path, STUDY, builder=Recording(FakeSource(2)))
    cell = cells_of(session)[0]
    assert (session.subject_builder.pins(cell), session.subject_builder.can_relink(cell)) == (False, True)


def test_nothing_is_pinned_as_linked_or_where_an_interpreter_runs_the_program(tmp_path: Path) -> None:
    as_linked = a_study(build=Build(steps=("make",), pin=False))
    script = a_study(benchmarks={"work": Benchmark(command="python3 {build}/work.py")})
    for number, study in enumerate((as_linked, script)):
        session, _ = relinking_session(tmp_path / str(number), study, builder=Recording(FakeSource(2)))
        cell = cells_of(session)[0]
        assert session.subject_builder.can_relink(cell) is False


# Whether it can, and whether it does anything


def test_a_study_says_whether_it_can_relink(tmp_path: Path) -> None:
    for study, can in ((STUDY, True), (OWN, True), (a_study(), False)):
        session, _ = relinking_session(tmp_path, study)
        assert session.subject_builder.can_relink(cells_of(session)[0]) is can


def test_a_cell_that_nothing_relinks_has_no_layouts(tmp_path: Path) -> None:
    session, builder = relinking_session(tmp_path, a_study())
    cell = cells_of(session)[0]
    drain(session.subject_builder.relink([cell], (1, 2)))
    with pytest.raises(ValueError, match="does not state how to relink it"):
        drain(session.subject_builder.ready(cell, layout=1))
    assert builder.relinks == []


def test_layouts_that_come_out_the_same_are_reported_once(tmp_path: Path) -> None:
    session, builder = relinking_session(tmp_path)
    builder.alike = True
    cell = cells_of(session)[0]
    reported = [
        event
        for layout in (1, 2, 2, 3, 4, 5)
        for event in ready(session, cell, layout=layout)[0]
        if isinstance(event, RelinkedWithoutEffect)
    ]
    assert reported == [RelinkedWithoutEffect(subject=cell.subject, benchmark="work", layouts=(1, 2, 3))]


def test_layouts_that_differ_are_not_reported(tmp_path: Path) -> None:
    session, _ = relinking_session(tmp_path)
    cell = cells_of(session)[0]
    events = [event for layout in range(1, 6) for event in ready(session, cell, layout=layout)[0]]
    assert not any(isinstance(event, RelinkedWithoutEffect) for event in events)
