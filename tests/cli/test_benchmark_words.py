"""How far variants lie from the first one, as the terminal has it."""

from __future__ import annotations

import pytest

from perftrail.present.tables import print_by_benchmark
from tests.results.test_by_benchmark import BenchmarkRows


def lines(capsys: pytest.CaptureFixture[str], rows: BenchmarkRows) -> list[str]:
    print_by_benchmark(rows.shifts().over)
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


def test_a_line_for_each_benchmark_says_how_far_it_went(capsys: pytest.CaptureFixture[str]) -> None:
    rows = BenchmarkRows().add("text", "one", 1.5).add("text", "two", 1.5).add("lists", "one", 1.5, busy=20)
    _, title, head, text, lists = lines(capsys, rows)
    assert title.startswith("Change by benchmark, against old")
    assert head.split() == ["benchmark", "points", "ratio", "verdict"]
    assert text.split()[:2] == ["text", "2"]
    assert text.endswith(" % more")
    assert lists.endswith("unclear: the machine was busy")


def test_nothing_is_said_where_nothing_was_compared(capsys: pytest.CaptureFixture[str]) -> None:
    assert lines(capsys, BenchmarkRows()) == []
