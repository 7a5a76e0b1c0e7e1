"""Fewer points than there are, none of them hidden: neighbours stand together as one with their whole range."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

MOST = 400
"""So many points a figure draws at most; more than the eye, or a page, keeps apart."""


@dataclass(slots=True, kw_only=True, unsafe_hash=True)
class Along:
    """A value at a position of the history, or of neighbours up to `last`: the median and the whole range.

    `of` says how many revisions it stands for. Not to be changed; unfrozen, only because each
    takes longer to make then.
    """

    position: int
    subject: str
    revision: str
    value: float
    low: float
    high: float
    count: int
    last: int
    of: int = 1


def thinned(points: Sequence[Along], most: int = MOST) -> list[Along]:
    """Put neighbours of a subject together until no more than about `most` points are left.

    >>> ends = [Along(position=p, subject="", revision="r", value=p, low=p, high=p, count=1, last=p) for p in range(9)]
    >>> [(each.position, each.last, each.value) for each in thinned(ends, 3)]
    [(0, 2, 1), (3, 5, 4), (6, 8, 7)]
    """
    if len(points) <= most:
        return list(points)
    subjects = {point.subject for point in points}
    width = -(-(max(point.last for point in points) + 1) * len(subjects) // most)
    ordered = sorted(points, key=lambda point: (point.subject, point.position))
    return [
        _together(list(group))
        for _, group in groupby(ordered, key=lambda point: (point.subject, point.position // width))
    ]


def _together(points: list[Along]) -> Along:
    first, last = points[0], points[-1]
    if first is last:
        return first
    return Along(
        position=first.position,
        subject=first.subject,
        revision=f"{first.revision} to {last.revision}",
        value=statistics.median(point.value for point in points),
        low=min(point.low for point in points),
        high=max(point.high for point in points),
        count=sum(point.count for point in points),
        last=last.last,
        of=sum(point.of for point in points),
    )
