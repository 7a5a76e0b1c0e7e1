"""Build the answer of a search: confirmed changes, unconfirmed ones, and what remains possible."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from perftrail.search.answer import Answer, Change, Effect, Kind, Outlier, Suspicion, Verdict
from perftrail.search.certificate import State, blocks_left
from perftrail.search.noise import likely_levels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.search.certificate import Certificate
    from perftrail.search.evidence import Evidence
    from perftrail.search.posterior import LikelyChange, Posterior
    from perftrail.search.question import Question
    from perftrail.search.ramp import Ramp

LEAST_SAMPLES = 3
"""A build with fewer samples is not called an outlier: its samples might be outliers themselves."""

_LEAST_BUILDS = 3
"""With fewer builds on a side, an outlier among them cannot be identified."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A likely change, narrowed to neighbouring gaps of the posterior's builds.

    `before` and `after` are the positions around them, `direction` the sign of the change, `confidence` the
    posterior probability that the change exists.
    """

    change: LikelyChange
    gaps: range
    before: int
    after: int
    direction: int
    confidence: float


Claimed = tuple[Claim, tuple[int, ...], "Certificate | None"]
"""A claim, the possible culprits in its gaps, and its certificate, `None` if there were too many claims."""


def no_change(
    question: Question, evidence: Evidence, posterior: Posterior, certificate: Certificate
) -> Answer:
    """Return the answer that the ends are equal within the threshold, as a certificate has shown."""
    low, high = posterior.positions[0], posterior.positions[-1]
    bounds = certificate.bounds_at_level()
    largest = math.expm1(max(-bounds.low, bounds.high))
    if evidence.build_of(low) == evidence.build_of(high):
        reason = "the ends are the same build"
    else:
        reason = f"the ends are equal within {100 * largest:.2g} %"
    if question.thorough:
        reason += f", and none of the {len(posterior.positions) - 2} revisions measured between them differs"
    below = _effect(certificate) if certificate.shows_small_change() else None
    whole = low == 0 and high == question.revisions - 1
    if not whole:
        reason += "; revisions beyond the outermost ones that could be built are unknown"
    return Answer(
        verdict=Verdict.NONE if whole else Verdict.UNCLEAR,
        changes=(),
        confidence=max(posterior.no_change, 1 - certificate.level),
        minimum_detectable=largest,
        reason=reason,
        certificate=certificate.summary(),
        below=below,
        outliers=outliers(question, evidence, ()),
    )


def conclude(
    question: Question,
    evidence: Evidence,
    posterior: Posterior,
    claims: Sequence[Claimed],
    *,
    equal_ends: Certificate | None,
    reason: str,
    layouts_hide: bool = False,
) -> Answer:
    """Return the answer from the claims; `equal_ends` is the certificate that the ends are equal, if any.

    `reason` states why the search ended; empty if every claim was decided. `layouts_hide`: it ended because builds
    without a change differ too much.
    """
    changes: list[Change] = []
    below: list[Effect] = []
    suspected: list[Suspicion] = []
    isolated = True
    for claim, positions, certificate in claims:
        if certificate is None or certificate.state is not State.CONFIRMED:
            suspected.append(_suspicion(claim, positions, certificate, question, evidence))
        elif certificate.shows_small_change():
            below.append(_effect(certificate))
        elif (
            claim.confidence < question.required_probability
            and certificate.summary().layouts < LAYOUTS_ENOUGH
        ):
            suspected.append(_suspicion(claim, positions, certificate, question, evidence))
        else:
            changes.append(_change(claim, positions, certificate, question))
            isolated &= len(positions) == 1
    if len(changes) > 1:
        verdict = Verdict.SEVERAL
    elif changes:
        verdict = Verdict.FOUND if isolated else Verdict.RANGE
    else:
        verdict = Verdict.UNCLEAR
    confidence = math.prod(change.confidence for change in changes)
    if not changes:
        confidence = max([posterior.no_change, *(each.confidence for each in suspected)])
    return Answer(
        verdict=verdict,
        changes=tuple(changes),
        confidence=confidence,
        minimum_detectable=_minimum_detectable(question, evidence, posterior),
        reason=reason or _reason(question, changes, suspected, evidence),
        certificate=equal_ends.summary()
        if equal_ends is not None and equal_ends.state is State.CONFIRMED and not changes
        else None,
        below=below[0] if below else None,
        suspected=tuple(suspected),
        outliers=outliers(question, evidence, [*changes, *suspected]),
        layouts_hide=layouts_hide or (not reason and _may_be_layouts(changes, suspected)),
    )


def conclude_ramp(
    question: Question,
    evidence: Evidence,
    posterior: Posterior,
    ramp: Ramp,
    certificate: Certificate | None,
) -> Answer:
    """Return the answer that the level changes gradually, if the certificate shows that the ends differ."""
    begin, end = ramp.span
    positions = tuple(range(begin + 1, end + 1))
    if certificate is None or certificate.state is not State.CONFIRMED:
        suspicion = Suspicion(
            positions=positions,
            confidence=ramp.probability,
            evidence=1.0 if certificate is None else certificate.evidence,
            needed=2 / (1 - question.confidence) if certificate is None else 1 / certificate.level,
            blocks_left=None,
            possible=math.inf,
        )
        changes: tuple[Change, ...] = ()
        suspected: tuple[Suspicion, ...] = (suspicion,)
    else:
        before, after = certificate.levels
        suspected = ()
        changes = (
            Change(
                positions=positions,
                confidence=ramp.probability,
                before=math.exp(before),
                after=math.exp(after),
                effect=_effect(certificate),
                kind=Kind.RAMP,
                certificate=certificate.summary(),
            ),
        )
    return Answer(
        verdict=Verdict.RANGE if changes else Verdict.UNCLEAR,
        changes=changes,
        confidence=ramp.probability,
        minimum_detectable=_minimum_detectable(question, evidence, posterior),
        reason="the level changes gradually over many revisions: no single one is the culprit",
        suspected=suspected,
    )


def _may_be_layouts(changes: Sequence[Change], suspected: Sequence[Suspicion]) -> bool:
    """Whether builds certainly differ, and only their memory layouts may cause that."""
    return not changes and any(each.evidence >= each.needed for each in suspected)


LAYOUTS_ENOUGH = 9
"""A change certified over this number of layouts needs no confirmation by the model of layouts."""


def _reason(
    question: Question, changes: Sequence[Change], suspected: Sequence[Suspicion], evidence: Evidence
) -> str:
    if _may_be_layouts(changes, suspected):
        return (
            "builds differ, but their memory layouts may cause the difference; set [build] relink to find out"
            if question.linked
            else "builds differ, but differences between builds of equal source may explain that"
        )
    if not changes:
        return "no change could be certified"
    if suspected:
        return "a further change is likely, but could not be certified"
    if all(len(change.positions) == 1 for change in changes):
        return "the builds before and after the change were measured in random order"
    if all(position in evidence.unusable for change in changes for position in change.positions[:-1]):
        return "all revisions between the measured builds failed to build or run"
    return "the revisions between the measured ones could not be separated, or are not likely to build"


def _change(claim: Claim, positions: tuple[int, ...], certificate: Certificate, question: Question) -> Change:
    before, after = certificate.levels
    layouts = certificate.summary().layouts
    confidence = claim.confidence if layouts < LAYOUTS_ENOUGH else max(claim.confidence, question.confidence)
    return Change(
        positions=positions,
        confidence=min(confidence, 1.0),
        before=math.exp(before),
        after=math.exp(after),
        effect=_effect(certificate),
        certificate=certificate.summary(),
    )


def _effect(certificate: Certificate) -> Effect:
    size, interval = certificate.size, certificate.change
    return Effect(
        value=math.exp(size), low=math.exp(min(interval.low, size)), high=math.exp(max(interval.high, size))
    )


def _observed(claim: Claim, evidence: Evidence) -> float | None:
    sides = [evidence.all_samples(position) for position in (claim.before, claim.after)]
    if not all(len(samples) for samples in sides):
        return None
    before, after = (float(np.median(samples)) for samples in sides)
    return math.exp(after - before)


def _suspicion(
    claim: Claim,
    positions: tuple[int, ...],
    certificate: Certificate | None,
    question: Question,
    evidence: Evidence,
) -> Suspicion:
    observed = _observed(claim, evidence)
    if certificate is None:
        return Suspicion(
            positions=positions,
            confidence=claim.confidence,
            evidence=1.0,
            needed=2 / (1 - question.confidence),
            blocks_left=None,
            possible=math.inf,
            observed=observed,
        )
    bounds = certificate.change
    return Suspicion(
        positions=positions,
        confidence=claim.confidence,
        evidence=certificate.evidence,
        needed=1 / certificate.level,
        blocks_left=blocks_left(certificate.evidence, certificate.blocks, certificate.level),
        possible=math.expm1(min(max(-bounds.low, bounds.high), 50.0)),
        observed=observed,
    )


def _minimum_detectable(question: Question, evidence: Evidence, posterior: Posterior) -> float:
    """Return the relative change between the ends that their samples would show at the question's confidence.

    With the ends' standard errors s0 and s1, ``exp(z sqrt(s0^2 + s1^2)) - 1``, z the normal quantile; each
    contains the layout noise of one build.
    """
    ends = (posterior.positions[0], posterior.positions[-1])
    variance = sum(posterior.sigma**2 / max(evidence.count(end), 1) + posterior.tau**2 for end in ends)
    return math.expm1(min(NormalDist().inv_cdf((1 + question.confidence) / 2) * math.sqrt(variance), 50.0))


def outliers(
    question: Question, evidence: Evidence, changes: Sequence[Change | Suspicion]
) -> tuple[Outlier, ...]:
    """Return the builds whose middle samples all differ by the threshold or more from their side's level.

    `changes` are certified or suspected. A side's level is the median of its builds' medians; builds with equal
    artefacts are one. Candidates of a change are on no side. Builds at the edge of a side that differ in one
    direction are not outliers.
    """
    spans = sorted((change.positions[0], change.positions[-1]) for change in changes)
    bounds = [-1, *(bound for candidates in spans for bound in candidates), question.revisions]
    found: list[Outlier] = []
    for start, stop in list(pairwise(bounds))[::2]:
        found += _outliers_among(question, evidence, range(max(start, 0), stop))
    return tuple(found)


def _outliers_among(question: Question, evidence: Evidence, side: range) -> list[Outlier]:
    builds = [
        position
        for position in evidence.positions
        if position in side and evidence.build_of(position) == position and evidence.count(position)
    ]
    if len(builds) < _LEAST_BUILDS:
        return []
    medians = [float(np.median(evidence.all_samples(build))) for build in builds]
    usual = float(np.median(medians))
    found: list[tuple[bool, Outlier] | None] = []
    for build, level in zip(builds, medians, strict=True):
        distances = likely_levels(evidence.all_samples(build)) - usual
        one_side = bool((distances > 0).all() or (distances < 0).all())
        is_outlier = (
            evidence.count(build) >= LEAST_SAMPLES
            and one_side
            and np.abs(distances).min() >= question.threshold_log
        )
        outlier = Outlier(position=build, level=float(np.exp(level)), usual=float(np.exp(usual)))
        found.append((bool(distances[0] > 0), outlier) if is_outlier else None)
    return [each[1] for each in _without_edges(found) if each is not None]


def _without_edges(found: list[tuple[bool, Outlier] | None]) -> list[tuple[bool, Outlier] | None]:
    """Return a side's builds without the outliers at its edges that differ in one direction.

    Next to a change or an end of the history, they can also be part of a change: one that the search placed
    elsewhere, or did not certify. Only usual builds on both sides show that a build is an outlier.
    """
    for _ in range(2):
        edge = found[0] if found else None
        while edge is not None and found and found[0] is not None and found[0][0] == edge[0]:
            found = found[1:]
        found = found[::-1]
    return found
