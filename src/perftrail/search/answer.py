"""Requests and answers of a search."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perftrail.search.certificate import Summary


class Purpose(StrEnum):
    """Why a search asks for a batch, where the belief after it does not explain it."""

    ENDS = "to compare the ends"
    """First samples of both ends."""
    LOCATE = ""
    """To narrow a likely change down."""
    FURTHER = "to exclude a further change"
    """More samples next to the likeliest gap of a further change."""
    REVERTED = "to find reverted changes"
    """A build in a long range without one, in a thorough search."""
    GRADUAL = "to distinguish steps from a gradual change"
    """Where a ramp and steps differ most."""
    OUTSIDE = "to find a usable revision nearer to the end"
    """An untried revision between an end and the nearest usable one."""
    LAYOUTS = "to exclude that memory layouts explain the result"
    """More builds, or more certainty of the revision, after a certificate without relinked layouts."""
    UNSETTLED = "to check whether another revision is possible, after new samples"
    """To narrow a change down again after blocks of a certificate."""
    CERTIFY = "to certify"
    """A block of a certificate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """Run the builds of these positions once each in this order, as one batch; build missing ones first.

    `certificate` marks a block of a certificate. `layout` is the seed for relinking all of them, 0 for
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
    """No change of the threshold or more exists between the ends."""
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
    """The ratio after/before with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change: the candidates for its culprit, ascending, and its size.

    `confidence` is the posterior probability that the culprit is among `positions`. For a ramp, `positions`
    are the revisions that it spans, and `confidence` is the probability that it is not a step. `before` and
    `after` are levels in the metric's own unit. They and `effect` are `None` if one side has no usable
    revision. `certificate` is the certificate that confirmed the change.
    """

    positions: tuple[int, ...]
    confidence: float
    before: float | None
    after: float | None
    effect: Effect | None
    kind: Kind = Kind.STEP
    certificate: Summary | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlier:
    """A build unlike the others on its side of the changes: its level and theirs, in the metric's own unit."""

    position: int
    level: float
    usual: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspicion:
    """A change that the samples suggest and no certificate confirmed.

    `positions` are its candidates, `confidence` their posterior probability. `evidence` is the certificate's
    evidence so far, `needed` the evidence that confirms the change. `blocks_left` forecasts the number of
    further blocks, `None` if the evidence does not grow. `possible` is the largest change that is not
    excluded, as a ratio minus one. `observed` is the ratio of the medians after and before it, of samples that also
    guided the search; `None` for a gradual change.
    """

    positions: tuple[int, ...]
    confidence: float
    evidence: float
    needed: float
    blocks_left: int | None
    possible: float
    observed: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The end of a search.

    `confidence` is the posterior probability that the verdict is right; for `unclear` that of the likeliest
    statement. `minimum_detectable` is the smallest relative change that would have been detected, infinite
    when nothing was measured; for `none` no change of that size exists between the ends. `reason` states why
    the search ended here. `certificate` confirms the verdict `none`; each change has its own certificate.
    `below` is a change that certainly exists and is smaller than the threshold. `suspected` are changes that
    could not be certified. `outliers` are builds that no change explains. `layouts_hide`: only more memory layouts
    can decide, because builds without a change differ, too.
    """

    verdict: Verdict
    changes: tuple[Change, ...]
    confidence: float
    minimum_detectable: float
    reason: str
    certificate: Summary | None = None
    below: Effect | None = None
    suspected: tuple[Suspicion, ...] = ()
    outliers: tuple[Outlier, ...] = ()
    layouts_hide: bool = False


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
