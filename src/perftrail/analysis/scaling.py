"""How a benchmark scales with its threads: speed-up, efficiency, the laws that fit, where throughput peaks.

Work is taken to be the same at each count of threads, unless the figure is a throughput. Every ratio is of samples
that were taken in turns, paired by their ordinal. Points with more threads than the machine has processors are
told, marked, and used for no fit: what they show is the scheduler.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.analysis.paired import ratio
from perftrail.analysis.usl import Fits, Law, fits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perftrail.analysis.paired import Interval
    from perftrail.analysis.usl import Parameter

    Samples = Mapping[int, Mapping[str, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Processors:
    """What there is to run threads on. `paired`: some share a core (SMT), so not each is worth one."""

    count: int
    paired: bool = False

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"count: {self.count} processors run nothing")


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadSamples:
    """The samples of one subject along its thread axis: by count of threads, then by ordinal, the metrics.

    `metric` is the one whose scaling is asked for: a time, or when `rising` a throughput. Values are in the
    metrics' own units. Raises `ValueError` for a count below one, which is no number of threads.
    """

    metric: str
    rising: bool
    samples: Mapping[int, Samples]
    processors: Processors

    def __post_init__(self) -> None:
        wrong = [count for count in self.samples if count < 1]
        if wrong:
            raise ValueError(f"samples: {wrong[0]} threads do no work")

    @property
    def counts(self) -> tuple[int, ...]:
        """The counts that have a value of the metric, ascending."""
        return tuple(
            sorted(
                n for n, held in self.samples.items() if any(self.metric in each for each in held.values())
            )
        )

    @property
    def within(self) -> tuple[int, ...]:
        """The counts that the machine has processors for."""
        return tuple(count for count in self.counts if count <= self.processors.count)

    def paired(self, metric: str, first: int, second: int) -> tuple[list[float], list[float]]:
        """The values of a metric at two counts whose samples have the same ordinal, in the order of time."""
        one, other = self.samples[first], self.samples[second]
        shared = [
            ordinal for ordinal in sorted(one) if metric in one[ordinal] and metric in other.get(ordinal, {})
        ]
        return [one[each][metric] for each in shared], [other[each][metric] for each in shared]

    def times(self, count: int) -> list[float]:
        """What a piece of work takes at a count; one over the throughput of a throughput."""
        values = [each[self.metric] for _, each in sorted(self.samples[count].items()) if self.metric in each]
        return [1.0 / value if self.rising else value for value in values if value > 0.0]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingPoint:
    """One count of threads against the fewest: how many times faster, and that as a share of the ideal.

    `beyond`: there are fewer processors than threads.
    """

    threads: int
    speed_up: Interval
    efficiency: Interval
    beyond: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """Where throughput is highest among the counts measured: from `low` to `high`, which cannot be told apart.

    `open`: the most threads that were measured are among them, so that the peak may lie beyond what was measured.
    """

    threads: int
    low: int
    high: int
    open: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """What the thread axis of one subject says. `base` is the fewest threads, `processors` what there is."""

    metric: str
    base: int
    processors: Processors
    points: tuple[ScalingPoint, ...]
    best: Best
    fits: Fits

    @property
    def peak(self) -> Parameter | None:
        """The count of the highest throughput as the law that was chosen says; None where none, or none is told."""
        usl = self.fits.usl
        return usl.peak if usl is not None and self.fits.chosen is Law.USL else None


def scaling_ratio(threads: ThreadSamples, first: int, second: int) -> Interval | None:
    """How many times faster the work is with `second` threads than with `first`; None without a pair of samples.

    Raises `KeyError` for a count that was not measured.
    """
    values = threads.paired(threads.metric, first, second)
    found = ratio(*values)
    return found if found is None or threads.rising else found.inverse()


def scaling(threads: ThreadSamples) -> Scaling | None:
    """Tell how a benchmark scales; None with fewer than two counts that can be compared."""
    if len(threads.counts) < 2:
        return None
    base = threads.counts[0]
    points = []
    for count in threads.counts:
        found = scaling_ratio(threads, base, count)
        if found is not None:
            points.append(
                ScalingPoint(
                    threads=count,
                    speed_up=found,
                    efficiency=found.times(base / count),
                    beyond=count > threads.processors.count,
                )
            )
    if len(points) < 2:
        return None
    times = {count: values for count in threads.within if (values := threads.times(count))}
    return Scaling(
        metric=threads.metric,
        base=base,
        processors=threads.processors,
        points=tuple(points),
        best=_best(threads, points),
        fits=fits(times),
    )


def _best(threads: ThreadSamples, points: list[ScalingPoint]) -> Best:
    top = max(points, key=lambda point: point.speed_up.value)
    near = [top.threads]
    for point in points:
        against = None if point is top else scaling_ratio(threads, top.threads, point.threads)
        if against is not None and against.high >= 1.0:
            near.append(point.threads)
    return Best(
        threads=top.threads,
        low=min(near),
        high=max(near),
        open=max(near) == max(point.threads for point in points),
    )
