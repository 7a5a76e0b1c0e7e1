"""Metrics are read by pattern, or the error names the missing one."""

from __future__ import annotations

import pytest

from perftrail.formats.printed import read_metrics
from perftrail.model.build import Failure
from perftrail.model.metrics import Metric, Pick

OUTPUT = "step 3.0 ms\nstep 1.0 ms\nREAL TIME=2.5\nstep 2.0 ms\n"


@pytest.mark.parametrize(
    ("pick", "value"),
    [("first", 3.0), ("last", 2.0), ("min", 1.0), ("max", 3.0), ("sum", 6.0), ("median", 2.0)],
)
def test_of_several_matches_the_chosen_one_is_taken(pick: Pick, value: float) -> None:
    metrics = {"step": Metric(pattern=r"^step ([0-9.]+)", pick=pick)}
    assert read_metrics(metrics, OUTPUT, log="log") == {"step": value}


def test_several_metrics_are_read_from_one_output() -> None:
    metrics = {"real": Metric(pattern="REAL TIME=([0-9.]+)"), "step": Metric(pattern="step ([0-9.]+)")}
    assert read_metrics(metrics, OUTPUT, log="log") == {"real": 2.5, "step": 2.0}


@pytest.mark.parametrize("output", ["", "REAL TIME=", "real time=2.5"])
def test_a_metric_that_is_not_printed_is_a_failure_that_names_it(output: str) -> None:
    failure = read_metrics({"real": Metric(pattern="REAL TIME=([0-9.]+)")}, output, log="the.log")
    assert isinstance(failure, Failure)
    assert (failure.stage, failure.log) == ("metric", "the.log")
    assert failure.message.startswith("real: ")


@pytest.mark.parametrize("text", ["fast", "nan", "1e999", "-inf"])
def test_a_value_that_is_not_a_finite_number_is_a_failure(text: str) -> None:
    failure = read_metrics({"real": Metric(pattern="REAL (.*)")}, f"REAL {text}\n", log="log")
    assert isinstance(failure, Failure)


@pytest.mark.parametrize("output", ["n 1e308\nn 1e308\n", "n inf\nn -inf\n", "n nan\nn 1\n"])
def test_a_sum_that_is_no_number_is_a_failure(output: str) -> None:
    metrics = {"n": Metric(pattern=r"^n (\S+)", pick="sum")}
    found = read_metrics(metrics, output, log="log")
    assert isinstance(found, Failure)
    assert (found.stage, found.message) == ("metric", "n: nan is not finite")
