"""Instructions are counted by the processor where permitted, else by Valgrind, with the same result each time."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest

from perftrail.errors import NoAnswer
from perftrail.measure.instructions import InstructionCounter
from perftrail.model.process import Command
from perftrail.process.launcher import Launcher
from tests.fakes.subject_builder import RAN
from tests.needs import needs

if TYPE_CHECKING:
    from pathlib import Path

    from perftrail.model.process import Ran

needs_valgrind = needs("valgrind")

SOURCE = """
#include <stdint.h>
#include <stdlib.h>
int main(int count, char **arguments) {
    uint64_t state = 88172645463325252ULL;
    for (long step = count > 1 ? atol(arguments[1]) : 0; step > 0; step--) {
        state ^= state << 13; state ^= state >> 7; state ^= state << 17;
        __asm__ volatile("" : "+r"(state));
    }
    return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("program")
    (directory / "work.c").write_text(SOURCE)
    subprocess.run(["cc", "-O2", "-o", directory / "work", directory / "work.c"], check=True)
    return directory / "work"


def command_of(directory: Path, *arguments: str, environment: dict[str, str] | None = None) -> Command:
    """Return a command as of an invocation, in an empty directory."""
    scratch = directory / "scratch"
    scratch.mkdir(exist_ok=True)
    return Command(arguments=arguments, environment=environment or {}, directory=str(scratch))


@dataclass
class Processor:
    """A starter on a machine with a counter of instructions, or without."""

    counters: dict[str, float]
    started: list[Command] = field(default_factory=list)

    def run(self, command: Command) -> Ran:
        self.started.append(command)
        return replace(RAN, counters=self.counters if command.counters else {})


def test_the_processors_counter_is_used_where_there_is_one(tmp_path: Path) -> None:
    starter = Processor({"instructions_user": 12345.0})
    counted = InstructionCounter(starter, tmp_path / "counts").count(command_of(tmp_path, "/bin/true"))
    assert (counted.method, counted.instructions) == ("perf_event", 12345.0)
    assert starter.started[-1].arguments == ("/bin/true",)


def test_the_program_is_started_without_random_properties(tmp_path: Path) -> None:
    starter = Processor({"instructions_user": 1.0})
    counter = InstructionCounter(starter, tmp_path / "counts")
    for path in ("/a", "/a/longer/path"):
        counter.count(command_of(tmp_path, "/bin/true", path, environment={"WHERE": path}))
    sizes = {
        sum(len(argument) + 1 for argument in command.arguments)
        + sum(len(name) + len(value) + 2 for name, value in command.environment.items())
        for command in starter.started[1:]
    }
    assert sizes == {4096}
    assert all(not command.aslr for command in starter.started[1:])
    assert all(command.environment["PYTHONHASHSEED"] == "0" for command in starter.started[1:])


def test_variables_of_the_study_stay(tmp_path: Path) -> None:
    starter = Processor({"instructions_user": 1.0})
    command = command_of(tmp_path, "/bin/true", environment={"PYTHONHASHSEED": "7"})
    InstructionCounter(starter, tmp_path / "counts").count(command)
    assert starter.started[-1].environment["PYTHONHASHSEED"] == "7"


def test_without_counter_and_valgrind_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoAnswer, match="install valgrind"):
        InstructionCounter(Processor({}), tmp_path / "counts").count(command_of(tmp_path, "/bin/true"))


@needs_valgrind
def test_a_c_program_counts_the_same_three_times_and_more_work_is_more(tmp_path: Path, program: Path) -> None:
    with Launcher() as starter:
        counter = InstructionCounter(starter, tmp_path / "counts")
        same = {counter.count(command_of(tmp_path, str(program), "1000")).instructions for _ in range(3)}
        [first] = same
        assert first is not None
        more = counter.count(command_of(tmp_path, str(program), "2000"))
    assert more.instructions is not None
    # Seven instructions of arithmetic and two of the loop a step; the digits are read in the same time.
    assert 6000 <= more.instructions - first <= 12000
    assert more.instructions - first == round((more.instructions - first) / 1000) * 1000


@needs_valgrind
@pytest.mark.long
@pytest.mark.slow("processor")
def test_a_python_program_counts_the_same_three_times(tmp_path: Path) -> None:
    code = "import json, re; print(sorted({str(n) for n in range(2000)}), json.dumps({'a': [1]}))"
    with Launcher() as starter:
        counter = InstructionCounter(starter, tmp_path / "counts")
        command = command_of(tmp_path, sys.executable, "-c", code)
        found = [counter.count(command) for _ in range(3)]
    assert len({each.instructions for each in found}) == 1
    assert found[0].instructions is not None


@needs_valgrind
def test_the_processes_of_a_tree_are_summed(tmp_path: Path, program: Path) -> None:
    with Launcher() as starter:
        counter = InstructionCounter(starter, tmp_path / "counts")

        def count(script: str) -> float:
            counted = counter.count(command_of(tmp_path, "/bin/sh", "-c", script))
            assert counted.instructions is not None
            return counted.instructions

        one = count(f"{program} 100000; :")
        two = count(f"{program} 100000; {program} 100000; :")
    assert two - one > 600_000


@needs_valgrind
def test_a_machine_without_counters_says_that_valgrind_counted(tmp_path: Path, program: Path) -> None:
    with Launcher() as starter:
        trial = starter.run(Command(arguments=("/bin/true",), environment={}, directory="/", counters=True))
        counted = InstructionCounter(starter, tmp_path / "counts").count(command_of(tmp_path, str(program)))
    assert counted.method == ("perf_event" if "instructions_user" in trial.counters else "valgrind")
