"""Readings of builds whose side is known, taken to know the machine's level now. Only under drift."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from perftrail.search.belief import Posterior
    from perftrail.search.drift import Track
    from perftrail.search.evidence import Evidence

    Floats = npt.NDArray[np.float64]

SURE_OF_SIDE = 0.02
"""A build is a reference only if it is on the other side with at most this probability."""

REFERENCES = (1, 2, 4)
"""How often a reference may be read at once."""


def on_other_side(posterior: Posterior, track: Track) -> Floats:
    """P(a build is on the less likely side), shape (K,)."""
    weight = posterior.hypotheses.weight / posterior.hypotheses.weight.sum()
    after: Floats = track.after @ weight
    return np.minimum(after, 1 - after)


def with_reference(evidence: Evidence, posterior: Posterior, readings: int) -> tuple[int, Posterior] | None:
    """Return the best reference, and what would be known of the levels now if it were read so many times.

    The best is the build, on one side for sure, that takes most off the variance of the machine's level.
    """
    track, known = posterior.track, posterior.hypotheses
    if track is None:
        return None
    weight = known.weight / known.weight.sum()
    doubt = on_other_side(posterior, track)
    best, most = None, 0.0
    for row, position in enumerate(posterior.positions):
        if position in evidence.unusable or doubt[row] > SURE_OF_SIDE:
            continue
        made = track.level_of(row, evidence.representative(position))
        told = np.einsum("hde,he->hd", track.covariance, made)
        variance = (made * told).sum(axis=1) + known.scatter / readings
        gain = float(weight @ (told[:, track.level] ** 2 / variance))
        if gain > most:
            best, most = (position, told, variance), gain
    if best is None:
        return None
    position, told, variance = best
    left = track.covariance - told[:, :, None] * (told / variance[:, None])[:, None, :]
    level = track.level
    left[:, level, level] += readings * track.walk
    before = left[:, level, level]
    after = before + 2 * left[:, level, 0] + left[:, 0, 0]
    return position, replace(
        posterior,
        track=replace(track, covariance=left),
        hypotheses=replace(
            known, before_variance=np.maximum(before, 1e-12), after_variance=np.maximum(after, 1e-12)
        ),
    )
