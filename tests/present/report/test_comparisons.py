"""Comparisons of subjects: which of many are drawn, in which order, and that all of them are counted."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

from perftrail.charts.frame import Palette
from perftrail.present.report.answer import difference_verdict
from perftrail.present.report.comparisons import (
    MOST_ROWS,
    SubjectComparison,
    comparison_section,
    drawn_comparisons,
    in_order,
)
from perftrail.present.report.data import ReportData
from perftrail.stats.comparison import Rule, compare

NOTHING_ELSE = cast(
    ReportData, SimpleNamespace(palette=Palette(("old", "new")), lead=None, variants=("old", "new"), rows=())
)


def compared(
    benchmark: str, metric: str = "time", *, ratio: float = 1.0, in_question: bool = False
) -> SubjectComparison:
    """A comparison of twenty pairs that differ by so much."""
    first = [1.0 + 0.001 * n for n in range(20)]
    return SubjectComparison(
        name="new",
        where="",
        reference="old",
        benchmark=benchmark,
        metric=metric,
        unit="B" if metric == "peak_memory" else "s",
        better="lower",
        ratios=(ratio,),
        comparison=compare(first, [ratio * value for value in first], Rule(most=20)),
        in_question=in_question,
    )


def metrics(found: tuple[SubjectComparison, ...] | list[SubjectComparison]) -> list[str]:
    return [each.qualified_metric for each in found]


def test_each_metrics_rows_are_together_and_times_come_before_memory() -> None:
    mixed = [compared(name, metric) for name in ("a", "b") for metric in ("peak_memory", "time", "user")]
    assert metrics(in_order(mixed)) == [
        *("a.time", "b.time"),
        *("a.user", "b.user"),
        *("a.peak_memory", "b.peak_memory"),
    ]


def test_the_metric_in_question_comes_first() -> None:
    mixed = [compared("a"), compared("b", "peak_memory", in_question=True), compared("b")]
    assert metrics(in_order(mixed)) == ["b.peak_memory", "a.time", "b.time"]


def test_what_differs_most_is_drawn_in_its_order() -> None:
    many = [compared(f"bench-{n:02}", ratio=1.0 if n % 2 else 1.5 + n / 10) for n in range(2 * MOST_ROWS)]
    drawn = drawn_comparisons(many)
    assert len(drawn) == MOST_ROWS
    assert all(each.differs for each in drawn)
    assert metrics(drawn) == sorted(metrics(drawn))


def test_of_more_comparisons_than_are_drawn_all_are_counted_and_in_the_table() -> None:
    many = in_order([compared(f"bench-{n:02}", ratio=1.5 if n < 25 else 1.0) for n in range(30)])
    section = comparison_section(NOTHING_ELSE, many)
    assert section is not None
    [reported] = section.paragraphs
    assert reported.startswith(
        f"25 of 30 comparisons certainly differ. The chart has {MOST_ROWS} comparisons"
    )
    assert len(section.tables[0].rows) == 30
    facts = {fact.label: fact.text for fact in difference_verdict(NOTHING_ELSE, many, notes=()).facts}
    assert facts["Comparisons"] == "30, of which 25 certainly differ"


def test_where_all_are_drawn_their_number_is_not_stated() -> None:
    section = comparison_section(NOTHING_ELSE, in_order([compared("a", ratio=1.5), compared("b")]))
    assert section is not None
    assert section.paragraphs == ()


def test_too_few_pairs_are_reported_with_what_a_verdict_needs_and_how_to_get_it() -> None:
    """Three pairs that differ by chance cannot reach the report's error rate."""
    few = replace(compared("a"), comparison=compare([1.0, 1.1, 0.9], [1.0, 0.9, 1.1], Rule(most=20)))
    reported = difference_verdict(NOTHING_ELSE, [few], notes=()).sentence
    assert few.comparison.minimum_detectable is None
    assert f"1 of 1 comparison has too few pairs for a verdict, which needs {few.needed} pairs;" in reported
    assert "increase [measure] invocations, then: perftrail run" in reported
