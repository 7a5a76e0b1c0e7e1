"""Metrics of `counters = ["hardware"]`: the processor's counters, where the machine provides them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from perftrail.measure.instructions import InstructionCounter
from perftrail.measure.process_metrics import process_methods, process_metrics
from perftrail.model.metrics import COUNTED
from perftrail.process.launcher import Launcher
from tests.fakes.subject_builder import RAN
from tests.starting import start

STUDY = """\
[source]
kind = "directory"
location = "source"
[build]
steps = ["true"]
outputs = ["work.sh"]
[benchmark.work]
command = "sh {build}/work.sh"
counters = ["hardware", "locks"]
[measure]
warmups = 0
invocations = 3
quiet_threshold = 100
"""


def test_counted_events_are_metrics_of_one_method() -> None:
    ran = replace(RAN, counters={"instructions_user": 9e6, "cycles_user": 3e6, "task_clock_ns": 1e6})
    values = process_metrics(ran)
    assert values["user_instructions"] == 9e6
    assert values["cycles"] == 3e6
    assert "cache_misses" not in values  # this processor has no such counter
    methods = process_methods(ran)
    assert methods["cycles"] == methods["user_instructions"] == "perf_event"
    assert "branch_misses" not in methods


@pytest.mark.slow("processor")
def test_they_are_measured_with_time_and_a_machine_without_them_is_reported(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "work.sh").write_text("i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done\n")
    (tmp_path / "perftrail.toml").write_text(STUDY)
    ran = start("run", tmp_path)
    assert ran.returncode == 0, ran.stderr
    metrics = [f"--metric={name}" for name in ("wall", "locks", *COUNTED["hardware"])]
    rows = {row["metric"]: row for row in json.loads(start("show", tmp_path, *metrics, "--json").stdout)}
    assert rows["wall"]["count"] == rows["locks"]["count"] == 3
    with Launcher() as launcher:
        available = InstructionCounter(launcher, tmp_path / "counts").method == "perf_event"
    shown = start("show", tmp_path, *metrics).stdout
    if available:
        assert rows["user_instructions"]["estimate"]["value"] > 10_000.0
    else:
        assert shown.count("no hardware counter on this machine") == len(COUNTED["hardware"])
