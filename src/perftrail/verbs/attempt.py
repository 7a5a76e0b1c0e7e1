"""`check --try`: build, start and relink a few revisions, and group their failures."""

from __future__ import annotations

import math
import statistics
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

from perftrail.builds.artefact import output_files
from perftrail.errors import UsageError
from perftrail.measure.events import HistoryRead, Skipped
from perftrail.measure.failure_groups import FailureGroupJson, group_failures, study_line, without_details
from perftrail.measure.pairs import rule_for
from perftrail.measure.remedies import remedies
from perftrail.model.build import Built, Failure
from perftrail.model.measurement import FailedInvocation, Quiet
from perftrail.model.plan import cells
from perftrail.model.reads import patterns_of
from perftrail.model.source import MAIN, matching
from perftrail.model.subject import Subject
from perftrail.model.target import shown_metrics
from perftrail.ports import ListableSource
from perftrail.results.remaining_work import Span
from perftrail.results.rows import units_of
from perftrail.results.selection import TIMES, Choice
from perftrail.search.forecast import USUAL_BUILDS, USUAL_RUNS
from perftrail.verbs.check import SecondsJson, StudyPlan, StudyPlanJson, seconds_json, study_plan

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Mapping, Sequence

    from perftrail.measure.events import Event
    from perftrail.measure.failure_groups import FailureGroup
    from perftrail.measure.remedies import Remedy
    from perftrail.measure.session import Session
    from perftrail.model.measurement import Measurement, Phase
    from perftrail.model.plan import Cell
    from perftrail.model.study import Study
    from perftrail.model.subject import Revision
    from perftrail.results.selection import Selection


class GroupWithRemediesJson(FailureGroupJson):
    """Subjects that fail for one reason, and possible remedies."""

    study_line: Annotated[str, "the line of the study file that the failure is about: FILE:LINE (KEY)"]
    benchmarks: Annotated[list[str], "the benchmarks that fail; empty: the builds fail"]
    remedies: Annotated[list[str], "lines of a study file"]


class ValueJson(TypedDict):
    """A value and its unit."""

    value: float
    unit: str


class FirstRunJson(TypedDict):
    """The first run of a benchmark that was measured, of the newest revision that works."""

    benchmark: str
    revision: str
    variant: str
    parameters: dict[str, int | float | str]
    metrics: dict[str, ValueJson]


class UnreadFilesJson(TypedDict):
    """Files that no observed build uses, as lines for the study."""

    observed: Annotated[list[str], "revisions whose builds were observed with strace"]
    unaffected_by: Annotated[list[str], "proposed build.unaffected_by; empty if nothing is worth it"]
    revisions: Annotated[int, "revisions that change only files of the proposal"]
    incomplete: Annotated[str, "why there is no proposal"]


class AttemptReportJson(TypedDict):
    """Results of trying a few revisions."""

    tried: Annotated[list[str], "revisions that were built"]
    subjects: Annotated[int, "number of tried combinations of revision and variant"]
    built: Annotated[int, "subjects that were built"]
    usable: Annotated[int, "subjects that were built and ran at least one benchmark"]
    partly: Annotated[int, "usable subjects that failed in another benchmark"]
    relinked: Annotated[int | None, "subjects that were relinked and then ran; null: no recipe relinks"]
    outputs: Annotated[list[str], "first output files of the newest revision that was built"]
    first_runs: list[FirstRunJson]
    failures: list[GroupWithRemediesJson]
    find_seconds: Annotated[
        SecondsJson | None, "likely time of find; null: the study names no metric, or nothing ran"
    ]
    compare_seconds: Annotated[
        SecondsJson | None, "likely time of compare of two revisions without builds; null: nothing ran"
    ]
    compare_pairs: Annotated[list[int], "the fewest and the most pairs of such a comparison"]
    unread: Annotated[UnreadFilesJson | None, "null: builds cannot be observed here"]
    plan: StudyPlanJson


