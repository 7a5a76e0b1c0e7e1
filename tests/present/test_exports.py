"""Exports for other programs: hyperfine's JSON and CSV, Markdown, and perftrail's contract."""

from __future__ import annotations

import csv
import io
import json
import statistics

import pytest

from perftrail.measure.trial import CommandLine, trial_entries
from perftrail.model.trial import RunSettings, StoppingRule, Trial, TrialSample
from perftrail.present import trial_files
from perftrail.present.trial_files import as_json
from perftrail.stats.trial import TrialResult, TrialSchedule, trial_result

HOSTILE = "evil '| a `b` \x1b[31m <script>' "


def found(*commands: str, runs: int = 6, **options: object) -> TrialResult:
    entered = trial_entries(CommandLine(**{"commands": commands, "parameters": {}, **options}))  # type: ignore[arg-type] # loosely
    trial = Trial(
        entries=entered.entries,
        groups=entered.groups,
        stopping_rule=StoppingRule(least=runs, most=runs, warmups=0),
        run_settings=RunSettings(environment={}, directory="/"),
    )
    course, count = TrialSchedule(trial), 0
    while (start := course.ask()) is not None:
        count += 1
        wall = (1.0 + start.entry) * (1.0 + 0.001 * (count % 7))
        course.tell(
            TrialSample(
                entry=start.entry,
                unit=start.unit,
                values={
                    "wall": wall, "cpu": wall / 2, "user": wall / 4, "system": wall / 4, "peak_memory": 2e6,
                    "voluntary_switches": 1.0, "involuntary_switches": 0.0, "page_faults": 50.0,
                    "peak_memory_tree": 3e6,
                },
                seconds=wall,
                methods={"peak_memory": "rusage", "peak_memory_tree": "cgroup1"},
            )
        )  # fmt: skip
    return trial_result(course, trial)


def test_hyperfines_json_has_its_keys_and_values() -> None:
    written = json.loads(trial_files.to_json(found("a {n}", parameters={"n": ("1", "2")})))
    assert set(written) == {"results"}
    [first, second] = written["results"]
    assert set(first) == {
        "command", "mean", "stddev", "median", "user", "system", "min", "max", "times", "memory_usage_byte",
        "exit_codes", "parameters",
    }  # fmt: skip
    assert (first["command"], first["parameters"], second["parameters"]) == ("a 1", {"n": "1"}, {"n": "2"})
    assert len(first["times"]) == len(first["memory_usage_byte"]) == len(first["exit_codes"]) == 6
    assert first["mean"] == pytest.approx(statistics.fmean(first["times"]))
    assert first["stddev"] == pytest.approx(statistics.stdev(first["times"]))
    assert min(first["times"]) == first["min"] <= first["median"] <= first["max"] == max(first["times"])
    assert first["memory_usage_byte"][0] == 2_000_000


def test_one_run_has_no_spread_and_no_parameters_no_key() -> None:
    [only] = json.loads(trial_files.to_json(found("a", runs=1)))["results"]
    assert only["stddev"] is None
    assert "parameters" not in only


def test_hyperfines_csv_has_its_columns() -> None:
    text = trial_files.to_csv(found(HOSTILE + "{n}", parameters={"n": ("1", "2,3")}))
    rows = list(csv.DictReader(io.StringIO(text)))
    assert list(rows[0]) == [
        "command", "mean", "stddev", "median", "user", "system", "min", "max", "parameter_n",
    ]  # fmt: skip
    assert rows[1]["parameter_n"] == "2,3"


def test_markdown_stays_a_table_whatever_a_command_contains() -> None:
    lines = trial_files.to_markdown(found(HOSTILE, "b")).splitlines()
    assert len(lines) == 4
    cells = [line.replace("\\|", "").count("|") for line in lines]
    assert len(set(cells)) == 1
    assert not any("\x1b" in line for line in lines)
    assert "reference" in lines[2]
    assert "1.0" in lines[2]


def test_our_own_json_keeps_its_contract() -> None:
    written = json.loads(json.dumps(as_json(found("a", "a", runs=20))))
    assert [result["command"] for result in written["results"]] == ["a", "a"]
    result = written["results"][0]
    assert result["invocations"] == 20
    assert set(result["metrics"]) == {
        "wall", "cpu", "peak_memory", "peak_memory_tree", "voluntary_switches", "involuntary_switches",
        "page_faults",
    }  # fmt: skip
    wall = result["metrics"]["wall"]
    assert wall["unit"] == "s"
    assert len(wall["values"]) == 20
    assert wall["estimate"]["low"] <= wall["estimate"]["value"] <= wall["estimate"]["high"]
    assert result["metrics"]["peak_memory"]["unit"] == "B"
    assert result["metrics"]["peak_memory"]["method"] == "rusage"
    assert result["metrics"]["peak_memory_tree"]["method"] == "cgroup1"
    assert result["flags"] == []
    [one, *_] = written["comparison"]
    assert (one["result"], one["against"], one["metric"]) == (1, 0, "wall")
    assert set(one["effect"]) == {"value", "low", "high"}
    assert one["verdict"] == "slower"
    assert one["minimum_detectable"] >= 0.0
    assert {each["metric"] for each in written["comparison"]} == {"wall", "cpu", "peak_memory"}
