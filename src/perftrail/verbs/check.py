"""Report the plan of a study and its cost: existing and missing builds and samples, and the time left."""

from __future__ import annotations

import posixpath
import shlex
import shutil
import statistics
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

from perftrail.builds.artefact import covers
from perftrail.builds.environment import search_path
from perftrail.builds.relinking import missing_linker
from perftrail.measure.failure_groups import FailureGroupJson, group_failures
from perftrail.measure.fixtures import machine_warnings
from perftrail.measure.invocation_runner import RunnableOutcomes
from perftrail.measure.sources import SkippedRevisionJson, skips_json
from perftrail.model.benchmark import Point
from perftrail.model.build import Built, Failure
from perftrail.model.measurement import Runnable
from perftrail.model.placeholders import insert_texts, names
from perftrail.model.plan import cells, same_everywhere, subjects
from perftrail.model.source import NO_PINS, PinsJson
from perftrail.model.subject import Subject
from perftrail.model.wording import likely_unit, listed, nearest, quoted
from perftrail.results.remaining_work import PlanProgress, Span, kind_of
from perftrail.studyfile.reading import mistake

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from perftrail.errors import Mistake
    from perftrail.measure.failure_groups import FailureGroup
    from perftrail.measure.session import BuildView
    from perftrail.measure.sources import SkippedRevisions
    from perftrail.model.measurement import Outcome
    from perftrail.model.plan import Cell
    from perftrail.model.recipe import Build, Era, VariantBuild
    from perftrail.model.source import Pins
    from perftrail.model.study import Study
    from perftrail.model.subject import Revision
    from perftrail.results.remaining_work import RemainingWork
    from perftrail.results.selection import Selection
    from perftrail.studyfile.key_lines import KeyPath


class PlannedBuildsJson(TypedDict):
    """Numbers of existing, failed and missing builds."""

    built: int
    failed: int
    left: int


class PlannedInvocationsJson(TypedDict):
    """Bounds of the number of invocations, in total and remaining."""

    least: int
    most: int
    stored: int
    left_least: int
    left_most: int


class SecondsJson(TypedDict):
    """Bounds of the remaining time."""

    least: float
    most: float


class StudyPlanJson(PinsJson):
    """The plan of a study."""

    title: str
    revisions: int
    first: str
    last: str
    source_updated: Annotated[str | None, "when perftrail last fetched from the source"]
    subjects: int
    builds: PlannedBuildsJson
    skipped_revisions: list[SkippedRevisionJson]
    failures: list[FailureGroupJson]
    points: Annotated[
        int, "number of combinations of subject, benchmark and parameter values, without known failures"
    ]
    invocations: PlannedInvocationsJson
    seconds: Annotated[SecondsJson | None, "null: there are no samples to estimate it from"]
    unseen_points: Annotated[int, "points without samples, whose time is estimated from other points"]
    warnings: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyPlan:
    """A study's plan: counts of wanted, built, failed and stored items, and the remaining time.

    `failure_groups` are the builds that failed before. `source_updated` is the time of a cached source's last update,
    empty if this process updated it. `seconds` is `None` without builds
    or samples to estimate from. `unseen` points have no samples: their time is estimated from other points, and may
    be longer. `warnings` name lines of the study that are valid but probably wrong.
    """

    title: str
    revisions: tuple[Revision, ...]
    subjects: int
    built: int
    failed: int
    cells: int
    invocations: Span
    stored: int
    stored_warmups: int
    left: Span
    seconds: Span | None
    unseen: int = 0
    failure_groups: tuple[FailureGroup, ...] = ()
    skipped_revisions: tuple[SkippedRevisions, ...] = ()
    pins: Pins = NO_PINS
    source_updated: str = ""
    warnings: tuple[str, ...] = ()

    def as_json(self) -> StudyPlanJson:
        """Return the plan as `check --json` prints it."""
        return {
            "title": self.title,
            "revisions": len(self.revisions),
            "first": self.revisions[0].id,
            "last": self.revisions[-1].id,
            **self.pins.as_json(),
            "source_updated": self.source_updated or None,
            "subjects": self.subjects,
            "builds": {
                "built": self.built,
                "failed": self.failed,
                "left": self.subjects - self.built - self.failed,
            },
            "skipped_revisions": skips_json(self.skipped_revisions),
            "failures": [group.as_json() for group in self.failure_groups],
            "points": self.cells,
            "invocations": {
                "least": int(self.invocations.least),
                "most": int(self.invocations.most),
                "stored": self.stored,
                "left_least": int(self.left.least),
                "left_most": int(self.left.most),
            },
            "seconds": seconds_json(self.seconds),
            "unseen_points": self.unseen,
            "warnings": list(self.warnings),
        }


def seconds_json(span: Span | None) -> SecondsJson | None:
    """Return a span of seconds as JSON; null without one."""
    return None if span is None else {"least": round(span.least, 1), "most": round(span.most, 1)}


