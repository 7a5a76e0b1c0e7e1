"""Where a series may change: KernelCPD in overlapping blocks, on the series itself and on coarser ones.

The kernel is bounded, so an outlier counts for one point however far off it is. PELT drops no split while
nothing changes and needs squares of the length then; blocks keep that linear. What a block is too short to
show, a small step between long stretches, shows in medians of neighbours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from perftrail.analysis.levels import spread

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

SHORT = 40
"""Of so few levels every gap is a candidate."""

BLOCK = 128
STEP = 96
COARSER = 8
"""Each coarser series has a level for so many of the one below."""

GAMMA = 0.125
"""1 / (2 w^2) for a kernel as wide as two standard errors (searching.md, section 5)."""

PENALTY = 2.0
"""What a split must gain, in units of a point: low, since what is found here is only put to the test."""


def candidates(values: Floats) -> list[int]:
    """Give the indices, ascending, at which a new level may begin."""
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


def load_detector(levels: int) -> None:
    """Load what looks for candidates among so many levels: a second, and short series need none of it."""
    if levels > SHORT:
        import ruptures  # type: ignore[import-untyped]  # noqa: F401, PLC0415  # it has no types


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
