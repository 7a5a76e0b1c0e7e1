"""A report is the same with and without a second process that finds change points and draws."""

from __future__ import annotations

from pathlib import Path

import pytest

from perftrail.charts.frame import Chart
from perftrail.local_engine import LocalEngine, second_process
from perftrail.model.benchmark import Benchmark
from perftrail.model.study import Invocations, MeasurePolicy
from perftrail.present.html_page import Drawings, write_page
from perftrail.present.report.report import make_report
from perftrail.results.selection import Selection
from perftrail.verbs.run import Run
from tests.fakes.subject_builder import FakeSource, FakeStarter
from tests.measure.fake_session import a_session, a_study, drain

REVISIONS, CULPRIT = 48, 30


def took() -> FakeStarter:
    """A program that takes half as long again from one revision on, with noise."""
    started: list[float] = []

    def seconds(_: tuple[str, ...]) -> float:
        started.append(0.1)
        number = (len(started) - 1) // 3
        return (0.15 if number >= CULPRIT else 0.1) * (1.0 + 0.002 * (len(started) * 7 % 5))

    return FakeStarter(seconds=seconds)


@pytest.mark.slow("browser")
def test_a_page_and_its_images_are_the_same(tmp_path: Path) -> None:
    study = a_study(
        benchmarks={"work": Benchmark(command="{build}/work")},
        measure=MeasurePolicy(invocations=Invocations(least=3, most=3), warmups=0, order="sequential"),
    )
    session = a_session(study, tmp_path, source=FakeSource(REVISIONS), starter=took())
    drain(Run(session, Selection()).events())
    here = make_report(session, tmp_path)
    write_page(here, str(tmp_path / "here"), Drawings(LocalEngine()))
    known: list[Chart] = []
    with second_process() as engine:
        drawings = Drawings(engine)
        there = make_report(session, tmp_path, engine=engine, on_chart=known.append)
        write_page(there, str(tmp_path / "there"), drawings)
    assert there == here
    assert "changed work.wall" in there.verdict.sentence
    assert known == [each for each in there.charts if each.name.startswith("history-")]
    written = {file.relative_to(tmp_path / "here") for file in (tmp_path / "here").rglob("*.*")}
    assert len(written) > 3
    for file in written:
        assert (tmp_path / "there" / file).read_bytes() == (tmp_path / "here" / file).read_bytes()
