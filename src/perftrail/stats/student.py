"""Student's t, Fisher's F and the normal distribution, by the incomplete beta function.

Its continued fraction is that of Didonato and Morris (1992, ACM TOMS 18, algorithm 708). The factor before it is
Loader's (2000): without cancellation for many degrees of freedom.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import count
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
"""Coefficients of log Γ's series in odd powers of 1/z (Abramowitz and Stegun, 6.1.41)."""

FARTHEST = 1e150
"""Larger values of t would overflow when they are squared; such a quantile is infinite."""

PRECISION = 1e-15


def t_cdf(freedom: float, t: npt.ArrayLike) -> Floats:
    """Return P(T <= t) for Student's t with `freedom` degrees of freedom, above 0 and not necessarily whole."""
    values = np.asarray(t, dtype=np.float64)
    beyond = _t_shares(freedom, np.abs(values)).lower / 2.0
    return np.where(values < 0.0, beyond, 1.0 - beyond)


@lru_cache(maxsize=4096)
def t_quantile(freedom: float, probability: float) -> float:
    """Return t with P(T <= t) = `probability`, which is between 0 and 1.

    Newton's method solves for log t the logarithm of the share within ±t or that beyond, the smaller one. Both are
    concave in log t.
    """
    within, beyond = abs(2.0 * probability - 1.0), 2.0 * min(probability, 1.0 - probability)
    if not within:
        return 0.0
    t = NormalDist().inv_cdf(1.0 - beyond / 2.0) if beyond > 1e-15 else 8.0
    for _ in range(100):
        shares = _t_shares(freedom, np.asarray(t))
        share, target = (shares.lower, -beyond) if beyond < within else (shares.upper, within)
        step = math.log(abs(target) / float(share)) * float(share) / float(2.0 * shares.factor)
        t *= math.exp(math.copysign(step, step * target))
        if abs(step) < 1e-14:
            break
    return math.copysign(t, probability - 0.5)


def f_above(freedom: float, freedom_of_error: float, value: float) -> float:
    """Return P(F > value) for Fisher's F, a ratio of two mean squares with these degrees of freedom."""
    ratio = freedom * value / freedom_of_error
    x = np.asarray(1.0 / (1.0 + ratio))
    return float(_beta_shares(freedom_of_error / 2.0, freedom / 2.0, x, ratio * x).lower)


def normal_cdf(values: Floats) -> Floats:
    """Return P(Z <= z) of the standard normal distribution for each value."""
    scaled = (values / -math.sqrt(2.0)).tolist()
    return np.fromiter(map(math.erfc, scaled), np.float64, len(scaled)) / 2.0


class _Shares(NamedTuple):
    """The incomplete beta function I_x(a, b), its complement, and x^a (1-x)^b / B(a, b)."""

    lower: Floats
    upper: Floats
    factor: Floats


def _t_shares(freedom: float, t: Floats) -> _Shares:
    """Return the share beyond ±t (`lower`) and within; `factor` is t times the density."""
    ratio = np.minimum(t, FARTHEST) ** 2 / freedom
    x = 1.0 / (1.0 + ratio)
    return _beta_shares(freedom / 2.0, 0.5, x, ratio * x)


def _beta_shares(a: float, b: float, x: Floats, y: Floats) -> _Shares:
    """Compute the shares of x, where y = 1 - x has no rounding error of a subtraction."""
    gap = a * y - b * x
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(gap < a / 2.0, np.log1p(-gap / a), np.log(x * (a + b) / a))
        second = np.where(gap > -b / 2.0, np.log1p(gap / b), np.log(y * (a + b) / b))
    rest = _stirling_rest(a) + _stirling_rest(b) - _stirling_rest(a + b)
    factor = math.sqrt(a * b / (a + b) / (2.0 * math.pi)) * np.exp(a * first + b * second - rest)
    near_end = gap < 0.0
    share = factor * _fraction(
        np.where(near_end, b, a), np.where(near_end, a, b), np.where(near_end, y, x), np.abs(gap)
    )
    return _Shares(np.where(near_end, 1.0 - share, share), np.where(near_end, share, 1.0 - share), factor)


def _stirling_rest(z: float) -> float:
    """Return log Γ(z) without Stirling's formula."""
    if z >= 10.0:
        return sum(coefficient / z ** (2 * power + 1) for power, coefficient in enumerate(STIRLING))
    return math.lgamma(z) - (z - 0.5) * math.log(z) + z - math.log(2.0 * math.pi) / 2.0


def _fraction(a: Floats, b: Floats, x: Floats, gap: Floats) -> Floats:
    """Return I_x(a, b) B(a, b) / (x^a (1-x)^b) for x <= a / (a + b); `gap` is a - (a + b) x."""
    y = 1.0 - x
    c0, c1 = b / a, 1.0 + 1.0 / a
    before, now = (np.zeros_like(x), np.ones_like(x)), (np.ones_like(x), (1.0 + gap) / c1)
    value = now[0] / now[1]
    for n in count(1):
        w = n * (b - n) * x
        s = a + 2 * n - 1
        p = 1.0 + (n - 1) / a
        alpha = p * (p + c0) * (a / s) ** 2 * w * x
        beta = n + w / s + (1.0 + n / a) / (c1 + 2 * n / a) * (1.0 + gap + n * (y + 1.0))
        top, bottom = (alpha * old + beta * new for old, new in zip(before, now, strict=True))
        before = now[0] / bottom, now[1] / bottom
        previous, value = value, top / bottom
        now = value, np.ones_like(x)
        if not (np.abs(value - previous) > PRECISION * np.abs(value)).any():
            return value
    raise AssertionError
