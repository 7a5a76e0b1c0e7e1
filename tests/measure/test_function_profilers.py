"""Profilers of functions: what processes leave is read, and pairs are interleaved."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from perftrail.measure import function_profilers
from perftrail.measure.function_profilers import UNREADABLE, read_python_profile
from perftrail.model.profile import Function, Profile

PROFILER = Path(function_profilers.__file__).with_name("python_profiler")

PROGRAM = """\
import helper

def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)

class Tree:
    def insert(self, key):
        return key in helper.numbers([3, 2, 1])

for key in range(4):
    Tree().insert(key)
fib(5)
"""
HELPER = "def numbers(values):\n    return sorted(values)\n"


def profile_of(directory: Path, program: str = PROGRAM, helper: str = HELPER) -> Profile:
    directory.mkdir()
    (directory / "main.py").write_text(program)
    (directory / "helper.py").write_text(helper)
    profiles = directory / "profiles"
    profiles.mkdir()
    environment = {
        **os.environ,
        "PYTHONPATH": str(PROFILER),
        "PERFTRAIL_PYTHON_PROFILES": str(profiles),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    subprocess.run([sys.executable, "main.py"], cwd=directory, env=environment, check=True)
    [file] = profiles.glob("*.json")
    return read_python_profile(file.read_text())


def named(profile: Profile, name: str) -> Function:
    [found] = [each for each in profile.own if each.name.rpartition(".")[2] == name and "main" in each.file]
    return found


def test_calls_of_python_functions_are_counted_with_callers_and_lines(tmp_path: Path) -> None:
    profile = profile_of(tmp_path / "a")
    insert, fib = named(profile, "insert"), named(profile, "fib")
    [numbers] = [each for each in profile.own if each.name == "numbers"]
    assert (Path(insert.file).name, insert.line) == ("main.py", 7)
    assert profile.calls[insert, numbers].count == 4.0
    assert profile.calls[fib, fib].count == 14.0
    assert profile.inclusive[insert][0] >= profile.own[insert][0] > 0.0
    assert any(
        callee.name == "<built-in method builtins.sorted>"
        for caller, callee in profile.calls
        if caller == numbers
    )


def test_the_fingerprint_of_a_python_function_depends_on_its_code_and_not_on_its_place(
    tmp_path: Path,
) -> None:
    first = profile_of(tmp_path / "a")
    moved = profile_of(tmp_path / "b", program="# a comment\n\n" + PROGRAM)
    changed = profile_of(tmp_path / "c", program=PROGRAM.replace("n < 2", "n < 1 or n < 2"))
    for name in ("fib", "insert"):
        assert first.bodies[named(first, name)] == moved.bodies[named(moved, name)]
    assert first.bodies[named(first, "fib")] != changed.bodies[named(changed, "fib")]
    assert first.bodies[named(first, "insert")] == changed.bodies[named(changed, "insert")]


def test_calls_in_threads_are_counted(tmp_path: Path) -> None:
    program = """import threading

def square(n):
    return n * n

def work():
    return [square(n) for n in range(50)]

threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
    thread.join()
work()
"""
    profile = profile_of(tmp_path / "a", program=program)
    counts = [calls.count for (_, called), calls in profile.calls.items() if called.name == "square"]
    assert sum(counts) == 150.0


def test_the_sitecustomize_of_the_environment_still_runs(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('hidden one')\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(PROFILER), str(tmp_path)])}
    done = subprocess.run(
        [sys.executable, "-c", "print('program')"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split("\n")[:2] == ["hidden one", "program"]


ONE = '"functions": [["f", "a.py", 1, ""]], "calls": []'


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        json.dumps({"functions": [], "own": [[1, 2, 3, 4]], "calls": []}),
        "[" * 100_000,
        f'{{{ONE}, "own": [[0, 1, 1{"0" * 400}, 1]]}}',
        f'{{{ONE}, "own": [[0, 1, NaN, 1]]}}',
        f'{{{ONE}, "own": [[0, 1, 2]]}}',
        '{"functions": [["\\ud800", "a.py", 1, ""]], "calls": [], "own": []}',
    ],
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(UNREADABLE):
        read_python_profile(text)
