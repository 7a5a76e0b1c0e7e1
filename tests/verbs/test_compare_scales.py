"""`compare` judges ratios, differences and rates, and runs that fail or exceed their time."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perftrail.model.benchmark import Benchmark
from perftrail.model.metrics import Metric
from perftrail.model.process import Ended, Exited, TimedOut
from perftrail.model.study import FindPolicy, Invocations, MeasurePolicy
from perftrail.present.gate import headline, levels_words, row_effect, sensitivity, verdict_words
from perftrail.present.gate_formats import FORMATS
from perftrail.results.gate import Gate, stored_comparisons
from perftrail.results.selection import choose
from perftrail.stats.comparison import Rule, Verdict
from perftrail.stats.rates import compare_rates, rate_estimate
from perftrail.verbs.compare import Compare, CompareRequest
from tests.fakes.subject_builder import FakeSource, FakeStarter, number_of
from tests.measure.fake_session import a_session, a_study, drain

METRIC = Metric(pattern="value (-?[0-9.e+-]+)", unit="errors")
DIFFERENCES = replace(METRIC, scale="difference")


def compared(
    directory: Path,
    *,
    value: Callable[[int], float] = lambda _: 1.0,
    ended: Callable[[int], Ended] = lambda _: Exited(code=0),
    metric: str = "printed",
    threshold: float | None = 0.5,
    found_from: float | None = None,
    seconds: Callable[[int], float] = lambda _: 0.1,
    pairs: int = 60,
    printed: Metric = METRIC,
) -> Gate:
    """Compare revision 1 with revision 0; `value` and `ended` are those of one run of a revision."""
    study = a_study(
        benchmarks={
            "work": Benchmark(command="{build}/work", metrics={"printed": printed}, timeout_seconds=3.0)
        },
        find=FindPolicy(threshold=found_from),
        measure=MeasurePolicy(invocations=Invocations(least=3, most=pairs), warmups=1),
    )
    starter = FakeStarter(
        seconds=lambda words: seconds(number_of(words)),
        prints=lambda words: f"value {value(number_of(words))}\n",
        ended=lambda words: ended(number_of(words)),
    )
    session = a_session(study, directory, source=FakeSource(2), starter=starter)
    choice = choose(study, benchmarks=(), metrics=(metric,))
    request = CompareRequest(base="r0", head="r1", choice=choice, fail_on="slower", threshold=threshold)
    gate = drain(Compare(session, request).events())[1]
    assert stored_comparisons(session) == (gate,)
    assert all(FORMATS[name](gate) for name in FORMATS)
    return gate


@pytest.mark.parametrize(
    ("base", "head", "verdict", "code"),
    [
        (0.0, 5.0, Verdict.SLOWER, 3),
        (2.0, -3.0, Verdict.FASTER, 0),
        (-4.0, -4.0, Verdict.SAME, 0),
        (0.0, 0.0, Verdict.SAME, 0),
    ],
)
def test_zeros_and_negative_values_are_compared_by_their_difference(
    tmp_path: Path, base: float, head: float, verdict: Verdict, code: int
) -> None:
    rng = random.Random(4)
    gate = compared(
        tmp_path, value=lambda number: (base, head)[number] + rng.gauss(0.0, 0.1) * bool(base + head)
    )
    [row] = gate.rows
    assert (row.verdict, gate.exit_code) == (verdict, code)
    plain: Any = gate.as_json()["comparisons"][0]
    if base or head:
        assert plain["scale"] == "difference"
        assert plain["effect"]["difference"] == pytest.approx(head - base, abs=0.1)
        assert "value" not in plain["effect"]
    else:
        assert plain["scale"] == "rate"


def test_printed_times_of_zero_seconds_are_the_same(tmp_path: Path) -> None:
    """A time-out of 3 s is no value of a rate, as which zeros are compared."""
    gate = compared(tmp_path, value=lambda _: 0.0, printed=replace(METRIC, unit="s"))
    [row] = gate.rows
    assert (row.verdict, row.at_least) == (Verdict.SAME, False)


@pytest.mark.parametrize("values", [(5e-324, 1.0), (1.0, 5e-324), (1e100, -1e100)])
def test_values_at_the_limits_of_numbers_are_compared(tmp_path: Path, values: tuple[float, float]) -> None:
    gate = compared(tmp_path, value=lambda number: values[number])
    assert gate.rows[0].verdict is (Verdict.SLOWER if values[0] < values[1] else Verdict.FASTER)


def test_values_whose_difference_would_overflow_are_none(tmp_path: Path) -> None:
    gate = compared(tmp_path, value=lambda number: (1.7e308, -1.7e308)[number])
    assert gate.rows[0].note.endswith("only values up to 1e+100 can be compared")


def test_a_threshold_in_a_unit_is_not_one_of_other_metrics(tmp_path: Path) -> None:
    """`[find] threshold = 5` of a metric that is compared by its difference is not 500 % of a time."""
    gate = compared(
        tmp_path, metric="wall", threshold=None, found_from=5.0, seconds=lambda number: 0.1 + 0.1 * number
    )
    assert (gate.rows[0].verdict, gate.exit_code) == (Verdict.SLOWER, 3)
    assert gate.threshold_source == "[measure] precision"


def test_a_threshold_in_a_unit_is_that_of_differences(tmp_path: Path) -> None:
    gate = compared(
        tmp_path, value=lambda number: 2.0 * number, threshold=None, found_from=5.0, printed=DIFFERENCES
    )
    assert (gate.rows[0].verdict, gate.threshold) == (Verdict.SAME, 5.0)


def test_a_difference_is_told_in_the_unit_of_its_metric(tmp_path: Path) -> None:
    rng = random.Random(4)
    gate = compared(tmp_path, value=lambda number: 5.0 * number + rng.gauss(0.0, 0.1))
    [row] = gate.rows
    assert row_effect(row).startswith(("5.0", "4.9"))
    assert " errors more [+" in row_effect(row)
    assert levels_words(row)[1].endswith(" errors")
    assert verdict_words(gate, row) == "worse by 0.500 errors or more"
    assert "1 of 1 metric worse: work.printed" in headline(gate)


def test_printed_booleans_are_compared_by_their_rate(tmp_path: Path) -> None:
    rng = random.Random(4)
    gate = compared(tmp_path, value=lambda number: float(rng.random() < (0.05, 0.8)[number]), threshold=0.1)
    [row] = gate.rows
    assert row.verdict is Verdict.SLOWER
    assert " points more [+" in row_effect(row)
    assert levels_words(row)[0].endswith(" %")
    assert gate.as_json()["comparisons"][0]["scale"] == "rate"


def test_a_head_that_fails_more_often_is_worse_in_works(tmp_path: Path) -> None:
    rng = random.Random(4)
    gate = compared(
        tmp_path,
        ended=lambda number: Exited(code=int(rng.random() < (0.05, 0.7)[number])),
        metric="works",
        threshold=0.1,
    )
    [row] = gate.rows
    assert (row.verdict, gate.exit_code) == (Verdict.SLOWER, 3)
    assert row.metric.text == "works"
    assert " points less [-" in row_effect(row)
    assert gate.failed_sides == ()


def test_a_head_that_always_fails_is_worse_in_works_after_few_pairs(tmp_path: Path) -> None:
    gate = compared(tmp_path, ended=lambda number: Exited(code=number), metric="works", threshold=0.1)
    [row] = gate.rows
    assert row.verdict is Verdict.SLOWER
    assert row.pairs <= 20


def test_equal_rates_are_unclear_until_the_threshold_is_excluded(tmp_path: Path) -> None:
    few, many = (
        compared(tmp_path / str(pairs), metric="works", threshold=0.2, pairs=pairs) for pairs in (20, 150)
    )
    assert [few.rows[0].verdict, many.rows[0].verdict] == [Verdict.UNCLEAR, Verdict.SAME]
    assert "points could be missed" in sensitivity(few.rows)


def test_a_head_that_hangs_is_slower_by_at_least_its_limit(tmp_path: Path) -> None:
    gate = compared(
        tmp_path,
        ended=lambda number: TimedOut() if number else Exited(code=0),
        metric="wall",
        threshold=0.05,
    )
    [row] = gate.rows
    assert row.verdict is Verdict.SLOWER
    assert row.comparison is not None
    assert row.comparison.effect == pytest.approx(30.0, rel=0.05)
    assert "at least × 30" in row_effect(row)


def test_two_sides_that_hang_are_not_the_same(tmp_path: Path) -> None:
    gate = compared(tmp_path, ended=lambda _: TimedOut(), metric="wall", threshold=0.05)
    assert gate.verdict is Verdict.UNCLEAR
    assert gate.exit_code == 1


@pytest.mark.parametrize(("base", "head"), [(0.1, 0.1), (0.5, 0.5), (0.0, 0.0)])
def test_equal_rates_are_hardly_ever_certainly_different(base: float, head: float) -> None:
    rng, rule, wrong = random.Random(1), Rule(most=60, threshold=0.1, error=0.05), 0
    for _ in range(200):
        first, second = ([float(rng.random() < rate) for _ in range(60)] for rate in (base, head))
        found = (compare_rates(first[:count], second[:count], rule) for count in (15, 30, 60))
        wrong += any(each.verdict in (Verdict.SLOWER, Verdict.FASTER) for each in found)
    assert wrong <= 10


def test_the_interval_of_a_rate_contains_it() -> None:
    found = rate_estimate([1.0] * 9 + [0.0])
    assert found.low < 0.6 < found.value == 0.9 < found.high < 1.0
