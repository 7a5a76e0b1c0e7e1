"""Judge a study's claims from samples: ratios of pairs, exponents of growth, and the reach along an axis."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from typing import TYPE_CHECKING, Annotated, TypedDict, assert_never

from perftrail.measure.session import stored_builds
from perftrail.model.benchmark import Value
from perftrail.model.build import Failure
from perftrail.model.measurement import Samples
from perftrail.model.study import read_band
from perftrail.model.subject import Subject
from perftrail.model.target import claimed_metric
from perftrail.results.growth import grown
from perftrail.results.measured import MeasuredHere
from perftrail.results.pairs import decides, paired, usable_pairs, values_of
from perftrail.results.rows import ValueWithIntervalJson, by_block, rows
from perftrail.stats.growth import LEAST_POINTS
from perftrail.stats.ratios import compare_over

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftrail.measure.session import View
    from perftrail.model.benchmark import Point
    from perftrail.model.study import Claim
    from perftrail.model.subject import Revision
    from perftrail.results.rows import Row
    from perftrail.stats.comparison import Comparison
    from perftrail.stats.growth import Exponent

    ClaimedRows = Mapping[tuple[str, str, str], Sequence[Row]]
    """The rows of one revision by benchmark, metric and variant."""


class ClaimVerdict(StrEnum):
    """Verdict on a claim."""

    REPRODUCED = "reproduced"
    NOT_REPRODUCED = "not reproduced"
    UNCLEAR = "unclear"
    CANNOT = "cannot be measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """Ratio of one variant to another: the geometric mean of the ratios at their common points.

    `disturbed`: noisy samples are included; `decides`: false if those samples are times.
    """

    comparison: Comparison
    points: tuple[Point, ...]
    disturbed: bool
    decides: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """The exponent of a metric's growth with its 95 % interval, from the values between two ends of the axis."""

    exponent: Exponent
    values: int
    first: float
    last: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """The largest value of an axis with a result, and the smallest larger value that failed, with its stage."""

    largest: float
    refused: float | None
    stage: str


Evidence = Ratio | Power | Reach


class EvidenceJson(TypedDict, total=False):
    """The evidence of a claim about a ratio, about an exponent, or about a largest value."""

    ratio: ValueWithIntervalJson
    confidence: float
    pairs: int
    points: list[dict[str, Value]]
    disturbed: Annotated[bool, "whether noisy samples are included"]
    exponent: ValueWithIntervalJson
    values: int
    first: float
    last: float
    reaches: Annotated[float | None, "the largest value that succeeded"]
    refused: Annotated[float | None, "the smallest value that failed"]
    stage: str


