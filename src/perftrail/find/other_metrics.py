"""Find every other metric that a change affected, from its rounds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from perftrail.model.expression import references
from perftrail.search import Effect
from perftrail.stats.comparison import bounds, centre
from perftrail.stats.student import t_cdf

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from perftrail.find.sampler import Sampler
    from perftrail.model.benchmark import Benchmark, Point
    from perftrail.model.metrics import Better
    from perftrail.search import Change

    Floats = npt.NDArray[np.float64]

FAMILY_ERROR = 0.05
"""Probability that any metric without a change is named."""

LEAST = 0.01
"""Smaller changes are not reported."""

FEWEST_BLOCKS = 6

MACHINE_METRICS = (
    "foreign_cpu",
    "stolen_cpu",
    "cpu_pressure",
    "memory_pressure",
    "io_pressure",
    "cpu_frequency",
    "cpu_temperature",
)
"""Metrics of the machine's state during a run, not of the program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlsoChanged:
    """Another metric that differs between the two builds around a change; the effect is after/before."""

    metric: str
    point: Point
    unit: str
    better: Better
    effect: Effect

    @property
    def is_better(self) -> bool:
        """Whether this is an improvement by the study's definition."""
        return self.effect.improves(self.better)


def also_changed(
    benchmark: Benchmark, name: str, sampler: Sampler, change: Change
) -> tuple[AlsoChanged, ...]:
    """Return the other metrics that changed, the largest change first.

    The pairs of the rounds are compared, each metric at each point, by Student's t. The order in
    a round is random, so without a change the difference is symmetric around zero, and the test is
    conservative. The family-wise error rate is at most 5 % (Holm 1979).
    """
    found: list[tuple[float, AlsoChanged]] = []
    for metric, point, differences in _pairs(benchmark, name, sampler, change):
        if len(differences) < FEWEST_BLOCKS:
            continue
        value = _p_value(differences)
        scale = max(1.4826 * float(np.median(np.abs(differences - np.median(differences)))), 1e-9)
        interval = bounds(differences, scale, 0.025)
        declared = benchmark.metrics.get(metric) or benchmark.measured[metric]
        effect = Effect(
            value=math.exp(centre(differences)),
            low=math.exp(max(interval.low, -700.0)),
            high=math.exp(min(interval.high, 700.0)),
        )
        changed = AlsoChanged(
            metric=metric, point=point, unit=declared.unit, better=declared.better, effect=effect
        )
        found.append((value, changed))
    rejected = _holm([value for value, _ in found])
    named = [
        each
        for (_, each), holds in zip(found, rejected, strict=True)
        if holds and abs(math.log(each.effect.value)) >= math.log1p(LEAST)
    ]
    return tuple(sorted(named, key=lambda each: -abs(math.log(each.effect.value))))


def _pairs(
    benchmark: Benchmark, name: str, sampler: Sampler, change: Change
) -> Iterator[tuple[str, Point, Floats]]:
    """Yield each other metric and point with its differences of logarithms in each round, after minus before."""
    target = sampler.targets[name]
    before = max((at for at in sampler.usable(name) if at < change.positions[0]), default=None)
    if before is None:
        return
    low, high = sampler.build_of(before), sampler.build_of(change.positions[-1])
    blocks = [block.values for block in sampler.blocks if low in block.values and high in block.values]
    in_target = {(reference.name, reference.point) for reference in references(target.expression)}
    names = [*benchmark.metrics, *(each for each in benchmark.measured if each not in MACHINE_METRICS)]
    for point in target.points:
        for metric in names:
            if (metric, point) in in_target and len(in_target) == 1:
                continue
            pairs = [
                (block[low][point].get(metric, 0.0), block[high][point].get(metric, 0.0)) for block in blocks
            ]
            known = [math.log(after / before) for before, after in pairs if before > 0 and after > 0]
            if any(known) and len(known) == len(pairs):
                yield metric, point, np.array(known)


def _p_value(differences: Floats) -> float:
    """Return the p-value of Student's t test that the mean is zero."""
    if np.ptp(differences) == 0:
        return 0.0
    error = differences.std(ddof=1) / math.sqrt(len(differences))
    return 2.0 * float(t_cdf(len(differences) - 1, -abs(differences.mean()) / error))


def _holm(values: Sequence[float]) -> list[bool]:
    """Return which hypotheses are rejected at the family-wise error rate."""
    rejected = [False] * len(values)
    for rank, number in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        if values[number] > FAMILY_ERROR / (len(values) - rank):
            break
        rejected[number] = True
    return rejected
