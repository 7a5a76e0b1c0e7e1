"""The workers that run tests: each result is reported, also that of a test whose process ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.needs import missing, summary
from tests.starting import REPOSITORY

ONE = """\
import os, signal, time

def test_it_passes(tmp_path):
    assert tmp_path.parent.name.startswith("worker")

def test_it_fails():
    assert 1 == 2

def test_it_ends_its_process():
    os.kill(os.getpid(), signal.SIGKILL)

def test_it_runs_after_that():
    pass
"""
OTHER = "import pytest\n\n@pytest.mark.skip('a reason')\ndef test_it_is_skipped():\n    pass\n"
OPTIONS = (
    "-c",
    os.devnull,
    "-p",
    "no:cacheprovider",
    "-p",
    "tests.workers",
    "--workers",
    "2",
    "--rootdir",
    ".",
)


def run(directory: Path, *options: str, **files: str) -> subprocess.CompletedProcess[str]:
    for name, text in files.items():
        (directory / f"test_{name}.py").write_text(text)
    return subprocess.run(
        [sys.executable, "-m", "pytest", *OPTIONS, f"--basetemp={directory / 'own'}", *options, directory],
        cwd=directory,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY), "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_worker_that_ends_fails_its_test_and_another_takes_the_rest_of_its_file(tmp_path: Path) -> None:
    ran = run(tmp_path, one=ONE, other=OTHER)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "2 failed, 2 passed, 1 skipped" in ran.stdout
    assert "the process of the tests ended with -9" in ran.stdout
    assert "FAILED test_one.py::test_it_fails" in ran.stdout


def test_the_first_failure_ends_the_run_if_wanted(tmp_path: Path) -> None:
    ran = run(tmp_path, "--exitfirst", one=ONE)
    assert "1 failed, 1 passed" in ran.stdout, ran.stdout + ran.stderr


def test_reasons_of_skipped_tests_are_one_line_each() -> None:
    class Report:
        def __init__(self, reason: str) -> None:
            self.longrepr = ("file", 1, f"Skipped: {reason}")

    why = missing("bwrap-of-nobody")
    reports = [Report(why), Report("no cgroup"), Report(why)]
    assert summary(reports) == [  # type: ignore[arg-type]  # the part of a report that counts
        "2 tests need bwrap-of-nobody: apt install bwrap-of-nobody",
        "1 test skipped: no cgroup",
    ]
