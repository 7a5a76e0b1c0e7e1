"""Levels of a metric along a measured history, and the model of their noise, which may be correlated.

A revision's level is the median of its log values. Its variance is ``tau^2 + sigma^2 pi / (2 n + pi - 2)``: `tau` is
the standard deviation between builds, `sigma` between samples. The last factor is the variance of a median of n
normal values. Differences of neighbouring revisions estimate both, since a few steps hardly affect them. Samples of
some programs have two levels, for example of memory. Then most neighbouring samples are equal, although a median may
be at either level. So a level's error is at least that of the order statistics of its samples if these are much
wider, and the share of samples far from their median is the share of outliers. Noise may be correlated along a
history, because a machine's state outlasts one revision. The model is white noise plus an autoregressive process of
order 1: the correlation at distance h is ``share * decay^h``. Such noise varies more than differences of neighbours
show, and long means are less certain.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from itertools import chain

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
Samples = Sequence[tuple[int, Sequence[float]]]
"""Positions in the history, each with the natural logarithms of its values."""

OUTLIERS = 0.03
"""Share of samples with an arbitrary value; the search uses the same share."""

ODD_BUILDS = 1e-4
"""Share of builds with an arbitrary level, for any number of samples."""

FINEST = 1e-4
"""Smallest standard deviation of a level: deterministic values do not vary at all."""

USUAL_TAU = 1.0
"""Builds of one program seldom differ by more than this share of sigma. Used while few builds are known."""

USUAL_LAYOUT = 0.01
"""Lower limit of the assumed difference between builds, for samples of any precision."""

FEW = 4
"""With fewer differences between neighbours, a single step spoils the median."""

UNDERESTIMATE = 2.0
"""The logarithm of an estimated spread of m differences may be too small by up to this value over sqrt(m)."""

DECAYS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
SHARES = (0.3, 0.6, 1.0)
"""The models of correlated noise: each decay with each correlated share of the variance."""

UNCORRELATED = 2 / 3
"""Prior probability that neighbours have independent noise."""

SCALES = (0.8, 0.87, 0.93, 1.0, 1.07)
"""Factors for the noise that differences of neighbours show; outliers among them distort it."""

PREDICTOR_CONTAMINATION = 0.02
"""Factor on the probability of contamination for levels that predict others. Without it, large values would shrink."""

LOOK_BACK = 16
"""Number of earlier levels that predict a level."""

FEWEST = 20
"""Fewer levels cannot show correlation between neighbours."""

TWO_LEVELS = 3.0
"""Factor above which a median's error from order statistics replaces that of normal noise: such samples spread less."""

FEWEST_ORDERED = 5
"""Fewest samples whose order statistics show how certain their median is."""

OUTLYING = 5.0
"""A sample further from its revision's median, in standard deviations of neighbouring samples, is an outlier."""

_QUANTILE = 1.96
"""Of the normal distribution, for 95 % intervals."""

