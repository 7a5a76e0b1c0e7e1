"""The rows of a heat map that are drawn if there are too many."""

from __future__ import annotations

from perftrail.charts.heatmap import MOST_ROWS
from perftrail.present.report.curves import HeatRow, largest_differences
from tests.results.test_by_benchmark import NEW, BenchmarkRows


def lines(count: int, *, different: int) -> list[HeatRow]:
    """The rows of a benchmark and of its points, one of which has changed."""
    found = BenchmarkRows().add("text", "same", 1.0).add("text", "other", 2.0).shifts()
    same, other = ({NEW: shift} for shift in found.by_point)
    points = [
        HeatRow(label=f"text {at}", whole=False, shifts=other if at == different else same)
        for at in range(count)
    ]
    return [HeatRow(label="text: all", whole=True, shifts={}), *points]


def test_all_rows_are_drawn_where_they_are_few() -> None:
    few = lines(MOST_ROWS - 1, different=3)
    assert largest_differences(few) == few


def test_of_many_rows_those_are_drawn_that_differ_most_in_the_order_of_the_study() -> None:
    many = lines(MOST_ROWS + 50, different=MOST_ROWS + 20)
    drawn = [line.label for line in largest_differences(many)]
    assert len(drawn) == MOST_ROWS
    assert drawn[:3] == ["text: all", "text 0", "text 1"]
    assert drawn[-1] == f"text {MOST_ROWS + 20}"
