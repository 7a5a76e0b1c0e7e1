"""What tries say of a change in the probability to fail: the posterior over places and rates.

One step at an unknown position, from one unknown rate to another. With w_p tries of position p that worked and
f_p that failed,

``P(data | culprit c, rates a, b) = prod_{p<c} a^f_p (1-a)^w_p prod_{p>=c} b^f_p (1-b)^w_p``

summed over a grid of both rates, most of whose weight is on programs that never, or always, fail. Rates are
capped on both sides, so one try never decides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from perftrail.search.question import Question

    Floats = npt.NDArray[np.float64]

RATES = np.array([0.0005, 0.01, 0.05, 0.15, 0.3, 0.5, 0.7, 0.85, 0.95, 0.99, 0.9995])
"""Probabilities to fail. The first and the last are the cap: so often, chance makes a fool of anything."""

_WEIGHTS = np.array([40.0, 4.0, 3.0, 2.0, 2.0, 2.0, 2.0, 2.0, 3.0, 4.0, 40.0])
_WEIGHTS /= _WEIGHTS.sum()

SMALLEST = 0.14
"""The smallest difference of two rates that counts as a change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chances:
    """What is believed: of the K tried positions, of the gaps between them, of the rates to fail.

    `gaps` (K-1,) is P(the culprit is in (p_k, p_k+1]), `nothing` that the rate never changed. `before` and
    `after` (K-1,) are the mean rates given a gap, `always` the mean rate given no change. `chance` holds the
    same three, of the entropy of a try at the rate instead of the rate: what would be left if it were known.
    """

    positions: npt.NDArray[np.int64]
    gaps: Floats
    nothing: float
    before: Floats
    after: Floats
    always: float
    chance: tuple[Floats, Floats, float]


def infer_chances(question: Question, tries: Mapping[int, Sequence[int]], cumulative: Floats) -> Chances:
    """Infer them from how many tries of each position worked and failed; needs two positions or more."""
    positions = np.array(sorted(tries), dtype=np.int64)
    counts = np.array([tries[position] for position in positions.tolist()], dtype=np.float64)
    each = counts @ np.log(np.array([1.0 - RATES, RATES]))
    upto = np.cumsum(each, axis=0)
    left, right = upto[:-1], upto[-1] - upto[:-1]
    pair = np.outer(_WEIGHTS, _WEIGHTS) * (np.abs(RATES[:, None] - RATES[None, :]) >= SMALLEST - 1e-9)
    pair /= pair.sum()
    peak = max(float((left.max(axis=1) + right.max(axis=1)).max()), float(upto[-1].max()))
    before = np.exp(left - left.max(axis=1, keepdims=True))
    after = np.exp(right - right.max(axis=1, keepdims=True))
    joint = before[:, :, None] * pair * after[:, None, :]
    height = np.exp(left.max(axis=1) + right.max(axis=1) - peak)
    total = joint.sum(axis=(1, 2))
    gaps = (1 - question.no_change) * np.diff(cumulative[positions]) * height * total
    same = _WEIGHTS * np.exp(upto[-1] - peak)
    # a change outside what was tried looks like none
    seen = float(cumulative[positions[-1]] - cumulative[positions[0]])
    nothing = (question.no_change + (1 - question.no_change) * (1 - seen)) * float(same.sum())
    evidence = float(gaps.sum()) + nothing
    of_before, of_after = joint.sum(axis=2) / total[:, None], joint.sum(axis=1) / total[:, None]
    of_same = same / same.sum()
    chance = entropy(RATES)
    return Chances(
        positions=positions,
        gaps=gaps / evidence,
        nothing=nothing / evidence,
        before=of_before @ RATES,
        after=of_after @ RATES,
        always=float(of_same @ RATES),
        chance=(of_before @ chance, of_after @ chance, float(of_same @ chance)),
    )


def narrowest(held: Chances, probability: float) -> range:
    """Return the neighbouring gaps with the fewest revisions that hold the culprit with a probability."""
    sums = np.concatenate([[0.0], np.cumsum(held.gaps)])
    best, size = range(len(held.gaps)), math.inf
    for start in range(len(held.gaps)):
        stop = int(np.searchsorted(sums, sums[start] + probability - 1e-12))
        if start < stop <= len(held.gaps) and held.positions[stop] - held.positions[start] < size:
            best, size = range(start, stop), held.positions[stop] - held.positions[start]
    return best


def mean(rates: Floats, weights: Floats) -> float:
    """Give the weighted mean, or the plain one where nothing weighs anything."""
    total = float(weights.sum())
    return float(rates @ weights / total) if total > 0 else float(rates.mean())


def entropy(rates: Floats) -> Floats:
    """Return the entropy of outcomes that fail at these rates, in bits."""
    sure = np.clip(rates, 1e-12, 1 - 1e-12)
    bits: Floats = -sure * np.log2(sure) - (1 - sure) * np.log2(1 - sure)
    return bits
