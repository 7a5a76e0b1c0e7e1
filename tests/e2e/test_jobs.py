"""`--jobs`: parallel builds with real git and cc have the results of serial ones."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.printing import begin, find_answer, perftrail, perftrail_here, revisions
from tests.process.sandbox.test_limits import alive
from tests.sources.repositories import Repository

pytestmark = pytest.mark.slow("starts")

STUDY = """\
[source]
kind = "git"
location = "{location}"

[build]
steps = ["{first}", "echo {{cpus}} > cpus", "make"]
outputs = ["program", "cpus"]
incremental = {incremental}

[benchmark.it]
command = "{{build}}/program"
metrics = {{ cost = {{ pattern = 'cost ([0-9]+)' }} }}

[measure]
warmups = 0
invocations = 2

[find]
metric = "cost"
"""
WITHOUT_HEADER = "program: main.o\n\t$(CC) -o $@ main.o\nmain.o: main.c\n"
WITH_HEADER = WITHOUT_HEADER.replace("main.c\n", "main.c cost.h\n")
MAIN = '#include <stdio.h>\n#include "cost.h"\nint main(void) { printf("cost %d\\n", COST); return 0; }\n'

WAIT_FOR_ANOTHER_BUILD = (
    "touch {directory}/$$; n=0; until test $(ls {directory} | wc -l) -ge 2; do n=$((n + 1)); test $n -lt 200; "
    "sleep 0.05; done"
)
"""A build step that succeeds only if another build starts within ten seconds."""


def commit_costs(path: Path, costs: tuple[int, ...], makefile: str = WITH_HEADER) -> list[str]:
    repository = Repository(path)
    return [
        repository.commit(
            {"Makefile": makefile, "main.c": MAIN, "cost.h": f"#define COST {cost} /* {number} */\n"}
        )
        for number, cost in enumerate(costs)
    ]


def write_study(path: Path, location: Path, *, first: str = "true", incremental: bool = False) -> Path:
    path.mkdir()
    text = STUDY.format(location=location, first=first, incremental=str(incremental).lower())
    (path / "perftrail.toml").write_text(text)
    return path


def costs_of(study: Path) -> list[float]:
    rows = json.loads(perftrail_here("show", study, "--json").stdout)
    return [row["estimate"]["value"] for row in rows if row["metric"] == "cost"]


def test_parallel_builds_share_the_cpus_and_have_the_results_of_serial_ones(tmp_path: Path) -> None:
    commit_costs(tmp_path / "repository", (1, 2, 3))
    meeting = tmp_path / "meeting"
    meeting.mkdir()
    study = write_study(
        tmp_path / "study", tmp_path / "repository", first=WAIT_FOR_ANOTHER_BUILD.format(directory=meeting)
    )
    ran = perftrail("run", study, "--jobs", "2", "--json")
    assert json.loads(ran.stdout)["measured"] == 3
    assert "2 parallel builds" in ran.stderr
    assert costs_of(study) == [1.0, 2.0, 3.0]
    share = max(1, len(os.sched_getaffinity(0)) // 2)
    trees = sorted(study.glob(".perftrail/builds/*/tree"))
    assert [(tree / "cpus").read_text() for tree in trees] == [f"{share}\n"] * 3
    perftrail("run", study, "--store", tmp_path / "other")
    serial_trees = sorted((tmp_path / "other").glob("builds/*/tree"))
    assert [tree.parent.name for tree in serial_trees] == [tree.parent.name for tree in trees]
    assert [(tree / "program").read_bytes() for tree in serial_trees] == [
        (tree / "program").read_bytes() for tree in trees
    ]


def test_incremental_builds_have_a_tree_each_and_stale_ones_are_still_found(tmp_path: Path) -> None:
    commit_costs(tmp_path / "repository", (1, 2, 3, 4), WITHOUT_HEADER)
    study = write_study(tmp_path / "study", tmp_path / "repository", incremental=True)
    ran = perftrail("run", study, "--jobs", "2", "--json")
    assert "incremental builds are off" in ran.stderr
    assert costs_of(study) == [1.0, 2.0, 3.0, 4.0]


def test_find_has_the_same_answer_and_counts_builds_ahead(tmp_path: Path) -> None:
    commits = commit_costs(tmp_path / "repository", (1, 1, 1, 9, 9, 9, 9))
    study = write_study(tmp_path / "study", tmp_path / "repository")
    parallel = find_answer(study, "--jobs", "3", "--no-prior", "--as-linked")
    serial = find_answer(study, "--store", tmp_path / "other", "--no-prior", "--as-linked")
    assert revisions(parallel) == revisions(serial) == [[commits[3]]]
    assert len(list(study.glob(".perftrail/builds/*/built.json"))) == parallel["builds"] >= serial["builds"]


def test_only_commands_that_build_accept_jobs(tmp_path: Path) -> None:
    commit_costs(tmp_path / "repository", (1,))
    study = write_study(tmp_path / "study", tmp_path / "repository")
    assert "--jobs" in perftrail_here("check", study, "--jobs", "2", expect=2).stderr
    assert perftrail_here("run", study, "--jobs", "0", expect=2).stderr
    report = json.loads(perftrail("check", study, "--try", "1", "--jobs", "2", "--json").stdout)
    assert report["usable"] == 1


@pytest.mark.parametrize("kill_signal", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_kill_leaves_no_running_or_partial_build(tmp_path: Path, kill_signal: signal.Signals) -> None:
    commit_costs(tmp_path / "repository", (1, 2))
    sleep = f"sleep 61.{os.getpid()}{kill_signal.value}"
    study = write_study(
        tmp_path / "study", tmp_path / "repository", first=f"test -e {tmp_path}/go || {sleep}"
    )
    process = begin("run", study, "--jobs", "2")
    wait_for(lambda: alive(sleep))
    process.send_signal(kill_signal)
    start_time = time.monotonic()
    process.wait(10)
    wait_for(lambda: not alive(sleep))
    assert time.monotonic() - start_time < 4
    assert list(study.glob(".perftrail/builds/*/built.json")) == []
    if kill_signal != signal.SIGKILL:
        return
    (tmp_path / "go").touch()
    assert json.loads(perftrail("run", study, "--jobs", "2", "--json").stdout)["measured"] == 2


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
