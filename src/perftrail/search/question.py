"""What a search is asked: a history's length, what is worth finding, what things cost and may cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

EVEN = 0.1
"""The share of the prior that is even, whatever the weights: a wrong prior costs readings, not the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """A first guess of what things cost, in seconds; the search replaces it by what it is told.

    Only the ratio of the two decides what is measured next: dear builds make the search read more often from
    the builds it has.
    """

    build: float = 10.0
    reading: float = 1.0

    def __post_init__(self) -> None:
        for name, value in (("build", self.build), ("reading", self.reading)):
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(
                    f"costs.{name} = {value!r}: must be a finite number of seconds, zero or more"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What the search may spend, everything it is told included; `None` is no limit."""

    invocations: int | None = None
    builds: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        for name, value in (
            ("invocations", self.invocations),
            ("builds", self.builds),
            ("seconds", self.seconds),
        ):
            if value is not None and not value >= 0:
                raise ValueError(f"budget.{name} = {value!r}: must be zero or more, or None for no limit")

    def without(self, *, builds: int, invocations: int, seconds: float = 0.0) -> Budget:
        """What is left of it for one search once others have spent so much, nothing at the least."""
        return Budget(
            builds=None if self.builds is None else max(0, self.builds - builds),
            invocations=None if self.invocations is None else max(0, self.invocations - invocations),
            seconds=None if self.seconds is None else max(0.0, self.seconds - seconds),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Which of the positions `0..revisions-1`, in topological order, changed the metric.

    Both ends belong to the history. The culprit is the first position with the new level, so it is one of
    `1..revisions-1`.

    `smallest` is the smallest relative change worth finding (0.05 is 5 %). `prior` weighs each position as
    the culprit (length `revisions`, the first is not used; need not sum to one), `None` weighs them evenly.
    As weights may be wrong, a tenth of the probability is spread evenly over all that weigh above zero; zero
    excludes.
    `no_change` is the prior probability that nothing changed. `readings_at_ends` are taken at both ends
    before anything is concluded. `invocations_per_reading` is 1, or 2 and more for a metric that is a ratio
    of points. `redraws` allows `Measure.redraw`: a revision can be read in a layout drawn anew.
    """

    revisions: int
    smallest: float = 0.05
    confidence: float = 0.99
    prior: tuple[float, ...] | None = None
    no_change: float = 0.2
    costs: Costs = Costs()
    budget: Budget = Budget()
    readings_at_ends: int = 3
    invocations_per_reading: int = 1
    redraws: bool = False

    def __post_init__(self) -> None:
        _require(self.revisions >= 2, "revisions", self.revisions, "a search needs two revisions or more")
        _require(
            0 < self.smallest < math.inf, "smallest", self.smallest, "must be above zero, as 0.05 for 5 %"
        )
        _require(0.5 < self.confidence < 1, "confidence", self.confidence, "must lie between 0.5 and 1")
        _require(0 < self.no_change < 1, "no_change", self.no_change, "must lie between 0 and 1")
        _require(self.readings_at_ends >= 2, "readings_at_ends", self.readings_at_ends, "must be 2 or more")
        _require(
            self.invocations_per_reading >= 1,
            "invocations_per_reading",
            self.invocations_per_reading,
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
        spread: npt.NDArray[np.float64] = (1 - EVEN) * given / given.sum() + EVEN * possible / possible.sum()
        return spread

    @property
    def smallest_log(self) -> float:
        """The smallest change worth finding on the scale of natural logarithms, log(1 + smallest)."""
        return math.log1p(self.smallest)


def _require(holds: bool, name: str, value: object, rule: str) -> None:
    if not holds:
        raise ValueError(f"question.{name} = {value!r}: {rule}")
