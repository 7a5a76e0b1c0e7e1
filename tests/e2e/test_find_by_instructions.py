"""A change of 3 %, far below the noise of time, found exactly by counting instructions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.e2e.histories import make_history, write_study
from tests.needs import needs
from tests.starting import start

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.slow("starts"),
    needs("valgrind"),
]

CULPRIT = 3

STUDY = """\
[study]
title = "Which commit made the work heavier?"

[source]
kind = "git"
location = "{repository}"

[build]
steps = ["make"]
pin = false
outputs = ["work"]

[benchmark.work]
command = "{{build}}/work"
counters = ["instructions"]

[measure]
warmups = 0

[find]
metric = "instructions"
threshold = 0.01
"""


def test_a_planted_change_of_3_percent_is_found_by_its_instructions(tmp_path: Path) -> None:
    history = make_history(
        tmp_path / "repository", commits=6, culprit=CULPRIT, unbuildable=range(0), steps=500_000, factor=1.03
    )
    study = write_study(tmp_path / "study", history, STUDY)
    done = start("find", study, "--metric", "instructions", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["verdict"] == "found", answer
    [change] = answer["changes"]
    assert change["revisions"] == [history.commits[CULPRIT]]
    assert change["effect"]["low"] - 0.002 <= 1.03 <= change["effect"]["high"] + 0.002
    assert answer["builds"] <= 6
