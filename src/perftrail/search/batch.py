"""Several actions at once, for idle workers: each tells something whatever the others tell.

The first is what the search asks for alone. Every further one is the best per second once those before it are
done: a build inside a gap that others cut already can only tell which part of its piece holds the culprit
(speculative bisection: with k builds of one gap at once log2(k + 1) bits instead of k).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from perftrail.search import policy
from perftrail.search.policy import READINGS, Choice

if TYPE_CHECKING:
    import numpy.typing as npt

    from perftrail.search.belief import Posterior
    from perftrail.search.evidence import Evidence

    Floats = npt.NDArray[np.float64]


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
    rows = np.array(
        [
            row
            for row, position in enumerate(posterior.positions)
            if position not in evidence.unusable and evidence.representative(position) == position
        ],
        dtype=np.int64,
    )
    read = policy.reading_information(evidence, posterior, rows)
    reading_rates = (read / (READINGS * evidence.seconds_per_reading)).max(axis=1)
    sizes = (read / (READINGS * evidence.seconds_per_reading)).argmax(axis=1)
    fresh, told = policy.candidates(evidence, posterior, cumulative_prior)
    works = 1 - policy.breakage(evidence).probability(fresh)
    cost = evidence.seconds_per_build + works[:, None] * READINGS * evidence.seconds_per_reading
    best = (works[:, None] * told / cost).argmax(axis=1)
    every = np.arange(len(fresh))
    bits, seconds = (works[:, None] * told)[every, best], cost[every, best]
    gap = np.searchsorted(places, fresh) - 1
    low, high = cumulative_prior[places[gap]], cumulative_prior[places[gap + 1]]
    part = (cumulative_prior[fresh] - low) / np.maximum(high - low, 1e-300)

    chosen = [_at_once(first, fresh, READINGS[best])]
    while len(chosen) < count:
        taken = np.array([choice.position for choice in chosen])
        left = builds - sum(not evidence.is_attempted(choice.position) for choice in chosen)
        cuts = {number: [0.0, 1.0] for number in np.unique(gap).tolist()}
        for position in taken.tolist():
            inside = int(np.searchsorted(places, position)) - 1
            if inside in cuts and not evidence.is_attempted(position):
                span = cumulative_prior[places[inside + 1]] - cumulative_prior[places[inside]]
                cuts[inside].append(
                    float(cumulative_prior[position] - cumulative_prior[places[inside]]) / span
                )
        rates = bits * _kept(part, gap, cuts) / seconds
        rates[np.isin(fresh, taken)] = 0.0
        again = np.where(np.isin(places[rows], taken), 0.0, reading_rates)
        build = int(rates.argmax()) if left > 0 and len(rates) else None
        reading = int(again.argmax()) if len(again) else None
        if build is not None and rates[build] > 0 and (reading is None or rates[build] >= again[reading]):
            chosen.append(
                Choice(
                    position=int(fresh[build]),
                    readings=int(READINGS[best[build]]),
                    bits=float(rates[build] * seconds[build]),
                    seconds=float(seconds[build]),
                )
            )
        elif reading is not None and again[reading] > 0:
            number = int(READINGS[sizes[reading]])
            chosen.append(
                Choice(
                    position=int(places[rows[reading]]),
                    readings=number,
                    bits=float(read[reading, sizes[reading]]),
                    seconds=number * evidence.seconds_per_reading,
                )
            )
        else:
            break
    return tuple(chosen)


def _at_once(first: Choice, fresh: npt.NDArray[np.int64], readings: npt.NDArray[np.int64]) -> Choice:
    """Take all the readings of a build in one round: alone it would begin with fewer, and see."""
    same = np.nonzero(fresh == first.position)[0]
    return replace(first, readings=int(readings[same[0]])) if len(same) else first


def _kept(part: Floats, gap: npt.NDArray[np.int64], cuts: dict[int, list[float]]) -> Floats:
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