class JudgementJson(EvidenceJson):
    """The verdict on one claim, with its evidence."""

    name: str
    says: str
    verdict: ClaimVerdict
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A claim, the evidence and the verdict; `reason` explains missing evidence."""

    name: str
    claim: Claim
    verdict: ClaimVerdict
    evidence: Evidence | None = None
    reason: str = ""

    def as_json(self) -> JudgementJson:
        """Return the judgement as `show --claims --json` prints it."""
        return {
            "name": self.name,
            "says": self.claim.says,
            "verdict": self.verdict,
            "reason": self.reason,
            **_evidence_json(self.evidence),
        }


def judge(view: View, *, measured: MeasuredHere | None = None) -> tuple[Judgement, ...]:
    """Judge every claim of a study on its last revision measured here; the family-wise error rate is 1 %.

    `measured` contains the samples that were already read.
    """
    known = MeasuredHere(view) if measured is None else measured
    last = next((cell.subject.revision for cell, _ in reversed(known.cells)), None)
    claim_judge = _ClaimJudge(view=view, measured=known, revision=last, rows=_claimed_rows(view, known, last))
    return tuple(claim_judge.judged(name, claim) for name, claim in view.study.claims.items())


def _claimed_rows(view: View, measured: MeasuredHere, revision: Revision | None) -> ClaimedRows:
    """Read all rows that the claims need at a revision, at once."""
    needed = [
        each for each in view.study.claims.values() if (each.ratio or each.exponent) and not each.cannot
    ]
    metrics = dict.fromkeys(claimed_metric(view.study, each.metric).name for each in needed)
    found: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows(view, metrics=tuple(metrics), measured=measured) if metrics else ():
        if row.subject.revision == revision:
            found.setdefault((row.benchmark, row.metric, row.subject.variant), []).append(row)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _ClaimJudge:
    """The samples of one revision, with one method for each kind of claim."""

    view: View
    measured: MeasuredHere
    revision: Revision | None
    rows: ClaimedRows

    def judged(self, name: str, claim: Claim) -> Judgement:
        if claim.cannot:
            return Judgement(name=name, claim=claim, verdict=ClaimVerdict.CANNOT, reason=claim.cannot)
        if (failure := self._failure(claim)) is not None:
            reason = f"{failure.stage}: {failure.message}"
            return Judgement(name=name, claim=claim, verdict=ClaimVerdict.CANNOT, reason=reason)
        found = self._found(claim)
        if isinstance(found, str):
            return Judgement(name=name, claim=claim, verdict=ClaimVerdict.UNCLEAR, reason=found)
        return Judgement(name=name, claim=claim, verdict=verdict_of(claim, found), evidence=found)

    def _failure(self, claim: Claim) -> Failure | None:
        """Return the failed build of one of a claim's variants, or `None`."""
        if self.revision is None:
            return None
        builds = stored_builds(self.view, [self.revision])
        for variant in filter(None, (claim.variant, claim.against)):
            known = builds.get(Subject(revision=self.revision, variant=variant))
            if isinstance(known, Failure):
                return known
        return None

    def _found(self, claim: Claim) -> Evidence | str:
        metric = claimed_metric(self.view.study, claim.metric)
        assert metric.benchmark is not None
        if claim.ratio:
            return self._ratio(claim, metric.benchmark, metric.name)
        if claim.exponent:
            return self._power(claim, metric.benchmark, metric.name)
        return self._reach(claim, metric.benchmark, metric.name)

    def _ratio(self, claim: Claim, benchmark: str, metric: str) -> Ratio | str:
        """Compare invocations of the same block at every point that both variants have."""
        mine, others = (
            {row.point: row for row in self._rows(claim, variant, benchmark, metric)}
            for variant in (claim.variant, claim.against)
        )
        found = {
            point: pairs
            for point in mine.keys() & others.keys()
            if (
                pairs := paired(*(by_block(self.view, self.measured, each[point]) for each in (others, mine)))
            )
        }
        if not found:
            return "not measured at any point that both variants have"
        points = tuple(point for point in mine if point in found)
        used = usable_pairs([found[point] for point in points])
        many = sum(bool(each.ratio) for each in self.view.study.claims.values())
        return Ratio(
            comparison=compare_over(values_of(used), comparisons=many),
            points=points,
            disturbed=not all(pair.quiet for pairs in used for pair in pairs),
            decides=decides(mine[points[0]].unit, chain.from_iterable(used)),
        )

    def _rows(self, claim: Claim, variant: str, benchmark: str, metric: str) -> list[Row]:
        """Return the rows of a variant at the claim's points, derived metrics included."""
        return [row for row in self.rows.get((benchmark, metric, variant), ()) if _belongs(row.point, claim)]

    def _power(self, claim: Claim, benchmark: str, metric: str) -> Power | str:
        found = self._rows(claim, claim.variant, benchmark, metric)
        curves = grown(self.view.study.benchmarks[benchmark], found, claim.along)
        if len(curves) != 1:
            if curves:
                return "the claim's at matches several curves"
            needed = f"{LEAST_POINTS} values of {claim.along} above zero"
            return f"its growth needs samples at {needed}; widen its at or measure more values"
        [(curve, growth)] = curves
        return Power(exponent=growth.exponent, values=len(curve), first=curve.xs[0], last=curve.xs[-1])

    def _reach(self, claim: Claim, benchmark: str, metric: str) -> Reach | str:
        """Return the largest value with a result, and the smallest larger value that failed."""
        mine = self._samples(claim, claim.variant, benchmark, metric)
        reached = [_value_along(point, claim) for point, samples in mine.items() if samples.values]
        if not reached:
            return "not measured"
        refused = {
            _value_along(point, claim): samples.failures[0]
            for point, samples in mine.items()
            if samples.failures and not samples.values and _value_along(point, claim) > max(reached)
        }
        first = min(refused, default=None)
        return Reach(largest=max(reached), refused=first, stage="" if first is None else refused[first])

    def _samples(self, claim: Claim, variant: str, benchmark: str, metric: str) -> dict[Point, Samples]:
        stored = self.measured.samples(benchmark, (metric,))
        subject = None if self.revision is None else Subject(revision=self.revision, variant=variant)
        return {
            cell.point: stored[key]
            for cell, key in self.measured.cells
            if key in stored
            and cell.subject == subject
            and cell.benchmark == benchmark
            and _belongs(cell.point, claim)
        }


def _value_along(point: Point, claim: Claim) -> float:
    value = point[claim.along]
    return float(value) if isinstance(value, int | float) else math.nan


def _belongs(point: Point, claim: Claim) -> bool:
    return all(
        str(point[name]) in map(str, values) for name, values in claim.at.items() if name in point.names
    )


def verdict_of(claim: Claim, found: Evidence) -> ClaimVerdict:
    """Return the verdict on a claim from its evidence."""
    match found:
        case Ratio(comparison=effect):
            enough = found.decides and effect.pairs >= effect.needed_pairs
            low, high = (effect.low, effect.high) if enough else (0.0, math.inf)
            band = read_band(claim.ratio)
        case Power(exponent=exponent):
            low, high, band = exponent.low, exponent.high, read_band(claim.exponent)
        case Reach():
            # If no larger value failed, the reach may be larger than the values that were tried.
            low, high = found.largest, math.inf if found.refused is None else found.largest
            band = read_band(claim.reaches)
        case _:
            assert_never(found)
    if band.contains(low, high):
        return ClaimVerdict.REPRODUCED
    return ClaimVerdict.NOT_REPRODUCED if band.is_disjoint_from(low, high) else ClaimVerdict.UNCLEAR


def _evidence_json(found: Evidence | None) -> EvidenceJson:
    match found:
        case None:
            return {}
        case Ratio(comparison=effect):
            return {
                "ratio": {"value": effect.effect, "low": effect.low, "high": effect.high},
                "confidence": effect.confidence,
                "pairs": effect.pairs,
                "points": [dict(point.values) for point in found.points],
                "disturbed": found.disturbed,
            }
        case Power(exponent=exponent):
            interval: ValueWithIntervalJson = {
                "value": exponent.value,
                "low": exponent.low,
                "high": exponent.high,
            }
            return {"exponent": interval, "values": found.values, "first": found.first, "last": found.last}
        case Reach():
            return {"reaches": found.largest, "refused": found.refused, "stage": found.stage}
        case _:
            assert_never(found)
