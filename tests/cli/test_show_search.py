"""`show --search` among several searches: their list, and the selected one."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from perftrail.model.store_records import SearchRecord, StepRecord
from perftrail.process.machine import read_machine
from perftrail.store import open_store
from tests.cli.calling import called

STUDY = """\
[source]
kind = "directory"
location = "."

[benchmark.work]
command = "true"
"""


def show(*arguments: str | Path, expect: int = 0) -> subprocess.CompletedProcess[str]:
    done = called("show", *arguments)
    assert "Traceback" not in done.stderr
    assert done.returncode == expect, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A study with two searches: one that ended, begun first, and one that did not."""
    (tmp_path / "perftrail.toml").write_text(STUDY)
    machine = read_machine()
    database = str(tmp_path / ".perftrail" / "results.db")
    with open_store(database, access="write", machine=machine.id) as store:
        store.add_machine(machine)
        for number, metric in enumerate(("wall", "cost\x1b[31m"), start=1):
            record = SearchRecord(
                key=f"key {number}",
                machine=machine.id,
                started=f"2026-11-0{number}T10:00:00.000+00:00",
                question={"metric": metric, "first": "a" * 40, "last": "b" * 40},
            )
            store.open_search(record)
            step = StepRecord(
                number=1, action={}, observation={}, belief={}, words=f"a step for {metric[:4]}"
            )
            store.add_step(record.key, machine.id, step)
        store.close_search("key 1", machine.id, {"verdict": "none", "reason": "nothing changed"})
    return tmp_path


def test_the_latest_search_is_shown_and_all_are_listed(study: Path) -> None:
    output = show(study, "--search").stdout
    assert output.splitlines()[:3] == [
        "2 searches. Number 2 follows; --search N shows another:",
        "  1  2026-11-01 10:00  wall, aaaaaaaaaa to bbbbbbbbbb: none",
        "  2  2026-11-02 10:00  cost\\x1b[31m, aaaaaaaaaa to bbbbbbbbbb: not ended",
    ]
    assert "a step for cost" in output
    assert "a step for wall" not in output


def test_another_search_is_shown_by_its_number(study: Path) -> None:
    output = show(study, "--search", "1").stdout
    assert "a step for wall" in output
    assert "Why it ended: nothing changed." in output
    plain = json.loads(show(study, "--search", "1", "--json").stdout)
    assert plain["number"] == 1
    assert [each["answer"] is None for each in plain["searches"]] == [False, True]
    assert plain["steps"][0]["words"] == "a step for wall"


def test_a_study_may_follow_the_option(study: Path) -> None:
    assert "a step for cost" in show("--search", study).stdout


@pytest.mark.parametrize("number", ["0", "3"])
def test_an_unknown_search_number_is_a_mistake(study: Path, number: str) -> None:
    assert "the searches are 1 to 2" in show(study, "--search", number, expect=2).stderr


def test_an_argument_that_is_not_a_number_or_study_is_a_mistake(study: Path) -> None:
    assert "write a search's number" in show(study, "--search", "cost", expect=2).stderr


def test_an_unknown_metric_is_a_mistake_that_lists_the_metrics(study: Path) -> None:
    assert (
        '--metric wal: no metric "wal"; did you mean "wall"?'
        in show(study, "--metric", "wal", expect=2).stderr
    )
