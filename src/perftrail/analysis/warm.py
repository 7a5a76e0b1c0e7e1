"""Where a search may begin: what samples along a history say beforehand of each revision."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from perftrail.analysis.changepoints import change_points

if TYPE_CHECKING:
    from collections.abc import Sequence

SHARE = 0.5
"""How much of the weight lies near change points; the rest lies evenly on all revisions, so that none is excluded."""

FALSE_ALARMS = 0.05
"""A search tests what it is told, so points are taken that would not be shown."""


def warm_weights(levels: Sequence[tuple[int, Sequence[float]]], revisions: int) -> tuple[float, ...] | None:
    """Weigh each revision as the culprit from samples of earlier measurements, or say that nothing is known.

    `levels` are positions in `0..revisions-1`, ascending, each with the natural logarithms of the values
    measured there. Gives `revisions` weights that sum to one, each above zero: half of it evenly on all, half
    in equal parts on the change points, each flat over its interval of positions and falling off beyond by e
    for each width of that interval. `None` when no change point is found.

    The weights are no more than a place to look: they lean on samples that a search may read again, so
    what decides must be the search's own evidence.

    >>> warm_weights([(0, [0.0, 0.01, 0.0, 0.02, 0.01]), (9, [0.01, 0.0, 0.02, 0.01, 0.0])], 10) is None
    True
    """
    points = change_points(levels, false_alarms=FALSE_ALARMS)
    if not points:
        return None
    positions = np.arange(revisions)
    weights = np.full(revisions, (1.0 - SHARE) / revisions)
    for point in points:
        outside = np.maximum(0, np.maximum(point.earliest - positions, positions - point.latest))
        near = np.exp(-outside / (point.latest - point.earliest + 1))
        weights += SHARE / len(points) * near / near.sum()
    return tuple(weights.tolist())
