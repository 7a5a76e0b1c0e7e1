"""Callgrind's format: examples of its documentation, generated graphs, and callgrind_annotate on real programs."""

from __future__ import annotations

import contextlib
import re
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perftrail.errors import FormatError
from perftrail.formats.callgrind import CallgrindFile, read_callgrind, read_processes
from perftrail.model.profile import Frames, Function, Profile
from tests.needs import needs

DOCUMENTED = """\
# callgrind format
version: 1
positions: instr line
events: Ir Dr
ob=(1) /bin/clreq
fl=(1) file1.c
fn=(1) main
0x8000 16 400 10
+3 * 3
cfi=(2) file2.c
cfn=(2) func2
calls=3 0x9000 20
+5 +1 400 7
jump=5 +4 +1
* *
jcnd=1/10 +4 +1
* *
fi=(2)
+1 5 100
fe=(1)
+1 20 7

fl=(2)
fn=(2)
0x9000 20 700 1

part: 2
fl=(1)
fn=(1)
0x8000 16 1 1
"""


def by_name(profile: Profile) -> dict[str, tuple[float, ...]]:
    return {each.name: costs for each, costs in profile.own.items()}


def test_names_positions_inlined_files_and_jumps_are_read_as_documented() -> None:
    profile = read_callgrind(DOCUMENTED)
    assert profile.events == ("Ir", "Dr")
    assert by_name(profile) == {"main": (400.0 + 3 + 100 + 7 + 1, 10.0 + 1), "func2": (700.0, 1.0)}
    main, func2 = sorted(profile.own, key=lambda each: each.name, reverse=True)
    assert (main.file, main.line, main.object) == ("file1.c", 16, "/bin/clreq")
    assert (func2.file, func2.line, func2.object) == ("file2.c", 20, "/bin/clreq")
    assert profile.calls[main, func2].count == 3.0
    assert profile.inclusive[main] == (511.0 + 400.0, 11.0 + 7.0)
    assert profile.lines[main] == {("file1.c", 16): 404.0, ("file2.c", 5): 100.0, ("file1.c", 20): 7.0}


def test_the_line_of_a_function_is_that_of_its_entry_even_if_lines_of_inlined_code_are_smaller() -> None:
    head = "positions: instr line\nevents: Ir\nob=/b/x\nfl=x.c\nfn=insert\n"
    text = f"{head}0x10 753 1\n0x14 101 5\n0x18 104 2\n0x1c 760 9\n"
    inlined = Frames("x.c", 101, (Function("make", "x.c", 100, "/b/x"),))
    frames = {("/b/x", address): Frames("x.c", line) for address, line in ((16, 753), (24, 104), (28, 760))}
    profile = CallgrindFile(text).profile({**frames, ("/b/x", 20): inlined})
    assert {each.name: each.line for each in profile.own} == {"insert": 753, "make": 100}


def test_recursion_levels_are_one_function_and_their_costs_are_counted_once() -> None:
    text = (
        "events: Ir\nfl=a.c\nfn=main\n1 1\ncfn=even\ncalls=1 5\n2 100\nfn=even\n5 10\ncfn=odd\ncalls=1 8\n6 90\n"
        "fn=odd\n8 20\ncfn=even'2\ncalls=1 5\n9 70\nfn=even'2\n5 70\n"
    )
    profile = read_callgrind(text)
    names = {each.name: each for each in profile.own}
    assert sorted(names) == ["even", "main", "odd"]
    assert by_name(profile) == {"main": (1.0,), "even": (80.0,), "odd": (20.0,)}
    assert profile.inclusive[names["even"]] == (100.0,)
    assert profile.calls[names["odd"], names["even"]].count == 1.0
    assert profile.calls[names["odd"], names["even"]].costs == (0.0,)


def test_processes_are_added_up() -> None:
    one = "events: Ir\nfl=a.c\nfn=main\n1 10\nfn=add\n7 3\n"
    other = "events: Ir\nfl=a.c\nfn=add\n7 4\n"
    empty = "events: Ir\nsummary: 0\n"
    assert by_name(read_processes([one, other, empty])) == {"main": (10.0,), "add": (7.0,)}
    with pytest.raises(FormatError, match="no process"):
        read_processes([empty])


