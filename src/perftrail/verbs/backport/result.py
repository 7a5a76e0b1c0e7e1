"""Report of a back-port: each metric's values, the retained gain and the costs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

from perftrail.model.benchmark import Value
from perftrail.model.build import Stage
from perftrail.model.metrics import Better, improves
from perftrail.model.patch import Clash, FileChangeJson, LeftOutJson
from perftrail.stats.comparison import Verdict
from perftrail.stats.retained_gain import Share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.model.build import Failure
    from perftrail.model.patch import Conflict, FileChange, Obstacle
    from perftrail.model.subject import Revision
    from perftrail.model.target import Target
    from perftrail.stats.comparison import Comparison
    from perftrail.stats.estimate import Estimate
    from perftrail.stats.retained_gain import RetainedGain
    from perftrail.verbs.backport.patch import BackportConflict, FittedPatch

Judgement = Literal["better", "worse", "same", "unclear"]


class Role(StrEnum):
    """Subjects of a back-port: the old revision, the patched old revision, and the revision with the fix."""

    OLD = "old"
    PATCHED = "patched"
    FIXED = "fixed"


ROLE_NAMES: Mapping[Role, str] = {role: str(role) for role in Role}
"""The roles' names in a back-port."""

RevertRole = Literal["newest", "reverted", "old"]
"""Subjects of a revert: the newest revision, the same with the revert, and the revision before the culprit."""

REVERT_NAMES: Mapping[Role, RevertRole] = {Role.OLD: "newest", Role.PATCHED: "reverted", Role.FIXED: "old"}
"""The roles' names in a revert: there, the base is the newest revision, and the reference is an old one."""


class BackportEffectJson(TypedDict):
    """A ratio with its interval."""

    value: float
    low: Annotated[float | None, "null: unbounded"]
    high: Annotated[float | None, "null: unbounded"]
    confidence: Annotated[float, "confidence of the interval"]


class BackportComparisonJson(TypedDict):
    """One comparison with the old revision."""

    effect: BackportEffectJson
    verdict: Judgement
    minimum_detectable: float | None


class BackportEstimateJson(TypedDict):
    """A median with its interval, in the metric's unit."""

    value: float
    low: Annotated[float | None, "null: unbounded"]
    high: Annotated[float | None, "null: unbounded"]
    confidence: float


class RetainedGainJson(TypedDict):
    """The share of the fix's gain that the patched revision retains: 1 is all of it."""

    value: float
    low: Annotated[float | None, "null: unbounded"]
    high: Annotated[float | None, "null: unbounded"]
    confidence: Annotated[float, "confidence of the interval"]
    share: Share


class MeasuredMetricJson(TypedDict):
    """One metric at one point, with its medians by role."""

    metric: str
    name: str
    benchmark: str
    variant: str
    point: dict[str, Value]
    unit: str
    better: Better
    leading: Annotated[bool, "whether the study declares the metric or searches for it"]
    replicates: Annotated[int, "number of interleaved pairs; with relinking, number of memory layouts"]
    noisy: int
    discarded: int
    layouts: int
    basis: Literal["", "builds", "layouts"]
    estimates: Annotated[dict[str, BackportEstimateJson], "median of each role"]
    note: Annotated[str, "why there is no value"]


class BackportMetricJson(MeasuredMetricJson):
    """One metric at one point; the roles are old, patched and fixed."""

    patched_against_old: BackportComparisonJson | None
    fixed_against_old: BackportComparisonJson | None
    retained_gain: RetainedGainJson | None


class OldRevisionJson(TypedDict):
    """The id and the label of a revision."""

    id: str
    label: str


class FixRevisionJson(OldRevisionJson):
    """The revision with the fix."""

    parents: int


class BackportedJson(TypedDict):
    """The two revisions of a back-port."""

    onto: OldRevisionJson
    fix: FixRevisionJson | None


class PatchJson(TypedDict):
    """The patch: its file, and the lines that it changes in each file."""

    file: str | None
    changes: list[FileChangeJson]
    left_out: Annotated[list[LeftOutJson], "files of the change that are not applied"]