@dataclass(frozen=True, slots=True, kw_only=True)
class _PlanState:
    """The cells that a study needs of the built subjects, and the existing builds, runnables and outcomes.

    `counts` are the numbers of cells of a subject of each variant. The cells of other subjects have no outcomes, so
    that they are only counted: a study can have millions. `kinds` yields the cells of any one subject of a variant.
    """

    counts: Mapping[str, int]
    kinds: Callable[[str], Sequence[Cell]]
    builds: Mapping[Subject, Built | Failure | None]
    runnables: Mapping[Cell, Runnable | Failure | None]
    outcomes: Mapping[str, tuple[Outcome, ...]]

    @property
    def built(self) -> list[Built]:
        """The builds that exist."""
        return [build for build in self.builds.values() if isinstance(build, Built)]

    @property
    def failures(self) -> dict[Subject, Failure]:
        """The subjects that fail to build."""
        return {subject: build for subject, build in self.builds.items() if isinstance(build, Failure)}

    @property
    def possible(self) -> list[Cell]:
        """The cells of built subjects without a known failure."""
        return [cell for cell, runnable in self.runnables.items() if not isinstance(runnable, Failure)]

    @property
    def unbuilt(self) -> Mapping[str, int]:
        """The number of subjects without a known build, by variant."""
        return Counter(subject.variant for subject, build in self.builds.items() if build is None)

    @property
    def unbuilt_cells(self) -> int:
        """The number of cells of subjects without a known build."""
        return sum(count * self.counts[variant] for variant, count in self.unbuilt.items())

    def outcomes_by_cell(self, study: Study) -> dict[Cell, RunnableOutcomes]:
        """Return the outcomes of each cell; only one of the cells that share an artefact."""
        found: dict[object, tuple[Cell, tuple[Outcome, ...]]] = {}
        for cell in self.possible:
            runnable = self.runnables.get(cell)
            if isinstance(runnable, Runnable):
                found.setdefault(runnable.key, (cell, self.outcomes.get(runnable.key, ())))
            else:
                found[cell] = (cell, ())
        return {
            cell: RunnableOutcomes.of(
                outcomes, policy=study.measure, metrics=study.benchmarks[cell.benchmark].leading
            )
            for cell, outcomes in found.values()
        }

    def seconds(self, measuring: Span | None) -> Span | None:
        """Return the remaining time, estimated from builds and samples so far; `None` without any."""
        missing = sum(build is None for build in self.builds.values())
        if measuring is None or (missing and not self.built):
            return None
        building = missing * statistics.median(build.seconds for build in self.built) if missing else 0.0
        return Span(least=building + measuring.least, most=building + measuring.most)


def study_plan(view: BuildView, selection: Selection) -> StudyPlan:
    """Return the plan of `run` for a study. Builds and measures nothing."""
    revisions = view.source.history()
    state = _plan_state(view, selection, revisions)
    policy = view.study.measure
    least, most = policy.warmups + policy.invocations.least, policy.warmups + policy.invocations.most
    outcomes_by_cell = state.outcomes_by_cell(view.study)
    left = _left(view.study, state, outcomes_by_cell)
    count = len(outcomes_by_cell) + state.unbuilt_cells
    tried = [subject for subject, build in state.builds.items() if build is not None]
    return StudyPlan(
        title=view.study.title,
        revisions=revisions,
        pins=view.pins,
        source_updated=view.last_updated(),
        subjects=len(state.builds),
        built=len(state.built),
        failed=len(state.failures),
        cells=len(state.possible) + state.unbuilt_cells,
        invocations=Span(least=least * count, most=most * count),
        stored=sum(len(each) for each in state.outcomes.values()),
        stored_warmups=sum(
            each.key.phase == "warmup" for outcomes in state.outcomes.values() for each in outcomes
        ),
        left=left.starts,
        seconds=state.seconds(left.seconds),
        unseen=left.unseen,
        failure_groups=group_failures(tried, state.failures),
        skipped_revisions=view.subject_builder.skipped_revisions(revisions),
        warnings=tuple(map(str, _warnings(view.study))),
    )


def _warnings(study: Study) -> Iterator[Mistake]:
    """Yield values of the study that are valid but probably wrong, or that this machine cannot use."""
    relinks: dict[KeyPath, tuple[str, ...] | None] = {
        ("build", "relink"): study.build.relink,
        **{("variants", name, "build", "relink"): each.build.relink for name, each in study.variants.items()},
        **{("benchmark", name, "relink"): each.relink for name, each in study.benchmarks.items()},
    }
    for key, lines in relinks.items():
        if missing := missing_linker(lines or ()):
            yield mistake(study.file, key, missing)
    for name in study.benchmarks:
        every = [same_everywhere(study, name, variant) for variant in study.variants]
        if all(every):
            yield mistake(study.file, ("benchmark", name, "command"), every[0])
        if warning := _program_warning(study, name) or _outputs_warning(study, name):
            yield mistake(study.file, ("benchmark", name, "command"), warning)
        for own_key, reason in machine_warnings(study, study.benchmarks[name]).items():
            yield mistake(study.file, ("benchmark", name, own_key), reason)
        for metric, measured in study.benchmarks[name].metrics.items():
            if likely := likely_unit(measured.unit):
                yield mistake(
                    study.file,
                    ("benchmark", name, "metrics", metric, "unit"),
                    f"{quoted(measured.unit)} is not a standard unit; did you mean {quoted(likely)}?",
                )


