"""Detect Go modules."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from perftrail.suites.go import PROGRAMS
from perftrail.verbs.init.draft import (
    BenchmarkDraft,
    BuildDraft,
    Program,
    Step,
    SuiteDraft,
    choose_program,
    is_safe_path,
    program_benchmark,
)

if TYPE_CHECKING:
    from perftrail.verbs.init.draft import Tree

MANIFEST = "go.mod"
_BIN = "perftrail-bin"
_MAIN = re.compile(r"^package main\b", re.MULTILINE)
_BENCHMARK = re.compile(r"^func (Benchmark[A-Z0-9_]\w*)\(\w+ \*testing\.B\)", re.MULTILINE)


def detect(tree: Tree) -> BuildDraft | None:
    """Read the commands and benchmarks of a module."""
    if MANIFEST not in tree:
        return None
    packages = _packages(tree)
    programs = [Program(name=name, path=f"{_BIN}/{name}") for name in packages]
    program = choose_program(programs, _module(tree))
    benchmark = program_benchmark(tree, program, option="--help") if program else _tests(tree)
    if _has_benchmarks(tree):
        return _suite(tree, benchmark)
    if program is not None and benchmark.placeholder:
        arguments = f"-trimpath -buildvcs=false -o {_BIN}/ {packages[program.name]}"
        step = Step(
            line=f"go build {arguments}",
            why="no path and no commit in the program, so that equal sources give equal programs",
        )
    else:
        step = Step(line="go build ./...", why="shows early which revisions fail to build")
    return BuildDraft(
        system="go",
        manifest=MANIFEST,
        tools=("go",),
        steps=(step,),
        outputs=benchmark.uses,
        outputs_why="revisions with equal programs are measured once",
        benchmark=benchmark,
    )


_SUITE_LINE = (
    'module=$(go list -m); go list ./... | while read -r package; do at=".${package#"$module"}"; '
    f'grep -qs \'^func Benchmark\' "$at"/*_test.go || continue; mkdir -p "{PROGRAMS}/$at"; '
    f'go test -c -trimpath -o "{PROGRAMS}/$at/bench.test" "$package" || exit 1; done'
)
"""Builds the test program of every package with benchmarks, in a directory named like the package."""


def _has_benchmarks(tree: Tree) -> bool:
    return any(path.endswith("_test.go") and _BENCHMARK.search(tree.text(path)) for path in tree)


def _suite(tree: Tree, benchmark: BenchmarkDraft) -> BuildDraft:
    """Return the build of a module's benchmarks, each package as one test program."""
    return BuildDraft(
        system="go",
        manifest=MANIFEST,
        tools=("go",),
        steps=(Step(line=_SUITE_LINE, why="the test program of each package with benchmarks"),),
        outputs=(tree.path(f"{PROGRAMS}/**"),),
        outputs_why="revisions with equal programs are measured once",
        benchmark=benchmark,
        suite=SuiteDraft(
            kind="go",
            program=(tree.path(f"{PROGRAMS}/**/*.test"),),
            why="every benchmark of the module's tests",
        ),
    )


def _module(tree: Tree) -> str:
    found = re.search(r"^module\s+(\S+)", tree.text(MANIFEST), re.MULTILINE)
    return PurePosixPath(re.sub(r"/v\d+$", "", found[1])).name if found else tree.name


def _packages(tree: Tree) -> dict[str, str]:
    """Return each package main, as an argument of `go build`, by the name of its program."""
    directories = {
        PurePosixPath(path).parent
        for path in tree
        if path.endswith(".go") and not path.endswith("_test.go") and _MAIN.search(tree.text(path))
    }
    packages = [
        directory
        for directory in sorted(directories)
        if directory == PurePosixPath() or is_safe_path(str(directory))
    ]
    return {
        directory.name or _module(tree): f"./{directory}" if directory.name else "." for directory in packages
    }


def _tests(tree: Tree) -> BenchmarkDraft:
    return BenchmarkDraft(
        name="bench",
        command=f"go test -count=1 -C {tree.word()} ./...",
        why="no benchmark and no program was found: the tests are real work; replace them by a benchmark",
    )
