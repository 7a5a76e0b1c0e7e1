"""Which commands can run a program that a linker made."""

from typing import Literal

import pytest

from perftrail.model.benchmark import Benchmark, Point
from perftrail.model.plan import Cell
from perftrail.model.program import layout_words, may_be_linked
from perftrail.model.service import Service
from perftrail.model.subject import Revision, Subject
from tests.measure.fake_session import a_study


@pytest.mark.parametrize(
    ("command", "linked"),
    [
        ("{build}/tiny 100", True),
        ("taskset -c 1 {build}/tiny", True),
        ("{build}/lua bench.lua", True),
        ("{out}/mt {build}/python.py", True),
        ("sh {study}/bench.sh {build}/tiny", True),
        ("cd {build} && ./tiny", True),
        ("tiny --mode fast", True),
        ("python3 {build}/bench.py", False),
        ("PYTHONPATH={build}/site python3.11 -c 'import tiny'", False),
        ("env TZ=UTC /usr/bin/perl {build}/bench.pl", False),
        ("{build}/venv/bin/python -m tiny", False),
        ("java -jar {build}/target/tiny.jar", False),
        ("sh {build}/bench.sh 100", False),
        ("{build}/bench.sh 100", False),
        ("{build}/bin/bench.py", False),
        ("cd {build} && python3 bench.py", False),
    ],
)
def test_only_a_command_without_an_interpreter_can_run_a_linked_program(command: str, linked: bool) -> None:
    study = a_study(benchmarks={"b": Benchmark(command=command)})
    cell = Cell(subject=Subject(revision=Revision(id="1"), variant="plain"), benchmark="b", point=Point())
    assert may_be_linked(study, cell) is linked


@pytest.mark.parametrize(
    ("command", "linked"),
    [("./tiny 5", True), ("build/bench.sh", False), ("sh ./tiny", True), ("python3 ./b.py", False)],
)
def test_relative_paths_are_of_the_build_if_the_command_runs_there(command: str, linked: bool) -> None:
    study = a_study(benchmarks={"b": Benchmark(command=command, directory=".")})
    cell = Cell(subject=Subject(revision=Revision(id="1"), variant="plain"), benchmark="b", point=Point())
    assert may_be_linked(study, cell) is linked


@pytest.mark.parametrize(("restart", "linked"), [("never", True), ("each", False)])
def test_a_service_with_one_start_has_one_memory_layout(
    restart: Literal["never", "each"], linked: bool
) -> None:
    study = a_study(
        benchmarks={"work": Benchmark(command="python3 {build}/client.py", services=("db",))},
        services={"db": Service(command="python3 {build}/server.py", restart=restart)},
    )
    cell = Cell(
        subject=Subject(revision=Revision(id="r1"), variant="plain"), benchmark="work", point=Point(())
    )
    assert may_be_linked(study, cell) is linked


def test_relinking_is_advised_for_linked_programs_only() -> None:
    assert "[build] relink" in layout_words(linked=True)
    assert "[build] relink" not in layout_words(linked=False)
