"""Readings in order of time, and how far the levels of their blocks lie apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """One reading in order of time: whose (the first position of those with equal artefacts), and where."""

    position: int
    value: float
    block: str
    redraw: bool


def offsets(sequence: Sequence[Timed]) -> dict[str, float | None]:
    """How far each block's level lies from the first one's, by the builds that were read in both.

    The median over those builds of the difference of their medians; `None` where there is none.
    """
    blocks = list(dict.fromkeys(reading.block for reading in sequence))
    found: dict[str, float | None] = dict.fromkeys(blocks[:1], 0.0)
    if len(blocks) < 2:
        return found
    here: dict[str, dict[int, list[float]]] = {block: {} for block in blocks}
    for reading in sequence:
        here[reading.block].setdefault(reading.position, []).append(reading.value)
    known = {position: list(values) for position, values in here[blocks[0]].items()}
    for block in blocks[1:]:
        apart = [
            float(np.median(values)) - float(np.median(known[position]))
            for position, values in here[block].items()
            if position in known
        ]
        offset = found[block] = float(np.median(apart)) if apart else None
        if offset is not None:
            for position, values in here[block].items():
                known.setdefault(position, []).extend(value - offset for value in values)
    return found
