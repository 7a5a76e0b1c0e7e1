"""The studies in `examples/`: all can be checked, four are run on small repositories like those that they name."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.printing import perftrail, perftrail_here
from tests.needs import skip_for
from tests.sources.repositories import Repository
from tests.starting import REPOSITORY

EXAMPLES = sorted((REPOSITORY / "examples").glob("*/perftrail.toml"))
PAGE = REPOSITORY / "docs" / "how-to" / "examples.md"


def ends(file: Path) -> list[str]:
    ends: list[str] = tomllib.loads(file.read_text("utf-8"))["source"]["range"].split("..")
    return ends


def example(name: str, to: Path, repository: Path) -> Path:
    """Copy an example, with another repository in place of the public one."""
    shutil.copytree(REPOSITORY / "examples" / name, to)
    file = to / "perftrail.toml"
    text = file.read_text("utf-8")
    text, count = re.subn(r'(?m)^location = "https://.*"$', f'location = "{repository}"', text)
    assert count == 1
    file.write_text(text)
    return file


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository of two commits that have the tags of all examples."""
    made = Repository(tmp_path_factory.mktemp("history") / "any")
    first, second = (made.commit({"number": number}) for number in "12")
    for file in EXAMPLES:
        for tag, commit in zip(ends(file), (first, second), strict=True):
            made.tag(tag, commit)
    return made.path


def test_there_are_ten_examples_and_a_page_that_describes_each() -> None:
    page = PAGE.read_text("utf-8")
    assert len(EXAMPLES) == 10
    for file in EXAMPLES:
        location = tomllib.loads(file.read_text("utf-8"))["source"]["location"]
        assert f"](../../{file.relative_to(REPOSITORY)})**" in page
        assert f"]({location})." in page


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.parent.name)
def test_an_example_can_be_checked(file: Path, repository: Path, tmp_path: Path) -> None:
    copied = example(file.parent.name, tmp_path / "study", repository)
    plan = json.loads(perftrail_here("check", copied, "--json").stdout)
    assert plan["revisions"] == 2
    assert all("root" in each or "not installed" in each for each in plan["warnings"]), plan["warnings"]


def test_the_time_of_a_suite_that_is_not_listed_yet_is_unknown(repository: Path, tmp_path: Path) -> None:
    copied = example("python-asv", tmp_path / "study", repository)
    done = perftrail_here("check", copied)
    assert re.search(r"^time left +unknown until something is built and measured$", done.stdout, re.MULTILINE)


@dataclass(frozen=True)
class Project:
    """A project like that of an example: its files, where `{work}` is the number of repetitions of its work."""

    example: str
    tools: tuple[str, ...]
    files: Mapping[str, str]
    options: tuple[str, ...] = ()


WORK = "static volatile long sum; static void work(long n) { for (long i = 0; i < n; i++) sum += i; }\n"

PROJECTS = (
    Project(
        "cmake-library",
        ("cmake", "cc", "make"),
        {
            "CMakeLists.txt": "cmake_minimum_required(VERSION 3.10)\nproject(cmark C)\nadd_subdirectory(src)\n",
            "src/CMakeLists.txt": "add_library(cmark STATIC cmark.c)\n"
            "configure_file(cmark_version.h.in cmark_version.h)\n",
            "src/cmark_version.h.in": "\n",
            "src/cmark.h": "#include <stddef.h>\n#define CMARK_OPT_DEFAULT 0\n"
            "char *cmark_markdown_to_html(const char *, size_t, int);\n",
            "src/cmark.c": f"#include <string.h>\n{WORK}char *cmark_markdown_to_html(const char *a, size_t n, int o)"
            " { work({work}0000 * (n > 0)); return strdup(a); }\n",
        },
        ("--only", "paragraphs=2000"),
    ),
    Project(
        "meson",
        ("meson", "ninja", "cc"),
        {
            "meson.build": "project('fribidi', 'c')\nsubdir('bin')\n",
            "meson_options.txt": "option('docs', type: 'boolean', value: true)\n",
            "bin/meson.build": "executable('fribidi-benchmark', 'benchmark.c')\n",
            "bin/benchmark.c": f"#include <stdio.h>\n#include <time.h>\n{WORK}int main(void) {{\n"
            "    for (int test = 0; test < 2; test++) {\n        clock_t began = clock();\n        work({work}0000);\n"
            '        printf("7 len*iterations in %f seconds\\n", (double)(clock() - began) / CLOCKS_PER_SEC);\n'
            "    }\n}\n",
        },
        ("--only", "benchmark=reorder"),
    ),
    Project(
        "go-module",
        ("go",),
        {
            "go.mod": "module example.org/uuid\n\ngo 1.19\n",
            "uuid.go": "package uuid\n\nfunc Parse() (sum int) {\n"
            "\tfor i := 0; i < {work}; i++ {\n\t\tsum = sum*3 + i\n\t}\n\treturn\n}\n",
            "uuid_test.go": 'package uuid\n\nimport "testing"\n\nvar sink int\n\n'
            "func BenchmarkParse(b *testing.B) {\n\tfor i := 0; i < b.N; i++ {\n\t\tsink += Parse()\n\t}\n}\n",
        },
    ),
    Project(
        "node-package",
        ("node",),
        {
            "package.json": "{}\n",
            "posix.js": "\n",
            "lib/none.js": "\n",
            "index.js": "module.exports = glob => path => {\n"
            "  let sum = 0;\n  for (let i = 0; i < {work}; i++) sum += i;\n"
            "  return sum > 0 && path !== glob;\n};\n",
        },
    ),
)
"""Projects like those of four examples."""


@pytest.mark.slow("starts")
@pytest.mark.long
@pytest.mark.parametrize("project", PROJECTS, ids=lambda project: project.example)
def test_an_example_measures_a_project_like_the_one_that_it_names(project: Project, tmp_path: Path) -> None:
    lacking = [tool for tool in project.tools if shutil.which(tool) is None]
    if lacking:
        skip_for(*lacking)
    repository = Repository(tmp_path / "project")
    for tag, work in zip(
        ends(REPOSITORY / "examples" / project.example / "perftrail.toml"), ("8000", "100"), strict=True
    ):
        files = {name: text.replace("{work}", work) for name, text in project.files.items()}
        repository.tag(tag, repository.commit(files))
    file = example(project.example, tmp_path / "study", repository.path)
    text = re.sub(r"\[measure\]\n(?:\w.*\n)+", "", file.read_text("utf-8"))
    file.write_text(f"{text}\n[measure]\ninvocations = 2\nwarmups = 0\nquiet_threshold = 100\n")
    perftrail("run", file, *project.options)
    shown = json.loads(perftrail_here("show", file, "--json").stdout)
    names = {"cpu", "seconds", "time"}
    values = [row["estimate"]["value"] for row in shown if row["metric"] in names and row["estimate"]]
    assert len(values) >= 2
    assert max(values) > 4 * min(values)