def _program_warning(study: Study, name: str) -> str:
    """Return why a benchmark's program is probably missing; empty if it probably exists."""
    benchmark = study.benchmarks[name]
    words = benchmark.command.split(maxsplit=1)
    program = words[0] if words else ""
    in_build, _, in_tree = program.partition("{build}/")
    if not in_build and in_tree and not names(in_tree):
        variants = study.variants.values()
        built = study.build.steps or study.build.when or any(each.build.steps for each in variants)
        return (
            "" if built or Path(in_tree).suffix else f"{program} must be a file of the history, {_NO_STEPS}"
        )
    plain = not benchmark.shell and "/" not in program and not names(program)
    if not plain or "PATH" in benchmark.env or shutil.which(program, path=search_path()) is not None:
        return ""
    return f"PATH has no program {quoted(program)}; write {{build}}/{program} for a program of the revision"


def _outputs_warning(study: Study, name: str) -> str:
    """Return which file of the build a command names that no recipe's outputs contain; empty if there is none."""
    recipes: list[Build | Era | VariantBuild] = [study.build, *study.build.when]
    recipes += [each.build for each in study.variants.values()]
    outputs = [each.outputs for each in recipes if each.outputs is not None]
    if not all(outputs):
        return ""  # without outputs, all files of a build count
    every = tuple(dict.fromkeys(output for each in outputs for output in each))
    command = study.benchmarks[name].command
    lines = [insert_texts(command, variant.run.parts) for variant in study.variants.values()]
    for word in dict.fromkeys(word for line in lines for word in _words(line)):
        path = posixpath.normpath(word.removeprefix("{build}/"))
        if not word.startswith("{build}/") or names(path) or covers(every, path):
            continue
        by_name = {posixpath.basename(output): output for output in every}
        near = by_name.get(posixpath.basename(path)) or nearest(path, every)
        remedy = (
            f"did you mean {{build}}/{near}?"
            if near
            else f"add {quoted(path)} to build.outputs if the benchmark needs it"
        )
        return (
            f"{word} is not among build.outputs ({listed(map(quoted, every), 'and')}), so perftrail ignores changes "
            f"of this file; {remedy}"
        )
    return ""


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:
        return line.split()


_NO_STEPS = (
    'because the study has no build; to build it, add [build] with steps = ["make"] or similar, and outputs'
)


def _left(
    study: Study, state: _PlanState, outcomes_by_cell: Mapping[Cell, RunnableOutcomes]
) -> RemainingWork:
    progress = PlanProgress(study.benchmarks)
    least, most = RunnableOutcomes(policy=study.measure, metrics=()).left
    if not outcomes_by_cell:  # then no cell has a time from which that of a similar one could be estimated
        progress.add_unbuilt(("", "", Point()), state.unbuilt_cells, least=least, most=most)
        return progress.left()
    for variant, count in state.unbuilt.items():
        for cell in state.kinds(variant):
            progress.add_unbuilt(kind_of(cell), count, least=least, most=most)
    for cell, known in outcomes_by_cell.items():
        progress.set_outcomes(cell, known)
    for cell in outcomes_by_cell:
        progress.give_up(cell)
    return progress.left()


def _plan_state(view: BuildView, selection: Selection, revisions: Sequence[Revision]) -> _PlanState:
    """Look up the builds of all selected subjects, and the samples of those that are built."""
    study = view.study
    chosen = [each for each in view.subject_builder.wanted(revisions) if selection.includes_revision(each)]

    @cache
    def kinds(variant: str) -> Sequence[Cell]:
        first = Subject(revision=chosen[0], variant=variant)
        return tuple(cell for cell in cells(study, first) if selection.includes(cell))

    counts = {
        variant: sum(each.point_count(variant) for each in study.benchmarks.values())
        if selection.has_every_point
        else len(kinds(variant))
        for variant in (study.variants if chosen else ())
    }
    wanted = [subject for subject in subjects(study, chosen) if counts[subject.variant]]
    builds = {subject: view.subject_builder.known_build(subject) for subject in wanted}
    built_cells = (
        replace(cell, subject=subject)
        for subject in wanted
        if isinstance(builds[subject], Built)
        for cell in kinds(subject.variant)
    )
    runnables = {cell: view.subject_builder.known_runnable(cell) for cell in built_cells}
    keys = {each.key for each in runnables.values() if isinstance(each, Runnable)}
    return _PlanState(
        counts=counts,
        kinds=kinds,
        builds=builds,
        runnables=runnables,
        outcomes=view.store.outcomes(tuple(keys), view.machine.id),
    )
