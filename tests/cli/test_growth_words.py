"""Sentences on growth: an order describes the time; only counted instructions show the growth of the work."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from perftrail.model.benchmark import Point
from perftrail.model.subject import Revision, Subject
from perftrail.present.growth import cause_hint, curve_words
from perftrail.results.growth import GrowthSeries
from perftrail.results.rows import Row
from perftrail.stats.curves import Curve, curve_of
from perftrail.stats.growth import growth
from tests.stats.test_growth import SIZES, costs_beyond_caches

ROW = Row(
    subject=Subject(revision=Revision(id="r1"), variant="plain"),
    benchmark="work",
    point=Point((("size", 100_000),)),
    metric="wall",
    unit="s",
    failures=0,
)


def a_curve(levels: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Curve:
    rng = np.random.default_rng(1)
    values = levels[:, None] * np.exp(rng.normal(size=(len(SIZES), 5)) * 0.01)
    return curve_of(list(zip(SIZES.tolist(), map(tuple, values.tolist()), strict=True)))


def along(levels: np.ndarray[tuple[int], np.dtype[np.float64]], *, unit: str = "s") -> GrowthSeries:
    curve = a_curve(levels)
    return GrowthSeries(
        largest=ROW,
        axis="size",
        fixed=Point(),
        metric="wall",
        unit=unit,
        curve=curve,
        growth=growth(curve),
        unit_cost=None,
        leak=None,
        refused=(),
        skipped=(),
    )


@pytest.mark.parametrize(("unit", "expected"), [("s", "time grows like n over"), ("1", "grows like n over")])
def test_an_order_is_a_description(unit: str, expected: str) -> None:
    [line] = curve_words(along(SIZES, unit=unit))
    assert line.startswith(expected)


def test_a_constant_part_is_stated() -> None:
    series = along(SIZES)
    assert series.growth is not None
    lines = list(curve_words(replace(series, growth=replace(series.growth, start=2.0))))
    assert "constant part, independent of size: 2.00 s" in lines


def test_points_that_fit_no_order_are_reported() -> None:
    [line] = curve_words(along(costs_beyond_caches(SIZES)))
    assert line.startswith("time grows like n log n (")
    assert " or n (" in line
    assert "no order fits: points differ by " in line


@pytest.mark.parametrize(
    ("time", "work", "expected"),
    [
        (
            costs_beyond_caches(SIZES),
            SIZES,
            "its instructions grow like n, less than the time: each instruction takes longer",
        ),
        (SIZES, SIZES, "its instructions grow like n, as the time does: the work itself grows"),
        (SIZES, SIZES**2, "its instructions grow like n², more than the time"),
    ],
)
def test_instructions_show_whether_the_work_grows_like_the_time(
    time: np.ndarray[tuple[int], np.dtype[np.float64]],
    work: np.ndarray[tuple[int], np.dtype[np.float64]],
    expected: str,
) -> None:
    *_, line = curve_words(replace(along(time), work=growth(a_curve(work))))
    assert line.startswith(expected)


def test_without_counted_instructions_the_way_to_the_cause_is_printed() -> None:
    growing, level = along(SIZES), along(np.ones_like(SIZES))
    assert 'counters = ["instructions"]' in cause_hint([growing, level])
    assert cause_hint([level]) == ""
    assert cause_hint([replace(growing, work=growing.growth)]) == ""


def test_a_curve_of_too_few_values_is_reported_with_the_needed_number() -> None:
    whole = along(SIZES)
    points = list(zip(whole.curve.xs[:2], [(1.0, 1.1)] * 2, strict=True))
    [line] = curve_words(replace(whole, curve=curve_of(points), growth=None))
    assert (
        line == "too few values: growth along size needs 4 values with samples, and 2 have some; "
        "measure more with: perftrail run"
    )
