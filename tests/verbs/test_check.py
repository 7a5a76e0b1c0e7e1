"""The plan of a study: it warns of benchmarks that run the same program at every revision."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from perftrail.model import benchmark as model
from perftrail.model.benchmark import Benchmark, Point, Value
from perftrail.model.recipe import Build, Variant, VariantBuild, VariantRun
from perftrail.present.plan import print_plan
from perftrail.results.remaining_work import Span
from perftrail.results.selection import Selection
from perftrail.verbs.check import study_plan
from perftrail.verbs.run import Run
from tests.fakes.subject_builder import FakeSource, FakeStarter
from tests.measure.fake_session import a_session, a_study, drain


def test_a_program_that_no_revision_builds_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = a_study(
        build=Build(steps=("make",)),
        benchmarks={"fixed": Benchmark(command="./tool {cpus}"), "work": Benchmark(command="{build}/work")},
    )
    session = a_session(study, tmp_path, source=FakeSource(3), starter=FakeStarter(seconds=lambda _: 0.1))
    plan = study_plan(session, Selection())
    assert plan.warnings == (
        f"{study.file}:1: benchmark.fixed.command: ./tool {{cpus}} names neither {{build}} nor {{out}}, so every "
        "revision would run the same program; did you mean {build}/tool?",
    )
    assert plan.as_json()["warnings"] == list(plan.warnings)
    print_plan(study, plan, shared_options=())
    assert f"\nwarning      {plan.warnings[0]}\n" in capsys.readouterr().out


def test_a_program_that_nothing_builds_or_finds_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = a_study(
        build=Build(),
        benchmarks={
            "typed": Benchmark(command="wordfrq {build}/text"),
            "unbuilt": Benchmark(command="{build}/wordfreq {cpus}"),
            "script": Benchmark(command="{build}/bench.sh {cpus}"),
            "shell": Benchmark(command="wordfrq | sort {build}/text", shell=True),
            "found": Benchmark(command="sort {build}/text"),
        },
    )
    session = a_session(study, tmp_path, source=FakeSource(3), starter=FakeStarter(seconds=lambda _: 0.1))
    plan = study_plan(session, Selection())
    assert plan.warnings == (
        f'{study.file}:1: benchmark.typed.command: PATH has no program "wordfrq"; write {{build}}/wordfrq for a '
        "program of the revision",
        f"{study.file}:1: benchmark.unbuilt.command: {{build}}/wordfreq must be a file of the history, because the "
        'study has no build; to build it, add [build] with steps = ["make"] or similar, and outputs',
    )
    print_plan(study, plan, shared_options=())
    assert "\nnot checked  outputs, programs and patterns, which need a build\n" in capsys.readouterr().out


def test_a_program_that_is_not_among_the_outputs_is_a_warning(tmp_path: Path) -> None:
    study = a_study(
        build=Build(steps=("make",), outputs=("bin/work", "lib/*.a", "data")),
        benchmarks={
            "typed": Benchmark(command="{build}/bin/wrok {cpus}"),
            "elsewhere": Benchmark(command="{build}/work"),
            "script": Benchmark(command="python3 {build}/bench/run.py"),
            "right": Benchmark(command="{build}/bin/work {build}/data/words.txt -L {build}/lib"),
            "open": Benchmark(command="{build}/{revision}/work"),
        },
    )
    session = a_session(study, tmp_path, source=FakeSource(3), starter=FakeStarter(seconds=lambda _: 0.1))
    outputs = 'is not among build.outputs ("bin/work", "lib/*.a" and "data"), so perftrail ignores changes of this file'
    assert study_plan(session, Selection()).warnings == (
        f"{study.file}:1: benchmark.typed.command: {{build}}/bin/wrok {outputs}; did you mean {{build}}/bin/work?",
        f"{study.file}:1: benchmark.elsewhere.command: {{build}}/work {outputs}; did you mean {{build}}/bin/work?",
        f"{study.file}:1: benchmark.script.command: {{build}}/bench/run.py {outputs}; "
        'add "bench/run.py" to build.outputs if the benchmark needs it',
    )


def test_a_program_is_sought_among_the_outputs_of_every_recipe(tmp_path: Path) -> None:
    program = Benchmark(command="{program}")
    variants = {
        "old": Variant(
            build=VariantBuild(outputs=("old/work",)), run=VariantRun(parts={"program": "{build}/old/work"})
        ),
        "new": Variant(run=VariantRun(parts={"program": "{build}/new/work"})),
    }
    recipe = Build(steps=("make",), outputs=("work",))
    study = a_study(build=recipe, variants=variants, benchmarks={"it": program})
    session = a_session(study, tmp_path, source=FakeSource(3), starter=FakeStarter(seconds=lambda _: 0.1))
    [warning] = study_plan(session, Selection()).warnings
    assert "{build}/new/work is not among build.outputs" in warning
    every = replace(study, build=replace(recipe, outputs=()))
    session = a_session(every, tmp_path, source=FakeSource(3), starter=FakeStarter(seconds=lambda _: 0.1))
    assert study_plan(session, Selection()).warnings == ()


@pytest.mark.parametrize(
    ("hours", "proposed"), [(0.5, "perftrail run .\n"), (44, "perftrail compare r0 r2 .    ")]
)
def test_a_run_of_many_hours_is_not_proposed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], hours: float, proposed: str
) -> None:
    session = a_session(a_study(), tmp_path, source=FakeSource(3), starter=FakeStarter(seconds=lambda _: 0.1))
    plan = replace(study_plan(session, Selection()), built=1, seconds=Span(least=hours * 3600, most=9e6))
    print_plan(session.study, plan, shared_options=(".",))
    assert f"\nNext: {proposed}" in capsys.readouterr().out


def test_a_plan_counts_points_of_unbuilt_revisions_without_listing_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def first_point(parameters: Mapping[str, Sequence[Value]]) -> Iterator[Point]:
        yield Point(tuple((name, values[0]) for name, values in parameters.items()))
        pytest.fail("a second point is created")

    monkeypatch.setattr(model, "every_point", first_point)
    axes = {"n": tuple(range(1000)), "m": tuple(range(100))}
    study = a_study(benchmarks={"work": Benchmark(command="{build}/work {n} {m}", parameters=axes)})
    session = a_session(study, tmp_path, source=FakeSource(10), starter=FakeStarter(seconds=lambda _: 0.1))
    plan = study_plan(session, Selection())
    assert (plan.cells, plan.unseen, plan.seconds) == (1_000_000, 1_000_000, None)
    assert plan.left == plan.invocations == Span(least=4_000_000, most=4_000_000)


@pytest.mark.parametrize(
    ("rules", "subjects", "cells", "left", "seconds"),
    [
        ((), 6, 15, 40, 48.0),
        ((("revision", "r0,r1"),), 4, 10, 20, 24.0),
        ((("n", "1"), ("revision", "r2")), 2, 4, 16, None),
        ((("variant", "fast"), ("benchmark", "one")), 3, 3, 8, 12.0),
        ((("revision", "r9"),), 0, 0, 0, 0.0),
    ],
)
def test_a_plan_of_a_selection_estimates_unbuilt_points_from_measured_ones(
    tmp_path: Path,
    rules: tuple[tuple[str, str], ...],
    subjects: int,
    cells: int,
    left: int,
    seconds: float | None,
) -> None:
    """Both benchmarks ran at the first revision, whose variants have equal builds."""
    study = a_study(
        variants={"plain": Variant(), "fast": Variant()},
        benchmarks={
            "one": Benchmark(command="{build}/one"),
            "two": Benchmark(
                command="{build}/two {n}", parameters={"n": (1, 2)}, exclude=({"variant": "fast", "n": 2},)
            ),
        },
    )
    source, starter = FakeSource(3), FakeStarter(seconds=lambda _: 1.0, noise=0.0)
    session = a_session(study, tmp_path, source=source, starter=starter)
    only = Selection(rules=(("revision", "r0"), ("variant", "plain")))
    drain(Run(session, only).events())
    plan = study_plan(session, Selection(rules=rules))
    assert (plan.subjects, plan.cells, plan.left.least) == (subjects, cells, left)
    assert (plan.seconds and plan.seconds.least) == seconds
