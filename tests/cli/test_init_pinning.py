"""What `init` drafts for real projects is measured with pinned layouts, without a word of relinking."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
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
    """A project of several functions, and the tools that build it. A second revision has `changed` a file's text."""

    name: str
    files: Mapping[str, str]
    changed: tuple[str, str, str] = ("one.c", "* 3", "* 4")
    tools: tuple[str, ...] = ("cc",)
    long: bool = False


PROJECTS = (
    Project(
        name="make",
        files={**C, "Makefile": f"all: tiny\ntiny: {OBJECTS}\n\t$(CC) -o $@ {OBJECTS}\n"},
        tools=("make", "cc"),
    ),
    Project(
        name="make with C++",
        files={
            **C,
            "four.cc": "int four(int n) { return n; }\n",
            "Makefile": f"all: tiny\ntiny: {OBJECTS} four.o\n\t$(CXX) -o $@ {OBJECTS} four.o\n",
        },
        tools=("make", "c++"),
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
        tools=("make", "cc", "autoconf", "automake"),
    ),
    Project(
        name="cmake",
        long=True,
        files={
            **C,
            "CMakeLists.txt": "cmake_minimum_required(VERSION 3.10)\nproject(tiny C)\n"
            f"add_executable(tiny {SOURCES})\n",
        },
        tools=("cmake", "make", "cc"),
    ),
    Project(
        name="meson",
        long=True,
        files={**C, "meson.build": f"project('tiny', 'c')\nexecutable('tiny', {SOURCES.split()!r})\n"},
        tools=("meson", "ninja", "cc"),
    ),
    Project(
        name="cargo",
        long=True,
        files={
            "Cargo.toml": '[package]\nname = "tiny"\nversion = "1.0.0"\nedition = "2021"\n',
            "src/main.rs": 'fn main() { println!("tiny 1.0"); }\n',
        },
        changed=("src/main.rs", "1.0", "1.1"),
        tools=("cargo", "cc"),
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
        changed=("crates/part/src/lib.rs", "* 3", "* 4"),
        tools=("cargo", "cc"),
    ),
    Project(
        name="go",
        long=True,
        files={
            "go.mod": "module example.invalid/tiny\n\ngo 1.20\n",
            "cmd/tiny/main.go": 'package main\n\nimport "flag"\n\nfunc main() { flag.Parse() }\n',
        },
        changed=("cmd/tiny/main.go", "flag.Parse()", "flag.Parse(); flag.Parse()"),
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


@pytest.mark.parametrize(
    "project",
    [
        pytest.param(each, marks=[pytest.mark.slow("builds"), *([pytest.mark.long] if each.long else [])])
        for each in PROJECTS
    ],
    ids=lambda project: project.name,
)
def test_the_program_of_init_is_compared_with_pinned_layouts(project: Project, tmp_path: Path) -> None:
    lacking = [tool for tool in project.tools if shutil.which(tool) is None]
    if lacking:
        skip_for(*lacking)
    repository, _ = initialised(project.files, tmp_path)
    name, old, new = project.changed
    repository.commit({**project.files, name: project.files[name].replace(old, new)})
    assert "relink" not in (repository.path / "perftrail.toml").read_text()
    done = perftrail("compare", "HEAD~1", "HEAD", "--max-pairs", "10", "--json", cwd=repository.path)
    rows = json.loads(done.stdout)["comparisons"]
    assert rows, done.stderr
    assert all(row["pinned"] for row in rows), done.stderr