class FailedSubjectJson(TypedDict):
    """A subject that failed to build or to run, with the reason."""

    subject: str
    stage: Stage
    message: str
    log: str


class BackportFailureJson(FailedSubjectJson):
    """A subject that failed to build or to run, and its role."""

    role: Role


class BackportReportJson(BackportedJson):
    """The result of a back-port."""

    verdict: str
    metric: Annotated[str | None, "the metric of the verdict"]
    retained_gain: RetainedGainJson | None
    costs: Annotated[list[str], "metrics that the patched revision makes worse"]
    patched: str
    patch: PatchJson
    metrics: list[BackportMetricJson]
    equal: Annotated[list[tuple[Role, Role]], "roles whose builds are equal"]
    failures: list[BackportFailureJson]
    skipped: int
    invocations: int
    machine: str


class PassageJson(TypedDict):
    """Lines of a file that conflict."""

    first: int
    last: int
    marker: Annotated[int, "line of git's conflict marker; 0: unknown"]
    since: list[str]
    only_on_old_branch: list[str]


class ObstacleJson(TypedDict):
    """A file that conflicts."""

    path: str
    clash: Clash
    since: Annotated[list[str], "revisions between the old one and the fix that changed it"]
    passages: list[PassageJson]


class ConflictJson(TypedDict):
    """Why a change does not apply."""

    verdict: Literal["conflict"]
    conflicts: list[ObstacleJson]
    prerequisites: Annotated[list[str], "revisions that would remove the conflict"]
    left_out: Annotated[list[LeftOutJson], "files of the change that did not count"]
    directory: Annotated[str, "the files with the conflict"]
    directory_existed: Annotated[bool, "whether the directory existed already, with possible edits"]