LAYOUTS = (1, 2, 3)
"""Seeds for relinking the newest revision: enough to detect that relinking has no effect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupWithRemedies:
    """A group of tried subjects, with remedies if these subjects are one range of the history.

    `benchmarks` fail for this reason, none if the builds fail. `study_lines` are the lines of the study file that the
    failure is about: one for each benchmark.
    """

    group: FailureGroup
    remedies: tuple[Remedy, ...]
    study_lines: tuple[str, ...]
    benchmarks: tuple[str, ...] = ()

    @property
    def study_line(self) -> str:
        """The first line of the study file that the failure is about."""
        return self.study_lines[0]

    def as_json(self) -> GroupWithRemediesJson:
        """Return the group as `check --try --json` prints it, each remedy as lines of a study file."""
        return {
            **self.group.as_json(),
            "remedies": ["\n".join(each.lines) for each in self.remedies],
            "study_line": self.study_line,
            "benchmarks": list(self.benchmarks),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstRun:
    """A benchmark's first measured run: its cell, and the metrics that tables show, with their units."""

    cell: Cell
    values: Mapping[str, float]
    units: Mapping[str, str]

    def as_json(self) -> FirstRunJson:
        """Return the run as `check --try --json` prints it."""
        return {
            "benchmark": self.cell.benchmark,
            "revision": self.cell.subject.revision.id,
            "variant": self.cell.subject.variant,
            "parameters": dict(self.cell.point.values),
            "metrics": {
                name: {"value": value, "unit": self.units[name]} for name, value in self.values.items()
            },
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedPoints:
    """The points of one subject that were started once: their seconds, those that failed, and the number of others.

    The others were not started within `MOST_SECONDS`.
    """

    seconds: Mapping[Cell, float]
    failed: Mapping[Cell, Failure]
    others: int

    @property
    def short(self) -> Mapping[Cell, float]:
        """The points below `SHORT_SECONDS`, the shortest first."""
        ascending = sorted(self.seconds.items(), key=lambda each: each[1])
        return {cell: seconds for cell, seconds in ascending if seconds < SHORT_SECONDS}


MOST_SECONDS = 60.0
"""Time for starting every point once; a point that runs at the end of it still ends."""

SHORT_SECONDS = 0.02
"""Shorter invocations mostly measure the start of the process, and are noisy."""

MOST_PATTERNS = 12
"""Number of paths that `check --try` proposes for `build.unaffected_by`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadFiles:
    """Paths that no observed build uses, and the number of revisions that change only these.

    `patterns` are those that revisions of the history change, the most often changed first. `incomplete` states why
    there is no proposal.
    """

    observed: tuple[Revision, ...]
    patterns: tuple[str, ...] = ()
    revisions: int = 0
    incomplete: str = ""

    def as_json(self) -> UnreadFilesJson:
        """Return the proposal as `check --try --json` prints it."""
        return {
            "observed": [revision.id for revision in self.observed],
            "unaffected_by": list(self.patterns),
            "revisions": self.revisions,
            "incomplete": self.incomplete,
        }


def propose_unaffected(
    unread: Collection[str], every: Collection[str], touched: Sequence[Sequence[str]]
) -> tuple[tuple[str, ...], int]:
    """Return paths for `build.unaffected_by` that cover unread files only, and how many revisions change only these.

    `every` are all files of the observed trees, `touched` the changed files of each revision of the history.

    >>> propose_unaffected({"NEWS", "docs/a", "x"}, ["a.c", "NEWS", "docs/a", "x"], [["docs/a"], ["NEWS", "a.c"]])
    (('NEWS', 'docs'), 1)
    """
    patterns = patterns_of(unread, every)
    counts = dict.fromkeys(patterns, 0)
    for paths in touched:
        for pattern in {found for path in paths if (found := _pattern_of(path, counts)) is not None}:
            counts[pattern] += 1
    chosen = sorted((each for each in patterns if counts[each]), key=lambda each: (-counts[each], each))
    proposed = dict.fromkeys(chosen[:MOST_PATTERNS], 0)
    only = sum(bool(paths) and all(_pattern_of(path, proposed) for path in paths) for paths in touched)
    return tuple(proposed), only


def _pattern_of(path: str, patterns: Mapping[str, int]) -> str | None:
    """Return the pattern that is a path or a directory above it."""
    parts = path.split("/")
    names = ("/".join(parts[:end]) for end in range(1, len(parts) + 1))
    return next((name for name in names if name in patterns), None)


MOST_OUTPUTS = 5
"""Largest number of output files that `check --try` names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptReport:
    """The result of `check --try`: numbers of subjects, failures, first runs, and the updated plan.

    `usable` counts subjects that were built and ran a benchmark, `partly` those of them that failed in another
    benchmark, `relinked` those that were relinked and then ran; `None` if no recipe relinks. `outputs` are output
    files of the newest build. `find_seconds` is the likely time of a search, `compare_seconds` that of a comparison of
    two revisions with the fewest and the most pairs, `compare_pairs`. `points` are those of the newest usable
    subject; `None` if nothing ran.
    """

    plan: StudyPlan
    tried: tuple[Subject, ...]
    built: int
    usable: int
    failure_groups: tuple[GroupWithRemedies, ...]
    partly: int = 0
    relinked: int | None = None
    outputs: tuple[str, ...] = ()
    first_runs: tuple[FirstRun, ...] = ()
    find_seconds: Span | None = None
    compare_seconds: Span | None = None
    compare_pairs: tuple[int, int] = (0, 0)
    unread: UnreadFiles | None = None
    points: StartedPoints | None = None

    @property
    def useful(self) -> bool:
        """Whether at least one subject was built and ran."""
        return self.usable > 0

    def as_json(self) -> AttemptReportJson:
        """Return the report as `check --try --json` prints it."""
        return {
            "tried": list(dict.fromkeys(subject.revision.id for subject in self.tried)),
            "subjects": len(self.tried),
            "built": self.built,
            "usable": self.usable,
            "partly": self.partly,
            "relinked": self.relinked,
            "outputs": list(self.outputs),
            "first_runs": [run.as_json() for run in self.first_runs],
            "failures": [group.as_json() for group in self.failure_groups],
            "find_seconds": seconds_json(self.find_seconds),
            "compare_seconds": seconds_json(self.compare_seconds),
            "compare_pairs": list(self.compare_pairs),
            "unread": None if self.unread is None else self.unread.as_json(),
            "plan": self.plan.as_json(),
        }


class Attempt:
    """Tries revisions spread evenly over the range: builds each, and starts the first point of each benchmark.

    It starts every other point once with the newest of them that works.

    Builds and invocations are the same as those of `run`, are stored, and are reused.
    """

    def __init__(self, session: Session, selection: Selection, *, count: int) -> None:
        self._session = session
        self._selection = selection
        self._count = count
        self._built: dict[Subject, Built] = {}
        self._started: set[Subject] = set()
        self._relinked: set[Subject] = set()
        self._can_relink = False
        self._failures: dict[str | None, dict[Subject, Failure]] = {}
        self._first_runs: dict[str, FirstRun] = {}
        self._invocation_seconds: dict[Cell, float] = {}
        self._seconds_by_benchmark: dict[str, float] = {}

    def events(self) -> Generator[Event, None, AttemptReport]:
        """Try the revisions; yield events and return the report. Raises `UsageError` if nothing is selected."""
        revisions = self._session.source.history()
        yield HistoryRead(revisions=revisions)
        subject_builder = self._session.subject_builder
        yield from (Skipped(skipped=each) for each in subject_builder.skipped_revisions(revisions))
        tried = self._chosen(subject_builder.wanted(revisions))
        yield from subject_builder.build_in_parallel(tried)
        for subject in tried:
            yield from self._try(subject)
            layouts = LAYOUTS if subject == tried[-1] else LAYOUTS[:1]
            yield from self._relink(self._first_cells(subject), layouts)
        points = yield from self._start_points(tried)
        plan = study_plan(self._session, self._selection)
        return AttemptReport(
            plan=plan,
            tried=tried,
            built=len(self._built),
            usable=len(self._started),
            failure_groups=self._failure_groups(tried),
            partly=sum(
                any(subject in failed for failed in self._failures.values()) for subject in self._started
            ),
            relinked=len(self._relinked) if self._can_relink else None,
            outputs=self._outputs(),
            first_runs=tuple(self._first_runs.values()),
            compare_seconds=self._compare_seconds(tried),
            compare_pairs=self._compare_pairs(),
            find_seconds=self._find_seconds(len(revisions), left=plan.subjects - plan.built - plan.failed),
            unread=(yield from self._unread_files(revisions)),
            points=points,
        )

    def _failure_groups(self, tried: Sequence[Subject]) -> tuple[GroupWithRemedies, ...]:
        """Group the failures of builds and of benchmarks; those that fail for one reason share a group."""
        groups: dict[tuple[str, str, tuple[Subject, ...]], tuple[FailureGroup, list[str | None]]] = {}
        for benchmark, failures in self._failures.items():
            for group in group_failures(tried, failures):
                reason = (group.failure.stage, without_details(group.line), group.subjects)
                groups.setdefault(reason, (group, []))[1].append(benchmark)
        ordered = sorted(groups.values(), key=lambda each: len(each[0].subjects), reverse=True)
        return tuple(self._with_remedies(group, benchmarks) for group, benchmarks in ordered)

    def _with_remedies(self, group: FailureGroup, benchmarks: Sequence[str | None]) -> GroupWithRemedies:
        first, inputs = group.subjects[0], self._session.subject_builder.build_inputs
        study, eras = self._session.study, inputs.eras_of(first)
        lines = (study_line(group.failure, study, benchmark, first, eras) for benchmark in benchmarks)
        return GroupWithRemedies(
            group=group,
            remedies=remedies(group, inputs.recipe(first)),
            study_lines=tuple(dict.fromkeys(lines)),
            benchmarks=tuple(benchmark for benchmark in benchmarks if benchmark is not None),
        )

    def _outputs(self) -> tuple[str, ...]:
        """Return output files of the newest build, if the recipe names outputs."""
        if not self._built:
            return ()
        subject = next(reversed(self._built))
        globs = self._session.subject_builder.build_inputs.recipe(subject).outputs
        root = Path(self._built[subject].directory)
        return output_files(root, globs, most=MOST_OUTPUTS) if globs else ()

    def _unread_files(self, revisions: Sequence[Revision]) -> Generator[Event, None, UnreadFiles | None]:
        """Observe the newest usable build of each recipe, and propose the files that none of them reads."""
        source, subject_builder = self._session.source, self._session.subject_builder
        inputs = subject_builder.build_inputs
        chosen = {
            inputs.recipe_key(inputs.recipe(subject)): subject
            for subject in self._built
            if subject in self._started
        }
        recipes = [inputs.recipe(subject) for subject in chosen.values()]
        if not (chosen and isinstance(source, ListableSource) and subject_builder.can_observe):
            return None
        if self._session.study.along != MAIN or not all(each.outputs and not each.root for each in recipes):
            return None
        observed = tuple(dict.fromkeys(subject.revision for subject in chosen.values()))
        reads = []
        for subject in chosen.values():
            reads.append((yield from subject_builder.observe(subject)))
        if why := next((each.incomplete for each in reads if each.incomplete), ""):
            return UnreadFiles(observed=observed, incomplete=why)
        every = {path for revision in observed for path in source.files(revision)}
        known = self._session.study.build.unaffected_by
        wanted = {path for path in every if not (known and matching(known).fullmatch(path))}
        for each in reads:
            wanted &= each.unread(wanted)
        patterns, only = propose_unaffected(wanted, every, source.touched(revisions))
        return UnreadFiles(observed=observed, patterns=patterns, revisions=only)

    def _find_seconds(self, revisions: int, *, left: int) -> Span | None:
        """Return the time that most searches at the slowest point take; `None` if the study names no metric.

        `left` is the number of revisions without a build: those that differ only in irrelevant files share one.
        """
        metrics = len(self._session.study.find.metric)
        if not (metrics and self._invocation_seconds):
            return None
        build = statistics.median(each.seconds for each in self._built.values())
        run = max(self._invocation_seconds.values())
        least, most = (
            min(left, math.log2(revisions) + builds) * build + runs * metrics * run
            for builds, runs in zip(USUAL_BUILDS, USUAL_RUNS, strict=True)
        )
        return Span(least=least, most=most)

    def _compare_pairs(self) -> tuple[int, int]:
        """Return the fewest and the most pairs of a comparison of two revisions in all metrics."""
        study = self._session.study
        verdicts = sum(
            len(Choice().of(study, name, variant)) for name in study.benchmarks for variant in study.variants
        )
        rule = rule_for(study.measure, verdicts)
        return rule.needed_pairs, rule.most

    def _compare_seconds(self, tried: Sequence[Subject]) -> Span | None:
        """Return the time of a comparison of two revisions, without its builds; `None` if nothing ran."""
        subjects = {subject.variant: subject for subject in tried}.values()
        each = sum(
            self._invocation_seconds.get(cell, self._seconds_by_benchmark.get(cell.benchmark, 0.0))
            for subject in subjects
            for cell in cells(self._session.study, subject)
            if self._selection.includes(cell)
        )
        least, most = self._compare_pairs()
        return Span(least=2 * least * each, most=2 * most * each) if each else None

    def _chosen(self, revisions: Sequence[Revision]) -> tuple[Subject, ...]:
        variants = self._session.study.variants
        wanted = [
            revision
            for revision in revisions
            if any(self._first_cells(Subject(revision=revision, variant=name)) for name in variants)
        ]
        if not wanted:
            raise UsageError("--only and source.skip exclude every revision; list them with perftrail check")
        subjects = (
            Subject(revision=revision, variant=name)
            for revision in spread(wanted, self._count)
            for name in variants
        )
        return tuple(subject for subject in subjects if self._first_cells(subject))

    def _first_cells(self, subject: Subject) -> list[Cell]:
        """Return the first wanted point of each benchmark of a subject."""
        first: dict[str, Cell] = {}
        for cell in cells(self._session.study, subject):
            if self._selection.includes(cell):
                first.setdefault(cell.benchmark, cell)
        return list(first.values())

    def _try(self, subject: Subject) -> Generator[Event, None, None]:
        built = yield from self._session.subject_builder.build(subject)
        if isinstance(built, Built):
            self._built[subject] = built
        for cell in self._first_cells(subject):
            started = yield from self._start(cell)
            if isinstance(started, Failure):
                self._fail(cell, started, is_built=isinstance(built, Built))
            else:
                self._started.add(subject)
                self._first_runs[cell.benchmark] = self._first_run(cell, started)

    def _start_points(self, tried: Sequence[Subject]) -> Generator[Event, None, StartedPoints | None]:
        """Start each wanted point of the newest usable subject once, for `MOST_SECONDS` at most."""
        usable = [subject for subject in tried if subject in self._started]
        if not usable:
            return None
        wanted = [cell for cell in cells(self._session.study, usable[-1]) if self._selection.includes(cell)]
        failed: dict[Cell, Failure] = {}
        others, began = 0, time.monotonic()
        first = set(self._first_cells(usable[-1]))
        for cell in wanted:
            if cell in first:
                continue
            if time.monotonic() - began > MOST_SECONDS:
                others += 1
            else:
                started = yield from self._start(cell)
                if isinstance(started, Failure):
                    failed[cell] = started
        seconds = {
            cell: self._invocation_seconds[cell] for cell in wanted if cell in self._invocation_seconds
        }
        return StartedPoints(seconds=seconds, failed=failed, others=others)

    def _fail(self, cell: Cell, failure: Failure, *, is_built: bool = True) -> None:
        """Record the first failure of a subject in each benchmark, or of its build."""
        self._failures.setdefault(cell.benchmark if is_built else None, {}).setdefault(cell.subject, failure)

    def _relink(self, cells: Sequence[Cell], layouts: Sequence[int]) -> Generator[Event, None, None]:
        """Relink the started cells in other orders by their relink lines, and start each once; no sample is stored."""
        subject_builder, runner = self._session.subject_builder, self._session.runner
        wanted = [
            cell
            for cell in cells
            if cell.subject in self._started
            and subject_builder.can_relink(cell)
            and not subject_builder.pins(cell)
        ]
        if not wanted:
            return
        self._can_relink = True
        yield from subject_builder.relink(wanted, layouts)
        for cell in wanted:
            for layout in layouts:
                ready = yield from subject_builder.ready(cell, layout=layout)
                failure = ready if isinstance(ready, Failure) else None
                if not isinstance(ready, Failure) and layout == layouts[0]:
                    result = runner.invoker.observe(ready, f"layout-{layout}", lambda command: command).result
                    failure = result if isinstance(result, Failure) else None
                if failure is not None:
                    self._fail(cell, failure)
                    return
        self._relinked.add(wanted[0].subject)

    def _start(self, cell: Cell) -> Generator[Event, None, Measurement | Failure]:
        ready = yield from self._session.subject_builder.ready(cell)
        if isinstance(ready, Failure):
            return ready
        phase: Phase = "warmup" if self._session.study.measure.warmups else "sample"
        outcome = yield from self._session.runner.outcome(ready, phase, 0)
        if isinstance(outcome, FailedInvocation):
            return outcome.failure
        self._invocation_seconds[cell] = outcome.seconds
        self._seconds_by_benchmark[cell.benchmark] = outcome.seconds
        return outcome

    def _first_run(self, cell: Cell, outcome: Measurement) -> FirstRun:
        study, name = self._session.study, cell.benchmark
        wanted = shown_metrics(study, name)
        if set(wanted) <= set(TIMES):
            wanted = TIMES  # the same metrics for every benchmark, and those that compare judges
        shown = [metric for metric in wanted if metric in outcome.values]
        return FirstRun(
            cell=cell,
            values={metric: outcome.values[metric] for metric in shown},
            units=units_of(study.benchmarks[name], shown),
        )


def without_quiet_wait(study: Study) -> Study:
    """Return a study whose warm-ups do not wait for a quiet machine, for `check --try`."""
    if not study.measure.warmups:
        return study
    return replace(study, measure=replace(study.measure, quiet=Quiet()))


def spread(revisions: Sequence[Revision], count: int) -> tuple[Revision, ...]:
    """Select revisions evenly, always the newest, and the oldest if there are two or more."""
    last = len(revisions) - 1
    if count == 1:
        return (revisions[last],)
    positions = {round(number * last / (count - 1)) for number in range(count)}
    return tuple(revisions[position] for position in sorted(positions))
