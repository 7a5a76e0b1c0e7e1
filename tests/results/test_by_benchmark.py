"""Subjects against a reference: at each point, over a benchmark's points, and without false changes."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import cast

import pytest

from perftrail.measure.session import View
from perftrail.model.benchmark import Benchmark, Point
from perftrail.model.measurement import Samples
from perftrail.model.recipe import Variant
from perftrail.model.subject import Revision, Subject
from perftrail.results.measured import MeasuredHere
from perftrail.results.pairs import Shifts, shifts, sides
from perftrail.results.rows import Row
from perftrail.stats.comparison import Verdict
from tests.measure.fake_session import a_study

OLD, NEW = "old", "new"
REVISION = Revision(id="r" * 40)
PAIRS = 20


@dataclass(frozen=True)
class FixedSamples:
    """Samples by runnable: one for each benchmark, point and variant."""

    every: Mapping[str, Samples]

    def samples(self, _benchmark: str, _metrics: Collection[str]) -> Mapping[str, Samples]:
        return self.every


@dataclass(frozen=True)
class TwoVariants:
    """A view of a study of two variants."""

    study = a_study(
        variants={OLD: Variant(), NEW: Variant()},
        benchmarks={name: Benchmark(command="{build}/work") for name in ("text", "lists")},
    )


class BenchmarkRows:
    """Collects samples of two variants at points of benchmarks."""

    def __init__(self, unit: str = "s") -> None:
        self.rows: list[Row] = []
        self._unit = unit
        self._held: dict[str, Samples] = {}

    def add(
        self,
        benchmark: str,
        what: str,
        ratio: float,
        *,
        scatter: float = 0.01,
        busy: int = 0,
        pairs: int = PAIRS,
    ) -> BenchmarkRows:
        """Add a point at which the new variant takes `ratio` times as much; the first `busy` rounds are noisy."""
        rng = random.Random(f"{benchmark} {what}")
        for variant, factor in ((OLD, 1.0), (NEW, ratio)):
            key = f"{benchmark} {what} {variant}"
            values = {at: factor * rng.lognormvariate(0.0, scatter) for at in range(pairs)}
            self._held[key] = Samples(
                values={"time": values},
                flags=dict.fromkeys(range(busy), ("busy",)),
                blocks={at: f"{benchmark} {what} {at}" for at in range(pairs)},
            )
            self.rows.append(
                Row(
                    subject=Subject(revision=REVISION, variant=variant),
                    benchmark=benchmark,
                    point=Point((("what", what),)),
                    metric="time",
                    unit=self._unit,
                    failures=0,
                    values=tuple(values.values()),
                    runnables=frozenset((key,)),
                )
            )
        return self

    def shifts(self) -> Shifts:
        opposite = list(sides(self.rows, (OLD, NEW)))
        return shifts(cast(View, TwoVariants()), cast(MeasuredHere, FixedSamples(self._held)), opposite)


def test_a_benchmark_is_the_geometric_mean_of_its_points() -> None:
    found = BenchmarkRows().add("text", "one", 2.0).add("text", "two", 0.5).add("text", "three", 8.0).shifts()
    [whole] = found.by_benchmark
    assert whole.comparison.effect == pytest.approx(2.0, rel=0.02)
    assert [point["what"] for point in whole.points] == ["one", "two", "three"]
    assert [each.verdict for each in found.by_point] == [Verdict.SLOWER, Verdict.FASTER, Verdict.SLOWER]


def test_points_that_are_far_apart_do_not_widen_the_interval_of_their_mean() -> None:
    near = BenchmarkRows().add("text", "one", 1.1).add("text", "two", 1.1).shifts().by_benchmark[0].comparison
    far = (
        BenchmarkRows().add("text", "one", 11.0).add("text", "two", 0.11).shifts().by_benchmark[0].comparison
    )
    assert far.high / far.low == pytest.approx(near.high / near.low)
    assert far.low > 1.0


def test_each_benchmark_is_a_group_of_its_own() -> None:
    found = BenchmarkRows().add("text", "one", 2.0).add("lists", "one", 1.0).add("lists", "two", 1.0).shifts()
    assert [(each.row.benchmark, len(each.points)) for each in found.by_benchmark] == [
        ("text", 1),
        ("lists", 2),
    ]
    assert [each.differs for each in found.by_benchmark] == [True, False]


def test_times_of_a_disturbed_machine_decide_nothing_and_counts_do() -> None:
    times, counts = (BenchmarkRows(unit).add("text", "one", 2.0, busy=PAIRS) for unit in ("s", ""))
    [shift] = times.shifts().by_point
    assert (shift.verdict, shift.differs) == (Verdict.UNCLEAR, False)
    assert shift.words == "unclear: the machine was busy"
    assert counts.shifts().by_point[0].differs


def test_disturbed_rounds_are_left_out_where_enough_were_quiet() -> None:
    found = BenchmarkRows().add("text", "one", 2.0, busy=4).add("text", "two", 2.0).shifts()
    assert [each.comparison.pairs for each in found.by_point] == [PAIRS - 4, PAIRS]
    assert [each.comparison.pairs for each in found.by_benchmark] == [2 * (PAIRS - 4)]
    assert found.by_benchmark[0].differs


def test_too_few_pairs_call_nothing_and_say_how_many_it_takes() -> None:
    [shift] = BenchmarkRows().add("text", "one", 2.0, pairs=5).shifts().by_point
    assert not shift.differs
    assert "a verdict needs" in shift.words


def test_what_is_the_same_says_which_change_would_have_been_seen() -> None:
    [shift] = BenchmarkRows().add("text", "one", 1.0, scatter=0.002).shifts().by_point
    assert shift.verdict is Verdict.SAME
    assert shift.words.endswith(" % would have been detected")
