"""The relink lines that `init` writes as comments: uncommented, they relink real projects."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from tests.cli.calling import called
from tests.cli.test_commands import perftrail
from tests.needs import skip_for
from tests.sources.repositories import Repository

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MAIN = """\
#include <stdio.h>
int one(int); int two(int); int three(int);
int main(int count, char **words)
{
    printf("tiny %d\\n", one(count) + two(count) + three(count));
    return words == NULL; /* "--version" */
}
"""
PARTS = {
    f"{name}.c": f"int {name}(int n) {{ return n * {factor}; }}\n"
    for name, factor in (("one", 3), ("two", 5), ("three", 7))
}
C = {"main.c": MAIN, **PARTS}
OBJECTS = "main.o one.o two.o three.o"
SOURCES = OBJECTS.replace(".o", ".c")


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A project of several functions, and the tools that its relinking takes."""

    name: str
    files: Mapping[str, str]
    tools: tuple[str, ...] = field(default=("cc", "ld.lld"))
    long: bool = False


PROJECTS = (
    Project(
        name="make",
        files={**C, "Makefile": f"all: tiny\ntiny: {OBJECTS}\n\t$(CC) -o $@ {OBJECTS}\n"},
        tools=("make", "cc", "ld.lld"),
    ),
    Project(
        name="make with C++",
        files={
            **C,
            "four.cc": "int four(int n) { return n; }\n",
            "Makefile": f"all: tiny\ntiny: {OBJECTS} four.o\n\t$(CXX) -o $@ {OBJECTS} four.o\n",
        },
        tools=("make", "c++", "ld.lld"),
    ),
    Project(
        name="autotools",
        long=True,
        files={
            **C,
            "configure.ac": "AC_INIT([tiny], [1.0])\nAM_INIT_AUTOMAKE([foreign])\nAC_PROG_CC\n"
            "AC_CONFIG_FILES([Makefile])\nAC_OUTPUT\n",
            "Makefile.am": f"bin_PROGRAMS = tiny\ntiny_SOURCES = {SOURCES}\n",
        },
        tools=("make", "cc", "autoconf", "automake", "ld.lld"),
    ),
    Project(
        name="cmake",
        long=True,
        files={
            **C,
            "CMakeLists.txt": "cmake_minimum_required(VERSION 3.10)\nproject(tiny C)\n"
            f"add_executable(tiny {SOURCES})\n",
        },
        tools=("cmake", "make", "cc", "ld.lld"),
    ),
    Project(
        name="meson",
        long=True,
        files={**C, "meson.build": f"project('tiny', 'c')\nexecutable('tiny', {SOURCES.split()!r})\n"},
        tools=("meson", "ninja", "cc", "ld.lld"),
    ),
    Project(
        name="cargo",
        files={
            "Cargo.toml": '[package]\nname = "tiny"\nversion = "1.0.0"\nedition = "2021"\n',
            "src/main.rs": 'fn main() { println!("tiny 1.0"); }\n',
        },
        tools=("cargo", "cc", "ld.lld"),
    ),
    Project(
        name="cargo workspace",
        long=True,
        files={
            "Cargo.toml": '[workspace]\nmembers = ["crates/*"]\nresolver = "2"\n',
            "crates/part/Cargo.toml": '[package]\nname = "part"\nversion = "1.0.0"\nedition = "2021"\n',
            "crates/part/src/lib.rs": "pub fn part(n: usize) -> usize { n * 3 }\n",
            "crates/tiny/Cargo.toml": '[package]\nname = "tiny"\nversion = "1.0.0"\nedition = "2021"\n'
            '[dependencies]\npart = { path = "../part" }\n',
            "crates/tiny/src/main.rs": 'fn main() { println!("tiny {}", part::part(1)); }\n',
        },
        tools=("cargo", "cc", "ld.lld"),
    ),
    Project(
        name="go",
        long=True,
        files={
            "go.mod": "module example.invalid/tiny\n\ngo 1.20\n",
            "cmd/tiny/main.go": 'package main\n\nimport "flag"\n\nfunc main() { flag.Parse() }\n',
        },
        tools=("go",),
    ),
)


