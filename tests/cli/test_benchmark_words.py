"""Differences of variants from the first one, as the terminal prints them."""

from __future__ import annotations

import pytest

from perftrail.present.tables import print_by_benchmark
from tests.results.test_by_benchmark import BenchmarkRows


def lines(capsys: pytest.CaptureFixture[str], rows: BenchmarkRows) -> list[str]:
    print_by_benchmark(rows.shifts().by_benchmark)
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


def test_each_benchmark_has_a_line_with_its_difference(capsys: pytest.CaptureFixture[str]) -> None:
    rows = BenchmarkRows().add("text", "one", 1.5).add("text", "two", 1.5).add("lists", "one", 1.5, busy=20)
    _, title, head, text, lists = lines(capsys, rows)
    assert title.startswith("Change by benchmark, against old")
    assert head.split() == ["benchmark", "points", "ratio", "verdict"]
    assert text.split()[:2] == ["text", "2"]
    assert text.endswith(" % more")
    assert lists.endswith("unclear: the machine was busy")


def test_nothing_is_printed_without_a_comparison(capsys: pytest.CaptureFixture[str]) -> None:
    assert lines(capsys, BenchmarkRows()) == []
