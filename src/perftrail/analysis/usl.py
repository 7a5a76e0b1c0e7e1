"""Fits of Amdahl's law and of the Universal Scalability Law, and whether so few points let them be believed.

Both say what n threads do at once compared with one: X(n)/X(1) = n / (1 + a (n - 1) + b n (n - 1)). Amdahl (AFIPS
30, 1967) has b = 0, and a is the serial share; Gunther (Guerrilla Capacity Planning, 2007, chapter 4) calls a
contention and b coherency. For the time T of a fixed piece of work that is n T(n) = c0 + c1 (n - 1) + c2 n (n - 1) with
a = c1/c0 and b = c2/c0: linear, so that it is fitted by weighted least squares on relative errors, and a, b and the
count of the highest throughput, sqrt((c0 - c1)/c2), have Fieller's exact intervals (JRSS B 16, 1954).

It assumes independent relative errors; a sample's outliers are drawn in before. How well the model fits is judged
against the samples' own scatter (lack of fit against pure error, an F test).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from perftrail.model.quantity import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

LEVEL = 0.05
"""What the intervals leave out."""

SPARE = 2
"""So many more counts of threads than parameters, or a fit proves nothing of itself."""

LACK = 0.01
"""At this p-value or below, the points do not lie on the curve."""

NEAR = 0.02
"""A curve that misses no point by more than this is good enough, however sure it is that it misses them."""

DRAWN_IN = 5.0
"""So many robust standard deviations from the median, a value is drawn in to."""

PRIOR = 20.0
"""How many values the scatter of all counts together is worth beside a count's own (Smyth 2004)."""


class Law(StrEnum):
    """A law of scaling; its parameters beside the time with one thread."""

    AMDAHL = "amdahl"
    USL = "usl"

    @property
    def parameters(self) -> int:
        """How many numbers it is fitted by, the time with one thread included."""
        return 2 if self is Law.AMDAHL else 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A fitted number with its 95 % interval, which may be infinite: the points do not bound it."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A law fitted to the times at several counts of threads.

    `contention` is Amdahl's serial share. `coherency` and `peak`, the count at which throughput is highest, are
    None of Amdahl's law, and `peak` where the curve has none. `misses` is the largest relative distance of a point
    from the curve, `lack` the p-value of "the points lie on the curve". `believed` says whether it may be used, and
    `because` why not.
    """

    law: Law
    single: float
    contention: Parameter
    coherency: Parameter | None
    peak: Parameter | None
    misses: float
    lack: float
    believed: bool
    because: str = ""

    def time(self, threads: float) -> float:
        """What the curve says the work takes, in the unit of the times."""
        b = self.coherency.value if self.coherency else 0.0
        bent = 1.0 + self.contention.value * (threads - 1.0) + b * threads * (threads - 1.0)
        return self.single * bent / threads


@dataclass(frozen=True, slots=True, kw_only=True)
class Fits:
    """What can be said of both laws. `chosen` is the one that the points ask for; None: they cannot tell.

    `because` says why there is no fit, or no choice. `bends` is the p-value of "Amdahl's law is all there is".
    """

    amdahl: Fit | None = None
    usl: Fit | None = None
    chosen: Law | None = None
    bends: float | None = None
    because: str = ""


def fits(times: Mapping[int, Sequence[float]]) -> Fits:
    """Fit both laws to the times that a piece of work takes at each count of threads, all above zero.

    >>> fits({1: [1.0, 1.01], 2: [0.5, 0.51], 4: [0.26, 0.25]}).because
    "it cannot be told with 3 counts of threads; it takes 4 for Amdahl's law and 5 for the scalability law"
    """
    points = _points(times)
    least = Law.AMDAHL.parameters + SPARE
    if len(points.counts) < least:
        had = counted(len(points.counts), "count")
        return Fits(
            because=f"it cannot be told with {had} of threads; it takes {least} for Amdahl's law and "
            f"{Law.USL.parameters + SPARE} for the scalability law"
        )
    if points.freedom < len(points.counts):
        return Fits(because="it cannot be told with so few samples; it takes at least two at each count")
    amdahl = _fit(points, Law.AMDAHL)
    if len(points.counts) < Law.USL.parameters + SPARE:
        return Fits(
            amdahl=amdahl,
            chosen=Law.AMDAHL if amdahl.believed else None,
            because=amdahl.because
            or f"whether threads also slow one another cannot be told with {len(points.counts)} counts of threads",
        )
    usl = _fit(points, Law.USL)
    bends = _bends(points)
    return _chosen(amdahl, usl, bends)


def _chosen(amdahl: Fit, usl: Fit, bends: float) -> Fits:
    """Take the smaller law unless the points reject it; neither where neither fits."""
    if bends > LEVEL and amdahl.believed:
        assert usl.coherency is not None
        chosen, because = (
            Law.AMDAHL,
            f"a coherency of up to {max(0.0, usl.coherency.high):.2g} is not excluded",
        )
    elif usl.believed:
        chosen, because = Law.USL, ""
    else:
        return Fits(amdahl=amdahl, usl=usl, bends=bends, because=usl.because)
    return Fits(amdahl=amdahl, usl=usl, chosen=chosen, bends=bends, because=because)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Points:
    """Geometric means at each count, and the variance of each mean's logarithm; `freedom` is that of all scatter."""

    counts: Floats
    times: Floats
    variances: Floats
    freedom: int