class BackportConflictJson(BackportedJson, ConflictJson):
    """A change that does not apply to the old revision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedRole:
    """A subject that failed to build, or to run at a point, with the reason."""

    role: Role
    where: str
    failure: Failure

    def reason_json(self) -> FailedSubjectJson:
        """Return the subject and the reason as `--json` prints them."""
        failure = self.failure
        return {
            "subject": self.where,
            "stage": failure.stage,
            "message": failure.message,
            "log": failure.log,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricResult:
    """One metric at one point: its values, patched and fixed against old, and the retained gain.

    `leading` metrics are those that the study declares or searches for. `noisy` replicates were used although
    noisy, because the machine was always noisy; `discarded` replicates were not used. `layouts` is the number of
    replicates that are layouts, 0 if the builds are compared as linked. `note` is the reason for a missing value,
    else empty. `linked`: a linker produced the measured program.
    """

    target: Target
    leading: bool
    estimates: Mapping[Role, Estimate]
    replicates: int
    noisy: int
    discarded: int
    layouts: int
    patched_against_old: Comparison | None
    fixed_against_old: Comparison | None
    retained: RetainedGain | None
    note: str = ""
    linked: bool = True

    def judged(self, compared: Comparison | None) -> Judgement:
        """Return whether a comparison is better or worse in this metric."""
        if compared is None or compared.verdict is Verdict.UNCLEAR:
            return "unclear"
        if compared.verdict is Verdict.SAME:
            return "same"
        return "better" if improves(compared.effect, self.target.better) else "worse"

    @property
    def basis(self) -> Literal["", "builds", "layouts"]:
        """What a sure difference applies to: these builds, or all layouts; empty without one."""
        if not {self.judged(self.patched_against_old), self.judged(self.fixed_against_old)} & {
            "better",
            "worse",
        }:
            return ""
        return "layouts" if self.layouts else "builds"

    @property
    def gains(self) -> bool:
        """Whether the fixed revision is clearly better than the old one, so that there is a gain to retain."""
        return self.judged(self.fixed_against_old) == "better"

    @property
    def loses(self) -> bool:
        """Whether the fixed revision is clearly worse than the old one."""
        return self.judged(self.fixed_against_old) == "worse"

    @property
    def costs(self) -> bool:
        """Whether the patched revision is clearly worse than the old one."""
        return self.judged(self.patched_against_old) == "worse"

    def as_json(self) -> BackportMetricJson:
        """Return the comparison as `backport --json` prints it."""
        return {
            **self.measured_json(),
            "patched_against_old": self.compared_json(self.patched_against_old),
            "fixed_against_old": self.compared_json(self.fixed_against_old),
            "retained_gain": share_json(self.retained) if self.gains else None,
        }

    def measured_json(self, names: Mapping[Role, str] = ROLE_NAMES) -> MeasuredMetricJson:
        """Return the values as `--json` prints them, with these names of the roles."""
        return {
            "metric": self.target.text,
            "name": self.target.name,
            "benchmark": self.target.benchmark,
            "variant": self.target.variant,
            "point": dict(self.target.open_point.values),
            "unit": self.target.unit,
            "better": self.target.better,
            "leading": self.leading,
            "replicates": self.replicates,
            "noisy": self.noisy,
            "discarded": self.discarded,
            "layouts": self.layouts,
            "basis": self.basis,
            "estimates": {
                names[role]: {
                    "value": each.value,
                    "low": each.low,
                    "high": each.high,
                    "confidence": each.confidence,
                }
                for role, each in self.estimates.items()
            },
            "note": self.note,
        }

    def compared_json(self, compared: Comparison | None) -> BackportComparisonJson | None:
        """Return one comparison as `--json` prints it; `None` without one."""
        if compared is None:
            return None
        return {
            "effect": {
                "value": compared.effect,
                "low": compared.low,
                "high": compared.high,
                "confidence": compared.confidence,
            },
            "verdict": self.judged(compared),
            "minimum_detectable": compared.minimum_detectable,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class BackportReport:
    """The result of a back-port. `searched` names the metrics that the study searches for.

    `equal` names subjects with equal builds. `invocations` is the number of those that the values come from;
    `fresh` is the number of those that this command started.
    """

    fitted: FittedPatch
    metrics: tuple[MetricResult, ...]
    failures: tuple[FailedRole, ...]
    skipped: int
    equal: tuple[tuple[Role, Role], ...]
    invocations: int
    fresh: int
    searched: frozenset[str]
    machine: str

    @property
    def names(self) -> Mapping[Role, str]:
        """The roles' names for users."""
        return ROLE_NAMES if self.fitted.reverted is None else REVERT_NAMES

    @property
    def measured(self) -> bool:
        """Whether there is any value of the patched revision."""
        return any(metric.patched_against_old is not None for metric in self.metrics)

    @property
    def compared(self) -> bool:
        """Whether there is any value of the fixed revision, and so a gain to compare."""
        return any(metric.fixed_against_old is not None for metric in self.metrics)

    def is_searched(self, metric: MetricResult) -> bool:
        """Whether the study searches for this metric."""
        return not self.searched.isdisjoint((metric.target.text, metric.target.name))

    @property
    def headline(self) -> MetricResult | None:
        """The gain that the answer is about, `None` without a gain.

        It is in a metric that the study searches for, else in a declared one; the largest of several. For a revert,
        this is the loss since the old revision; a `reverted_gain` in a searched metric comes before other losses.
        """
        found = self._foremost([metric for metric in self.metrics if metric.gains])
        if found is None or self.fitted.reverted is None or self.is_searched(found):
            return found
        return None if any(metric.loses and self.is_searched(metric) for metric in self.metrics) else found

    @property
    def reverted_gain(self) -> MetricResult | None:
        """For a revert without a loss: the metric with a gain since the old revision; `None` without one."""
        if self.fitted.reverted is None or self.headline is not None:
            return None
        return self._foremost([metric for metric in self.metrics if metric.loses])

    def _foremost(self, found: Sequence[MetricResult]) -> MetricResult | None:
        searched = [metric for metric in found if self.is_searched(metric)]
        leading = [metric for metric in found if metric.leading]
        return max(
            searched or leading or found, key=lambda metric: _size(metric.fixed_against_old), default=None
        )

    @property
    def costs(self) -> tuple[MetricResult, ...]:
        """Metrics in which the patched revision is clearly worse, the worst first; declared ones if there are any."""
        worse = [metric for metric in self.metrics if metric.costs]
        chosen = [metric for metric in worse if metric.leading] or worse
        return tuple(sorted(chosen, key=lambda metric: -_size(metric.patched_against_old)))

    @property
    def verdict(self) -> str:
        """The answer in a word: the retained part of the headline's gain, or that there was no gain."""
        if not self.measured:
            return "failed"
        if self.fitted.fix is None:
            return "measured"
        if not self.compared:
            return str(Share.UNCLEAR)
        head = self.headline
        if head is None:
            return "no gain"
        return str(head.retained.share if head.retained is not None else Share.UNCLEAR)

    def as_json(self, *, file: str | None) -> BackportReportJson:
        """Return the report as `backport --json` prints it; `file` is the path of the patch."""
        fitted, head = self.fitted, self.headline
        return {
            "verdict": self.verdict,
            "metric": None if head is None else head.target.name,
            "retained_gain": None if head is None else share_json(head.retained),
            "costs": [metric.target.name for metric in self.costs],
            **_revisions_json(fitted.patched.base, fitted.fix),
            "patched": fitted.patched.revision.id,
            "patch": patch_json(fitted, file=file),
            "metrics": [metric.as_json() for metric in self.metrics],
            "equal": list(self.equal),
            "failures": [{"role": each.role, **each.reason_json()} for each in self.failures],
            "skipped": self.skipped,
            "invocations": self.invocations,
            "machine": self.machine,
        }