def initialised(files: Mapping[str, str], directory: Path) -> tuple[Repository, str]:
    """Return a repository of these files with the study of `init`, and what that printed."""
    repository = Repository(directory / "tiny")
    repository.commit(files)
    done = called("init", cwd=repository.path)
    assert done.returncode == 0, done.stderr
    return repository, done.stdout


def uncommented(text: str) -> str:
    """Return a study file with the comments of its relink lines taken away, and nothing else."""
    lines, inside = [], False
    for line in text.splitlines():
        inside = inside or line == "# relink = ["
        lines.append(line.removeprefix("# ") if inside else line)
        inside = inside and line != "# ]"
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    "project",
    [
        pytest.param(each, marks=[pytest.mark.slow("builds"), *([pytest.mark.long] if each.long else [])])
        for each in PROJECTS
    ],
    ids=lambda project: project.name,
)
def test_the_relink_lines_of_init_make_different_programs_that_run(project: Project, tmp_path: Path) -> None:
    lacking = [tool for tool in project.tools if shutil.which(tool) is None]
    if lacking:
        skip_for(*lacking)
    repository, begun = initialised(project.files, tmp_path)
    assert "lld is not installed" not in begun
    file = repository.path / "perftrail.toml"
    written = file.read_text()
    assert "# relink = [" in written
    file.write_text(uncommented(written))
    assert "lld is not installed" not in called("check", cwd=repository.path).stdout
    tried = perftrail("check", "--try", "1", "--json", cwd=repository.path)
    assert tried.returncode == 0, tried.stdout + tried.stderr
    report = json.loads(tried.stdout)
    assert (report["built"], report["usable"], report["relinked"]) == (1, 1, 1), report["failures"]
    assert "relink has no effect" not in tried.stderr


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            {"pyproject.toml": '[project]\nname = "tiny"\nversion = "1"\n', "tiny/__init__.py": ""},
            "# no relinking: every pair of invocations uses random paths and hash seeds",
        ),
        (
            {"package.json": '{"name": "tiny", "bin": "cli.js"}', "cli.js": ""},
            "# no relinking: node compiles while it runs",
        ),
    ],
    ids=["python", "npm"],
)
def test_interpreters_have_nothing_to_relink_and_init_reports_it(
    files: Mapping[str, str], expected: str, tmp_path: Path
) -> None:
    repository, _ = initialised(files, tmp_path)
    written = (repository.path / "perftrail.toml").read_text()
    assert expected in written
    assert "relink = [" not in written


def test_benchmarks_without_a_built_program_get_no_relink_lines(tmp_path: Path) -> None:
    makefile = "tiny: main.c\n\t$(CC) -o $@ main.c\nbench: tiny\n\t./tiny\n.PHONY: bench\n"
    repository, _ = initialised({"Makefile": makefile, "main.c": MAIN}, tmp_path)
    assert "relink" not in (repository.path / "perftrail.toml").read_text()


def test_a_suite_is_not_relinked(tmp_path: Path) -> None:
    benchmark = (
        'package sum\n\nimport "testing"\n\nfunc BenchmarkSum(b *testing.B) {\n'
        "\tfor i := 0; i < b.N; i++ {\n\t\tSum(100)\n\t}\n}\n"
    )
    repository, _ = initialised(
        {
            "go.mod": "module example.invalid/tiny\n\ngo 1.20\n",
            "sum/sum.go": "package sum\n\nfunc Sum(n int) int { return n }\n",
            "sum/sum_test.go": benchmark,
        },
        tmp_path,
    )
    written = (repository.path / "perftrail.toml").read_text()
    assert 'kind = "go"' in written
    assert "relink" not in written
