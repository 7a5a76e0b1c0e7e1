"""`--jobs`: parallel builds with real git and cc have the results of serial ones."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.printing import found, perftrail, revisions
from tests.process.sandbox.test_limits import alive
from tests.sources.repositories import Repository

pytestmark = pytest.mark.slow

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
FORGETFUL = "program: main.o\n\t$(CC) -o $@ main.o\nmain.o: main.c\n"
RIGHT = FORGETFUL.replace("main.c\n", "main.c cost.h\n")
MAIN = '#include <stdio.h>\n#include "cost.h"\nint main(void) { printf("cost %d\\n", COST); return 0; }\n'

MEET = (
    "touch {directory}/$$; n=0; until test $(ls {directory} | wc -l) -ge 2; do n=$((n + 1)); test $n -lt 200; "
    "sleep 0.05; done"
)
"""A build that succeeds only when another one begins before it gives up."""


def history(path: Path, costs: tuple[int, ...], makefile: str = RIGHT) -> list[str]:
    repository = Repository(path)
    return [
        repository.commit(
            {"Makefile": makefile, "main.c": MAIN, "cost.h": f"#define COST {cost} /* {number} */\n"}
        )
        for number, cost in enumerate(costs)
    ]


def study(path: Path, location: Path, *, first: str = "true", incremental: bool = False) -> Path:
    path.mkdir()
    text = STUDY.format(location=location, first=first, incremental=str(incremental).lower())
    (path / "perftrail.toml").write_text(text)
    return path


def costs_of(study_directory: Path) -> list[float]:
    rows = json.loads(perftrail("show", study_directory, "--json").stdout)
    return [row["estimate"]["value"] for row in rows if row["metric"] == "cost"]


def test_parallel_builds_share_the_cpus_and_have_the_results_of_serial_ones(tmp_path: Path) -> None:
    history(tmp_path / "repository", (1, 2, 3))
    meeting = tmp_path / "meeting"
    meeting.mkdir()
    study_directory = study(tmp_path / "study", tmp_path / "repository", first=MEET.format(directory=meeting))
    ran = perftrail("run", study_directory, "--jobs", "2", "--json")
    assert json.loads(ran.stdout)["measured"] == 3
    assert "2 parallel builds" in ran.stderr
    assert costs_of(study_directory) == [1.0, 2.0, 3.0]
    share = max(1, len(os.sched_getaffinity(0)) // 2)
    made = sorted(study_directory.glob(".perftrail/builds/*/tree"))
    assert [(tree / "cpus").read_text() for tree in made] == [f"{share}\n"] * 3
    perftrail("run", study_directory, "--store", tmp_path / "other")
    alone = sorted((tmp_path / "other").glob("builds/*/tree"))
    assert [tree.parent.name for tree in alone] == [tree.parent.name for tree in made]
    assert [(tree / "program").read_bytes() for tree in alone] == [
        (tree / "program").read_bytes() for tree in made
    ]


def test_incremental_builds_have_a_tree_each_and_stale_ones_are_still_found(tmp_path: Path) -> None:
    history(tmp_path / "repository", (1, 2, 3, 4), FORGETFUL)
    study_directory = study(tmp_path / "study", tmp_path / "repository", incremental=True)
    ran = perftrail("run", study_directory, "--jobs", "2", "--json")
    assert "incremental builds are off" in ran.stderr
    assert costs_of(study_directory) == [1.0, 2.0, 3.0, 4.0]


def test_find_has_the_same_answer_and_counts_builds_ahead(tmp_path: Path) -> None:
    commits = history(tmp_path / "repository", (1, 1, 1, 1, 9, 9, 9, 9, 9))
    study_directory = study(tmp_path / "study", tmp_path / "repository")
    together = found(study_directory, "--jobs", "3", "--no-prior")
    alone = found(study_directory, "--store", tmp_path / "other", "--no-prior")
    assert revisions(together) == revisions(alone) == [[commits[4]]]
    assert (
        len(list(study_directory.glob(".perftrail/builds/*/built.json")))
        == together["builds"]
        >= alone["builds"]
    )


def test_only_commands_that_build_accept_jobs(tmp_path: Path) -> None:
    history(tmp_path / "repository", (1,))
    study_directory = study(tmp_path / "study", tmp_path / "repository")
    assert "--jobs" in perftrail("check", study_directory, "--jobs", "2", expect=2).stderr
    assert perftrail("run", study_directory, "--jobs", "0", expect=2).stderr
    tried = json.loads(perftrail("check", study_directory, "--try", "1", "--jobs", "2", "--json").stdout)
    assert tried["usable"] == 1


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_kill_leaves_no_running_or_partial_build(tmp_path: Path, how: signal.Signals) -> None:
    history(tmp_path / "repository", (1, 2))
    sleep = f"sleep 61.{os.getpid()}{how.value}"
    study_directory = study(
        tmp_path / "study", tmp_path / "repository", first=f"test -e {tmp_path}/go || {sleep}"
    )
    words = [sys.executable, "-m", "perftrail", "run", str(study_directory), "--jobs", "2"]
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    wait_for(lambda: alive(sleep))
    process.send_signal(how)
    begun = time.monotonic()
    process.wait(10)
    wait_for(lambda: not alive(sleep))
    assert time.monotonic() - begun < 4
    assert list(study_directory.glob(".perftrail/builds/*/built.json")) == []
    (tmp_path / "go").touch()
    assert json.loads(perftrail("run", study_directory, "--jobs", "2", "--json").stdout)["measured"] == 2


def wait_for(happened: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.05)
