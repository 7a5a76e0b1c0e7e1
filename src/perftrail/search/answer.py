"""Requests and answers of a search."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum

from perftrail.model.metrics import Better, improves
from perftrail.stats.scale import Scale


class Purpose(StrEnum):
    """Why a search asks for a batch, where the belief after it does not explain it."""

    ENDS = "to compare the ends"
    """First samples of both ends."""
    LOCATE = ""
    """To narrow a likely change down."""
    UNSEEN = "to look into revisions without a measured build"
    """A build in the longest gap without one."""
    OUTSIDE = "to find a usable revision nearer to the end"
    """An untried revision between an end and the nearest usable one."""
    LAYOUTS = "to exclude that memory layouts explain the result"
    """More builds on the sides of a change."""
    ROUND = "in a round of all open builds"
    """Every build of the map that something open needs, once each, in random order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """Run the builds of these positions once each in this order, as one batch; build missing ones first.

    `certificate` marks a round, whose order is random. `layout` is the seed for relinking all of them, 0 for
    the builds as linked by the recipe. `purpose` explains the request; two requests for the same runs are equal.
    """

    order: tuple[int, ...]
    certificate: bool = False
    layout: int = 0
    purpose: Purpose = field(default=Purpose.LOCATE, compare=False)

    @property
    def positions(self) -> tuple[int, ...]:
        """The positions whose builds it runs, each once."""
        return tuple(dict.fromkeys(self.order))


class Verdict(StrEnum):
    """Verdict of a search."""

    FOUND = "found"
    """One revision is the culprit."""
    RANGE = "range"
    """The culprit is one of several neighbouring revisions, and cannot be isolated further."""
    SEVERAL = "several"
    """More than one revision changed the metric."""
    NONE = "none"
    """No measured revision changed it by the threshold or more."""
    UNCLEAR = "unclear"
    """The search ended before it could decide."""


class Kind(StrEnum):
    """How a metric changed."""

    STEP = "step"
    """From one revision to the next."""
    RAMP = "ramp"
    """Gradually, over many revisions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """The ratio after/before, or on another scale the difference after − before, with its 95 % interval."""

    value: float
    low: float
    high: float
    scale: Scale = Scale.RATIO

    @property
    def size(self) -> float:
        """The difference on the metric's scale: for ratios the logarithm."""
        return self.scale.size(self.value)

    def improves(self, better: Better) -> bool:
        """Return whether the later values are better."""
        return improves(self.size, better, same=0.0)

    @property
    def is_certain(self) -> bool:
        """Whether the interval excludes that nothing changed."""
        same = self.scale.effect(0.0)
        return self.low > same or self.high < same


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The evidence that two builds differ, or are equal within the threshold, for the answer.

    `blocks` is the number of rounds that ran both, `invocations` the number of their runs. `error` bounds the
    probability of such strong evidence if the builds are equal (for equal builds: if they differ by the threshold).
    `layouts` counts the drawn layouts, 1 if the builds were measured as linked, 0 for a rate. `is_only_change`: no
    other change of the threshold is left between the measured builds; `possible` is the largest one that is not
    excluded, as a ratio minus one or a difference. `spread` is the ratio of the later build's spread to the earlier's,
    `None` unless they certainly differ.
    """

    blocks: int
    invocations: int
    error: float
    layouts: int
    is_only_change: bool
    possible: float
    spread: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change: the candidates for its culprit, ascending, and its size.

    `confidence` is the probability that the culprit is among `positions`. For a ramp, `positions` are the revisions
    that it spans. `before` and `after` are levels in the metric's own unit. They and `effect` are `None` if one side
    has no usable revision. `certificate` is the evidence of the rounds.
    """

    positions: tuple[int, ...]
    confidence: float
    before: float | None
    after: float | None
    effect: Effect | None
    kind: Kind = Kind.STEP
    certificate: Summary | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspicion:
    """A change that the samples suggest and no certificate confirmed.

    `positions` are its candidates, `confidence` the probability that a change is among them. `evidence` is that of the
    rounds so far, `needed` the evidence that confirms the change. `doubted`: layouts may explain it nevertheless.
    `blocks_left` forecasts the number of further rounds, `None` if the evidence does not grow. `possible` is the
    largest change that is not excluded, as a ratio minus one or a difference. `observed` is the ratio after/before, or
    the difference, in the rounds, on `scale`.
    """

    positions: tuple[int, ...]
    confidence: float
    evidence: float
    needed: float
    blocks_left: int | None
    possible: float
    observed: float | None = None
    doubted: bool = False
    scale: Scale = Scale.RATIO


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The end of a search.

    `changes` are in the order of the history, and reach the threshold; `below_threshold` are certain changes that do
    not. `ends` is the difference of the outermost measured builds, `rest` what `changes` do not explain of it; both
    `None` without rounds. `unseen` is the longest gap without a measured revision: the builds around it, `None` if
    every revision is measured. `confidence` is the probability that the verdict is right; for `unclear` that of the
    likeliest statement. `scale` is how values are compared: `minimum_detectable`, `ends` and `rest` are on it.
    `minimum_detectable`: no further change of this relative size is between the measured builds,
    infinite when nothing was measured. `reason` states why the search ended here. `certificate` confirms `none`;
    each change has its own. `suspected` are changes that could not be certified. `layouts_hide`: only more memory
    layouts can decide, because builds without a change differ, too.
    """

    verdict: Verdict
    changes: tuple[Change, ...]
    confidence: float
    minimum_detectable: float
    reason: str
    ends: Effect | None = None
    rest: Effect | None = None
    unseen: tuple[int, int] | None = None
    certificate: Summary | None = None
    below_threshold: tuple[Change, ...] = ()
    suspected: tuple[Suspicion, ...] = ()
    layouts_hide: bool = False
    scale: Scale = Scale.RATIO


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """The search is settled and needs no more samples."""

    answer: Answer


Action = Measure | Settled
"""A request of a search."""


def nothing_usable(reason: str) -> Answer:
    """Return the answer when fewer than two revisions could be measured."""
    return Answer(
        verdict=Verdict.UNCLEAR, changes=(), confidence=0.0, minimum_detectable=math.inf, reason=reason
    )
