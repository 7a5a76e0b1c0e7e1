"""A real search that resumes after a reboot: the test replaces the stored boot session."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.e2e.printing import found, perftrail, program, revisions, write
from tests.sources.repositories import Repository

pytestmark = pytest.mark.slow

BEFORE = {"boot": "an-older-boot", "kernel": "6.1", "since": "2020-01-01T00:00:00.000+00:00"}


def reboot(study: Path) -> None:
    """Make what was measured and kept so far that of an older boot, when the machine was a third slower."""
    with closing(sqlite3.connect(study.parent / ".perftrail/results.db")) as results, results:
        for search, number, action in results.execute(
            "SELECT search_id, number, action FROM step"
        ).fetchall():
            kept = json.dumps({**json.loads(action), "boot_session": BEFORE})
            results.execute(
                "UPDATE step SET action = ? WHERE search_id = ? AND number = ?", (kept, search, number)
            )
        results.execute("UPDATE invocation SET started = '2020-01-02T00:00:00.000+00:00'")
        results.execute("UPDATE value SET value = value * 1.33")


def test_a_search_resumes_after_a_reboot_with_a_reference_and_reports_the_reboot(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repository")
    ids = [
        repository.commit(program(100 if number < 17 else 120, name=f"change {number}"))
        for number in range(30)
    ]
    study = write(tmp_path / "study", repository, find='metric = "cost"\nbudget_invocations = 6')
    assert found(study, expect=1)["verdict"] == "unclear"
    reboot(study)
    study.write_text(study.read_text().replace("budget_invocations = 6\n", ""))
    answer = found(study)
    assert (answer["verdict"], revisions(answer)) == ("found", [[ids[17]]])
    assert answer["boots"][0] == BEFORE
    assert len(answer["boots"]) == 2
    told = json.loads(perftrail("show", study, "--search", "--json").stdout)["steps"]
    boots = [step["action"]["boot_session"]["boot"] for step in told]
    first = next(number for number, boot in enumerate(boots) if boot != "an-older-boot")
    assert told[first]["words"].startswith("the machine was rebooted; measured ")
    assert ids[0] in told[first]["action"]["order"], "the reference, which was sampled before the reboot"
    again = perftrail("find", study)
    assert "The machine was rebooted during the search (2 boot sessions)" in again.stdout
    assert found(study) == answer
