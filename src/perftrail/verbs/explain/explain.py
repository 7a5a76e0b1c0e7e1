"""Compare a revision with its predecessor under every profiler that this machine supports."""

from __future__ import annotations

import math
import re
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, TypedDict

from perftrail.errors import UsageError
from perftrail.find.end_profiles import PROFILER_START_SECONDS
from perftrail.measure.events import Stepped
from perftrail.measure.function_profilers import applicable, profile_pairs, program_functions, roots
from perftrail.model.benchmark import Value
from perftrail.model.build import Failure, Stage
from perftrail.model.patch import FileChangeJson
from perftrail.model.plan import cells
from perftrail.model.profile import averaged
from perftrail.model.subject import Subject
from perftrail.model.wording import counted, duration, quoted
from perftrail.opening import results_directory
from perftrail.process.launcher import Launcher
from perftrail.sources.git.patch import GitPatches
from perftrail.stats.call_tree import MOST_NODES, call_tree
from perftrail.stats.profile_comparison import compare_profiles
from perftrail.stats.ratios import Answer, difference
from perftrail.verbs.backport.patch import find_revision
from perftrail.verbs.explain.functions import (
    MOST_STORED_PATHS,
    CallTreeJson,
    FunctionsJson,
    StoredPointJson,
    call_tree_json,
    explanation_record,
    functions_json,
)
from perftrail.verbs.explain.profilers import instruction_metrics

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from perftrail.measure.events import Event
    from perftrail.measure.function_profilers import FunctionProfiler, FunctionProfiles
    from perftrail.measure.session import Session
    from perftrail.measure.subjects import Ready
    from perftrail.model.patch import FileChange
    from perftrail.model.plan import Cell
    from perftrail.model.store_records import ExplanationRecord
    from perftrail.model.subject import Revision
    from perftrail.results.selection import Selection
    from perftrail.stats.call_tree import CallTree
    from perftrail.stats.profile_comparison import ProfileComparison
    from perftrail.stats.ratios import Difference
    from perftrail.verbs.explain.profilers import ProfiledMetric, Profiler


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricDifference:
    """One metric of both revisions: its name (untrusted for a function), unit, method, and difference."""

    name: str
    unit: str
    method: str
    invocations: int
    difference: Difference


@dataclass(frozen=True, slots=True, kw_only=True)
class Unavailable:
    """A profiler that could not run, and the reason."""

    what: str
    why: str


class ExplainedMetricJson(TypedDict):
    """One metric before and after the culprit."""

    name: str
    unit: str
    method: str
    invocations: Annotated[int, "number of invocations of each revision"]
    before: float
    after: float
    log_ratio: float
    log_ratio_lower_bound: Annotated[float, "lower bound of the absolute logarithm of the ratio; 0: noise"]
    differs: bool
    verdict: Annotated[Answer, "same: any change is at most 0.2 %; unclear: the noise hides larger changes"]
    minimum_detectable: Annotated[
        float | None,
        "the relative change that is detected with a probability of 80 %; null: unknown, or there was nothing before",
    ]


class UnavailableJson(TypedDict):
    """A profiler that could not run, and the reason."""

    what: str
    why: str


class ExplainedPointJson(TypedDict):
    """The metrics of one point."""

    benchmark: str
    variant: str
    point: dict[str, Value]
    equal: Annotated[bool, "whether both builds are equal"]
    functions: Annotated[FunctionsJson | None, "null: no profiler of functions could run"]
    metrics: list[ExplainedMetricJson]
    unavailable: list[UnavailableJson]


class ExplainFailureJson(TypedDict):
    """A subject that failed to build or to run."""

    subject: str
    stage: Stage
    message: str
    log: str


class ExplainReportJson(TypedDict):
    """The differences between the culprit and the revision before it."""

    culprit: str
    against: str
    changes: list[FileChangeJson] | None
    points: list[ExplainedPointJson]
    failures: list[ExplainFailureJson]
    unavailable: list[UnavailableJson]


_BUILD_TREE = re.compile(r"/.*/builds/[0-9a-f]{32}/tree/")


