"""Three implementations in three directories as variants of one study: built, run and compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from perftrail import studyfile
from perftrail.errors import StudyError
from tests.e2e.printing import perftrail, perftrail_here

pytestmark = pytest.mark.slow("starts")

PTHREADS = """\
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static void *work(void *number) { return number; }
int main(int count, char **words) {
    long workers = atol(words[1]), sum = 0;
    for (long number = 0; number < workers; number++) {
        pthread_t thread; void *result;
        pthread_create(&thread, 0, work, (void *)number);
        pthread_join(thread, &result);
        sum += (long)result;
    }
    printf("sum %ld\\n", sum);
    return count != 2;
}
"""

FORK = """\
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **words) {
    long workers = atol(words[1]), sum = 0;
    for (long number = 0; number < workers; number++) {
        int status = 0;
        pid_t child = fork();
        if (child == 0) _exit((int)number);
        waitpid(child, &status, 0);
        sum += WEXITSTATUS(status);
    }
    printf("sum %ld\\n", sum);
    return count != 2;
}
"""

PYTHON = """\
import sys
print("sum", sum(range(int(sys.argv[1]))))
"""

STUDY = """\
[study]
title = "Which way of working is the cheapest?"

[source]
kind = "directory"
location = "."

[build]
steps = ["cc $FLAGS -o count count.c"]
pin = false
outputs = ["count"]

[variants.pthreads]
directory = "pthreads"
build.env = { FLAGS = "-O2 -pthread" }
run.parts = { program = "{build}/count" }

[variants.fork]
directory = "fork"
build.env = { FLAGS = "-O2" }
run.parts = { program = "{build}/count" }

[variants.python]
directory = "python"
build.steps = []
build.outputs = ["*.py"]
run.parts = { program = "python3 -S {build}/count.py" }

[benchmark.count]
command = "{program} {workers}"
parameters = { workers = [2, 20] }
metrics = { sum = { pattern = 'sum ([0-9]+)' } }

[measure]
warmups = 0
invocations = 3
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("alternatives")
    for folder, file, text in (
        ("pthreads", "count.c", PTHREADS),
        ("fork", "count.c", FORK),
        ("python", "count.py", PYTHON),
    ):
        (root / folder).mkdir()
        (root / folder / file).write_text(text)
    (root / "perftrail.toml").write_text(STUDY)
    return root


@pytest.fixture(scope="module")
def report(study: Path) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(perftrail("run", study, "--json").stdout)
    return parsed


def rows(study: Path) -> list[dict[str, Any]]:
    parsed: list[dict[str, Any]] = json.loads(perftrail_here("show", study, "--json").stdout)
    return parsed


def test_the_plan_names_each_variant_with_its_directory(study: Path) -> None:
    plan = perftrail_here("check", study).stdout
    assert "pthreads (pthreads/), fork (fork/), python (python/)" in plan


def test_each_variant_is_built_and_run_with_its_commands(study: Path, report: dict[str, Any]) -> None:
    assert (report["points"], report["measured"], report["failures"]) == (6, 6, [])
    sums = {(row["variant"], row["point"]["workers"]): row["estimate"]["value"] for row in rows(study)}
    assert {name for name, _ in sums} == {"pthreads", "fork", "python"}
    assert {value for (_, workers), value in sums.items() if workers == 20} == {190.0}


def test_a_build_contains_no_files_of_other_variants(study: Path, report: dict[str, Any]) -> None:
    trees = [tree for tree in (study / ".perftrail" / "builds").glob("*/tree") if tree.is_dir()]
    files = sorted(sorted(file.name for file in tree.iterdir()) for tree in trees)
    assert files == [["count", "count.c"], ["count", "count.c"], ["count.py"]]


def test_variants_are_shown_side_by_side(study: Path, report: dict[str, Any]) -> None:
    head, *lines = perftrail_here("show", study, "--metric", "wall").stdout.splitlines()
    assert head.split() == ["point", "metric", "pthreads", "fork", "python"]
    assert [line.split()[0] for line in lines if line.startswith("workers")] == ["workers=2", "workers=20"]


def test_only_changed_variants_are_built_and_measured_again(study: Path, report: dict[str, Any]) -> None:
    source = study / "fork" / "count.c"
    source.write_text(source.read_text().replace("sum += WEXITSTATUS", "sum += 2 * WEXITSTATUS"))
    plan = json.loads(perftrail_here("check", study, "--json").stdout)
    assert plan["builds"] == {"built": 2, "failed": 0, "left": 1}
    again = json.loads(perftrail("run", study, "--json").stdout)
    assert (again["points"], again["measured"], again["invocations"]) == (6, 6, 6)
    sums = {(row["variant"], row["point"]["workers"]): row["estimate"]["value"] for row in rows(study)}
    assert (sums["fork", 20], sums["pthreads", 20], sums["python", 20]) == (380.0, 190.0, 190.0)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'directory = "fork"',
            'directory = "forks"',
            '19: variants.fork.directory: "forks" is not a directory in ',
        ),
        ('directory = "fork"', 'directory = "../fork"', "19: variants.fork.directory: "),
        (
            "python3 -S {build}/count.py",
            "python3 -S {biuld}/count.py",
            "27: variants.python.run.parts.program: unknown placeholder {biuld}; did you mean {build}?",
        ),
        (
            'run.parts = { program = "python3 -S {build}/count.py" }',
            "",
            "23: variants.python: benchmark.count names {program}, which this variant lacks; add run.parts.program",
        ),
        (
            '{ program = "python3',
            '{ other = "", program = "python3',
            "27: variants.python.run.parts.other: no benchmark's command or build names {other}",
        ),
        (
            'program = "python3 -S',
            "program = \"'python3 -S",
            '27: variants.python.run.parts: "\'python3 -S {build}/count.py {workers}" cannot be split into words',
        ),
    ],
)
def test_a_mistake_is_reported_with_its_line(study: Path, old: str, new: str, message: str) -> None:
    file = study / "wrong.toml"
    assert STUDY.count(old) == 1
    file.write_text(STUDY.replace(old, new))
    with pytest.raises(StudyError) as refused:
        studyfile.load(str(file))
    assert f"wrong.toml:{message}" in str(refused.value)