_MEDIAN_SQUARE = 0.4549364
"""Median of the square of a standard normal variable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleColumns:
    """Samples as columns: `counts` per position, and all `logs`, position after position."""

    positions: Whole
    counts: Whole
    logs: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """One level for each measured revision, in the order of the history. All arrays have shape (n,).

    `errors` are standard errors of the levels, `bounds` their upper limits. `contamination` is the probability
    that a level is unrelated to its revision.
    """

    positions: Whole
    values: Floats
    errors: Floats
    bounds: Floats
    contamination: Floats

    def __len__(self) -> int:
        return len(self.positions)

    def part(self, first: int, last: int) -> Levels:
        """Return the levels of a range of indices."""
        return Levels(**{each.name: getattr(self, each.name)[first:last] for each in fields(self)})

    def noisier(self, factor: float) -> Levels:
        """Return these levels with errors multiplied by `factor`."""
        return replace(self, errors=self.errors * factor, bounds=self.bounds * factor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlation:
    """Correlation between the noise of neighbouring revisions, with its 95 % credible interval."""

    value: float
    low: float
    high: float

    @property
    def is_certain(self) -> bool:
        """Whether the interval excludes independent neighbours."""
        return self.low > 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """Correlation of noise along a history: the probability of each model, shape (models,)."""

    weights: Floats

    @classmethod
    def of(cls, log_likelihoods: Floats) -> Noise:
        """Weight the models by their likelihoods and the prior."""
        weights = np.exp(log_likelihoods - log_likelihoods.max()) * _models().priors
        return cls(weights=weights / weights.sum())

    @property
    def correlation(self) -> Correlation:
        """Correlation of neighbours."""
        lag_one = _models().lag_one
        order = np.argsort(lag_one, kind="stable")
        cumulative = np.cumsum(self.weights[order])
        low, high = (
            float(lag_one[order[np.searchsorted(cumulative, share)]]) for share in (0.025, 0.975 - 1e-9)
        )
        return Correlation(value=float(self.weights @ lag_one), low=low, high=high)

    @property
    def scale(self) -> float:
        """Standard deviation of a level, relative to what differences of neighbours show."""
        return math.sqrt(float(self.weights @ (1.0 / (1.0 - _models().lag_one))))

    def inflation(self, before: int, after: int) -> float:
        """Return the variance of a difference of two neighbouring means, relative to independent levels.

        The means are those of `before` and `after` levels. The result is a geometric mean over the models.
        """
        return math.exp(float(self.weights @ _log_inflation(before, after)))


INDEPENDENT = Noise(weights=np.eye(1, 1 + len(DECAYS) * len(SHARES))[0])
"""Noise without correlation: only the first model."""


def by_columns(samples: Samples) -> SampleColumns:
    """Return samples as columns."""
    return SampleColumns(
        positions=np.array([position for position, _ in samples], dtype=np.int64),
        counts=np.array([len(each) for _, each in samples], dtype=np.int64),
        logs=np.fromiter(chain.from_iterable(each for _, each in samples), np.float64),
    )


def levels_of(samples: SampleColumns) -> Levels | None:
    """Estimate levels and their errors; `None` if the samples cannot show how much levels vary.

    Positions must ascend. Values that are not finite are ignored, and so are positions without a finite value.
    """
    usable = np.isfinite(samples.logs)
    values, owners = (
        samples.logs[usable],
        np.repeat(np.arange(len(samples.counts)), samples.counts)[usable],
    )
    counts = np.bincount(owners, minlength=len(samples.counts))
    positions = samples.positions[counts > 0]
    within = np.diff(values)[np.diff(owners) == 0]
    all_values, ordered_errors = values, _median_errors(values, counts)
    values, counts = _medians(values, counts), counts[counts > 0]
    if len(values) < 2 or (len(within) < FEW and len(values) <= FEW):
        return None
    share = math.pi / (2.0 * counts + math.pi - 2.0)
    sigma = spread(within) / math.sqrt(2.0) if len(within) >= FEW else 0.0
    usual = max(USUAL_TAU * sigma, USUAL_LAYOUT)
    differences = np.diff(values)
    tau = layout_spread(differences, sigma**2 * (share[1:] + share[:-1]))
    if len(differences) < FEW:
        tau = min(tau, usual)
    errors = np.sqrt(np.maximum(tau, 0.1 * sigma) ** 2 + sigma**2 * share)
    bounds = errors * math.exp(UNDERESTIMATE / math.sqrt(len(differences)))
    if len(within) >= FEW:
        limits = math.exp(UNDERESTIMATE / math.sqrt(len(within))) * np.sqrt(usual**2 + sigma**2 * share)
        bounds = np.where(errors < limits, np.minimum(bounds, limits), bounds)
    wider = ordered_errors > TWO_LEVELS * errors
    errors, bounds = (
        np.where(wider, ordered_errors, errors),
        np.where(wider, np.maximum(ordered_errors, bounds), bounds),
    )
    return Levels(
        positions=positions,
        values=values,
        errors=errors,
        bounds=bounds,
        contamination=_contamination(counts, _outlier_share(all_values, values, counts, sigma)),
    )


def spread(differences: Floats) -> float:
    """Estimate the standard deviation of differences from the median of their absolute values.

    If more than half of them are zero, as for counts that seldom change, use the mean absolute value. This mean
    excludes the largest tenth of the differences, at least one, because they may be steps.
    """
    sizes = np.sort(np.abs(differences))
    middle = float(np.median(sizes)) / math.sqrt(_MEDIAN_SQUARE)
    if middle == 0.0:
        kept = sizes[: len(sizes) - math.ceil(len(sizes) / 10)]
        middle = float(np.sum(kept)) / len(sizes) * math.sqrt(math.pi / 2.0)
    return max(middle, FINEST)


def layout_spread(differences: Floats, known: Floats) -> float:
    """Estimate tau from differences of neighbouring levels; `known` is their variance caused by samples.

    For this tau, half of the squares are below the median of squares of normal values.
    """
    low, high = 0.0, spread(differences)
    squares = differences**2
    if np.median(squares) == 0.0:
        return high / math.sqrt(2.0)
    for _ in range(20):
        middle = (low + high) / 2.0
        if np.median(squares / (2.0 * middle**2 + known)) > _MEDIAN_SQUARE:
            low = middle
        else:
            high = middle
    return max(high, FINEST)


def _outlier_share(samples: Floats, medians: Floats, counts: Whole, sigma: float) -> float:
    """Return the share of samples that are far from the median of their revision; at least `OUTLIERS`."""
    several = np.repeat(counts >= FEWEST_ORDERED, counts)
    if sigma == 0.0 or not several.any():
        return OUTLIERS
    distances = np.abs(samples - np.repeat(medians, counts))[several]
    return max(OUTLIERS, float(np.mean(distances > OUTLYING * sigma)))


def _contamination(counts: Whole, outliers: float) -> Floats:
    share = math.ceil(outliers * 100.0) / 100.0  # a few values, which are computed once
    return np.fromiter((contamination(count, share) for count in counts.tolist()), np.float64, len(counts))


@cache
def contamination(count: int, outliers: float = OUTLIERS) -> float:
    """Return the probability that the median of `count` samples is arbitrary, for a share of outliers among them.

    Either half of the samples are arbitrary, or the whole build is.

    >>> round(contamination(1), 4), round(contamination(2), 4), round(contamination(5), 4)
    (0.0301, 0.0592, 0.0004)
    """
    clean = sum(
        math.comb(count, bad) * outliers**bad * (1.0 - outliers) ** (count - bad)
        for bad in range((count + 1) // 2)
    )
    return 1.0 - clean + ODD_BUILDS


def log_likelihoods(distances: Floats, contamination: Floats) -> Floats:
    """Return log likelihoods, relative to the peak, for distances from the level in standard deviations.

    With probability `contamination`, a value has the density of the peak at any distance. So one value cannot
    lower the likelihood by more than the logarithm of that probability (Huber 1964).
    """
    found: Floats = np.log((1.0 - contamination) * np.exp(-0.5 * distances**2) + contamination)
    return found


def noise_likelihoods(residuals: Floats, contamination: Floats) -> Floats:
    """Return each noise model's log likelihood for residuals around steps, shape (models,).

    `residuals` are in standard errors, estimated from differences of neighbours. Garbage predicts nothing.
    """
    models = _models()
    inlier = np.exp(-0.5 * (residuals / max(1.0, spread(residuals))) ** 2) * (1.0 - contamination)
    clean = np.concatenate(
        (np.zeros(LOOK_BACK), residuals * inlier / (inlier + PREDICTOR_CONTAMINATION * contamination))
    )
    before = np.lib.stride_tricks.sliding_window_view(clean, LOOK_BACK)[: len(residuals), ::-1]
    surprises = residuals[:, None] - before @ models.predictors
    found = np.array(
        [
            log_likelihoods(surprises / scale, contamination[:, None]).sum(axis=0)
            - len(residuals) * np.log(scale)
            for scale in (models.spreads * factor for factor in SCALES)
        ]
    )
    best: Floats = found.max(axis=0)
    return best


@dataclass(frozen=True, slots=True, kw_only=True)
class _Models:
    """Noise models, the first without correlation. All arrays except `predictors` have shape (models,).

    `predictors`, shape (LOOK_BACK, models), predict a level from earlier levels, the latest first. `spreads` are the
    standard deviations of the prediction errors, relative to the noise that differences of neighbours show.
    """

    decays: Floats
    shares: Floats
    priors: Floats
    lag_one: Floats
    predictors: Floats
    spreads: Floats


@cache
def _models() -> _Models:
    decays = np.array([0.0, *(decay for decay in DECAYS for _ in SHARES)])
    shares = np.array([1.0, *SHARES * len(DECAYS)])
    lags = np.arange(LOOK_BACK + 1)
    correlations = np.where(lags == 0, 1.0, shares[:, None] * decays[:, None] ** lags)
    matrices = correlations[:, np.abs(np.subtract.outer(lags[:-1], lags[:-1]))]
    predictors = np.linalg.solve(matrices, correlations[:, 1:, None])[:, :, 0]
    missed = 1.0 - (predictors * correlations[:, 1:]).sum(axis=1)
    lag_one = shares * decays
    return _Models(
        decays=decays,
        shares=shares,
        priors=np.array([UNCORRELATED, *[(1.0 - UNCORRELATED) / (len(decays) - 1)] * (len(decays) - 1)]),
        lag_one=lag_one,
        predictors=predictors.T,
        spreads=np.sqrt(missed / (1.0 - lag_one)),
    )


@cache
def _log_inflation(before: int, after: int) -> Floats:
    """Return the logarithms of `Noise.inflation` for each model.

    They follow from the variances of two neighbouring means of an autoregressive process and their covariance.
    """
    models, decays = _models(), _models().decays
    ends = [(1.0 - decays**count) / (1.0 - decays) for count in (before, after)]
    own = [
        (1.0 + 2.0 * decays / (1.0 - decays) * (1.0 - end / count)) / count
        for count, end in zip((before, after), ends, strict=True)
    ]
    both = decays * ends[0] * ends[1] / (before * after)
    factor = (own[0] + own[1] - 2.0 * both) / (1.0 / before + 1.0 / after)
    found: Floats = np.log(1.0 - models.shares + models.shares * factor)
    return found


def _median_errors(values: Floats, counts: Whole) -> Floats:
    """Return the standard error of each owner's median, for owners with values, without a model of the noise.

    It is the distance of two order statistics that enclose the median with at most 95 % probability, over that of
    a normal distribution. The extremes are left out, so that one outlier has no effect; it is 0 for fewer than
    `FEWEST_ORDERED` values. `values` is sorted by owner.
    """
    firsts, errors = np.cumsum(counts) - counts, np.zeros(len(counts))
    for count in np.unique(counts[counts >= FEWEST_ORDERED]).tolist():
        owners = np.flatnonzero(counts == count)
        ordered = np.sort(values[firsts[owners, None] + np.arange(count)], axis=1)
        outside = max(1, math.floor((count - _QUANTILE * math.sqrt(count)) / 2.0))
        distance = ordered[:, count - 1 - outside] - ordered[:, outside]
        errors[owners] = distance * math.sqrt(count) / (2.0 * (count - 1 - 2 * outside))
    return errors[counts > 0]


def _medians(values: Floats, counts: Whole) -> Floats:
    """Return the median of each owner's values, for owners with values. `values` is sorted by owner."""
    firsts, middles = np.cumsum(counts) - counts, np.empty(len(counts))
    for count in np.unique(counts[counts > 0]).tolist():
        owners = np.flatnonzero(counts == count)
        ordered = np.sort(values[firsts[owners, None] + np.arange(count)], axis=1)
        middles[owners] = (ordered[:, (count - 1) // 2] + ordered[:, count // 2]) / 2.0
    return middles[counts > 0]
