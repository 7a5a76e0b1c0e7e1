"""The plan of a study: it warns of benchmarks that run the same program at every revision."""

from __future__ import annotations

from pathlib import Path

import pytest

from perftrail.model.benchmark import Benchmark
from perftrail.present.plan import print_plan
from perftrail.results.selection import Selection
from perftrail.verbs.check import study_plan
from tests.fakes.subject_builder import FakeSource, FakeStarter
from tests.measure.fake_session import a_session, a_study


def test_a_program_that_no_revision_builds_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = a_study(
        benchmarks={"fixed": Benchmark(command="./tool {cpus}"), "work": Benchmark(command="{build}/work")}
    )
    session = a_session(study, tmp_path, source=FakeSource(3), starter=FakeStarter(seconds=lambda _: 0.1))
    plan = study_plan(session, Selection())
    assert plan.warnings == (
        f"{study.file}:1: benchmark.fixed.command: ./tool {{cpus}} names neither {{build}} nor {{out}}, so every "
        "revision would run the same program; did you mean {build}/tool?",
    )
    assert plan.as_json()["warnings"] == list(plan.warnings)
    print_plan(study, plan, repeat=())
    assert f"\nwarning      {plan.warnings[0]}\n" in capsys.readouterr().out
