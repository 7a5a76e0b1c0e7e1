"""A gate whose builds and measurements run on workers: both are built at once, with the same answer as locally."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from perftrail.cluster.dask import own_workers
from perftrail.process.machine import read_machine
from tests.e2e.printing import perftrail, program, write_study
from tests.sources.repositories import Repository

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.long, pytest.mark.slow("cluster")]


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Separate locks for the test: another process that measures here would block the second build."""
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


MEETING = """\
touch {meeting}/$$
deadline=$(($(date +%s) + 60))
until [ "$(ls {meeting} | wc -l)" -ge 2 ]; do
  [ "$(date +%s)" -lt $deadline ]
  sleep 0.05
done
"""
"""A build that ends only while another one runs."""


def test_a_gate_on_workers_builds_both_at_once_and_gives_the_local_answer(tmp_path: Path) -> None:
    meeting = tmp_path / "begun"
    meeting.mkdir()
    repository = Repository(tmp_path / "repository")
    build = MEETING.format(meeting=meeting)
    base, head = (repository.commit(program(cost, build=build)) for cost in (100, 130))
    file = write_study(tmp_path / "study", repository)
    words = (base, head, file, "--metric", "cost", "--fail-on", "slower", "--json")
    away = json.loads(perftrail("compare", *words, "--engine", "dask:local:2", expect=3).stdout)
    assert [(each["name"], each["verdict"]) for each in away["comparisons"]] == [("work.cost", "slower")]
    assert away["fresh"] > 0
    assert away["machine"] == read_machine().id
    here = json.loads(perftrail("compare", *words, expect=3).stdout)
    assert here["fresh"] == 0, "what workers of our own measured is this machine's"
    assert here["comparisons"] == away["comparisons"]


def test_all_started_workers_are_ready_before_the_first_job(tmp_path: Path) -> None:
    with own_workers(2, home=tmp_path) as cluster:
        assert [offer.builds for offer in cluster.worker_infos()] == [1, 1]
