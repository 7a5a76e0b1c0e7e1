"""Several actions at once, for idle workers: each tells something whatever the others tell.

The first is what the search asks for alone. Every further one is the best per second once those before it are
done: a build inside a gap that others cut already can only tell which part of its piece holds the culprit
(speculative bisection: with k builds of one gap at once log2(k + 1) bits instead of k).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from perftrail.search import policy
from perftrail.search.policy import READINGS, Choice

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from perftrail.search.belief import Posterior
    from perftrail.search.evidence import Evidence

    Floats = npt.NDArray[np.float64]
    Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    """Positions (C,) with the number of readings that is best per second, what they tell and what they cost."""

    positions: Indices
    readings: Indices
    bits: Floats
    seconds: Floats

    def best(self, left: Floats) -> Choice | None:
        """Choose the best per second once only a share of each one's bits is left, (C,); `None` if no bit is."""
        bits = self.bits * left
        if bits.max(initial=0.0) <= 0:
            return None
        best = int((bits / self.seconds).argmax())
        return Choice(
            position=int(self.positions[best]),
            readings=int(self.readings[best]),
            bits=float(bits[best]),
            seconds=float(self.seconds[best]),
        )


def beside(
    first: Choice,
    count: int,
    evidence: Evidence,
    posterior: Posterior,
    cumulative_prior: Floats,
    *,
    builds: int,
) -> tuple[Choice, ...]:
    """Return the first choice and up to `count - 1` others beside it; at most `builds` of all are builds."""
    places = np.asarray(posterior.positions)
    again = _readings(evidence, posterior)
    fresh = _builds(evidence, posterior, cumulative_prior)
    attempted = evidence.attempted
    chosen = [_at_once(first, fresh)]
    while len(chosen) < count:
        taken = np.array([choice.position for choice in chosen])
        reading = again.best(np.where(np.isin(again.positions, taken), 0.0, 1.0))
        begun = taken[~np.isin(taken, attempted)]
        build = None
        if len(begun) < builds:
            build = fresh.best(_left(fresh.positions, begun, places, cumulative_prior))
        if build is not None and (reading is None or build.rate >= reading.rate):
            chosen.append(build)
        elif reading is not None:
            chosen.append(reading)
        else:
            break
    return tuple(chosen)


def _readings(evidence: Evidence, posterior: Posterior) -> _Options:
    """More readings of what is built."""
    rows = policy.readable(evidence, posterior)
    bits = policy.reading_information(evidence, posterior, rows)
    seconds = np.broadcast_to(READINGS * evidence.seconds_per_reading, bits.shape)
    return _best_sizes(np.asarray(posterior.positions)[rows], bits, seconds)


def _builds(evidence: Evidence, posterior: Posterior, cumulative_prior: Floats) -> _Options:
    """Builds of what was not tried yet; what they tell and cost is on average over those that fail."""
    fresh, told = policy.candidates(evidence, posterior, cumulative_prior)
    works = 1 - policy.breakage(evidence).probability(fresh)
    seconds = evidence.seconds_per_build + works[:, None] * READINGS * evidence.seconds_per_reading
    return _best_sizes(fresh, works[:, None] * told, seconds)


def _best_sizes(positions: Indices, bits: Floats, seconds: Floats) -> _Options:
    """Take for each position the number of readings, of those in `READINGS`, that tells most per second."""
    best = (bits / seconds).argmax(axis=1)
    every = np.arange(len(positions))
    return _Options(
        positions=positions, readings=READINGS[best], bits=bits[every, best], seconds=seconds[every, best]
    )


def _at_once(first: Choice, fresh: _Options) -> Choice:
    """Take all the readings of a build in one round: alone it would begin with fewer, and see."""
    same = np.nonzero(fresh.positions == first.position)[0]
    return replace(first, readings=int(fresh.readings[same[0]])) if len(same) else first


def _left(fresh: Indices, begun: Indices, places: Indices, cumulative_prior: Floats) -> Floats:
    """What share of the bits of fresh builds is left to be told once others are `begun`, shape (C,)."""
    begun_inside = begun[(begun > places[0]) & (begun < places[-1])]
    gap = np.searchsorted(places, fresh) - 1
    cut_gap = np.searchsorted(places, begun_inside) - 1
    part = _part_before(fresh, gap, places, cumulative_prior)
    cut = _part_before(begun_inside, cut_gap, places, cumulative_prior)
    cuts = {number: [0.0, 1.0, *cut[cut_gap == number].tolist()] for number in np.unique(gap).tolist()}
    return np.where(np.isin(fresh, begun), 0.0, _kept(part, gap, cuts))


def _part_before(positions: Indices, gap: Indices, places: Indices, cumulative_prior: Floats) -> Floats:
    """What share of the probability of its gap lies at or before each position."""
    low, high = cumulative_prior[places[gap]], cumulative_prior[places[gap + 1]]
    part: Floats = (cumulative_prior[positions] - low) / np.maximum(high - low, 1e-300)
    return part


def _kept(part: Floats, gap: Indices, cuts: Mapping[int, Sequence[float]]) -> Floats:
    """What share of a build's bits is left to be told once its gap is cut at these parts, shape (C,)."""
    kept = np.zeros(len(part))
    for number, at in cuts.items():
        inside = gap == number
        edges = np.array(sorted(at))
        piece = np.clip(np.searchsorted(edges, part[inside]) - 1, 0, len(edges) - 2)
        width = edges[piece + 1] - edges[piece]
        within = (part[inside] - edges[piece]) / np.maximum(width, 1e-300)
        kept[inside] = width * _entropy(within) / np.maximum(_entropy(part[inside]), 1e-300)
    return kept


def _entropy(share: Floats) -> Floats:
    share = np.clip(share, 1e-12, 1 - 1e-12)
    bits: Floats = -share * np.log2(share) - (1 - share) * np.log2(1 - share)
    return bits
