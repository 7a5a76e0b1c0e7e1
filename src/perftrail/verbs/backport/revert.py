"""The result of a revert: the share of the loss that comes back, and what the revert costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

from perftrail.verbs.backport.patch import BackportConflict, FittedPatch
from perftrail.verbs.backport.result import (
    REVERT_NAMES,
    BackportComparisonJson,
    ConflictJson,
    FailedSubjectJson,
    FixRevisionJson,
    MeasuredMetricJson,
    OldRevisionJson,
    PatchJson,
    RetainedGainJson,
    RevertRole,
    conflict_details,
    patch_json,
    share_json,
)

if TYPE_CHECKING:
    from perftrail.verbs.backport.result import BackportReport, MetricResult

Verdict = Literal["whole", "part", "nothing", "unclear", "no loss", "failed"]
"""The recovered part of the loss, or the reason why there is none."""


class RevertMetricJson(MeasuredMetricJson):
    """One metric at one point; the roles are newest, reverted and old."""

    reverted_against_newest: BackportComparisonJson | None
    old_against_newest: BackportComparisonJson | None
    recovered: RetainedGainJson | None
    lost_gain: RetainedGainJson | None


class RevertFailureJson(FailedSubjectJson):
    """A subject that failed to build or to run, and its role."""

    role: RevertRole


class RevertedJson(TypedDict):
    """The revisions of a revert."""

    culprit: FixRevisionJson
    onto: OldRevisionJson
    old: OldRevisionJson


class MeasuredRevertJson(RevertedJson):
    """A revert that was measured."""

    verdict: Verdict
    metric: Annotated[str | None, "the metric of the verdict"]
    recovered: Annotated[
        RetainedGainJson | None, "share of the loss that the revert recovers; 1 is all of it"
    ]
    lost_gain: Annotated[
        RetainedGainJson | None,
        "without a loss: share of the gain since the old revision that the revert undoes; 1 is all of it",
    ]
    costs: Annotated[list[str], "metrics that the revert makes worse"]
    reverted: Annotated[str, "name of the reverted newest revision"]
    patch: PatchJson
    metrics: list[RevertMetricJson]
    equal: Annotated[list[tuple[str, str]], "roles whose builds are equal"]
    failures: list[RevertFailureJson]
    skipped: int
    invocations: int
    machine: str


class RevertConflictJson(RevertedJson, ConflictJson):
    """A change that cannot be reverted on the newest revision without a conflict."""


class RevertJson(TypedDict):
    """The revert of a culprit, and the revert of only the commit inside it if the culprit is a merge."""

    whole: MeasuredRevertJson | RevertConflictJson
    inner: MeasuredRevertJson | RevertConflictJson | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RevertReport:
    """The revert of one revision that applies: its measurement, and the file of its patch."""

    backport: BackportReport
    file: str | None

    @property
    def verdict(self) -> Verdict:
        """The answer in a word: the recovered part of the loss, or that no loss was detected."""
        match self.backport.verdict:
            case "whole" | "part" | "nothing" | "unclear" | "failed" as verdict:
                return verdict
            case _:
                return "no loss"

    def as_json(self) -> MeasuredRevertJson:
        """Return the report as `revert --json` prints it."""
        report, head, gain = self.backport, self.backport.headline, self.backport.reverted_gain
        named, fitted = head or gain, report.fitted
        return {
            "verdict": self.verdict,
            **_revisions_json(fitted),
            "metric": None if named is None else named.target.name,
            "recovered": None if head is None else share_json(head.retained),
            "lost_gain": None if gain is None else share_json(gain.retained),
            "costs": [metric.target.name for metric in report.costs],
            "reverted": fitted.patched.revision.id,
            "patch": patch_json(fitted, file=self.file),
            "metrics": [_metric_json(metric) for metric in report.metrics],
            "equal": [(REVERT_NAMES[one], REVERT_NAMES[other]) for one, other in report.equal],
            "failures": [{"role": REVERT_NAMES[each.role], **each.reason_json()} for each in report.failures],
            "skipped": report.skipped,
            "invocations": report.invocations,
            "machine": report.machine,
        }


Reverted = RevertReport | BackportConflict
"""A measured revert, or the conflict that prevents it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RevertReports:
    """The revert of a culprit, and of only the commit inside it, if it is a merge and its commit is known."""

    whole: Reverted
    inner: Reverted | None = None

    @property
    def measured(self) -> bool:
        """Whether at least one of the reverts was measured."""
        return any(
            isinstance(each, RevertReport) and each.backport.measured for each in (self.whole, self.inner)
        )

    def as_json(self) -> RevertJson:
        """Return the reverts as `revert --json` prints them."""
        return {
            "whole": _reverted_json(self.whole),
            "inner": None if self.inner is None else _reverted_json(self.inner),
        }


def _reverted_json(reverted: Reverted) -> MeasuredRevertJson | RevertConflictJson:
    if isinstance(reverted, RevertReport):
        return reverted.as_json()
    return {**_revisions_json(reverted), **conflict_details(reverted.conflict)}


def _metric_json(metric: MetricResult) -> RevertMetricJson:
    return {
        **metric.measured_json(REVERT_NAMES),
        "reverted_against_newest": metric.compared_json(metric.patched_against_old),
        "old_against_newest": metric.compared_json(metric.fixed_against_old),
        "recovered": share_json(metric.retained) if metric.gains else None,
        "lost_gain": share_json(metric.retained) if metric.loses else None,
    }


def _revisions_json(fitted: FittedPatch | BackportConflict) -> RevertedJson:
    onto = fitted.patched.base if isinstance(fitted, FittedPatch) else fitted.onto
    culprit, old = fitted.reverted, fitted.fix
    assert culprit is not None
    assert old is not None
    return {
        "culprit": {"id": culprit.id, "label": culprit.label, "parents": len(culprit.parents)},
        "onto": {"id": onto.id, "label": onto.label},
        "old": {"id": old.id, "label": old.label},
    }
