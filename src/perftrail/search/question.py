"""Question of a search: a history's length, the threshold, the confidence."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from perftrail.search.budget import Budget, Costs
from perftrail.stats.scale import Scale

if TYPE_CHECKING:
    import numpy.typing as npt

UNIFORM_SHARE = 0.1
"""The share of the prior that is uniform, whatever the weights: a wrong prior costs samples, not the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Which of the positions ``0..revisions-1``, in topological order, changed the metric.

    Both ends belong to the history. The culprit is the first position with the new level, so it is one of
    ``1..revisions-1``.

    `threshold` is the smallest change worth finding: a relative one (0.05 is 5 %), for other scales than the ratio
    a difference, of rates in shares (0.05 is five percentage points). `adapts`: zeros or negative values among the
    samples choose another `scale`. `confidence` is that of each change, and of the statement that there is none.
    `prior` weights each position as the culprit (length `revisions`, the first is not used; need not sum to one),
    `None` is a uniform prior. As weights may be wrong, a tenth of the probability is spread uniformly over all
    positions with a weight above zero; zero excludes. `no_change` is the prior probability that nothing changed.

    `thorough` also searches for changes that a later revision reverted. `relinks`: builds can be linked in
    other layouts. `linked`: a linker produced the measured program. `counted`: the metric is a deterministic count.
    `built` are positions with existing builds, which cost nothing. `distance` is, for each position, the amount
    of change since the first, in any unit: it predicts the cost of an incremental build.
    `invocations_per_sample` is 1, or more for a metric that combines points. `seed` draws the order of blocks.
    `samples_at_ends` is the least number of samples of each end before the search continues inside.
    """

    revisions: int
    threshold: float = 0.05
    scale: Scale = Scale.RATIO
    adapts: bool = False
    confidence: float = 0.99
    prior: tuple[float, ...] | None = None
    no_change: float = 0.2
    costs: Costs = field(default_factory=Costs)
    budget: Budget = field(default_factory=Budget)
    samples_at_ends: int = 3
    invocations_per_sample: int = 1
    thorough: bool = False
    relinks: bool = False
    linked: bool = True
    counted: bool = False
    built: frozenset[int] = frozenset()
    distance: tuple[float, ...] | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        _require(self.revisions >= 2, "revisions", self.revisions, "a search needs two revisions or more")
        _require(
            0 < self.threshold < math.inf, "threshold", self.threshold, "must be above zero, as 0.05 for 5 %"
        )
        _require(0.5 < self.confidence < 1, "confidence", self.confidence, "must be between 0.5 and 1")
        _require(0 < self.no_change < 1, "no_change", self.no_change, "must be between 0 and 1")
        _require(self.samples_at_ends >= 2, "samples_at_ends", self.samples_at_ends, "must be 2 or more")
        _require(
            self.invocations_per_sample >= 1,
            "invocations_per_sample",
            self.invocations_per_sample,
            "must be 1 or more",
        )
        if self.prior is not None:
            _require(
                len(self.prior) == self.revisions,
                "prior",
                len(self.prior),
                "needs one weight for each revision",
            )
            bad = [weight for weight in self.prior[1:] if not 0 <= weight < math.inf]
            _require(not bad, "prior", bad[:1], "weights are finite and not negative")
            _require(
                sum(self.prior[1:]) > 0, "prior", self.prior[:3], "at least one revision must be possible"
            )

    def weights(self) -> npt.NDArray[np.float64]:
        """Return the prior probability of each position as the culprit, if there is one; they sum to one."""
        given = np.ones(self.revisions) if self.prior is None else np.array(self.prior, dtype=np.float64)
        given[0] = 0.0
        possible = given > 0
        prior, uniform = given / given.sum(), possible / possible.sum()
        spread: npt.NDArray[np.float64] = (1 - UNIFORM_SHARE) * prior + UNIFORM_SHARE * uniform
        return spread

    def candidates(self, first: int, last: int) -> npt.NDArray[np.int64]:
        """Return the positions after `first`, up to and with `last`, that may have changed something, at least one."""
        inside = np.arange(first + 1, last + 1)
        if self.prior is not None:
            inside = inside[np.array(self.prior[first + 1 : last + 1]) > 0]
        return inside if len(inside) else np.array([last])

    @property
    def has_layouts(self) -> bool:
        """Whether the place of code in memory can change the metric: not a count, nor what an interpreter runs."""
        return self.linked and not self.counted and self.scale is not Scale.RATE

    @property
    def threshold_on_scale(self) -> float:
        """The smallest change worth finding on the metric's scale: log(1 + threshold) for ratios."""
        return self.scale.on_scale(self.threshold)


def _require(holds: bool, name: str, value: object, rule: str) -> None:
    if not holds:
        raise ValueError(f"question.{name} = {value!r}: {rule}")