def _points(times: Mapping[int, Sequence[float]]) -> _Points:
    logs = _drawn_in(
        {count: np.log(np.array(each)) for count, each in sorted(times.items()) if len(each) > 0}
    )
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


def _drawn_in(logs: Mapping[int, Floats]) -> dict[int, Floats]:
    """Draw those far out in, so that one odd sample does not move the mean; a steady count has the others' reach."""
    off = {count: np.abs(values - np.median(values)) for count, values in logs.items()}
    common = float(np.median(np.concatenate(list(off.values())))) if off else 0.0
    reaches = {count: DRAWN_IN * 1.4826 * max(common, float(np.median(each))) for count, each in off.items()}
    return {
        count: np.clip(values, np.median(values) - reaches[count], np.median(values) + reaches[count])
        for count, values in logs.items()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Solved:
    """The coefficients c0, c1 and, of the scalability law, c2; their covariance; and the weighted squares left."""

    values: Floats
    covariance: Floats
    left: float
    misses: float


def _solve(points: _Points, law: Law) -> _Solved:
    n = points.counts
    columns = [np.ones_like(n), n - 1.0, n * (n - 1.0)][: law.parameters]
    design = np.column_stack(columns) / (n * points.times)[:, None]
    weights = 1.0 / points.variances
    normal = (design * weights[:, None]).T @ design
    covariance: Floats = np.asarray(np.linalg.pinv(normal, hermitian=True), dtype=np.float64)
    values = covariance @ (design * weights[:, None]).sum(axis=0)
    off = 1.0 - design @ values
    return _Solved(
        values=values,
        covariance=covariance,
        left=float((weights * off**2).sum()),
        misses=float(np.abs(off).max()),
    )


def _bends(points: _Points) -> float:
    """The p-value of c2 = 0, against the samples' own scatter."""
    from scipy.special import fdtrc  # noqa: PLC0415 - scipy is imported where it is used

    gained = _solve(points, Law.AMDAHL).left - _solve(points, Law.USL).left
    return float(fdtrc(1, points.freedom, max(0.0, gained)))


def _fit(points: _Points, law: Law) -> Fit:
    from scipy.special import fdtrc, stdtrit  # noqa: PLC0415 - scipy is imported where it is used

    solved = _solve(points, law)
    spare = len(points.counts) - law.parameters
    excess = solved.left / spare
    lack = float(fdtrc(spare, points.freedom, excess))
    off = lack <= LACK
    # Points off the curve scatter by more than their samples do: then their distances are the only measure.
    bound = float(stdtrit(spare if off else points.freedom, 1.0 - LEVEL / 2.0))
    covariance = solved.covariance * (excess if off else 1.0) * bound**2
    c0 = np.eye(law.parameters)[0]
    c1 = np.eye(law.parameters)[1]
    contention = _share(solved.values, covariance, c1, c0)
    coherency = peak = None
    if law is Law.USL:
        c2 = np.eye(3)[2]
        coherency = _share(solved.values, covariance, c2, c0)
        peak = _root(_share(solved.values, covariance, c0 - c1, c2), coherency)
    because = _doubt(contention, coherency, misses=solved.misses, off=off)
    return Fit(
        law=law,
        single=float(solved.values[0]),
        contention=contention,
        coherency=coherency,
        peak=peak,
        misses=solved.misses,
        lack=lack,
        believed=not because,
        because=because,
    )


def _doubt(contention: Parameter, coherency: Parameter | None, *, misses: float, off: bool) -> str:
    if off and misses > NEAR:
        return f"the points do not lie on the curve: one is {misses * 100.0:.0f} % off, more than its samples scatter"
    if not math.isfinite(contention.high - contention.low):
        return "the points do not bound the serial share"
    if contention.high - contention.low > 1.0:
        return "the points leave the serial share open"
    if coherency is not None and coherency.high < 0.0:
        return "the curve bends the wrong way: threads would help each other the more there are"
    return ""


def _share(values: Floats, covariance: Floats, upper: Floats, lower: Floats) -> Parameter:
    """Fieller's interval of a ratio of two sums of coefficients; `covariance` holds the squared bound already."""
    top, bottom = float(upper @ values), float(lower @ values)
    tops, bottoms = float(upper @ covariance @ upper), float(lower @ covariance @ lower)
    both = float(upper @ covariance @ lower)
    value = top / bottom if bottom != 0.0 else math.inf
    square = bottom**2 - bottoms
    if square <= 0.0:  # the denominator may be zero: no finite bound excludes anything on both sides
        return Parameter(value=value, low=-math.inf, high=math.inf)
    middle = top * bottom - both
    reach = math.sqrt(max(0.0, middle**2 - square * (top**2 - tops)))
    return Parameter(value=value, low=(middle - reach) / square, high=(middle + reach) / square)


def _root(squared: Parameter, coherency: Parameter) -> Parameter | None:
    """The count of the highest throughput from its square; None where the curve goes on rising."""
    if coherency.value <= 0.0 or squared.value <= 0.0:
        return None
    low = math.sqrt(max(1.0, squared.low)) if math.isfinite(squared.low) else 1.0
    high = math.sqrt(max(1.0, squared.high)) if math.isfinite(squared.high) else math.inf
    return Parameter(value=max(1.0, math.sqrt(squared.value)), low=low, high=high)
