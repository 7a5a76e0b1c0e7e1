"""A study directory that was moved: `run` and `find` use its builds, its samples and its search as before."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.sources.repositories import Repository
from tests.starting import start

pytestmark = pytest.mark.slow("starts")

STUDY = """\
[source]
kind = "git"
location = "repository"

[build]
steps = ["cc -g -O1 -o program main.c"]
pin = false
outputs = ["program"]

[benchmark.it]
command = "{build}/program {study}/input.txt"
metrics = { cost = { pattern = 'cost ([0-9]+)' } }

[measure]
warmups = 0
invocations = 2

[find]
metric = "cost"
"""
MAIN = '#include <stdio.h>\nint main(void) { printf("cost %d\\n", 4 * COST); return 0; }\n'


def perftrail(*words: str | Path) -> dict[str, Any]:
    done = start(*words, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_moved_study_repeats_no_invocation(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "elsewhere" / "after"
    repository = Repository(before / "repository")
    for number in range(7):
        repository.commit({"main.c": f"#define COST {1 + (number > 3)}\n{MAIN}/* {number} */\n"})
    (before / "perftrail.toml").write_text(STUDY)
    (before / "input.txt").write_text("an input, which the samples belong to\n")
    answer = perftrail("find", before)
    assert answer["verdict"] == "found"
    perftrail("run", before)

    after.parent.mkdir()
    before.rename(after)
    assert perftrail("find", after) == {**answer, "failures": []}
    assert perftrail("run", after)["invocations"] == 0
    plan = perftrail("check", after)
    assert plan["builds"]["left"] == plan["invocations"]["left_least"] == 0

    (after / "input.txt").write_text("another input\n")
    assert perftrail("check", after)["invocations"]["stored"] == 0
