"""Change points of a metric along a history that is already measured, each with its effect, size and certainty.

1. **Candidates** come from kernel change point detection in overlapping blocks, and in medians of neighbours.
2. **Noise.** Each model of correlated noise (see `levels`) is weighed by how likely the series is under it, with
   the number of steps that explains the series best: a few steps, or noise that wanders.
3. **A test** drops the weakest candidate until all that are left are significant. Its statistic is the logarithm
   of the likelihood ratio of two levels to one, divided by how much correlated noise inflates the variance of
   their difference. Its p-value is that of a chi-square variable of one degree of freedom, times the number of
   splits and of lengths (doubled each) that a stretch beside one may have. One sample cannot decide.
4. **Size.** A point's size is its step over the noise of one level. Only points whose size is surely large, and
   that several builds show, are worth an alert.

Assumes one level between points, and noise of one kind along the whole history. A ramp is reported as a staircase.

One level for each revision of a history, with its error and the correlation of neighbours' noise.

A revision's level is the median of its log values. It varies by build (tau, once for each build) and by sample
(sigma, less with more samples): ``tau^2 + sigma^2 pi / (2 n + pi - 2)``, the last factor that of a median of n
normal values. Both are estimated from differences of neighbours, which a few steps do not change.

Noise may be correlated along a history, since the state of a machine outlasts one revision. The model is white
noise plus an autoregressive process of order 1: at distance h, the correlation is ``share * decay^h``. Such noise
varies by more than differences of neighbours show, and means over many revisions are less certain.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from itertools import chain, pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Iterator


Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
Samples = Sequence[tuple[int, Sequence[float]]]
"""Positions in the history, each with the natural logarithms of the values measured there."""

OUTLIERS = 0.03
"""The share of samples that are garbage, as in a search."""

ODD_BUILDS = 1e-4
"""The share of builds that are garbage however often they are sampled."""

FINEST = 1e-4
"""The smallest standard deviation of a level: deterministic values do not vary at all."""

USUAL_TAU = 1.0
"""Builds of one program seldom differ by more than this share of sigma; assumed while few builds are known."""

USUAL_LAYOUT = 0.01
"""The difference between builds is not assumed to be below this, however quiet the samples are."""

FEW = 4
"""Of fewer differences between neighbours, a single step spoils the median."""

DOUBT = 2.0
"""A spread of m differences may be larger than estimated, by a logarithm of this over sqrt(m)."""

DECAYS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
SHARES = (0.3, 0.6, 1.0)
"""The models of correlated noise: each decay with each share of the variance that is correlated."""

UNCORRELATED = 2 / 3
"""The prior probability that the noise of neighbours is independent."""

SCALES = (0.8, 0.87, 0.93, 1.0, 1.07)
"""Differences of neighbours show noise this much smaller or larger than it is: outliers are among them."""

SELDOM = 0.02
"""Garbage is less likely by this factor where levels predict others: else large values would be shrunk."""

LOOK_BACK = 16
"""Number of earlier levels from which a level is predicted."""

FEWEST = 20
"""Fewer levels do not show whether neighbours are correlated."""

_MEDIAN_SQUARE = 0.4549364
"""The median of the square of a standard normal variable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleColumns:
    """Samples by columns: `counts` of the `positions`, and all `logs`, those of one position after another's."""

    positions: Whole
    counts: Whole
    logs: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """One level for each measured revision, in the order of history; all arrays have shape (n,).

    `errors` are standard errors of the levels, `bounds` the largest that these may really be. `garbage` is
    the probability that a level is unrelated to its revision.
    """

    positions: Whole
    values: Floats
    errors: Floats
    bounds: Floats
    garbage: Floats

    def __len__(self) -> int:
        return len(self.positions)

    def part(self, first: int, last: int) -> Levels:
        """Return the levels of a range of indices."""
        return Levels(**{each.name: getattr(self, each.name)[first:last] for each in fields(self)})

    def noisier(self, factor: float) -> Levels:
        """Return the same levels with errors multiplied by `factor`."""
        return replace(self, errors=self.errors * factor, bounds=self.bounds * factor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlation:
    """The correlation between the noise of neighbouring revisions, with its 95 % credible interval."""

    value: float
    low: float
    high: float

    @property
    def sure(self) -> bool:
        """Whether the interval excludes independent neighbours."""
        return self.low > 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """How noise is correlated along a history: the probability of each model, shape (models,)."""

    weights: Floats

    @classmethod
    def of(cls, log_likelihoods: Floats) -> Noise:
        """Weigh the models by their likelihoods and the prior."""
        weights = np.exp(log_likelihoods - log_likelihoods.max()) * _models().priors
        return cls(weights=weights / weights.sum())

    @property
    def correlation(self) -> Correlation:
        """The correlation of neighbours."""
        lag_one = _models().lag_one
        order = np.argsort(lag_one, kind="stable")
        held = np.cumsum(self.weights[order])
        low, high = (float(lag_one[order[np.searchsorted(held, share)]]) for share in (0.025, 0.975 - 1e-9))
        return Correlation(value=float(self.weights @ lag_one), low=low, high=high)

    @property
    def scale(self) -> float:
        """How many times larger a level's standard deviation is than differences of neighbours show."""
        return math.sqrt(float(self.weights @ (1.0 / (1.0 - _models().lag_one))))

    def inflation(self, before: int, after: int) -> float:
        """Return how much more the means of `before` and `after` neighbouring levels differ than if independent.

        The factor of the variance, a geometric mean over the models.
        """
        return math.exp(float(self.weights @ _log_inflation(before, after)))


INDEPENDENT = Noise(weights=np.eye(1, 1 + len(DECAYS) * len(SHARES))[0])
"""Noise without correlation: the first model alone."""


def by_columns(samples: Samples) -> SampleColumns:
    """Return samples as columns."""
    return SampleColumns(
        positions=np.array([position for position, _ in samples], dtype=np.int64),
        counts=np.array([len(each) for _, each in samples], dtype=np.int64),
        logs=np.fromiter(chain.from_iterable(each for _, each in samples), np.float64),
    )


def levels_of(samples: SampleColumns) -> Levels | None:
    """Estimate levels and their errors; `None` when nothing shows how much levels vary.

    Positions ascend. Values that are not finite, and positions without any other, are left out.
    """
    usable = np.isfinite(samples.logs)
    values, owners = (
        samples.logs[usable],
        np.repeat(np.arange(len(samples.counts)), samples.counts)[usable],
    )
    counts = np.bincount(owners, minlength=len(samples.counts))
    positions = samples.positions[counts > 0]
    within = np.diff(values)[np.diff(owners) == 0]
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
    bounds = errors * math.exp(DOUBT / math.sqrt(len(differences)))
    if len(within) >= FEW:
        surest = math.exp(DOUBT / math.sqrt(len(within))) * np.sqrt(usual**2 + sigma**2 * share)
        bounds = np.where(errors < surest, np.minimum(bounds, surest), bounds)
    return Levels(
        positions=positions,
        values=values,
        errors=errors,
        bounds=bounds,
        garbage=np.fromiter(map(garbage, counts.tolist()), np.float64, len(counts)),
    )


def spread(differences: Floats) -> float:
    """Estimate the standard deviation of differences from the median of their sizes.

    Where more than half are zero, as of counts that seldom change, the mean size is used; the largest tenth
    of the sizes, at least one, may be steps and is left out.
    """
    sizes = np.sort(np.abs(differences))
    middle = float(np.median(sizes)) / math.sqrt(_MEDIAN_SQUARE)
    if middle == 0.0:
        kept = sizes[: len(sizes) - math.ceil(len(sizes) / 10)]
        middle = float(np.sum(kept)) / len(sizes) * math.sqrt(math.pi / 2.0)
    return max(middle, FINEST)


def layout_spread(differences: Floats, known: Floats) -> float:
    """Estimate tau from differences of neighbouring levels, without their variance by samples (`known`).

    It is the tau for which half of the squares lie below the median that normal ones would have.
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


@cache
def garbage(count: int) -> float:
    """Return how likely the median of `count` samples is garbage: half of them are, or the build is odd.

    >>> round(garbage(1), 4), round(garbage(2), 4), round(garbage(5), 4)
    (0.0301, 0.0592, 0.0004)
    """
    clean = sum(
        math.comb(count, bad) * OUTLIERS**bad * (1.0 - OUTLIERS) ** (count - bad)
        for bad in range((count + 1) // 2)
    )
    return 1.0 - clean + ODD_BUILDS


def log_likelihoods(away: Floats, garbage: Floats) -> Floats:
    """Return log likelihoods, relative to the peak, of values by their distance from the level in standard deviations.

    A value is garbage with a probability and then has the density of the peak, so that its likelihood never
    weighs more than the logarithm of that probability (Huber 1964).
    """
    found: Floats = np.log((1.0 - garbage) * np.exp(-0.5 * away**2) + garbage)
    return found


def noise_likelihoods(residuals: Floats, garbage: Floats) -> Floats:
    """Return each noise model's log likelihood of residuals around steps, shape (models,).

    `residuals` are in standard errors, as differences of neighbours show these. Garbage predicts nothing.
    """
    models = _models()
    inlier = np.exp(-0.5 * (residuals / max(1.0, spread(residuals))) ** 2) * (1.0 - garbage)
    clean = np.concatenate((np.zeros(LOOK_BACK), residuals * inlier / (inlier + SELDOM * garbage)))
    before = np.lib.stride_tricks.sliding_window_view(clean, LOOK_BACK)[: len(residuals), ::-1]
    surprises = residuals[:, None] - before @ models.predictors
    found = np.array(
        [
            log_likelihoods(surprises / scale, garbage[:, None]).sum(axis=0) - len(residuals) * np.log(scale)
            for scale in (models.spreads * factor for factor in SCALES)
        ]
    )
    best: Floats = found.max(axis=0)
    return best


@dataclass(frozen=True, slots=True, kw_only=True)
class _Models:
    """Noise models, the first without correlation; all arrays have shape (models,) but `predictors`.

    `predictors`, shape (LOOK_BACK, models), predict a level from those before it, the last first; `spreads` are
    the standard deviations of what that misses, in those that differences of neighbours show.
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
    """Return the logarithms of what `Noise.inflation` gives under each model.

    From the variances of two neighbouring means of an autoregressive process and their covariance.
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


def _medians(values: Floats, counts: Whole) -> Floats:
    """Return the median of each owner's values, which stand together, of those that have any."""
    firsts, middles = np.cumsum(counts) - counts, np.empty(len(counts))
    for count in np.unique(counts[counts > 0]).tolist():
        those = np.flatnonzero(counts == count)
        ordered = np.sort(values[firsts[those, None] + np.arange(count)], axis=1)
        middles[those] = (ordered[:, (count - 1) // 2] + ordered[:, count // 2]) / 2.0
    return middles[counts > 0]


FALSE_ALARMS = 0.01
"""How often a series without a change may show any point."""

CREDIBILITY = 0.95
"""The probability of a position's, an effect's and a size's interval."""

ALERT_SIZE = 1.25
"""A step is worth an alert when its lower limit exceeds this many standard deviations of one level.

People who marked changes in 466 real series of performance tests did not mark smaller ones.
"""

ALERT_ODD_BUILDS = 0.03
"""An alert must be significant though such a share of builds is unrelated to its revision.

Not in series of fewer than `FEWEST` levels: these are releases rather than revisions, and each may have its own level.
"""

BURST = 10
"""Longest burst, in levels: a shift that returns, between ranges at least twice as long, is no alert."""

APART = range(3, 9)
"""Levels so far apart also show the noise: neighbours alone miss what wanders."""

REACH = 500
"""Levels used on each side of a point to judge it; more would not change the result."""

ASTRAY = 0.25
"""The density of garbage at the level beyond a split, as a share of the peak: it lies anywhere."""

SHORT = 40
"""Of so few levels every gap is a candidate."""

BLOCK = 128
STEP = 96
COARSER = 8
"""Levels that are combined into one of the next coarser series."""

GAMMA = 0.125
"""1 / (2 w^2) for a kernel as wide as two standard errors (searching.md, section 5)."""

PENALTY = 2.0
"""What a candidate must gain, in units of a level: low, since the test follows."""

NOISE_BLOCK = 500
NOISE_BLOCKS = 4
"""Blocks, and levels per block, evenly spread, from which the noise of a long series is estimated."""

SEARCH_SHARE = 0.5
"""The share of a search's weights near change points; the rest is even, so that no revision is excluded."""

SEARCH_FALSE_ALARMS = 0.05
"""A search tests what it begins with, so it uses points that would not be shown."""

_ROUNDS = 4
_MOST_MOVES = 4
_QUANTILE = 1.96


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePoint:
    """A position at which a metric has a new level.

    `position` is the first measured revision of the new level, `previous` the measured one before it: the
    culprit is one of ``previous + 1 .. position``, and of ``earliest .. latest`` with 95 %. `before` and
    `after` are the levels in the metric's own unit, `effect` is after/before with its 95 % interval. `p_value`
    bounds how often a series of this length in which nothing changed shows such a point anywhere.

    `size` is the step, without its sign, over the standard deviation of one revision's level, with its 95 %
    interval. `alert` says whether it is worth someone's attention: surely above `ALERT_SIZE`, and shown by
    several builds.
    """

    position: int
    previous: int
    earliest: int
    latest: int
    before: float
    after: float
    effect: float
    low: float
    high: float
    p_value: float
    size: float
    size_low: float
    size_high: float
    alert: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The change points of a series, in the order of history, and the correlation of its noise.

    `correlation` is None for series that are too short to show it, and for those that show no point even if
    neighbours are independent.
    """

    points: tuple[ChangePoint, ...] = ()
    correlation: Correlation | None = None


@dataclass(frozen=True, slots=True)
class _Fit:
    """A level fitted to some values, its standard error, and the logarithm of the likelihood."""

    level: float
    error: float
    log_likelihood: float


def change_points(samples: Samples, *, false_alarms: float = FALSE_ALARMS) -> tuple[ChangePoint, ...]:
    """Find every change point, in the order of history.

    `samples` are positions in the history, ascending, each with the natural logarithms of the values there:
    any number of them, positions may be missing. `false_alarms` is how often a series without a change may
    show any point. Series that are too short have none.
    """
    return changes_of(by_columns(samples), false_alarms=false_alarms).points


def changes_of(samples: SampleColumns, *, false_alarms: float = FALSE_ALARMS) -> Changes:
    """Find every change point of samples by columns, and how neighbours are correlated."""
    levels = levels_of(samples)
    if levels is None:
        return Changes()
    splits = _Series(levels).prune(_candidates(levels.values), false_alarms)
    if not splits:
        return Changes()  # correlation would leave no more
    noise = INDEPENDENT if len(levels) < FEWEST else _noise(levels, splits, false_alarms)
    series = _Series(levels, noise)
    splits = series.prune(splits, false_alarms)
    for _ in range(_MOST_MOVES):
        before, splits = splits, series.prune(series.refine(splits), false_alarms)
        if splits == before:
            break
    return Changes(
        points=tuple(series.points(splits)),
        correlation=None if noise is INDEPENDENT else noise.correlation,
    )


def search_weights(samples: Samples, revisions: int) -> tuple[float, ...] | None:
    """Weigh each revision as the culprit from earlier measurements; `None` where these show no change.

    `samples` have positions in `0..revisions-1`, ascending. Returns `revisions` weights that sum to one, each
    above zero: half of it even, half in equal parts on the change points, each flat over its interval of
    positions and falling off beyond by e for each width of that interval.

    The weights are no more than a place to look: a search may use the same samples again, so its own
    evidence must decide.

    >>> search_weights([(0, [0.0, 0.01, 0.0, 0.02, 0.01]), (9, [0.01, 0.0, 0.02, 0.01, 0.0])], 10) is None
    True
    """
    points = change_points(samples, false_alarms=SEARCH_FALSE_ALARMS)
    if not points:
        return None
    positions = np.arange(revisions)
    weights = np.full(revisions, (1.0 - SEARCH_SHARE) / revisions)
    for point in points:
        outside = np.maximum(0, np.maximum(point.earliest - positions, positions - point.latest))
        near = np.exp(-outside / (point.latest - point.earliest + 1))
        weights += SEARCH_SHARE / len(points) * near / near.sum()
    return tuple(weights.tolist())


def load_detector(levels: int) -> None:
    """Import the detector of candidates if this number of levels needs it: that takes a second."""
    if levels > SHORT:
        import ruptures  # type: ignore[import-untyped]  # noqa: F401, PLC0415  # it has no types


def _noise(levels: Levels, splits: Sequence[int], false_alarms: float) -> Noise:
    """Weigh the models of noise, each with the steps that explain the series best under it."""
    firsts = range(0, max(1, len(levels) - NOISE_BLOCK // 2), NOISE_BLOCK)
    cost = _least_gain(len(levels), false_alarms)
    found = []
    for first in firsts[:: math.ceil(len(firsts) / NOISE_BLOCKS)]:
        part = levels.part(first, first + NOISE_BLOCK)
        inside = [split - first for split in splits if 0 < split - first < len(part)]
        found.append(_Series(part).noise_likelihoods(inside, cost))
    return Noise.of(np.sum(found, axis=0))


def _searched(levels: float) -> float:
    """Return how many splits, with how many lengths of the stretches beside them, are tested."""
    return (levels - 1) * math.log2(levels)


def _least_gain(levels: int, false_alarms: float) -> float:
    """Return the gain at which a split is significant."""
    low, high = 0.0, 100.0
    for _ in range(30):
        middle = (low + high) / 2.0
        enough = _searched(levels) * math.erfc(math.sqrt(middle)) <= false_alarms
        low, high = (low, middle) if enough else (middle, high)
    return high


def _candidates(values: Floats) -> list[int]:
    """Return the indices, ascending, at which a new level may begin.

    From KernelCPD in overlapping blocks, on the series and on coarser ones. Its kernel is bounded, so that an
    outlier counts for one level however far away it is. Blocks keep the time linear: PELT drops no split while
    nothing changes. Medians of neighbours show the small steps between long stretches that a block is too short for.
    """
    if len(values) <= SHORT:
        return list(range(1, len(values)))
    edges = range(1, 4)
    found = {*edges, *(len(values) - edge for edge in edges)}
    width = 1
    while len(values) >= 16:
        found.update(width * split for split in _in_blocks(values))
        usable = len(values) // COARSER * COARSER
        values = np.median(values[:usable].reshape(-1, COARSER), axis=1)
        width *= COARSER
    return sorted(found)


def _in_blocks(values: Floats) -> set[int]:
    # Takes a second to import, and short series need none of it.
    from ruptures import KernelCPD  # noqa: PLC0415

    detector = KernelCPD(kernel="rbf", min_size=2, params={"gamma": GAMMA})
    scaled = (values / (spread(np.diff(values)) / np.sqrt(2.0)))[:, None]
    found: set[int] = set()
    for first in range(0, max(1, len(values) - BLOCK + STEP), STEP):
        block = scaled[first : first + BLOCK]
        if len(block) >= 4:
            ends: list[int] = detector.fit_predict(block, pen=PENALTY)
            found.update(first + end for end in ends[:-1])
    return found


class _Series:
    """Levels under test; `splits` are ascending indices at which a new level begins."""

    def __init__(self, levels: Levels, noise: Noise = INDEPENDENT) -> None:
        self._plain = levels
        self._levels = levels if noise is INDEPENDENT else levels.noisier(noise.scale)
        self._noise = noise
        # correlated levels are worth fewer, so that there are fewer places at which chance can gain much
        self._searched = _searched(max(2.0, len(levels) / noise.inflation(REACH, REACH)))
        self._fits: dict[tuple[int, int], _Fit] = {}

    def prune(self, splits: Sequence[int], false_alarms: float) -> list[int]:
        """Drop the weakest split until each of those left is significant."""
        for left, least in self._dropping(splits):
            if self._p_value(least) <= false_alarms:
                return left
        return []

    def noise_likelihoods(self, splits: Sequence[int], cost: float) -> Floats:
        """Return each noise model's log likelihood with its best number of steps, each of which costs as much."""
        best, number = np.array([-np.inf]), len(splits)
        for left, _ in self._dropping(splits):
            if len(left) > number:
                continue
            number = len(left) - 1 - len(left) // 5
            residuals = self._residuals(left) / self._levels.errors
            found = noise_likelihoods(residuals, self._levels.garbage) - cost * len(left)
            best = np.maximum(best, found)
        return best

    def refine(self, splits: list[int]) -> list[int]:
        """Move each split to where its two levels fit best."""
        bounds = [0, *splits, len(self._levels)]
        for at in range(1, len(bounds) - 1):
            first, split, last = bounds[at - 1 : at + 2]
            for _ in range(2):
                start, posterior = self._posterior(first, split, last)
                split = start + int(np.argmax(posterior))
            bounds[at] = split
        return bounds[1:-1]

    def points(self, splits: list[int]) -> Iterator[ChangePoint]:
        """Describe each split."""
        bounds = [0, *splits, len(self._levels)]
        positions = self._levels.positions.tolist()
        noise = self._of_one_level(splits)
        more_odd = ALERT_ODD_BUILDS if len(self._levels) >= FEWEST else 0.0
        odd = replace(self._plain, garbage=np.minimum(0.5, self._plain.garbage + more_odd))
        doubting, bursts = _Series(odd, self._noise), self._bursts(bounds, ALERT_SIZE * noise)
        for first, split, last in zip(bounds, bounds[1:], bounds[2:], strict=False):
            start, posterior = self._posterior(first, split, last)
            earliest, latest = _shortest(posterior)
            before, after = self._sides(first, split, last)
            step = after.level - before.level
            error = _QUANTILE * math.hypot(before.error, after.error)
            error *= math.sqrt(self._inflation(first, split, last))
            least = (abs(step) - error) / noise
            significant = doubting._p_value(doubting._gain(first, split, last)) <= FALSE_ALARMS
            yield ChangePoint(
                position=positions[split],
                previous=positions[split - 1],
                earliest=positions[start + earliest - 1] + 1,
                latest=positions[start + latest],
                before=math.exp(before.level),
                after=math.exp(after.level),
                effect=math.exp(step),
                low=math.exp(step - error),
                high=math.exp(step + error),
                p_value=self._p_value(self._gain(first, split, last)),
                size=abs(step) / noise,
                size_low=max(0.0, least),
                size_high=(abs(step) + error) / noise,
                alert=least > ALERT_SIZE and significant and split not in bursts,
            )

    def _dropping(self, splits: Sequence[int]) -> Iterator[tuple[list[int], float]]:
        """Drop the weakest split, again and again; give those left with the least gain among them."""
        left = [0, *splits, len(self._levels)]
        gains = [self._gain(*left[at - 1 : at + 2]) for at in range(1, len(left) - 1)]
        while gains:
            least = min(gains)
            yield left[1:-1], least
            at = gains.index(least) + 1
            del left[at], gains[at - 1]
            for near in (at - 1, at):
                if 0 < near < len(left) - 1:
                    gains[near - 1] = self._gain(*left[near - 1 : near + 2])
        yield [], math.inf

    def _residuals(self, splits: Sequence[int]) -> Floats:
        bounds = [0, *splits, len(self._levels)]
        levels = [self._side(*ends).level for ends in pairwise(bounds)]
        found: Floats = self._levels.values - np.repeat(levels, np.diff(bounds))
        return found

    def _of_one_level(self, splits: Sequence[int]) -> float:
        """Return the standard deviation of one level: by neighbours, and by levels some way apart; the larger."""
        inside = np.repeat(np.arange(len(splits) + 1), np.diff([0, *splits, len(self._levels)]))
        values = self._levels.values
        apart = [
            (values[lag:] - values[:-lag])[inside[lag:] == inside[:-lag]]
            for lag in APART
            if lag < len(values)
        ]
        differences = np.concatenate(apart) if apart else np.empty(0)
        wide = spread(differences) / math.sqrt(2.0) if len(differences) >= FEW else 0.0
        return max(wide, float(np.median(self._plain.errors)))

    def _bursts(self, bounds: Sequence[int], alike: float) -> set[int]:
        """Return the splits at both ends of short stretches after which the level is alike again."""
        found: set[int] = set()
        for before, first, last, after in zip(bounds, bounds[1:], bounds[2:], bounds[3:], strict=False):
            count = last - first
            if count <= BURST and 2 * count <= min(first - before, after - last):
                old = self._side(max(before, first - REACH), first)
                new = self._side(last, min(after, last + REACH))
                found |= {first, last} if abs(new.level - old.level) < alike else set()
        return found

    def _gain(self, first: int, split: int, last: int) -> float:
        """Return the logarithm of the likelihood ratio of two levels to one, over the noise's inflation."""
        before, after = self._sides(first, split, last)
        low, high = max(first, split - REACH), min(last, split + REACH)
        both = _fit(self._levels, low, high, (before.level, after.level))
        gain = before.log_likelihood + after.log_likelihood - both.log_likelihood
        return gain / self._inflation(first, split, last)

    def _inflation(self, first: int, split: int, last: int) -> float:
        if self._noise is INDEPENDENT:
            return 1.0
        return self._noise.inflation(min(split - first, REACH), min(last - split, REACH))

    def _p_value(self, gain: float) -> float:
        """Bound how often chance gains so much anywhere: chi-square's tail, times what was searched."""
        return min(1.0, self._searched * math.erfc(math.sqrt(max(gain, 0.0))))

    def _sides(self, first: int, split: int, last: int) -> tuple[_Fit, _Fit]:
        return self._side(max(first, split - REACH), split), self._side(split, min(last, split + REACH))

    def _side(self, first: int, last: int) -> _Fit:
        known = self._fits.get((first, last))
        if known is None:
            known = self._fits[first, last] = _fit(
                self._levels, first, last, (_median(self._levels.values[first:last]),)
            )
        return known

    def _posterior(self, first: int, split: int, last: int) -> tuple[int, Floats]:
        """Weigh every split between two others, given the levels beside it; shape (splits,) from an index on.

        Every revision is as likely as another, measured or not: a gap weighs as many as it holds.
        """
        before, after = self._sides(first, split, last)
        low, high = max(first, split - REACH), min(last, split + REACH)
        garbage = self._levels.garbage[low:high] * ASTRAY
        away = self._levels.values[low:high] - np.array([[before.level], [after.level]])
        found = log_likelihoods(away / self._levels.errors[low:high], garbage)
        weights = np.cumsum(found[0] - found[1])[:-1] / self._inflation(first, split, last)
        weights += np.log(np.diff(self._levels.positions[low:high]))
        posterior = np.exp(weights - weights.max())
        return low + 1, posterior / posterior.sum()


def _median(values: Floats) -> float:
    """Return the median of finite values; NumPy's own looks for others first, which takes longer than the rest."""
    count = len(values)
    ordered = np.sort(values)
    return float(ordered[(count - 1) // 2] + ordered[count // 2]) / 2.0


def _fit(levels: Levels, first: int, last: int, starts: Sequence[float]) -> _Fit:
    """Fit a level to some of the values, from each start; return the likeliest."""
    values, errors = levels.values[first:last], levels.errors[first:last]
    bounds, garbage = levels.bounds[first:last], levels.garbage[first:last]
    found, clean, variances = np.array(starts)[:, None], 1.0 - garbage, errors**2
    for _ in range(_ROUNDS):
        inlier = clean * np.exp(-0.5 * ((values - found) / bounds) ** 2)
        weight = inlier / (inlier + garbage) / variances
        total = weight.sum(axis=1)
        # where every value is garbage, nothing moves the level
        found = np.where(total > 0.0, weight @ values / np.maximum(total, 1e-300), found[:, 0])[:, None]
    totals = log_likelihoods((values - found) / bounds, garbage).sum(axis=1)
    best = int(np.argmax(totals))
    return _Fit(
        level=float(found[best, 0]),
        error=1.0 / math.sqrt(max(float(total[best]), 1e-300)),
        log_likelihood=float(totals[best]),
    )


def _shortest(posterior: Floats) -> tuple[int, int]:
    """Return the shortest run around the likeliest split that holds `CREDIBILITY`."""
    low = high = int(np.argmax(posterior))
    held = float(posterior[low])
    while held < CREDIBILITY and (low > 0 or high < len(posterior) - 1):
        below = posterior[low - 1] if low > 0 else -1.0
        above = posterior[high + 1] if high < len(posterior) - 1 else -1.0
        held += float(max(below, above))
        low, high = (low - 1, high) if below >= above else (low, high + 1)
    return low, high
