"""The keys of samples in a study of two sources: the build, and the trees that run."""

from __future__ import annotations

import pytest

from perftrail.measure.subjects import Ready, SubjectBuilder
from perftrail.model.benchmark import Benchmark
from perftrail.model.measurement import Runnable
from perftrail.model.plan import Cell
from perftrail.model.recipe import Build
from perftrail.model.source import MAIN, Pins, Source
from perftrail.model.subject import Revision, Subject
from tests.fakes.memory_store import MemoryStore
from tests.fakes.subject_builder import FakeBuilder, FakeSource
from tests.measure.fake_session import a_study, drain

LIBRARY, APPLICATION = FakeSource(count=4), FakeSource(count=4, same_as={"r3": "r2"})


def runnable(
    *,
    library: str,
    application: str,
    along: str = MAIN,
    command: str,
    steps: tuple[str, ...] = (),
    outputs: tuple[str, ...] = (),
) -> Runnable:
    """The runnable of a cell with both sources at these revisions, along either."""
    study = a_study(
        sources={"app": Source(kind="git", location="/app")},
        along=along,
        build=Build(steps=steps, outputs=outputs),
        benchmarks={"work": Benchmark(command=command)},
    )
    held = {MAIN: Revision(id=library), "app": Revision(id=application)}
    walked = held.pop(along)
    subject_builder = SubjectBuilder(
        study,
        LIBRARY,
        FakeBuilder(LIBRARY),
        MemoryStore(),
        pins=Pins(along=along, at=held),
        others={"app": APPLICATION},
    )
    subject = Subject(revision=walked, variant="plain")
    (point,) = study.benchmarks["work"].points("plain")
    _, ready = drain(subject_builder.ready(Cell(subject=subject, benchmark="work", point=point)))
    assert isinstance(ready, Ready), ready
    return ready.runnable


RUNS_IT = "{source.app}/run"


def test_a_benchmark_in_an_unchanged_tree_counts_by_its_content() -> None:
    one, two, three = (runnable(library="r0", application=id_, command=RUNS_IT) for id_ in ("r1", "r2", "r3"))
    assert one.key != two.key
    assert two.key == three.key


@pytest.mark.parametrize("command", [RUNS_IT, "{build}/run"])
def test_it_does_not_matter_which_source_was_walked(command: str) -> None:
    along_library = runnable(library="r1", application="r2", command=command)
    along_application = runnable(library="r1", application="r2", along="app", command=command)
    assert along_library.key == along_application.key
    assert (along_library.revision, along_application.revision) == ("r1", "r2")


def test_a_benchmark_that_does_not_use_a_tree_does_not_depend_on_it() -> None:
    one, two = (runnable(library="r0", application=id_, command="{build}/run") for id_ in ("r1", "r2"))
    assert one.key == two.key


def test_a_tree_that_was_built_in_counts_by_all_that_went_in() -> None:
    one, two = (
        runnable(library=id_, application="r1", command=RUNS_IT, steps=("make -C {source.app}",))
        for id_ in ("r0", "r1")
    )
    assert one.key != two.key


def test_outputs_elsewhere_do_not_replace_a_tree_that_was_built_in() -> None:
    one, two = (
        runnable(
            library="r0",
            application="r1",
            command=RUNS_IT,
            steps=("make -C {source.app} " + way,),
            outputs=outputs,
        )
        for way, outputs in (("old", ("library.a",)), ("new", ("library.a",)))
    )
    assert one.key != two.key
    named, again = (
        runnable(
            library="r0",
            application="r1",
            command=RUNS_IT,
            steps=("make -C {source.app} " + way,),
            outputs=("{source.app}/run",),
        )
        for way in ("old", "new")
    )
    assert named.key == again.key