def conflict_json(blocked: BackportConflict) -> BackportConflictJson:
    """Return a conflict as `backport --json` prints it."""
    return {**_revisions_json(blocked.onto, blocked.fix), **conflict_details(blocked.conflict)}


def conflict_details(conflict: Conflict) -> ConflictJson:
    """Return why a change does not apply, without the revisions that were named."""
    return {
        "verdict": "conflict",
        "conflicts": [_obstacle(each) for each in conflict.obstacles],
        "prerequisites": [revision.id for revision in conflict.prerequisites],
        "left_out": [each.as_json() for each in conflict.left_out],
        "directory": conflict.directory,
        "directory_existed": conflict.directory_existed,
    }


def patch_json(fitted: FittedPatch, *, file: str | None) -> PatchJson:
    """Return a patch as `--json` prints it."""
    patch = fitted.patched.patch
    return {
        "file": file,
        "changes": _changes(patch.files),
        "left_out": [each.as_json() for each in patch.left_out],
    }


def _obstacle(obstacle: Obstacle) -> ObstacleJson:
    return {
        "path": obstacle.path,
        "clash": obstacle.clash,
        "since": _ids(obstacle.since),
        "passages": [
            {
                "first": each.first,
                "last": each.last,
                "marker": each.marker,
                "since": _ids(each.since),
                "only_on_old_branch": _ids(each.only_on_old_branch),
            }
            for each in obstacle.passages
        ],
    }


def _revisions_json(onto: Revision, fix: Revision | None) -> BackportedJson:
    return {
        "onto": {"id": onto.id, "label": onto.label},
        "fix": None if fix is None else {"id": fix.id, "label": fix.label, "parents": len(fix.parents)},
    }


def _ids(revisions: Sequence[Revision]) -> list[str]:
    return [revision.id for revision in revisions]


def _changes(files: Sequence[FileChange]) -> list[FileChangeJson]:
    return [{"path": each.path, "added": each.added, "removed": each.removed} for each in files]


def share_json(found: RetainedGain | None) -> RetainedGainJson | None:
    """Return a share of a gain as `--json` prints it; `None` without one."""
    if found is None:
        return None
    return {
        "value": found.value,
        "low": found.low if math.isfinite(found.low) else None,
        "high": found.high if math.isfinite(found.high) else None,
        "confidence": found.confidence,
        "share": found.share,
    }


def _size(compared: Comparison | None) -> float:
    return 0.0 if compared is None else abs(math.log(compared.effect))
