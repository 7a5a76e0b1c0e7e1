"""A real search that resumes after a reboot: the test replaces the stored boot session."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.e2e.printing import find_answer, perftrail, program, revisions, write_study
from tests.sources.repositories import Repository

pytestmark = pytest.mark.slow("starts")

OLDER_BOOT = {"boot": "an-older-boot", "kernel": "6.1", "since": "2020-01-01T00:00:00.000+00:00"}


def reboot(study: Path) -> None:
    """Move all stored steps and samples to an older boot session, in which the machine was a third slower."""
    with closing(sqlite3.connect(study.parent / ".perftrail/results.db")) as database, database:
        for search, number, action in database.execute(
            "SELECT search_id, number, action FROM step"
        ).fetchall():
            changed = json.dumps({**json.loads(action), "boot_session": OLDER_BOOT})
            database.execute(
                "UPDATE step SET action = ? WHERE search_id = ? AND number = ?", (changed, search, number)
            )
        database.execute("UPDATE invocation SET started = '2020-01-02T00:00:00.000+00:00'")
        database.execute("UPDATE value SET value = value * 1.33")


def test_a_search_resumes_after_a_reboot_with_a_reference_and_reports_the_reboot(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repository")
    ids = [
        repository.commit(program(100 if number < 8 else 120, name=f"change {number}"))
        for number in range(12)
    ]
    study = write_study(tmp_path / "study", repository, find='metric = "cost"\nbudget_invocations = 6')
    assert find_answer(study, expect=1)["verdict"] == "unclear"
    reboot(study)
    study.write_text(study.read_text().replace("budget_invocations = 6\n", ""))
    answer = find_answer(study)
    assert (answer["verdict"], revisions(answer)) == ("found", [[ids[8]]])
    assert answer["boots"][0] == OLDER_BOOT
    assert len(answer["boots"]) == 2
    steps = json.loads(perftrail("show", study, "--search", "--json").stdout)["steps"]
    boots = [step["action"]["boot_session"]["boot"] for step in steps]
    first = next(number for number, boot in enumerate(boots) if boot != "an-older-boot")
    assert steps[first]["words"].startswith("the machine was rebooted; measured ")
    assert ids[0] in steps[first]["action"]["order"], "the reference, which was sampled before the reboot"
    again = perftrail("find", study)
    assert "The machine was rebooted during the search (2 boot sessions)" in again.stdout
    assert find_answer(study) == answer