def path_in_tree(file: str, roots: Sequence[str]) -> str:
    """Return the path of a source file in its tree. Debug information may name the tree of another, equal build.

    >>> path_in_tree("/a/tree/b.c", ["/a/tree/"]), path_in_tree("/usr/include/c.h", ["/a/tree/"])
    ('b.c', '/usr/include/c.h')
    >>> path_in_tree("/s/.perftrail/builds/0c085e74cea89d382106d8109fa56036/tree/lib/b.c", ["/a/tree/"])
    'lib/b.c'
    """
    root = next((each for each in roots if file.startswith(each)), "")
    return _BUILD_TREE.sub("", file.removeprefix(root), count=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedFunctions:
    """The profiles of both revisions, and their comparison. `roots` are the directories of the builds."""

    profiles: FunctionProfiles
    comparison: ProfileComparison
    roots: tuple[str, ...]

    def shown_file(self, file: str) -> str:
        """Return the path of a source file in its tree, without the directory of the build."""
        return path_in_tree(file, self.roots)

    def tree(self, *, most: int = MOST_NODES) -> CallTree:
        """Return the most expensive call paths of both profiles, at most `most`."""
        return call_tree(averaged(self.profiles.before), averaged(self.profiles.after), most=most)

    def as_json(self) -> FunctionsJson:
        """Return the comparison as `explain --json` prints it."""
        return functions_json(
            self.comparison,
            method=self.profiles.method,
            pairs=len(self.profiles.before),
            shown_file=self.shown_file,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedCell:
    """A point, and its compared functions."""

    cell: Cell
    functions: ComparedFunctions


@dataclass(frozen=True, slots=True, kw_only=True)
class CellReport:
    """The result at one point, the largest difference first. `equal`: both revisions have the same build."""

    cell: Cell
    equal: bool
    functions: ComparedFunctions | None = None
    metrics: tuple[MetricDifference, ...] = ()
    unavailable: tuple[Unavailable, ...] = ()

    @property
    def differing(self) -> tuple[MetricDifference, ...]:
        """The metrics that differ, the largest difference first."""
        return tuple(each for each in self.metrics if each.difference.differs)

    @property
    def unchanged(self) -> tuple[MetricDifference, ...]:
        """The metrics that do not differ: equal each time, or by a negligible share."""
        return tuple(each for each in self.metrics if each.difference.verdict == "same")

    @property
    def unclear(self) -> tuple[MetricDifference, ...]:
        """The metrics that may differ: the noise hides all but large changes."""
        return tuple(each for each in self.metrics if each.difference.verdict == "unclear")

    def as_json(self) -> ExplainedPointJson:
        """Return the point as `explain --json` prints it."""
        return {
            "benchmark": self.cell.benchmark,
            "variant": self.cell.subject.variant,
            "point": dict(self.cell.point.values),
            "equal": self.equal,
            "functions": None if self.functions is None else self.functions.as_json(),
            "metrics": [
                {
                    "name": each.name,
                    "unit": each.unit,
                    "method": each.method,
                    "invocations": each.invocations,
                    "before": each.difference.before,
                    "after": each.difference.after,
                    "log_ratio": each.difference.size,
                    "log_ratio_lower_bound": each.difference.lower_bound,
                    "differs": each.difference.differs,
                    "verdict": each.difference.verdict,
                    "minimum_detectable": each.difference.minimum_detectable
                    if math.isfinite(each.difference.minimum_detectable)
                    else None,
                }
                for each in self.metrics
            ],
            "unavailable": [{"what": each.what, "why": each.why} for each in self.unavailable],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainReport:
    """The report of `explain`. `changes` is `None` if the source has no lines to compare.

    `searched` are the metrics of the stored searches that selected the points; empty if the user selected them.
    """

    culprit: Revision
    against: Revision
    changes: tuple[FileChange, ...] | None
    cells: tuple[CellReport, ...]
    failures: tuple[tuple[str, Failure], ...]
    unavailable: tuple[Unavailable, ...]
    searched: tuple[str, ...] = ()

    @property
    def measured(self) -> bool:
        """Whether there is any result."""
        return any(cell.metrics or cell.equal for cell in self.cells)

    @property
    def most_changed(self) -> ComparedCell | None:
        """The point whose cost changed most; `None` without compared functions."""
        found = [
            ComparedCell(cell=each.cell, functions=each.functions)
            for each in self.cells
            if each.functions is not None
        ]
        return max(found, key=lambda each: abs(each.functions.comparison.total.value), default=None)

    def record(self) -> ExplanationRecord | None:
        """Return the compared functions for the store; another explanation of the same points replaces them."""
        points: list[StoredPointJson] = [
            {
                "benchmark": cell.cell.benchmark,
                "variant": cell.cell.subject.variant,
                "point": dict(cell.cell.point.values),
                "functions": cell.functions.as_json(),
            }
            for cell in self.cells
            if cell.functions is not None
        ]
        if not points:
            return None
        return explanation_record(self.culprit.id, self.against.id, points, tree=self._tree())

    def _tree(self) -> CallTreeJson | None:
        """Return the most expensive call paths of the point that changed most."""
        if (found := self.most_changed) is None:
            return None
        return call_tree_json(
            found.functions.tree(most=MOST_STORED_PATHS),
            benchmark=found.cell.benchmark,
            point=found.cell.point.as_dict(),
            shown_file=found.functions.shown_file,
        )

    def as_json(self) -> ExplainReportJson:
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


LONGEST_INVOCATION_SECONDS = 180.0
"""A profiler is skipped if one invocation would take longer; the study may have a smaller point."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A revision and its reference; `changes` is `None` if the source has no lines to compare."""

    culprit: Revision
    against: Revision
    changes: tuple[FileChange, ...] | None


class Explain:
    """Profiles both revisions at every wanted point. Builds are reused; profiles are not."""

    def __init__(
        self,
        session: Session,
        pair: Pair,
        *,
        profilers: Sequence[Profiler],
        selection: Selection,
        function_profilers: Sequence[FunctionProfiler] = (),
        searched: tuple[str, ...] = (),
    ) -> None:
        self._session = session
        self._searched = searched
        self._pair = pair
        self._selection = selection
        everything: tuple[Profiler | FunctionProfiler, ...] = (*profilers, *function_profilers)
        self._unavailable = [
            Unavailable(what=each.name, why=why) for each in everything if (why := each.unsupported_reason())
        ]
        missing = {each.what for each in self._unavailable}
        self._function_profilers = tuple(each for each in function_profilers if each.name not in missing)
        self._profilers = tuple(each for each in profilers if each.name not in missing)
        self._failures: dict[str, Failure] = {}
        self._plan = _Plan()

    def events(self) -> Generator[Event, None, ExplainReport]:
        """Profile both revisions; yield events and return the result."""
        pairs = []
        for variant in self._session.study.variants:
            before = yield from self._build(self._pair.against, variant)
            after = yield from self._build(self._pair.culprit, variant)
            pairs += [(before[key], ready) for key, ready in after.items() if key in before]
        yield from self._session.subject_builder.confirm(
            Subject(revision=revision, variant=variant)
            for variant in self._session.study.variants
            for revision in (self._pair.against, self._pair.culprit)
        )
        self._plan.points = sum(before.runnable.key != after.runnable.key for before, after in pairs)
        reports = []
        for each in pairs:
            reports.append((yield from self._compare(*each)))
        report = ExplainReport(
            culprit=self._pair.culprit,
            against=self._pair.against,
            changes=self._pair.changes,
            cells=tuple(reports),
            failures=tuple(self._failures.items()),
            unavailable=tuple(self._unavailable),
            searched=self._searched,
        )
        if (record := report.record()) is not None:
            self._session.store.add_explanation(record)
        return report

    def _build(
        self, revision: Revision, variant: str
    ) -> Generator[Event, None, dict[tuple[str, object], Ready]]:
        """Build one revision for every wanted point, by benchmark and point."""
        ready_cells: dict[tuple[str, object], Ready] = {}
        for cell in cells(self._session.study, Subject(revision=revision, variant=variant)):
            if not self._selection.includes(cell):
                continue
            ready = yield from self._session.subject_builder.ready(cell)
            if isinstance(ready, Failure):
                self._failures.setdefault(str(cell.subject), ready)
            else:
                ready_cells[cell.benchmark, cell.point] = ready
        return ready_cells

    def _compare(self, before: Ready, after: Ready) -> Generator[Event, None, CellReport]:
        if before.runnable.key == after.runnable.key:
            return CellReport(cell=after.cell, equal=True)
        found: list[tuple[str, Sequence[ProfiledMetric], Sequence[ProfiledMetric]]] = []
        unavailable: list[Unavailable] = []
        seconds = 0.0
        functions = applicable(self._function_profilers, self._session.runner.invoker, after)
        self._plan.begin(after.cell, self._profilers, functions)
        for profiler in self._profilers:
            if (too_slow := _too_slow(profiler, seconds)) is not None:
                unavailable.append(too_slow)
                continue
            yield self._plan.step(profiler.name, _mean(found))
            profiles = _profile_both(profiler, before, after)
            if isinstance(profiles, Failure):
                why = f"{profiles.stage}: {profiles.message}"
                unavailable.append(Unavailable(what=profiler.name, why=why))
                continue
            found += _by_name(profiles)
            seconds = seconds or _longest(found)
        compared = yield from self._compare_functions(before, after, functions, seconds, found, unavailable)
        return CellReport(
            cell=after.cell,
            equal=False,
            functions=compared,
            metrics=tuple(sorted(_compared(found), key=lambda each: -each.difference.lower_bound)),
            unavailable=tuple(unavailable),
        )

    def _compare_functions(
        self,
        before: Ready,
        after: Ready,
        profilers: Sequence[FunctionProfiler],
        seconds: float,
        found: list[tuple[str, Sequence[ProfiledMetric], Sequence[ProfiledMetric]]],
        unavailable: list[Unavailable],
    ) -> Generator[Event, None, ComparedFunctions | None]:
        """Compare the functions with the first profiler that applies; add metrics of Callgrind to `found`.

        Callgrind also runs for programs that another profiler compared, because of its metrics; but not for Java, whose
        code is compiled while the program runs.
        """
        compared: ComparedFunctions | None = None
        for profiler in profilers:
            if compared is not None and (profiler.method != "callgrind" or compared.profiles.method == "jfr"):
                continue
            if (too_slow := _too_slow(profiler, seconds)) is not None:
                unavailable.append(too_slow)
                continue
            yield self._plan.step(profiler.name, _mean(found))
            profiles = profile_pairs(profiler, before, after)
            if isinstance(profiles, Failure):
                unavailable.append(
                    Unavailable(what=profiler.name, why=f"{profiles.stage}: {profiles.message}")
                )
                continue
            if not profiles.before:
                continue  # another kind of program
            if profiler.method == "callgrind":
                found += _by_name(
                    _Profiles(
                        before=tuple(map(instruction_metrics, profiles.before)),
                        after=tuple(map(instruction_metrics, profiles.after)),
                    )
                )
            if compared is None:
                comparison = compare_profiles(
                    profiles.before, profiles.after, program_functions(before, after)
                )
                compared = ComparedFunctions(
                    profiles=profiles, comparison=comparison, roots=(*roots(before), *roots(after))
                )
        return compared


class _Plan:
    """The steps of an explanation: their number, and the time that they need at most.

    `points` is the number of points with different builds. A step is one profiler at one point.
    """

    def __init__(self) -> None:
        self.points = 0
        self._begun = 0
        self._steps_before = 0
        self._words = ""
        self._planned: tuple[_PlannedStep, ...] = ()
        self._seconds: dict[str, list[float]] = {}
        self._running: tuple[str, float] | None = None

    def begin(
        self, cell: Cell, profilers: Sequence[Profiler], function_profilers: Sequence[FunctionProfiler]
    ) -> None:
        """Begin a point, with these profilers."""
        self._end_step()
        self._steps_before += len(self._planned)
        self._begun += 1
        self._words = f"{cell.benchmark} {cell.point}".rstrip()
        first, *others = function_profilers or (None,)
        functions = () if first is None else (first, *(each for each in others if _follows(each, first)))
        self._planned = (
            *(_PlannedStep(each.name, each.invocations, each.slowdown, 0.1) for each in profilers),
            *(
                _PlannedStep(each.name, each.pairs, each.slowdown, PROFILER_START_SECONDS)
                for each in functions
            ),
        )

    def step(self, name: str, seconds: float) -> Stepped:
        """Return the event of the next step; a plain invocation of both takes `seconds` on average, 0 if unknown."""
        self._end_step()
        self._running = (name, time.monotonic())
        names = [each.name for each in self._planned]
        if name not in names:  # instead of a profiler that failed
            return Stepped(number=self._steps_before + len(names), words=f"{self._words}: {name}")
        at = names.index(name)
        planned = self._planned[at]
        points_left = self.points - self._begun
        rest = [*self._planned[at:], *(self._planned * points_left)]
        left = [self._expected(each, seconds) for each in rest]
        known = all(each.name in self._seconds for each in rest)
        time_left = (
            ""
            if None in left
            else f", {'about' if known else 'up to'} {duration(sum(filter(None, left)))} left"
        )
        total = self._steps_before + len(names) * (points_left + 1)
        number = self._steps_before + at + 1
        return Stepped(
            number=number,
            words=f"{self._words}: {name}, {counted(planned.invocations, 'invocation')} of each revision",
            purpose=f"{number} of {total}{time_left}",
        )

    def _expected(self, planned: _PlannedStep, seconds: float) -> float | None:
        """Return the seconds of a step: the mean at earlier points, or else a limit; `None` if unknown."""
        if known := self._seconds.get(planned.name):
            return sum(known) / len(known)
        each = planned.start_seconds + planned.slowdown * seconds
        return 2 * planned.invocations * each if seconds else None

    def _end_step(self) -> None:
        if self._running is not None:
            name, began = self._running
            self._seconds.setdefault(name, []).append(time.monotonic() - began)
            self._running = None


@dataclass(frozen=True, slots=True)
class _PlannedStep:
    """A profiler at one point: its invocations of each revision, slowdown, and seconds for an empty program."""

    name: str
    invocations: int
    slowdown: float
    start_seconds: float


def _follows(profiler: FunctionProfiler, first: FunctionProfiler) -> bool:
    """Return whether a profiler of functions also runs after the first one that applies; see `_compare_functions`."""
    return profiler.method == "callgrind" and first.method != "jfr"


def _too_slow(profiler: Profiler | FunctionProfiler, seconds: float) -> Unavailable | None:
    """Return why a profiler is skipped if one plain invocation takes that many seconds."""
    if seconds * profiler.slowdown <= LONGEST_INVOCATION_SECONDS:
        return None
    longest = duration(seconds * profiler.slowdown)
    why = f"one invocation would take about {longest}; choose a smaller point with --only"
    return Unavailable(what=profiler.name, why=why)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Profiles:
    """The metrics of every invocation of both revisions, by name."""

    before: tuple[Mapping[str, ProfiledMetric], ...]
    after: tuple[Mapping[str, ProfiledMetric], ...]


def _profile_both(profiler: Profiler, before: Ready, after: Ready) -> _Profiles | Failure:
    """Start both in alternating order, so that drift affects both equally; stop at the first failure."""
    profiles: dict[str, list[Mapping[str, ProfiledMetric]]] = {"before": [], "after": []}
    for number in range(profiler.invocations):
        sides = [("before", before), ("after", after)]
        for side, ready in sides if number % 2 == 0 else sides[::-1]:
            metrics = profiler.profile(ready, number)
            if isinstance(metrics, Failure):
                return metrics
            profiles[side].append(metrics)
    return _Profiles(before=tuple(profiles["before"]), after=tuple(profiles["after"]))


def _by_name(profiles: _Profiles) -> list[tuple[str, Sequence[ProfiledMetric], Sequence[ProfiledMetric]]]:
    """Group the metrics of all invocations by name; a metric missing from an invocation counts as zero."""
    examples = {
        name: metric for start in (*profiles.before, *profiles.after) for name, metric in start.items()
    }
    return [
        (
            name,
            [start.get(name, replace(example, value=0.0)) for start in profiles.before],
            [start.get(name, replace(example, value=0.0)) for start in profiles.after],
        )
        for name, example in examples.items()
    ]


def _compared(
    found: Sequence[tuple[str, Sequence[ProfiledMetric], Sequence[ProfiledMetric]]],
) -> list[MetricDifference]:
    differences = []
    for name, before, after in found:
        floor = max(each.floor for each in (*before, *after))
        values = [[each.value for each in side] for side in (before, after)]
        if min(min(side) for side in values) + floor <= 0.0:
            continue
        differences.append(
            MetricDifference(
                name=name,
                unit=after[0].unit,
                method=after[0].method,
                invocations=len(after),
                difference=difference(*values, floor=floor, metrics=len(found)),
            )
        )
    return differences


def _longest(found: Sequence[tuple[str, Sequence[ProfiledMetric], Sequence[ProfiledMetric]]]) -> float:
    """Return the seconds of the slowest plain invocation."""
    walls = [
        each.value for name, before, after in found if name in ("wall", "cpu") for each in (*before, *after)
    ]
    return max(walls, default=0.0)


def _mean(found: Sequence[tuple[str, Sequence[ProfiledMetric], Sequence[ProfiledMetric]]]) -> float:
    """Return the mean seconds of a plain invocation over both revisions; 0 if unknown."""
    walls = [each.value for name, before, after in found if name == "wall" for each in (*before, *after)]
    return sum(walls) / max(1, len(walls))


def find_pair(session: Session, *, culprit: str, against: str | None, store: str | None) -> Pair:
    """Find a revision and its reference: another one, or its first parent.

    Raises `SourceError` for an unknown revision, `UsageError` if there is no reference.
    """
    study, source = session.study, session.source
    if study.searched_source.kind == "directory":
        raise UsageError("a directory has only one revision; a comparison needs two")
    after = find_revision(study, source, culprit)
    if against is None and not after.parents:
        raise UsageError(
            f"{quoted(culprit)} is the first revision of its history; choose a reference with --against"
        )
    before = find_revision(study, source, against if against is not None else after.parents[0])
    if before.id == after.id:
        raise UsageError(
            f"{quoted(culprit)} cannot be compared with itself; choose another reference with --against"
        )
    changes = None
    if study.searched_source.kind == "git":
        cache = str(results_directory(study, store) / "sources")
        with Launcher() as starter:  # the session's launcher may run in a sandbox without git's mirror
            changes = GitPatches(study.searched_source, cache=cache, starter=starter).changes(before, after)
    return Pair(culprit=after, against=before, changes=changes)
