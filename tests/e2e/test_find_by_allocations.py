"""A change of 3 % in the number of allocations, found and explained by counting them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.needs import needs
from tests.sources.repositories import Repository
from tests.starting import start

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow("starts")

CULPRIT = 4

PROGRAM = """\
#include <stdlib.h>
/* revision {number} */
static void *volatile block;
static void store_entry(int bytes)
{{
    block = malloc(bytes);
    free(block);
}}
__attribute__((noinline)) static void index_entries(int number)
{{
    for (int i = 0; i < number; i++)
        store_entry(100);
}}
int main(void)
{{
    index_entries({allocations});
    return 0;
}}
"""

STUDY = """\
[study]
title = "Which commit allocated more?"

[source]
kind = "git"
location = "{repository}"

[build]
steps = ["cc -g -O1 -o work work.c ${{LINKING-}}"]
pin = false
outputs = ["work"]

[variants.plain]

[variants.static]
build.env = {{ LINKING = "-static" }}

[benchmark.work]
command = "{{build}}/work"
counters = ["allocations"]

[measure]
warmups = 0

[find]
metric = "allocations"
variant = "plain"
threshold = 0.01
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    directory = tmp_path_factory.mktemp("allocations")
    repository = Repository(directory / "repository")
    commits = [
        repository.commit(
            {"work.c": PROGRAM.format(number=number, allocations=1030 if number >= CULPRIT else 1000)},
            subject=f"change {number}",
        )
        for number in range(8)
    ]
    file = directory / "study" / "perftrail.toml"
    file.parent.mkdir()
    file.write_text(STUDY.format(repository=repository.path))
    return file, commits


def test_a_planted_change_of_3_percent_is_found_by_its_allocations(study: tuple[Path, list[str]]) -> None:
    file, commits = study
    done = start("find", str(file), "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["verdict"] == "found", answer
    [change] = answer["changes"]
    assert change["revisions"] == [commits[CULPRIT]]
    assert change["effect"]["low"] == pytest.approx(1.03, abs=0.01)
    shown = start("show", str(file), "--json", "--metric", "allocated_bytes", "--metric", "heap_peak")
    rows = json.loads(shown.stdout)
    assert {row["estimate"]["value"] for row in rows if row["metric"] == "allocated_bytes"} == {
        100_000,
        103_000,
    }
    assert all(100 <= row["estimate"]["value"] <= 128 for row in rows if row["metric"] == "heap_peak")


@needs("addr2line")
def test_explain_names_the_function_that_allocates_more(study: tuple[Path, list[str]]) -> None:
    file, commits = study
    done = start("explain", commits[CULPRIT], str(file), "--only", "variant=plain", "--json")
    [point] = json.loads(done.stdout)["points"]
    metrics = {each["name"]: each for each in point["metrics"]}
    whole = metrics["allocations"]
    assert (whole["before"], whole["after"], whole["differs"]) == (1000, 1030, True)
    site = metrics["allocations in index_entries → store_entry (work.c)"]
    assert (site["before"], site["after"]) == (1000, 1030)
    assert site["differs"]


def test_a_static_variant_fails_because_its_allocations_cannot_be_counted(
    study: tuple[Path, list[str]],
) -> None:
    file, commits = study
    done = start("run", str(file), "--only", "variant=static", "--only", "revision=" + commits[-1])
    assert "its allocations cannot be counted: the program does not load a shared glibc" in (
        done.stdout + done.stderr
    )
