"""Reverts end to end: a real history with a culprit, later changes and change logs, values without noise."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.printing import perftrail_here
from tests.needs import needs
from tests.sources.repositories import Repository
from tests.starting import start

pytestmark = pytest.mark.slow("starts")

STUDY = """\
[study]
title = "What if we revert it?"

[source]
kind = "git"
location = "{repository}"
range = "v1.0.."

[build]
steps = ["cat steps extra > work"]
outputs = ["work"]
unaffected_by = ["ChangeLog"]

[benchmark.work]
command = "sh {{build}}/work"
metrics = {{ steps = {{ pattern = 'steps ([0-9]+)' }}, size = {{ pattern = 'size ([0-9]+)' }} }}

[measure]
invocations = "3..30"
warmups = 0
quiet_threshold = 100

[find]
metric = "steps"
"""


def perftrail(*arguments: str, expect: int = 0) -> subprocess.CompletedProcess[str]:
    done = start(*arguments)
    assert done.returncode == expect, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    return done


def perftrail_json(*arguments: str, expect: int = 0) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(perftrail(*arguments, "--json", expect=expect).stdout)
    return answer


def files(steps: int, size: int, log: str, *, extra: str = "") -> dict[str, str]:
    """Return the files of a revision that prints its metrics."""
    return {
        "steps": f"echo steps {steps}\n\n\n\necho size {size}\n",
        "extra": f"{extra}\n",
        "ChangeLog": f"{log}\n",
    }


class History:
    """A release, a culprit with a change log, a merge with a slow commit inside, and later changes."""

    def __init__(self, home: Path) -> None:
        self.repository = Repository(home / "repository")
        first = self.repository.commit(files(100, 50, "1"), subject="begin")
        self.repository.tag("v1.0", first)
        self.culprit = self.repository.commit(files(1000, 40, "2"), subject="Slow\x1b[31m it down")
        self.repository.commit(files(1000, 40, "3", extra="# one"), subject="note")
        side = self.repository.commit(
            files(1000, 40, "3", extra="# one\necho other 1"), branch="side", parents=[self.culprit]
        )
        self.inner = self.repository.commit(
            files(9000, 40, "3", extra="# one\necho other 1"), branch="side", subject="Slower inside"
        )
        trunk = self.repository.commit(files(1000, 40, "4", extra="# one"))
        self.merge = self.repository.commit(
            files(9000, 40, "4", extra="# one\necho other 1"),
            parents=[trunk, self.inner],
            subject="Merge side",
        )
        self.newest = self.repository.commit(
            files(9000, 40, "5", extra="# two\necho other 1"), subject="the newest"
        )
        assert side


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    return History(tmp_path_factory.mktemp("history"))


@pytest.fixture(scope="module")
def study(history: History, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("study") / "perftrail.toml"
    file.write_text(STUDY.format(repository=history.repository.path))
    return file


def test_a_revert_recovers_the_loss_though_the_change_log_conflicts(history: History, study: Path) -> None:
    onto = f"{history.newest}~2"
    before = history.repository.snapshot()
    answer = perftrail_json("revert", history.culprit, str(study), "--onto", onto)["whole"]
    assert (answer["verdict"], answer["metric"]) == ("whole", "work.steps")
    assert answer["recovered"]["low"] == pytest.approx(1.0)
    assert answer["costs"] == ["work.size"]
    assert answer["patch"]["left_out"] == [{"path": "ChangeLog", "why": "unaffected"}]
    assert [each["path"] for each in answer["patch"]["changes"]] == ["steps"]
    [steps] = [each for each in answer["metrics"] if each["name"] == "work.steps"]
    medians = {role: round(each["value"], 6) for role, each in steps["estimates"].items()}
    assert medians == {"newest": 1000, "reverted": 100, "old": 100}
    done = perftrail("revert", history.culprit, str(study), "--onto", onto)
    first, name = done.stdout.splitlines()[0], f"revert-{history.culprit[:10]}.patch"
    assert "100 % of the loss in steps comes back; costs 25 % more size; left out: ChangeLog" in first
    assert first.endswith(f"; conflicts: none; patch: {name}")
    assert "\x1b" not in done.stdout
    text = (study.parent / name).read_text()
    assert text.startswith("perftrail revert\n")
    assert "left out: ChangeLog" in text
    assert history.repository.snapshot() == before


@needs("strace")
def test_a_conflict_in_a_file_that_the_observed_builds_do_not_read_does_not_count(
    history: History, tmp_path: Path
) -> None:
    text = STUDY.format(repository=history.repository.path).replace('unaffected_by = ["ChangeLog"]\n', "")
    (tmp_path / "perftrail.toml").write_text(text)
    onto = f"{history.newest}~2"
    done = perftrail("revert", history.culprit, str(tmp_path), "--onto", onto)
    assert "Left out because of conflicts; the observed builds do not read them: ChangeLog" in done.stdout
    assert "100 % of the loss in steps comes back" in done.stdout
    assert not list((tmp_path / ".perftrail" / "builds").glob("*.observed"))
    reading = text.replace("cat steps extra > work", "cat steps extra > work; cat ChangeLog")
    (tmp_path / "perftrail.toml").write_text(reading)
    answer = perftrail_json("revert", history.culprit, str(tmp_path), "--onto", onto, expect=1)["whole"]
    assert [each["path"] for each in answer["conflicts"]] == ["ChangeLog"]
    assert "<<<<<<<" in (Path(answer["directory"]) / "ChangeLog").read_text()


def test_a_merge_and_the_commit_inside_it_are_reverted_on_the_newest_revision(
    history: History, study: Path
) -> None:
    answer = perftrail_json("revert", history.merge, str(study), "--inner", history.inner)
    whole, inner = answer["whole"], answer["inner"]
    assert (whole["verdict"], inner["verdict"]) == ("conflict", "whole")
    [conflict] = whole["conflicts"]
    assert conflict["path"] == "extra"
    assert whole["prerequisites"] == [history.newest]
    assert inner["culprit"]["id"] == history.inner
    assert inner["onto"]["id"] == history.newest
    assert inner["recovered"]["value"] == pytest.approx(1.0)
    printed = perftrail("revert", history.merge, str(study), "--inner", history.inner).stdout
    assert printed.startswith("conflict: ")
    assert "Revert this revision first:" in printed
    assert "If no build reads this file, add: --exclude extra" in printed
    assert "100 % of the loss in steps comes back" in printed


def test_a_change_that_the_newest_revision_lacks_is_reported(history: History, study: Path) -> None:
    done = perftrail("revert", history.culprit, str(study), "--onto", "v1.0", expect=1)
    assert "nothing" in done.stderr
    done = perftrail_here("revert", "v1.0", study, expect=2)
    assert "first revision" in done.stderr


def test_find_explains_and_reverts_the_culprit_and_the_commit_inside_a_merge(
    history: History, tmp_path: Path
) -> None:
    (tmp_path / "perftrail.toml").write_text(
        STUDY.format(repository=history.repository.path).replace("v1.0..", f"{history.culprit}..")
    )
    done = perftrail("find", str(tmp_path), "--then", "revert,explain")
    answer, _, rest = done.stdout.partition("differs most in")
    assert answer.startswith(
        f"found: {history.inner[:10]} “Slower inside”, which {history.merge[:10]} merged"
    )
    assert rest.index("conflict: ") < rest.index("Only the commit")
    assert "100 % of the loss in steps comes back" in rest
    [examined] = perftrail_json("find", str(tmp_path), "--then", "revert")["then"]
    assert (examined["revision"], examined["inner"]) == (history.merge, history.inner)
    assert examined["explain"] is None
    assert examined["revert"]["whole"]["verdict"] == "conflict"
    assert examined["revert"]["inner"]["verdict"] == "whole"
    assert examined["note"] == ""
    wrong = perftrail_here("find", tmp_path, "--then", "undo", expect=2)
    assert "is not one of explain, revert" in wrong.stderr


def test_the_revert_of_an_improvement_reports_the_lost_gain_and_find_does_not_revert_it(
    history: History, tmp_path: Path
) -> None:
    text = STUDY.format(repository=history.repository.path).replace("v1.0..", f"v1.0..{history.culprit}")
    (tmp_path / "perftrail.toml").write_text(text.replace('metric = "steps"', 'metric = "size"'))
    answer = perftrail_json("revert", history.culprit, str(tmp_path))["whole"]
    assert (answer["verdict"], answer["metric"], answer["recovered"]) == ("no loss", "work.size", None)
    assert answer["lost_gain"]["low"] == pytest.approx(1.0)
    printed = perftrail("revert", history.culprit, str(tmp_path)).stdout
    assert "100 % of the gain in size is lost; conflicts: none" in printed
    [examined] = perftrail_json("find", str(tmp_path), "--then", "revert")["then"]
    assert examined["revert"] is None
    assert "made no metric worse" in examined["note"]
