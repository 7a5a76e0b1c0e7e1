"""Metrics are read from a benchmark's output in another tool's format, or the error names the items that exist."""

from __future__ import annotations

from typing import get_args

import pytest

from perftrail.formats import FORMATS
from perftrail.formats.printed import read_metrics
from perftrail.model.build import Failure
from perftrail.model.metrics import Metric, Pick, Printed

OUTPUT = """\
goos: linux
BenchmarkSum/size=10-2   100   3000 ns/op   7 B/op
BenchmarkSum/size=10-2   100   1000 ns/op   7 B/op
BenchmarkLong            1     2000000000 ns/op
PASS
"""
SUM = "Sum[size=10, threads=2]"


def failure(metric: Metric) -> str:
    found = read_metrics({"it": metric}, OUTPUT, log="the.log")
    assert isinstance(found, Failure)
    assert (found.stage, found.log) == ("metric", "the.log")
    return found.message


def test_every_format_that_can_be_printed_is_one_that_can_be_read() -> None:
    assert set(get_args(Printed)) <= set(FORMATS)


@pytest.mark.parametrize(("pick", "value"), [("first", 3e-6), ("last", 1e-6), ("median", 2e-6)])
def test_of_several_values_of_an_item_the_chosen_one_is_taken(pick: Pick, value: float) -> None:
    metric = Metric(reads="go", item=SUM, unit="s", pick=pick)
    found = read_metrics({"it": metric}, OUTPUT, log="")
    assert not isinstance(found, Failure)
    assert found == pytest.approx({"it": value})


def test_items_and_patterns_are_read_from_one_output() -> None:
    metrics = {
        "room": Metric(reads="go", item=SUM, item_metric="B/op", unit="B"),
        "long": Metric(reads="go", item="Long[threads=1]", unit="s"),
        "runs": Metric(pattern=r"^BenchmarkLong +([0-9]+)"),
    }
    assert read_metrics(metrics, OUTPUT, log="") == {"room": 7.0, "long": 2.0, "runs": 1.0}


def test_a_metric_with_several_values_and_no_choice_says_so() -> None:
    metrics = {"it": Metric(pattern="ops ([0-9]+)"), "sum": Metric(pattern="ops ([0-9]+)", pick="sum")}
    methods: dict[str, str] = {}
    assert read_metrics(metrics, "ops 1\nops 2\nops 4\n", log="", methods=methods) == {"it": 4.0, "sum": 7.0}
    assert methods == {"it": "last of 3 values"}


def test_a_unique_short_name_of_an_item_is_enough() -> None:
    short = Metric(reads="go", item="Long", unit="s")
    assert read_metrics({"it": short}, OUTPUT, log="") == {"it": 2.0}


def test_the_only_item_of_a_metric_needs_no_name() -> None:
    assert read_metrics({"it": Metric(reads="go", item_metric="B/op", unit="B")}, OUTPUT, log="") == {
        "it": 7.0
    }


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        (Metric(reads="go", unit="s"), "it: the output has several items; set item to one of them"),
        (
            Metric(reads="go", item="Lang[threads=1]"),
            'it: the output has no item "Lang[threads=1]"; did you mean',
        ),
        (Metric(reads="go", item=SUM, item_metric="wal"), 'no item "wal"; it has "wall" and "B/op"'),
        (Metric(reads="go", item=SUM, unit="ms"), 'is in "s"; write this as its unit'),
        (Metric(reads="jmh", item=SUM), "it: the output: line 1: is not valid JSON"),
    ],
)
def test_a_missing_item_is_a_failure_that_names_the_existing_ones(metric: Metric, message: str) -> None:
    assert message in failure(metric)