@pytest.mark.parametrize(
    "text", ["", "hello", "events: Ir\nfn=(1)\n", "events: Ir\nfn=f\n12 x\n", "events: Ir\nfn=f\ncalls=\n"]
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(FormatError):
        read_callgrind(text)


@given(st.lists(st.text(alphabet="fncalob=(1) +-*0x9:\n'evtsIr", max_size=20), max_size=30))
def test_no_text_raises_another_error(lines: list[str]) -> None:
    with contextlib.suppress(FormatError):
        read_callgrind("events: Ir\n" + "\n".join(lines))


NAMES = st.text(alphabet="abcxyz<>:, *&()'~", min_size=1, max_size=8).map(lambda name: f"f{name}g")
BLOCKS = st.lists(
    st.tuples(
        NAMES,
        st.sampled_from(["a.c", "b.c", "???"]),
        st.lists(st.tuples(st.integers(1, 9), st.integers(0, 10**12))),
        st.lists(st.tuples(NAMES, st.integers(1, 5), st.integers(0, 99))),
    ),
    min_size=1,
    max_size=8,
)


@given(BLOCKS, st.booleans())
def test_what_is_written_is_read_with_or_without_compression(blocks: list, compressed: bool) -> None:  # type: ignore[type-arg] # nested
    numbers: dict[tuple[str, str], int] = {}

    def name(kind: str, text: str) -> str:
        if not compressed:
            return text
        known = (kind, text) in numbers
        number = numbers.setdefault((kind, text), len(numbers) + 1)
        return f"({number})" if known else f"({number}) {text}"

    own: defaultdict[tuple[str, str], float] = defaultdict(float)
    calls: defaultdict[tuple[str, str], float] = defaultdict(float)
    lines, last = ["events: Ir"], 0

    def position(line: int) -> str:
        nonlocal last
        before, last = last, line
        if not compressed:
            return str(line)
        return "*" if line == before else f"{line - before:+d}"

    for function, file, costs, callees in blocks:
        lines += [f"fl={name('file', file)}", f"fn={name('fn', function)}"]
        for line, cost in costs:
            lines.append(f"{position(line)} {cost}")
            own[function, file] += cost
        own[function, file] += 0.0
        for callee, count, cost in callees:
            lines += [f"cfn={name('fn', callee)}", f"calls={count} {4 if not compressed else '+0'}"]
            lines.append(f"{position(3)} {cost}")
            calls[function, callee] += count
    profile = read_callgrind("\n".join(lines))
    assert {
        (each.name, each.file or "???"): costs[0] for each, costs in profile.own.items()
    } == pytest.approx(dict(own))
    found: defaultdict[tuple[str, str], float] = defaultdict(float)
    for (caller, callee_function), each in profile.calls.items():
        found[caller.name, callee_function.name] += each.count
    assert found == calls


C_PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "inlined.h"
__attribute__((noinline)) int leaf(int n) { int s = 0; for (int i = 0; i < n; i++) s += mixed(i + s); return s; }
int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
int odd(int n);
int even(int n) { return n == 0 ? 1 : odd(n - 1) + leaf(2); }
int odd(int n) { return n == 0 ? 0 : even(n - 1) + leaf(3); }
static int less(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
int main(void) {
  int values[200], s = 0;
  for (int i = 0; i < 200; i++) values[i] = i * 7919 % 211;
  qsort(values, 200, sizeof *values, less);
  for (int i = 0; i < 100; i++) {
    char *p = malloc(32 + i); memset(p, i, 32); s += p[3] + leaf(10) + fib(6) + even(5); free(p);
  }
  printf("%d %d\n", s, values[7]);
  return 0;
}
"""
INLINED = "static inline int mixed(int x) { x ^= x << 13; x ^= x >> 17; return x ^ x << 5; }\n"
ROW = re.compile(
    r"^\s*(?P<cost>[0-9,]+) (?:\([ 0-9.]+%\)\s+)?(?P<file>.+?):(?P<name>[^/]+?)(?: \[(?P<object>.*)\])?$"
)


def annotated(file: Path, *, inclusive: bool) -> dict[str, float]:
    """Return the costs of callgrind_annotate by function name, summed over files."""
    done = subprocess.run(
        ["callgrind_annotate", "--threshold=100", "--auto=no", f"--inclusive={'yes' if inclusive else 'no'}",
         str(file)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found: defaultdict[str, float] = defaultdict(float)
    _, _, rows = done.stdout.partition("file:function")
    for row in rows.splitlines():
        match = ROW.match(row)
        if match is not None:
            cost = float(match["cost"].replace(",", ""))
            # Inclusive costs are repeated for each file from which code was inlined.
            found[match["name"]] = (
                max(cost, found[match["name"]]) if inclusive else cost + found[match["name"]]
            )
    return found


@pytest.mark.slow("processor")
@needs("callgrind_annotate")
@pytest.mark.parametrize(
    "options", [[], ["--dump-instr=yes"], ["--compress-strings=no", "--compress-pos=no"]]
)
def test_costs_equal_those_of_callgrind_annotate(tmp_path: Path, options: list[str]) -> None:
    (tmp_path / "main.c").write_text(C_PROGRAM)
    (tmp_path / "inlined.h").write_text(INLINED)
    subprocess.run(["cc", "-O1", "-g", "-o", "main", "main.c"], cwd=tmp_path, check=True)
    subprocess.run(
        ["valgrind", "-q", "--tool=callgrind", "--collect-jumps=yes", "--callgrind-out-file=out", *options,
         "./main"],
        cwd=tmp_path, check=True, capture_output=True,
    )  # fmt: skip
    profile = read_callgrind((tmp_path / "out").read_text())
    own, inclusive = annotated(tmp_path / "out", inclusive=False), annotated(tmp_path / "out", inclusive=True)
    levels: defaultdict[str, float] = defaultdict(float)
    for name, cost in own.items():
        levels[re.sub("'[0-9]+$", "", name)] += cost
    for name in ("main", "leaf", "fib", "even", "odd", "less"):
        [function] = [each for each in profile.own if each.name == name]
        assert profile.own[function][0] == levels[name] > 0
        assert profile.inclusive[function][0] == inclusive[name]
        assert function.file.endswith("main.c")
    [leaf] = [each for each in profile.own if each.name == "leaf"]
    assert any(file.endswith("inlined.h") for file, _ in profile.lines[leaf])
    assert sum(levels.values()) == pytest.approx(profile.total[0], rel=0.01)  # it leaves out the smallest
