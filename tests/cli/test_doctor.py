"""`perftrail doctor`: its output for people and programs."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from perftrail.present.doctor import resolution_line
from perftrail.verbs.resolution import Resolution
from tests.cli.calling import called
from tests.starting import start


def doctor(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return start("doctor", *arguments, env={**os.environ, "NO_COLOR": "1"}, cwd=cwd, timeout=120)


def test_a_quick_check_prints_grades_and_the_next_command(tmp_path: Path) -> None:
    done = doctor("--quick", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "measure" in lines[0]
    assert lines[-1].startswith("Next: ") or lines[-2].startswith("Next: ")
    assert any("load: " in line for line in lines)
    assert "\x1b" not in done.stdout
    assert all(line == line.rstrip() for line in lines)
    assert "resolve" not in done.stdout
    assert "Next: perftrail init (writes a first study)" in done.stdout


def test_the_next_command_of_a_study_is_run(tmp_path: Path) -> None:
    (tmp_path / "perftrail.toml").touch()
    printed = " ".join(doctor("--quick", cwd=tmp_path).stdout.split())
    assert "Next: perftrail init" not in printed
    assert "perftrail run (" in printed


def test_programs_get_json_alone() -> None:
    done = doctor("--quick", "--json")
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert data["resolution"] is None
    assert data["changed"] == data["restored"] == []
    assert {"name", "grade", "here", "cost", "source", "remedy", "fix"} == set(data["findings"][0])


def test_a_command_needs_fix() -> None:
    done = called("doctor", "--", "true")
    assert done.returncode == 2
    assert "--fix -- COMMAND" in done.stderr


@pytest.mark.parametrize("option", ["--what", "--no-such"])
def test_an_unknown_option_is_wrong_usage(option: str) -> None:
    assert called("doctor", option).returncode == 2


def test_the_last_line_has_the_measured_resolution() -> None:
    line = resolution_line(Resolution(pairs=20, seconds=0.0503, wall=0.0183, cpu=0.0071))
    assert line.startswith(
        "On this machine, now, 20 pairs of a 50.3 ms program detect a change of 1.83 % in wall time "
        "and of 0.710 % in CPU time."
    )
    assert line.endswith("about 67 pairs.")


@pytest.mark.skipif(os.geteuid() == 0, reason="as root this would change the machine that the tests run on")
def test_a_fix_without_permission_prints_the_remedy_or_has_nothing_to_do() -> None:
    done = doctor("--fix", "--", "sh", "-c", "exit 7")
    assert done.returncode in (1, 7)
    assert "sudo" in done.stderr or "nothing here" in done.stderr
