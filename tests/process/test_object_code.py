"""Machine code of real programs: inlined functions, and fingerprints that ignore addresses."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import pytest

from perftrail.model.profile import Function
from perftrail.process.launcher import Launcher
from perftrail.process.object_code import ObjectCode, fingerprints, frames_of, read_functions
from tests.needs import needs

PROGRAM = """\
#include <stdio.h>
static const double factors[] = {1.5, 2.5};
int counter;
static inline int mix(int x) { return x * 3 + counter; }
__attribute__((noinline)) int first(int x) { counter += x; return mix(x) + printf("%d text\\n", x); }
__attribute__((noinline)) double second(double x) { return x * 0.75 + factors[counter & 1]; }
__attribute__((noinline)) int third(int x) { switch (x) { case 1: return 5; case 2: return 8; default: return x; } }
int main(int c, char **v) { return first(c) + (int)second(c) + third(c); }
"""

pytestmark = needs("objdump")


def compiled(directory: Path, text: str, *options: str) -> str:
    directory.mkdir()
    (directory / "main.c").write_text(text)
    subprocess.run(["cc", "-O2", "-g", *options, "-o", "main", "main.c"], cwd=directory, check=True)
    return str(directory / "main")


def bodies(program: str) -> dict[str, str]:
    names = ("first", "second", "third", "main")
    with Launcher() as starter:
        found = ObjectCode(starter, tempfile.TemporaryDirectory).bodies(
            [Function(name, object=program) for name in names]
        )
    return {function.name: body for function, body in found.items()}


@pytest.mark.parametrize("options", [[], ["-no-pie"]])
def test_moved_code_has_the_same_fingerprint_and_changed_code_another(
    tmp_path: Path, options: list[str]
) -> None:
    base = bodies(compiled(tmp_path / "base", PROGRAM, *options))
    extra = (
        "int more[99] = {1};\nint counter;\n"
        '__attribute__((used)) const char *unused(int x) { return x ? "abc" : "defg"; }'
    )
    moved = bodies(compiled(tmp_path / "moved", PROGRAM.replace("int counter;", extra), *options))
    assert sorted(base) == ["first", "main", "second", "third"]
    assert moved == base
    other = bodies(compiled(tmp_path / "other", PROGRAM.replace("0.75", "0.5"), *options))
    assert {name for name in base if base[name] != other[name]} == {"second"}
    called = bodies(compiled(tmp_path / "called", PROGRAM.replace("x * 3", "x * 7"), *options))
    assert {name for name in base if base[name] != called[name]} == {"first"}


def test_inlined_functions_are_found_at_the_addresses_of_their_code(tmp_path: Path) -> None:
    program = compiled(tmp_path / "base", PROGRAM)
    symbols = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    [start] = [int(line.split()[0], 16) for line in symbols.splitlines() if line.endswith(" T first")]
    with Launcher() as starter:
        found = ObjectCode(starter, tempfile.TemporaryDirectory).frames(program, range(start, start + 60))
        assert ObjectCode(starter, tempfile.TemporaryDirectory).frames("/nonexistent", [1]) == {}
    assert {(Path(each.file).name, each.line) for each in found.values()} == {("main.c", 5)}
    [mix] = {function for each in found.values() for function in each.inlined}
    assert mix.name == "mix"
    assert (Path(mix.file).name, mix.line) == ("main.c", 4)


def test_clones_of_a_function_have_a_common_fingerprint() -> None:
    lines = ["0010 <f.part.0>:", "  10:\tret", "0020 <f>:", "  20:\tcall   10 <f.part.0>", "  25:\tret"]
    assert fingerprints(lines, frozenset(["f"])) == fingerprints(lines[2:] + lines[:2], frozenset(["f"]))
    assert fingerprints(lines, frozenset(["f"])) != fingerprints(lines[2:], frozenset(["f"]))
    assert fingerprints(lines, frozenset(["g"])) == {}


def test_output_without_debug_information_has_no_inlined_functions() -> None:
    assert frames_of(read_functions("0x0000000000001139\n??\n??:0\n", "/a")) == {}
    assert frames_of(read_functions("0x11\n", "/a")) == {}
