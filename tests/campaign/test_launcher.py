"""Campaigns over the launcher's C code find nothing, in a short run."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.slow


def test_a_short_fuzzing_run_finds_no_crash() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "campaign.fuzz_launcher", "--seconds", "5"],
        check=False,
        stdout=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
    )
    row = json.loads(done.stdout)
    assert (row["campaign"], row["losses"], row["named"]) == ("fuzz_launcher", 0, [])
    assert row["trials"] > 1000
    assert done.returncode == 0


@pytest.mark.skipif(not shutil.which("gcc"), reason="gcc is not installed")
def test_static_analysis_finds_nothing() -> None:
    done = subprocess.run(
        [REPOSITORY / "campaign" / "static_analysis"], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "gcc -fanalyzer: " in done.stdout
    assert " 0 findings" in done.stdout
