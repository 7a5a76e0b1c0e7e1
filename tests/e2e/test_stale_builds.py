"""`run` with incremental builds, on a history whose makefile lacks the dependency on a header."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.printing import perftrail, perftrail_here
from tests.sources.repositories import Repository

pytestmark = pytest.mark.slow("starts")

STUDY = """\
[source]
kind = "git"
location = "{location}"

[build]
steps = ["make"]
outputs = ["program"]
incremental = true
disk = "1GiB"

[benchmark.it]
command = "{{build}}/program"
metrics = {{ cost = {{ pattern = 'cost ([0-9]+)' }} }}

[measure]
warmups = 0
invocations = 3
"""
WITHOUT_HEADER = "program: main.o\n\t$(CC) -o $@ main.o\nmain.o: main.c\n"
MAIN = '#include <stdio.h>\n#include "cost.h"\nint main(void) { printf("cost %d\\n", COST); return 0; }\n'


def test_stale_builds_are_repeated_before_measuring(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repository")
    for cost in (1, 2, 3):
        repository.commit({"Makefile": WITHOUT_HEADER, "main.c": MAIN, "cost.h": f"#define COST {cost}\n"})
    study = tmp_path / "study"
    study.mkdir()
    (study / "perftrail.toml").write_text(STUDY.format(location=repository.path))
    ran = perftrail("run", study, "--json")
    assert "incremental builds are off" in ran.stderr
    assert "2 builds may contain stale objects" in ran.stderr
    assert json.loads(ran.stdout)["invocations"] == 9
    shown = json.loads(perftrail_here("show", study, "--json").stdout)
    rows = shown if isinstance(shown, list) else shown["rows"]
    costs = [row["estimate"]["value"] for row in rows if row["metric"] == "cost"]
    assert costs == [1.0, 2.0, 3.0]
    again = perftrail("run", study, "--json")
    assert json.loads(again.stdout)["invocations"] == 0
    assert "incremental" not in again.stderr
