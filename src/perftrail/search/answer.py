"""What a search answers, and how the answer follows from the posterior."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from perftrail.search.belief import Posterior
    from perftrail.search.question import Question

    Floats = npt.NDArray[np.float64]

EFFECT_CREDIBILITY = 0.95
"""The probability of an effect's interval, whatever confidence the search works at."""


class Verdict(StrEnum):
    """What the search found out."""

    FOUND = "found"
    """One revision is the culprit."""
    RANGE = "range"
    """The culprit is one of several neighbouring revisions, and cannot be isolated further."""
    SEVERAL = "several"
    """More than one revision changed the metric; not answered by a search for one step."""
    NONE = "none"
    """No change of the smallest size worth finding exists."""
    UNCLEAR = "unclear"
    """The search ended before it could say."""


class Kind(StrEnum):
    """How a metric changed."""

    STEP = "step"
    """From one revision to the next."""
    RAMP = "ramp"
    """Little by little, over many revisions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """The ratio after/before with its 95 % credible interval (`EFFECT_CREDIBILITY`)."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change: the candidates for its culprit, ascending, and what it did.

    `confidence` is the probability that the culprit is among `positions`; of a ramp they are the revisions
    that it spans, and `confidence` is the probability that it is no step among them. `before` and `after` are levels
    in the metric's own unit. All three numbers are `None` where nothing usable lies on one of the sides.
    """

    positions: tuple[int, ...]
    confidence: float
    before: float | None
    after: float | None
    effect: Effect | None
    kind: Kind = Kind.STEP


@dataclass(frozen=True, slots=True, kw_only=True)
class Stray:
    """A build unlike the others on its side of the changes: its level and theirs, in the metric's own unit."""

    position: int
    level: float
    beside: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The end of a search.

    `confidence` is the probability that the verdict is right: that the culprit is among the positions, that
    no change of `smallest` exists; for `unclear` the best of these. `smallest_seen` is the smallest
    relative change that would have been seen, infinite when nothing was measured; of `none` it has been shown
    that there is none of that size. `reason` says in plain words why the search ended here. `strays` are the
    builds that no change of the answer explains.
    """

    verdict: Verdict
    changes: tuple[Change, ...]
    confidence: float
    smallest_seen: float
    reason: str
    strays: tuple[Stray, ...] = ()


def nothing_usable(reason: str) -> Answer:
    """Answer when no revision at all could be measured."""
    return Answer(verdict=Verdict.UNCLEAR, changes=(), confidence=0.0, smallest_seen=math.inf, reason=reason)


def no_change(question: Question, posterior: Posterior, reason: str) -> Answer:
    """Answer that no change of the smallest size exists."""
    return Answer(
        verdict=Verdict.NONE,
        changes=(),
        confidence=min(1.0, posterior.nothing + posterior.small),
        # That no change of `smallest` exists has been shown, whatever the errors of the levels; a lesser one
        # may be there, and then no less than it can be ruled out.
        smallest_seen=min(
            question.smallest, max(smallest_seen(question, posterior), _not_ruled_out(question, posterior))
        ),
        reason=reason,
    )


def unclear(question: Question, posterior: Posterior, reason: str) -> Answer:
    """Answer that the search ended before it could say anything at the confidence asked for."""
    return Answer(
        verdict=Verdict.UNCLEAR,
        changes=(),
        confidence=max(posterior.nothing + posterior.small, float(posterior.gaps.max(initial=0.0))),
        smallest_seen=smallest_seen(question, posterior),
        reason=reason,
    )


def beyond_the_ends(
    question: Question, posterior: Posterior, candidates: npt.NDArray[np.int64], reason: str
) -> Answer:
    """Answer that the change, if there is one, is where no end could be built."""
    inside = float(posterior.gaps.sum()) - posterior.small
    confidence = max(0.0, 1.0 - max(inside, 0.0))
    change = Change(
        positions=tuple(candidates.tolist()), confidence=confidence, before=None, after=None, effect=None
    )
    return Answer(
        verdict=Verdict.RANGE,
        changes=(change,),
        confidence=confidence,
        smallest_seen=smallest_seen(question, posterior),
        reason=reason,
    )


def located(
    question: Question, posterior: Posterior, gaps: range, candidates: npt.NDArray[np.int64], reason: str
) -> Answer:
    """Answer that the culprit is among `candidates`, which are those of neighbouring `gaps`."""
    low, high = gaps.start, gaps.stop
    chosen = (posterior.rows.gap >= low) & (posterior.rows.gap < high)
    shifts, weight = _differences(posterior, chosen)
    order = np.argsort(shifts, kind="stable")
    ladder = np.cumsum(weight[order])
    tail = (1 - EFFECT_CREDIBILITY) / 2
    bounds = np.searchsorted(ladder, [tail * ladder[-1], 0.5 * ladder[-1], (1 - tail) * ladder[-1]])
    below, middle, above = np.exp(shifts[order][np.minimum(bounds, len(shifts) - 1)]).tolist()
    confidence = float(posterior.gaps[low:high].sum())
    change = Change(
        positions=tuple(candidates.tolist()),
        confidence=confidence,
        before=math.exp(posterior.before[0]),
        after=math.exp(posterior.after[0]),
        effect=Effect(value=middle, low=below, high=above),
    )
    return Answer(
        verdict=Verdict.FOUND if len(candidates) == 1 else Verdict.RANGE,
        changes=(change,),
        confidence=confidence,
        smallest_seen=smallest_seen(question, posterior),
        reason=reason,
    )


def _differences(posterior: Posterior, chosen: npt.NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Every difference of two lattice levels, with its posterior weight."""
    nodes = posterior.lattice.nodes
    before, after = posterior.rows.before[chosen], posterior.rows.after[chosen]
    weight = posterior.rows.weight[chosen] / (before.sum(axis=1) * after.sum(axis=1))
    joint = (before * weight[:, None]).T @ after
    return (nodes[None, :] - nodes[:, None]).ravel(), joint.ravel()


def _not_ruled_out(question: Question, posterior: Posterior) -> float:
    """Return the largest relative change that exists with more than the probability left to errors."""
    inside = posterior.rows.gap < len(posterior.gaps)
    if not inside.any():
        return 0.0
    shifts, weight = _differences(posterior, inside)
    sizes = np.abs(shifts)
    order = np.argsort(-sizes, kind="stable")
    exists = np.cumsum(weight[order]) / weight.sum() * float(posterior.gaps.sum())
    first = int(np.searchsorted(exists, 1 - question.confidence))
    return math.expm1(float(sizes[order][first])) if first < len(sizes) else 0.0


def smallest_seen(question: Question, posterior: Posterior) -> float:
    """Return the smallest relative change that would have been seen at the confidence asked for.

    With the levels' standard errors s0 and s1, ``exp(z sqrt(s0^2 + s1^2)) - 1``, z the normal quantile. An
    end that stands alone also bears its layout noise, which its level's error contains.
    """
    error = math.hypot(posterior.before[1], posterior.after[1])
    error = max(error, posterior.lattice.step / 2)
    return math.expm1(min(NormalDist().inv_cdf((1 + question.confidence) / 2) * error, 50.0))
