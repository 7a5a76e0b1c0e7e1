"""Rank the variants of a matrix: by workload, in time, in memory, and in the metric of the study's question.

A workload is a benchmark with one value for each parameter that is not numeric. Its points are the values of the
numeric parameters at which the most variants have samples. Variants without samples at one of them have no rank.
All comparisons of a report share one family-wise error rate.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cache
from statistics import geometric_mean
from typing import TYPE_CHECKING, Annotated, TypedDict

from perftrail.model.benchmark import Value
from perftrail.results.pairs import decides, paired, usable_pairs, values_of
from perftrail.results.rows import by_block
from perftrail.stats.comparison import FAMILY_ERROR, Verdict
from perftrail.stats.ranking import RankRange, rank_ranges
from perftrail.stats.ratios import compare_over, compare_unpaired

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from perftrail.measure.session import View
    from perftrail.model.benchmark import Point
    from perftrail.model.metrics import Better
    from perftrail.model.noisy_samples import FlaggedSample
    from perftrail.results.measured import MeasuredHere
    from perftrail.results.rows import Row

    Blocks = Mapping[tuple[str, ...], FlaggedSample]
    _Key = tuple[str, str, tuple[tuple[str, Value], ...]]
    """A workload and its metric: the benchmark, the metric, the parameters that are not numeric."""

CERTAINTY = 1.0 - FAMILY_ERROR
"""Probability that every rank of a report is in its range."""


class RankJson(TypedDict):
    """The rank of a variant: the first and the last rank that the samples do not exclude."""

    variant: str
    first: int
    last: int
    relative: Annotated[
        float, "value relative to the best one of the workload; a geometric mean over its points"
    ]


class RankingJson(TypedDict):
    """The ranks of the variants in one metric of one workload."""

    benchmark: str
    workload: Annotated[dict[str, Value], "the values of the parameters that are not numeric"]
    points: Annotated[list[dict[str, Value]], "the points of the workload"]
    metric: str
    better: str
    ranks: Annotated[list[RankJson], "the best one first"]
    unranked: Annotated[list[str], "variants without samples at one of the points"]
    confidence: Annotated[float, "probability that every rank of the report is in its range"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A variant with its rank. `relative` is its value relative to the best one, a geometric mean over points."""

    variant: str
    ranks: RankRange
    relative: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The variants of one workload in one metric, the best one first. `fixed` are its parameters without numbers."""

    benchmark: str
    fixed: tuple[tuple[str, Value], ...]
    points: tuple[Point, ...]
    metric: str
    unit: str
    better: Better
    ranked: tuple[Ranked, ...]
    unranked: tuple[str, ...]

    @property
    def winner(self) -> str | None:
        """The variant that is certainly the best one; `None` if the samples do not separate it."""
        best = self.ranked[0]
        return best.variant if best.ranks.last == 1 else None

    def of(self, variant: str) -> Ranked | None:
        """Return a variant with its rank; `None` without one."""
        return next((each for each in self.ranked if each.variant == variant), None)

    def as_json(self) -> RankingJson:
        """Return the ranking as plain data."""
        return {
            "benchmark": self.benchmark,
            "workload": dict(self.fixed),
            "points": [point.as_dict() for point in self.points],
            "metric": self.metric,
            "better": self.better,
            "ranks": [
                {
                    "variant": each.variant,
                    "first": each.ranks.first,
                    "last": each.ranks.last,
                    "relative": each.relative,
                }
                for each in self.ranked
            ],
            "unranked": list(self.unranked),
            "confidence": CERTAINTY,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Workload:
    """The rows of one metric of a workload, by variant and point, at its common points."""

    fixed: tuple[tuple[str, Value], ...]
    points: tuple[Point, ...]
    rows: Mapping[str, Mapping[Point, Row]]
    unranked: tuple[str, ...]

    @property
    def variants(self) -> tuple[str, ...]:
        """The variants with a rank."""
        return tuple(self.rows)

    @property
    def comparisons(self) -> int:
        """The number of pairs of variants."""
        return len(self.rows) * (len(self.rows) - 1) // 2


def rankings(
    view: View, measured: MeasuredHere, rows: Sequence[Row], *, better: Callable[[Row], Better]
) -> tuple[Ranking, ...]:
    """Rank the variants by rows of one revision: every metric that the rows have, by workload.

    Empty for workloads with fewer than two variants. `better` returns the direction of a row's metric. Samples that
    are not interleaved, as imported ones, are compared at each point: each point is a workload.
    """
    interleaved = view.study.searched_source.kind != "samples"
    found = _workloads(rows, tuple(view.study.variants), by_point=not interleaved)
    workloads = [each for each in found if each.comparisons]
    comparisons = sum(each.comparisons for each in workloads)

    @cache
    def blocks_of(row: Row) -> Blocks:
        return by_block(view, measured, row)

    def verdict(first: Sequence[Row], second: Sequence[Row]) -> Verdict:
        """Return whether the second variant has lower values."""
        if not interleaved:
            return _unpaired(first[0], second[0], comparisons=comparisons)
        pairs = [paired(blocks_of(one), blocks_of(other)) for one, other in zip(first, second, strict=True)]
        if not all(pairs):
            return Verdict.UNCLEAR
        used = usable_pairs(pairs)
        if not decides(first[0].unit, itertools.chain.from_iterable(used)):
            return Verdict.UNCLEAR
        return compare_over(values_of(used), comparisons=comparisons).verdict

    return tuple(_ranking(each, verdict, better) for each in workloads)


def _unpaired(first: Row, second: Row, *, comparisons: int) -> Verdict:
    if not all(len(row.values) > 1 and min(row.values) > 0.0 for row in (first, second)):
        return Verdict.UNCLEAR
    return compare_unpaired(first.values, second.values, level=FAMILY_ERROR / comparisons).verdict


def _workloads(rows: Sequence[Row], variants: Sequence[str], *, by_point: bool) -> list[_Workload]:
    found: dict[_Key, dict[str, dict[Point, Row]]] = {}
    for row in rows:
        if row.values:
            fixed = tuple(each for each in row.point.values if by_point or isinstance(each[1], str))
            key = (row.benchmark, row.metric, fixed)
            found.setdefault(key, {}).setdefault(row.subject.variant, {})[row.point] = row
    return [_common(key, by_variant, variants) for key, by_variant in found.items()]


def _common(key: _Key, by_variant: Mapping[str, Mapping[Point, Row]], variants: Sequence[str]) -> _Workload:
    """Keep the points at which the most variants have values, and the variants with values at all of them."""
    points = dict.fromkeys(point for each in by_variant.values() for point in each)
    having = {
        point: frozenset(name for name, each in by_variant.items() if point in each) for point in points
    }
    most = max(having.values(), key=len)
    kept = tuple(point for point, names in having.items() if names >= most)
    return _Workload(
        fixed=key[-1],
        points=kept,
        rows={
            name: {point: each[point] for point in kept} for name, each in by_variant.items() if name in most
        },
        unranked=tuple(name for name in variants if name not in most),
    )


def _ranking(
    workload: _Workload,
    verdict: Callable[[Sequence[Row], Sequence[Row]], Verdict],
    better: Callable[[Row], Better],
) -> Ranking:
    by_number = [[workload.rows[name][point] for point in workload.points] for name in workload.variants]
    sample = by_number[0][0]
    direction = better(sample)
    orders = set()
    for one, other in itertools.combinations(range(len(by_number)), 2):
        found = verdict(by_number[one], by_number[other])
        if found in (Verdict.FASTER, Verdict.SLOWER):
            is_other_better = (found is Verdict.FASTER) == (direction == "lower")
            orders.add((other, one) if is_other_better else (one, other))
    means = [_mean(rows) for rows in by_number]
    best = (min if direction == "lower" else max)(means)
    ranked = [
        Ranked(variant=name, ranks=ranks, relative=mean / best if best else 1.0)
        for name, ranks, mean in zip(
            workload.variants, rank_ranges(len(by_number), orders), means, strict=True
        )
    ]
    sign = 1.0 if direction == "lower" else -1.0
    return Ranking(
        benchmark=sample.benchmark,
        fixed=workload.fixed,
        points=workload.points,
        metric=sample.metric,
        unit=sample.unit,
        better=direction,
        ranked=tuple(
            sorted(ranked, key=lambda each: (each.ranks.first + each.ranks.last, sign * each.relative))
        ),
        unranked=workload.unranked,
    )


def _mean(rows: Sequence[Row]) -> float:
    """Return the geometric mean of the points' medians; zero if one of them is not positive."""
    medians = [row.estimate.value for row in rows if row.estimate is not None]
    return geometric_mean(medians) if min(medians) > 0.0 else 0.0
