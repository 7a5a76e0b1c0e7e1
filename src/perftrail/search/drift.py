r"""Correct batches of samples for the machine's drift: its level changes with time.

Each batch of samples includes some of one reference build, the same in all batches. The batch is corrected by their
offset from that build's usual level in that boot session. With r reference samples, their offset delta is ``N(a,
sigma^2 / r)`` around the machine's own, ``a ~ N(0, omega^2)``: its posterior mean is the correction. An offset too
large for that is the machine's if it occurs twice, in one batch or in two neighbouring ones; then it is removed
completely. If it occurs once it may be an outlier of the reference, and the batch is not used. While the machine is
calm, two batches share a reference: the second is corrected by its neighbours' offsets, and is not used if these
disagree. No order of time is modelled: drift, bursts, jumps and reboots are removed by design, because reference and
build are measured next to each other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from perftrail.search.observation import Batch

    Floats = npt.NDArray[np.float64]

LARGE = 3.0
"""An offset beyond this number of standard deviations exceeds the machine's usual drift."""

_THINNED_FROM = 96
"""Groups of this many samples or more are thinned before their pairs are formed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedBatch:
    """A batch and its boot session, with its values: build and value of each, sorted values and mean of each build."""

    batch: Batch
    session: str
    values: tuple[tuple[int, float], ...]
    groups: Mapping[int, Floats]
    means: Mapping[int, float]

    def samples_of(self, build: int | None) -> list[float]:
        """Return the values of one build, in the order of measurement."""
        return [value for each, value in self.values if each == build]


class Drift:
    """The drift of the machine over a search's batches, and their samples without it.

    `calm` is whether the machine's offset in the latest batch is within the noise of samples.
    """

    def __init__(self, batches: Sequence[RecordedBatch], reference: int | None) -> None:
        self._batches = batches
        self._reference = reference
        self.calm = False
        self._corrections = self._correct()

    def samples(self) -> dict[int, tuple[Floats, ...]]:
        """Return the corrected samples of each build, sorted: as linked by the recipe first, then each layout."""
        found: dict[int, dict[int, list[float]]] = {}
        for recorded, correction in zip(self._batches, self._corrections, strict=True):
            if correction is None:
                continue
            for build, value in recorded.values:
                found.setdefault(build, {}).setdefault(recorded.batch.layout, []).append(value - correction)
        return {
            build: tuple(np.sort(np.array(layouts[layout])) for layout in sorted(layouts))
            for build, layouts in found.items()
        }

    def _correct(self) -> list[float | None]:
        """Return the correction to subtract from each batch; `None` for an unusable batch."""
        references = [self._of_reference(recorded) for recorded in self._batches]
        sessions: dict[str, list[float]] = {}
        for recorded, values in zip(self._batches, references, strict=True):
            sessions.setdefault(recorded.session, []).extend(values)
        levels = {session: median(values) for session, values in sessions.items() if values}
        if not levels:
            return [0.0] * len(self._batches)
        first = next(iter(levels.values()))
        sigma = self._spread_within(references)
        offsets = [
            np.array(values) - levels[recorded.session] if values else np.empty(0)
            for recorded, values in zip(self._batches, references, strict=True)
        ]
        usual = _usual_drift([values for values in offsets if len(values)], sigma)
        machine_offsets = [
            _offset(values, neighbours, sigma=sigma, usual=usual) if len(values) else None
            for values, neighbours in zip(offsets, _neighbours(offsets), strict=True)
        ]
        latest = machine_offsets[-1] if machine_offsets else None
        self.calm = latest is not None and abs(latest) <= LARGE * sigma
        batch_offsets = [
            self._batch_offset(at, machine_offsets, offsets, sigma) for at in range(len(offsets))
        ]
        return [
            None if offset is None else levels.get(recorded.session, first) - first + offset
            for recorded, offset in zip(self._batches, batch_offsets, strict=True)
        ]

    def _batch_offset(
        self, at: int, machine_offsets: Sequence[float | None], offsets: Sequence[Floats], sigma: float
    ) -> float | None:
        """Return a batch's offset; without a reference, the mean of its neighbours' offsets if these agree."""
        if len(offsets[at]):
            return machine_offsets[at]
        session = self._batches[at].session
        near = [
            machine_offsets[other]
            for other in (at - 1, at + 1)
            if 0 <= other < len(machine_offsets)
            and self._batches[other].session == session
            and len(offsets[other])
        ]
        known = [offset for offset in near if offset is not None]
        if not known or len(known) < len(near) or max(known) - min(known) > LARGE * sigma:
            return None
        return sum(known) / len(known)

    def _of_reference(self, recorded: RecordedBatch) -> list[float]:
        return recorded.samples_of(self._reference)

    def _spread_within(self, references: Sequence[Sequence[float]]) -> float:
        """Estimate the spread of samples of one build in one batch; without such samples, from the reference's."""
        spread, freedom = pooled_spread(
            [group for recorded in self._batches for group in recorded.groups.values()]
        )
        if freedom >= 3:
            return max(spread, 1e-6)
        singles = [values[0] for values in references if values]
        return max(float(np.ptp(singles)) / 2 if len(singles) > 1 else spread, 1e-6)


def _usual_drift(offsets: Sequence[Floats], sigma: float) -> float:
    """Estimate omega, the machine's drift between batches beyond the reference's noise.

    The spread of few batches is estimated low on purpose, because an unnecessary correction costs more than
    none.
    """
    if len(offsets) <= 4:
        return 0.0
    spread = median(abs(median(values.tolist())) for values in offsets) / 0.6745
    noise = sigma**2 * float(np.mean([1 / len(values) for values in offsets]))
    return math.sqrt(max(spread**2 * (1 - 2 / math.sqrt(len(offsets))) - noise, 0.0))


def _neighbours(offsets: Sequence[Floats]) -> list[Floats]:
    """Return for each batch the offsets in the batches just before and after it."""
    none = np.empty(0)
    padded = [none, *offsets, none]
    return [np.concatenate([padded[at], padded[at + 2]]) for at in range(len(offsets))]


def _offset(values: Floats, neighbours: Floats, *, sigma: float, usual: float) -> float | None:
    """Return the machine's own offset in a batch, `None` if the reference's samples may be outliers."""
    middle = float(median(values.tolist()))
    noise = sigma**2 / len(values)
    if abs(middle) <= LARGE * math.sqrt(usual**2 + noise):
        return middle * usual**2 / (usual**2 + noise)
    others = np.concatenate([np.sort(np.abs(values - middle))[1:], np.abs(neighbours - middle)])
    return middle if len(others) and others.min() <= LARGE * math.hypot(usual, sigma) else None


@lru_cache(maxsize=2 * _THINNED_FROM)
def _pairs_of(count: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the indices of the later and the earlier value of each pair of `count` values."""
    return np.tril_indices(count, -1)


def pooled_spread(groups: Sequence[Floats]) -> tuple[float, int]:
    """Estimate the spread of samples from differences within groups; return it with its degrees of freedom.

    Each group's samples are sorted. The median of all pair differences over 0.954 (Shamos 1976): consistent
    for normal noise at every number of samples, 86 % efficient, robust to up to 29 % of outliers. Zero with
    no pair.
    """
    pairs = []
    freedom = 0
    for values in groups:
        freedom += len(values) - 1
        thinned = values[:: 1 + len(values) // _THINNED_FROM]
        if len(thinned) > 1:
            later, earlier = _pairs_of(len(thinned))
            pairs.append(thinned[later] - thinned[earlier])
    if not pairs:
        return 0.0, 0
    return float(np.median(np.concatenate(pairs))) / 0.9539, freedom
