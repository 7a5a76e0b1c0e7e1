"""Scaling with threads: speed-up, efficiency, fitted laws, and the thread count of the highest throughput.

Every thread count does the same work, unless the metric is a throughput. Ratios are those of interleaved samples,
paired by their ordinal. Counts beyond the machine's processors are reported and flagged, but no fit uses them: they
show the scheduler. The same applies to counts beyond its cores, since processors that share a core (SMT) are slower.

Two laws describe the throughput of n threads relative to one: X(n)/X(1) = n / (1 + a (n - 1) + b n (n - 1)). Amdahl
(AFIPS 30, 1967) has b = 0, and a is the serial share. The Universal Scalability Law (Gunther, Guerrilla Capacity
Planning, 2007, chapter 4) calls a contention and b coherency. For the time T of a fixed piece of work,
n T(n) = c0 + c1 (n - 1) + c2 n (n - 1) with a = c1/c0 and b = c2/c0. This is linear: weighted least squares on relative
errors fit it. a, b and the count of the highest throughput, sqrt((c0 - c1)/c2), have Fieller's exact intervals
(JRSS B 16, 1954). The fits assume independent relative errors; outliers are clipped first. An F test compares the lack
of fit with the samples' own variation. If it is unknown which processors share a core, the scalability law is compared
with a kink: a straight line that rises faster from some count on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import numpy as np

from perftrail.model.wording import counted
from perftrail.stats.ratios import PairedEstimate, ratio
from perftrail.stats.student import f_above, t_quantile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Samples = Mapping[int, Mapping[str, float]]

LEVEL = 0.05
"""Error of the intervals."""

SPARE = 2
"""A fit needs this many more thread counts than it has parameters."""

LACK_OF_FIT_LEVEL = 0.01
"""At this p-value or below, the points do not fit the curve."""

NEAR = 0.02
"""A curve that misses no point by more than this share is good enough, even if the misses are significant."""

CLIPPED = 5.0
"""Values are clipped to this many robust standard deviations around the median."""

PRIOR = 20.0
"""Weight of the pooled variation of all counts, as a number of values (Smyth 2004)."""

SURELY_SMOOTH = 2.0
"""A smooth law and a kink fit equally well unless their weighted squares differ by more."""

MOST_PER_CORE = 4
"""Largest number of processors per core; a kink is only tested from the largest count over this number on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Processors:
    """The processors that threads may use. `paired`: some share a core (SMT).

    `cores` is the number of physical cores; None if the machine does not show which processors share one.
    """

    count: int
    paired: bool = False
    cores: int | None = None

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"count: {self.count} processors; at least 1 is needed")
        if self.cores is not None and not 1 <= self.cores <= self.count:
            raise ValueError(f"cores: {self.cores} cores do not fit {self.count} processors")

    @property
    def alone(self) -> int:
        """Number of threads that can each have a core; the number of processors if cores are unknown."""
        return self.count if self.cores is None else self.cores


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadSamples:
    """Samples of one subject along its thread axis: metrics by thread count and ordinal.

    `metric` is the metric whose scaling is analysed: a time, or a throughput if `rising`. Values are in the metrics'
    own units. Raises `ValueError` for a thread count below one.
    """

    metric: str
    rising: bool
    samples: Mapping[int, Samples]
    processors: Processors

    def __post_init__(self) -> None:
        wrong = [count for count in self.samples if count < 1]
        if wrong:
            raise ValueError(f"samples: {wrong[0]} is not a number of threads; at least 1 is needed")

    @property
    def counts(self) -> tuple[int, ...]:
        """Thread counts that have a value of the metric, ascending."""
        return tuple(
            sorted(
                n
                for n, samples in self.samples.items()
                if any(self.metric in each for each in samples.values())
            )
        )

    @property
    def within(self) -> tuple[int, ...]:
        """Thread counts for which the machine has enough processors."""
        return tuple(count for count in self.counts if count <= self.processors.count)

    def paired(self, metric: str, first: int, second: int) -> tuple[list[float], list[float]]:
        """Return the values of a metric at two counts, for samples with equal ordinals, in the order of time."""
        one, other = self.samples[first], self.samples[second]
        shared = [
            ordinal for ordinal in sorted(one) if metric in one[ordinal] and metric in other.get(ordinal, {})
        ]
        return [one[each][metric] for each in shared], [other[each][metric] for each in shared]

    def times(self, count: int) -> list[float]:
        """Return the time of one piece of work at a count: the metric, or one over a throughput."""
        values = [each[self.metric] for _, each in sorted(self.samples[count].items()) if self.metric in each]
        return [1.0 / value if self.rising else value for value in values if value > 0.0]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingPoint:
    """Speed-up of one thread count relative to the smallest count, and its share of the ideal."""

    threads: int
    speed_up: PairedEstimate
    efficiency: PairedEstimate
    beyond: Annotated[bool, "more threads than processors"]
    shares_cores: Annotated[bool, "more threads than cores, but not than processors"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """The measured count of the highest throughput, and the range `low` to `high` that cannot be separated from it."""

    threads: int
    low: int
    high: int
    open: Annotated[bool, "the range includes the largest measured count, so a larger count may be better"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """Scaling of one subject along its thread axis. `base` is the smallest thread count."""

    metric: str
    base: int
    processors: Processors
    points: tuple[ScalingPoint, ...]
    best: Best
    fits: Fits

    @property
    def peak(self) -> Parameter | None:
        """Thread count of the highest throughput under the chosen law; None without a law or a peak."""
        usl = self.fits.usl
        return usl.peak if usl is not None and self.fits.chosen is Law.USL else None


def scaling_ratio(threads: ThreadSamples, first: int, second: int) -> PairedEstimate | None:
    """Return the speed-up from `first` to `second` threads; None without a pair of samples.

    Raises `KeyError` for a count without samples.
    """
    values = threads.paired(threads.metric, first, second)
    found = ratio(*values)
    return found if found is None or threads.rising else found.inverse()


def scaling(threads: ThreadSamples) -> Scaling | None:
    """Return how a benchmark scales; None with fewer than two comparable counts."""
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
                    shares_cores=threads.processors.alone < count <= threads.processors.count,
                )
            )
    if len(points) < 2:
        return None
    times = {
        count: values
        for count in threads.within
        if count <= threads.processors.alone and (values := threads.times(count))
    }
    return Scaling(
        metric=threads.metric,
        base=base,
        processors=threads.processors,
        points=tuple(points),
        best=_best(threads, points),
        fits=fits(times, cores_known=threads.processors.cores is not None),
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


class Law(StrEnum):
    """A law of scaling."""

    AMDAHL = "amdahl"
    USL = "usl"

    @property
    def parameters(self) -> int:
        """Number of fitted parameters, including the time with one thread."""
        return 2 if self is Law.AMDAHL else 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A fitted number with its 95 % interval, which is infinite if the points do not bound it."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A law fitted to the times at several thread counts.

    `contention` is Amdahl's serial share. `peak` is the count of the highest throughput. `coherency` and `peak` are
    None for Amdahl's law, and `peak` for a curve without a peak. `misses` is the largest relative distance of a point
    from the curve. `lack_of_fit_p_value` is the p-value of "the points lie on the curve". `accepted` states whether the
    fit may be used, and `reason` why not.
    """

    law: Law
    single_thread_time: float
    contention: Parameter
    coherency: Parameter | None
    peak: Parameter | None
    misses: float
    lack_of_fit_p_value: float
    accepted: bool
    reason: str = ""

    def time(self, threads: float) -> float:
        """Return the fitted time of the work, in the unit of the times."""
        b = self.coherency.value if self.coherency else 0.0
        bent = 1.0 + self.contention.value * (threads - 1.0) + b * threads * (threads - 1.0)
        return self.single_thread_time * bent / threads


@dataclass(frozen=True, slots=True, kw_only=True)
class Fits:
    """The fits of both laws. `chosen` is the law that the points support; None if they support neither.

    `reason` states why there is no fit or no choice. `coherency_p_value` is the p-value of "Amdahl's law suffices".
    `kink` is a thread count beyond which each thread costs more, if this explains the points as well as the
    scalability law.
    """

    amdahl: Fit | None = None
    usl: Fit | None = None
    chosen: Law | None = None
    coherency_p_value: float | None = None
    reason: str = ""
    kink: int | None = None


def fits(times: Mapping[int, Sequence[float]], *, cores_known: bool = True) -> Fits:
    """Fit both laws to the times of one piece of work at each thread count, all above zero.

    Unless `cores_known`, processors may share a core at some counts.

    >>> fits({1: [1.0, 1.01], 2: [0.5, 0.51], 4: [0.26, 0.25]}).reason
    "3 thread counts are too few for a fit; Amdahl's law needs 4 and the scalability law 5"
    """
    points = _points(times)
    least = Law.AMDAHL.parameters + SPARE
    if len(points.counts) < least:
        few = counted(len(points.counts), "thread count")
        return Fits(
            reason=f"{few} are too few for a fit; Amdahl's law needs {least} and "
            f"the scalability law {Law.USL.parameters + SPARE}"
        )
    if points.freedom < len(points.counts):
        return Fits(reason="too few samples for a fit; each thread count needs at least two")
    amdahl = _fit(points, Law.AMDAHL)
    if len(points.counts) < Law.USL.parameters + SPARE:
        return Fits(
            amdahl=amdahl,
            chosen=Law.AMDAHL if amdahl.accepted else None,
            reason=amdahl.reason
            or f"{len(points.counts)} thread counts cannot show whether threads also slow each other",
        )
    usl = _fit(points, Law.USL)
    found = _chosen(amdahl, usl, _coherency_p_value(points))
    return found if cores_known or found.chosen is not Law.USL else _or_kink(points, found)


def _chosen(amdahl: Fit, usl: Fit, p_value: float) -> Fits:
    """Choose the smaller law unless the points reject it; neither if neither fits."""
    if p_value > LEVEL and amdahl.accepted:
        assert usl.coherency is not None
        chosen, reason = (
            Law.AMDAHL,
            f"a coherency of up to {max(0.0, usl.coherency.high):.2g} is not excluded",
        )
    elif usl.accepted:
        chosen, reason = Law.USL, ""
    else:
        return Fits(amdahl=amdahl, usl=usl, coherency_p_value=p_value, reason=usl.reason)
    return Fits(amdahl=amdahl, usl=usl, chosen=chosen, coherency_p_value=p_value, reason=reason)


def _or_kink(points: _Points, found: Fits) -> Fits:
    """Reject the scalability law if a kink explains the points as well: cores may be shared beyond it."""
    least = points.counts[-1] / MOST_PER_CORE
    bent = [
        (_solve(points, _kinked(points, int(count))).left, int(count))
        for count in points.counts[1:-1]
        if count >= least
    ]
    left, kink = min(bent, default=(math.inf, 0))
    smooth = _solve(points, _columns(points, Law.USL)).left
    if left > smooth + SURELY_SMOOTH:
        return found
    bends = f"scaling bends at {kink} threads, as it does where processors share a core beyond that count; "
    either = f"a smooth law and a bend at {kink} threads fit equally well, and "
    return replace(
        found,
        chosen=None,
        kink=kink,
        reason=(bends if left < smooth - SURELY_SMOOTH else either)
        + "this machine does not show which processors share a core",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Points:
    """Geometric means at each count, and the variance of each mean's logarithm; `freedom` is that of all samples."""

    counts: Floats
    times: Floats
    variances: Floats
    freedom: int


def _points(times: Mapping[int, Sequence[float]]) -> _Points:
    logs = _clipped({count: np.log(np.array(each)) for count, each in sorted(times.items()) if len(each) > 0})
    freedoms = {count: len(values) - 1 for count, values in logs.items()}
    squares = {count: float(((values - values.mean()) ** 2).sum()) for count, values in logs.items()}
    freedom = sum(freedoms.values())
    pooled = max(sum(squares.values()) / max(1, freedom), 1e-12)
    variances = [
        (PRIOR * pooled + squares[count]) / (PRIOR + freedoms[count]) / len(values)
        for count, values in logs.items()
    ]
    return _Points(
        counts=np.array(list(logs), dtype=np.float64),
        times=np.array([math.exp(values.mean()) for values in logs.values()]),
        variances=np.array(variances),
        freedom=freedom,
    )


def _clipped(logs: Mapping[int, Floats]) -> dict[int, Floats]:
    """Clip outliers, so that one sample does not move the mean. A quiet count uses the common scatter."""
    deviations = {count: np.abs(values - np.median(values)) for count, values in logs.items()}
    common = float(np.median(np.concatenate(list(deviations.values())))) if deviations else 0.0
    reaches = {
        count: CLIPPED * 1.4826 * max(common, float(np.median(each))) for count, each in deviations.items()
    }
    return {
        count: np.clip(values, np.median(values) - reaches[count], np.median(values) + reaches[count])
        for count, values in logs.items()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Solved:
    """The coefficients c0, c1 and c2 (if fitted), their covariance, and the remaining weighted squares."""

    values: Floats
    covariance: Floats
    left: float
    misses: float


def _columns(points: _Points, law: Law) -> Floats:
    n = points.counts
    return np.column_stack([np.ones_like(n), n - 1.0, n * (n - 1.0)][: law.parameters])


def _kinked(points: _Points, kink: int) -> Floats:
    n = points.counts
    return np.column_stack([np.ones_like(n), n - 1.0, np.maximum(0.0, n - kink)])


def _solve(points: _Points, columns: Floats) -> _Solved:
    design = columns / (points.counts * points.times)[:, None]
    weights = 1.0 / points.variances
    normal = (design * weights[:, None]).T @ design
    covariance: Floats = np.asarray(np.linalg.pinv(normal, hermitian=True), dtype=np.float64)
    values = covariance @ (design * weights[:, None]).sum(axis=0)
    residuals = 1.0 - design @ values
    return _Solved(
        values=values,
        covariance=covariance,
        left=float((weights * residuals**2).sum()),
        misses=float(np.abs(residuals).max()),
    )


def _coherency_p_value(points: _Points) -> float:
    """Return the p-value of c2 = 0, relative to the samples' own scatter."""
    without, with_coherency = (_solve(points, _columns(points, law)).left for law in Law)
    gained = without - with_coherency
    return f_above(1, points.freedom, max(0.0, gained))


def _fit(points: _Points, law: Law) -> Fit:
    solved = _solve(points, _columns(points, law))
    spare = len(points.counts) - law.parameters
    excess = solved.left / spare
    lack_of_fit = f_above(spare, points.freedom, excess)
    lacks_fit = lack_of_fit <= LACK_OF_FIT_LEVEL
    # Points off the curve scatter more than their samples. Then only their distances measure the error.
    bound = t_quantile(spare if lacks_fit else points.freedom, 1.0 - LEVEL / 2.0)
    covariance = solved.covariance * (excess if lacks_fit else 1.0) * bound**2
    c0 = np.eye(law.parameters)[0]
    c1 = np.eye(law.parameters)[1]
    contention = _fieller_ratio(solved.values, covariance, c1, c0)
    coherency = peak = None
    if law is Law.USL:
        c2 = np.eye(3)[2]
        coherency = _fieller_ratio(solved.values, covariance, c2, c0)
        peak = _peak(_fieller_ratio(solved.values, covariance, c0 - c1, c2), coherency)
    reason = _reason_to_reject(contention, coherency, misses=solved.misses, lacks_fit=lacks_fit)
    return Fit(
        law=law,
        single_thread_time=float(solved.values[0]),
        contention=contention,
        coherency=coherency,
        peak=peak,
        misses=solved.misses,
        lack_of_fit_p_value=lack_of_fit,
        accepted=not reason,
        reason=reason,
    )


def _reason_to_reject(
    contention: Parameter, coherency: Parameter | None, *, misses: float, lacks_fit: bool
) -> str:
    if lacks_fit and misses > NEAR:
        return (
            f"the points are not on the curve: one is {misses * 100.0:.0f} % off, more than its samples vary"
        )
    if not math.isfinite(contention.high - contention.low):
        return "the points do not bound the serial share"
    if contention.low > 1.0:
        return "more threads take longer than one, which no serial share explains"
    if contention.high - contention.low > 1.0:
        return "the serial share is too uncertain"
    if coherency is not None and coherency.high < 0.0:
        return "the fitted coherency is negative: more threads would make each other faster"
    return ""


def _fieller_ratio(values: Floats, covariance: Floats, upper: Floats, lower: Floats) -> Parameter:
    """Return a ratio of two sums of coefficients with Fieller's interval; `covariance` includes the squared bound."""
    top, bottom = float(upper @ values), float(lower @ values)
    tops, bottoms = float(upper @ covariance @ upper), float(lower @ covariance @ lower)
    both = float(upper @ covariance @ lower)
    value = top / bottom if bottom != 0.0 else math.inf
    square = bottom**2 - bottoms
    if square <= 0.0:  # the denominator may be zero, so that no finite interval exists
        return Parameter(value=value, low=-math.inf, high=math.inf)
    middle = top * bottom - both
    reach = math.sqrt(max(0.0, middle**2 - square * (top**2 - tops)))
    return Parameter(value=value, low=(middle - reach) / square, high=(middle + reach) / square)


def _peak(squared: Parameter, coherency: Parameter) -> Parameter | None:
    """Return the count of the highest throughput from its square; None if the curve never falls."""
    if coherency.value <= 0.0 or squared.value <= 0.0:
        return None
    low = math.sqrt(max(1.0, squared.low)) if math.isfinite(squared.low) else 1.0
    high = math.sqrt(max(1.0, squared.high)) if math.isfinite(squared.high) else math.inf
    return Parameter(value=max(1.0, math.sqrt(squared.value)), low=low, high=high)
