"""Result of `explain`: differences between a revision and its predecessor, with its JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypedDict

from perftrail.model.benchmark import Value
from perftrail.model.build import Stage
from perftrail.model.patch import FileChangeJson

if TYPE_CHECKING:
    from perftrail.model.build import Failure
    from perftrail.model.patch import FileChange
    from perftrail.model.plan import Cell
    from perftrail.model.subject import Revision
    from perftrail.stats.ratios import Difference


@dataclass(frozen=True, slots=True, kw_only=True)
class Figured:
    """One metric of both: its name (untrusted for a function), unit, method, and difference."""

    name: str
    unit: str
    method: str
    starts: int
    difference: Difference


@dataclass(frozen=True, slots=True, kw_only=True)
class Unavailable:
    """A profiler that could not run, and why."""

    what: str
    why: str


class ExplainedFigureJson(TypedDict):
    """One count before and after the culprit."""

    name: str
    unit: str
    method: str
    starts: Annotated[int, "number of invocations on each side"]
    before: float
    after: float
    log_ratio: float
    sure: Annotated[float, "absolute logarithm of the ratio, minus its noise"]
    differs: bool


class UnavailableJson(TypedDict):
    """A count that could not be taken, and why."""

    what: str
    why: str


class ExplainedPointJson(TypedDict):
    """The counts of one point."""

    benchmark: str
    variant: str
    point: dict[str, Value]
    equal: Annotated[bool, "whether both builds are equal"]
    figures: list[ExplainedFigureJson]
    unavailable: list[UnavailableJson]


class ExplainFailureJson(TypedDict):
    """A subject that failed to build or to run."""

    subject: str
    stage: Stage
    message: str
    log: str


class ExplainedJson(TypedDict):
    """What changed between the culprit and the revision before it."""

    culprit: str
    against: str
    changes: list[FileChangeJson] | None
    points: list[ExplainedPointJson]
    failures: list[ExplainFailureJson]
    unavailable: list[UnavailableJson]


@dataclass(frozen=True, slots=True, kw_only=True)
class CellReport:
    """The result at one point of one benchmark, the largest difference first. `equal`: both are one build there."""

    cell: Cell
    equal: bool
    figures: tuple[Figured, ...] = ()
    unavailable: tuple[Unavailable, ...] = ()

    @property
    def differing(self) -> tuple[Figured, ...]:
        """The metrics that differ, the largest difference first."""
        return tuple(each for each in self.figures if each.difference.differs)

    @property
    def alike(self) -> tuple[Figured, ...]:
        """The metrics without a visible difference."""
        return tuple(each for each in self.figures if not each.difference.differs)

    def as_json(self) -> ExplainedPointJson:
        """Return the point as `explain --json` prints it."""
        return {
            "benchmark": self.cell.benchmark,
            "variant": self.cell.subject.variant,
            "point": dict(self.cell.point.values),
            "equal": self.equal,
            "figures": [
                {
                    "name": each.name,
                    "unit": each.unit,
                    "method": each.method,
                    "starts": each.starts,
                    "before": each.difference.before,
                    "after": each.difference.after,
                    "log_ratio": each.difference.size,
                    "sure": each.difference.sure,
                    "differs": each.difference.differs,
                }
                for each in self.figures
            ],
            "unavailable": [{"what": each.what, "why": each.why} for each in self.unavailable],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """The whole result. `changes` is None if the source has no lines to compare."""

    culprit: Revision
    against: Revision
    changes: tuple[FileChange, ...] | None
    cells: tuple[CellReport, ...]
    failures: tuple[tuple[str, Failure], ...]
    unavailable: tuple[Unavailable, ...]

    @property
    def seen(self) -> bool:
        """Whether any profiler ran."""
        return any(cell.figures or cell.equal for cell in self.cells)

    def as_json(self) -> ExplainedJson:
        """Return the report as `explain --json` prints it."""
        return {
            "culprit": self.culprit.id,
            "against": self.against.id,
            "changes": None
            if self.changes is None
            else [{"path": each.path, "added": each.added, "removed": each.removed} for each in self.changes],
            "points": [cell.as_json() for cell in self.cells],
            "failures": [
                {"subject": name, "stage": each.stage, "message": each.message, "log": each.log}
                for name, each in self.failures
            ],
            "unavailable": [{"what": each.what, "why": each.why} for each in self.unavailable],
        }
