"""Compare two revisions in interleaved pairs, until each verdict is settled or the budget is spent.

`Compare` runs the comparison and returns a `Gate`. `ComparedBenchmark` compares base and head of one benchmark in one
variant. `layout_noise_of_neighbours` estimates layout noise from adjacent revisions that were measured in the same
blocks.
"""

from __future__ import annotations

import statistics
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise, zip_longest
from pathlib import PurePath
from typing import TYPE_CHECKING

from perftrail.errors import SourceError, StudyError, UsageError
from perftrail.measure.events import BudgetTooSmall, HistoryRead, Progress, now
from perftrail.measure.failure_groups import study_line
from perftrail.measure.pairs import (
    PAIRS_PER_LAYOUT,
    Clock,
    Comparisons,
    InterleavedPairs,
    logarithm,
    replicates_needed,
    rule_for,
)
from perftrail.model.build import Failure
from perftrail.model.json_data import to_plain
from perftrail.model.measurement import Measurement, tool_differences, tool_name, tool_version
from perftrail.model.plan import cells, same_everywhere
from perftrail.model.source import STAGED, WORKING_TREE
from perftrail.model.store_records import ComparisonRecord
from perftrail.model.subject import Subject
from perftrail.model.wording import counted
from perftrail.ports import EditableSource
from perftrail.results.gate import (
    ComparedMetric,
    EnvironmentDifference,
    FailedSide,
    Gate,
    Levels,
    Row,
    levels_of_ratio,
)
from perftrail.results.selection import TIMES, Choice
from perftrail.stats.comparison import FAMILY_ERROR, Verdict
from perftrail.stats.estimate import estimate
from perftrail.stats.layout_noise import layout_noise
from perftrail.stats.rates import rate_estimate
from perftrail.stats.scale import Scale
from perftrail.studyfile.reading import mistake
from perftrail.verbs.backport.patch import find_revision

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence

    from perftrail.measure.events import Event
    from perftrail.measure.pairs import ComparedReplicates
    from perftrail.measure.session import Session
    from perftrail.measure.subjects import Ready
    from perftrail.model.measurement import Origin, Outcome, Runnable
    from perftrail.model.plan import Cell
    from perftrail.model.subject import Revision
    from perftrail.model.target import Target
    from perftrail.results.gate import FailOn, SideName
    from perftrail.stats.comparison import Rule
    from perftrail.stats.layout_noise import LayoutNoise


class ComparedBenchmark:
    """Base and head of one benchmark, and the compared metrics, at the points that these need."""

    def __init__(
        self,
        session: Session,
        ready_cells: Mapping[SideName, Sequence[Ready]],
        targets: Sequence[Target],
        *,
        clock: Clock,
        most_per_layout: int = PAIRS_PER_LAYOUT,
        strict_maximum: bool = False,
    ) -> None:
        needed = {point for target in targets for point in target.points}
        self._session = session
        self.pairs = InterleavedPairs(
            session,
            {
                side: [ready for ready in each if ready.cell.point in needed]
                for side, each in ready_cells.items()
            },
            clock=clock,
            most_per_layout=most_per_layout,
            strict_maximum=strict_maximum,
            adapts=True,
            counted_failures=_counted_failures(targets),
        )
        self._outcomes = self.pairs.outcomes
        self._comparisons: Comparisons[SideName] = Comparisons(self._outcomes)
        points = set(self._outcomes.points)
        self.targets = tuple(target for target in targets if points.issuperset(target.points))

    @property
    def one_build(self) -> bool:
        """Whether base and head are one build, so that there is nothing to compare."""
        return bool(self.pairs.equal)

    def needs_more(self, rule: Rule) -> bool:
        """Whether more replicates can settle a verdict.

        If one of the benchmark's times certainly differs by the threshold, its other times need no further replicates.
        """
        rule = self.pairs.rule_in_replicates(rule)
        if not self._outcomes.active or self._outcomes.reached_maximum(rule):
            return False
        times = [target for target in self._measurable_targets() if target.text in TIMES]
        differ = {target.points for target in times if _differs(self._read(target, rule), rule)}
        return any(
            not self._comparisons.settled(target, rule, one="base", other="head")
            and not (target in times and target.points in differ)
            for target in self._measurable_targets()
        )

    def rows(self, rule: Rule) -> tuple[Row, ...]:
        """Return the comparison of every metric that both sides have; `failures` has the others."""
        return tuple(
            self._row(target, self.pairs.rule_in_replicates(rule)) for target in self._measurable_targets()
        )

    def failures(self) -> tuple[FailedSide, ...]:
        """Return the sides that could not be measured, with their points."""
        return tuple(
            FailedSide(
                side=each.side,
                variant=self.pairs.variant,
                benchmark=self.pairs.benchmark,
                point=str(each.ready.cell.point),
                failure=each.failure,
                study_line=failed_line(self._session, each.ready.cell, each.failure, self.pairs.benchmark),
            )
            for each in self.pairs.broken()
        )

    def discard_results(self) -> None:
        """Discard results of a rule that no longer applies."""
        self._comparisons.forget()

    def _measurable_targets(self) -> list[Target]:
        """Return the metrics whose points all work on both sides."""
        return [target for target in self.targets if not self._outcomes.dropped.keys() & set(target.points)]

    def _read(self, target: Target, rule: Rule) -> ComparedReplicates[SideName] | None:
        return self._comparisons.read(target, rule, one="base", other="head")

    def _row(self, target: Target, rule: Rule) -> Row:
        metric = ComparedMetric.of(target)
        if self.one_build:
            return Row(metric=metric, one_build=True)
        found = self._read(target, rule)
        if found is None:
            return Row(metric=metric, note=self._outcomes.why_missing(target))
        base, head = (
            [replicate.levels[side] for replicate in found.replicates] for side in self._outcomes.sides
        )
        scale = found.comparison.scale
        if scale is Scale.RATE:
            levels = Levels(base=rate_estimate(base), head=rate_estimate(head))
        else:
            medians = [estimate([scale.as_value(value) for value in each]) for each in (base, head)]
            levels = Levels(base=medians[0], head=medians[1])
        if scale is Scale.RATIO:
            levels = levels_of_ratio(*medians, ratio=found.comparison.effect)
        return Row(
            metric=metric,
            base=levels.base,
            head=levels.head,
            comparison=found.comparison,
            noisy=sum(replicate.noisy for replicate in found.replicates),
            discarded=self._outcomes.discarded(target),
            pairs=sum(replicate.pairs for replicate in found.replicates),
            layouts=len(found.replicates) if self._outcomes.relinked else 0,
            pinned=self._outcomes.relinked and self.pairs.pins,
            linked=self._outcomes.linked,
            at_least=target.limit is not None
            and scale.allows(target.limit)
            and any(statistics.median(each) >= scale.level(target.limit) for each in (base, head)),
            seconds=self._outcomes.seconds(target),
            ratios=tuple(scale.effect(after - before) for before, after in zip(base, head, strict=True)),
        )


def _absent(failed_sides: Sequence[FailedSide], side: SideName) -> tuple[str, ...]:
    """Return the benchmarks that the suites of one side do not have."""
    lacking = (
        each.benchmark for each in failed_sides if each.side == side and each.failure.stage == "absent"
    )
    return tuple(dict.fromkeys(lacking))


def failed_line(session: Session, cell: Cell, failure: Failure, benchmark: str | None) -> str:
    """Return the line of the study file that a failure is about; `benchmark` is `None` if the recipe failed."""
    eras = session.subject_builder.build_inputs.eras_of(cell.subject)
    return study_line(failure, session.study, benchmark, cell.subject, eras)


def _counted_failures(targets: Sequence[Target]) -> tuple[str, ...]:
    """Return the stages of failures that are values of a metric; an empty text for all of them."""
    stages = [""] * any(each.works for each in targets)
    return (*stages, *(["timeout"] * any(each.limit is not None for each in targets)))


def _differs(found: ComparedReplicates[SideName] | None, rule: Rule) -> bool:
    """Whether a metric certainly differs by the threshold or more."""
    if found is None or found.comparison.verdict not in (Verdict.FASTER, Verdict.SLOWER):
        return False
    interval = found.comparison.bounds
    return max(interval.low, -interval.high) >= found.comparison.scale.on_scale(rule.threshold)


MOST_REVISIONS = 400
"""Maximum number of revisions to examine, the newest ones."""


def layout_noise_of_neighbours(session: Session, target: Target) -> LayoutNoise | None:
    """Estimate how much adjacent builds differ in a metric without a change of it; builds and starts nothing.

    Only metrics of a single point are used, and only builds as their recipe links them.
    """
    if len(target.points) != 1:
        return None
    revisions = session.source.history()[-MOST_REVISIONS:]
    known = [_runnable(session, revision, target) for revision in revisions]
    keys = tuple({each.key for each in known if each is not None})
    stored = session.store.outcomes(keys, session.machine.id) if keys else {}
    logs = {key: _by_block(target, outcomes) for key, outcomes in stored.items()}
    ratios = []
    for one, other in pairwise(known):
        if one is None or other is None or one.key == other.key:
            continue
        before, after = logs.get(one.key, {}), logs.get(other.key, {})
        ratios.append([after[block] - before[block] for block in before if block in after])
    return layout_noise(ratios)


def _runnable(session: Session, revision: Revision, target: Target) -> Runnable | None:
    subject = Subject(revision=revision, variant=target.variant)
    [point] = target.points
    for cell in cells(session.study, subject):
        if (cell.benchmark, cell.point) == (target.benchmark, point):
            found = session.subject_builder.known_runnable(cell)
            return None if isinstance(found, Failure) else found
    return None


def _by_block(target: Target, outcomes: Sequence[Outcome]) -> Mapping[str, float]:
    [point] = target.points
    found = {}
    for each in outcomes:
        draw = each.draw
        if isinstance(each, Measurement) and each.key.phase == "sample" and draw.block and not draw.layout:
            value = logarithm(target, {point: each})
            if not isinstance(value, Failure):
                found[draw.block] = value
    return found


ROUNDS_TO_ESTIMATE = 5
"""Number of rounds after which the cost of a round is known."""

BUDGET_SHARE = 0.9
"""Share of the budget that the rule plans for, because later rounds may cost more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareRequest:
    """What to compare: base and head by any name that the source knows, the metrics, and the confidence.

    `threshold` is the smallest relative change worth reporting, by default that of the study's searches if it sets
    one, else its precision. `most` is the maximum number of pairs, by default the study's maximum number of
    invocations. Measuring takes at most `budget_seconds`.
    """

    base: str
    head: str
    choice: Choice = field(default_factory=Choice)
    fail_on: FailOn = "never"
    threshold: float | None = None
    confidence: float = 1.0 - FAMILY_ERROR
    budget_seconds: float | None = None
    most: int | None = None


DEPENDENCY_FILES = frozenset(
    (
        ".gitmodules", "Cargo.lock", "Gemfile.lock", "Package.resolved", "Pipfile.lock", "bun.lock",
        "cabal.project.freeze",
        "composer.lock", "conan.lock", "environment.yml", "flake.lock", "go.sum", "gradle.lockfile", "mix.lock",
        "package-lock.json", "packages.lock.json", "pdm.lock", "pnpm-lock.yaml", "poetry.lock", "pom.xml",
        "requirements.txt", "stack.yaml.lock", "uv.lock", "vcpkg.json", "yarn.lock",
    )
)  # fmt: skip
"""Names of files with which build systems and package managers select the versions of dependencies."""

MOST_DEPENDENCY_FILES = 8


def tools_of_both(origins: Iterable[Mapping[SideName, Origin]]) -> tuple[str, ...]:
    """Return the version of each tool that both sides used, one line each."""
    shared = {
        tool: None
        for each in origins
        if len(each) == 2
        for tool in each["base"].tools
        if tool in each["head"].tools
    }
    return tuple(filter(None, map(tool_version, shared)))


def origin_differences(origins: Iterable[Mapping[SideName, Origin]]) -> tuple[EnvironmentDifference, ...]:
    """Return the first differing line of the recipes, and each differing tool; each difference once."""
    found: dict[EnvironmentDifference, None] = {}
    for each in origins:
        if len(each) != 2:
            continue
        base, head = each["base"], each["head"]
        lines = zip_longest(base.lines, head.lines, fillvalue="")
        if base.recipe != head.recipe:
            first = next(((one, other) for one, other in lines if one != other), ("", ""))
            found[EnvironmentDifference(name="recipe", base=first[0], head=first[1])] = None
        for one, other in tool_differences(base.tools, head.tools):
            found[EnvironmentDifference(name=tool_name(one or other), base=one, head=other)] = None
    return tuple(found)


class Compare:
    """Measures every metric of base and head interleaved. It resumes by itself: stored pairs are reused."""

    def __init__(self, session: Session, request: CompareRequest, *, clock: Clock = time.monotonic) -> None:
        self._session = session
        self._request = request
        self._clock = clock
        self._failures: dict[tuple[str, ...], FailedSide] = {}
        self._notes: list[str] = []
        self._origins: dict[tuple[str, str], dict[SideName, Origin]] = {}

    def events(self) -> Generator[Event, None, Gate]:
        """Build and measure both; yield events and return the result."""
        base, head = self._revisions()
        self._refuse_one_program()
        self._refuse_too_few_pairs()
        yield HistoryRead(revisions=(base, head))
        began = self._clock()
        benchmarks = yield from self._build_both(base, head)
        sides = [
            Subject(revision=each, variant=name)
            for name in self._session.study.variants
            for each in (base, head)
        ]
        yield from self._session.subject_builder.confirm(sides)
        for benchmark in benchmarks:
            yield from benchmark.pairs.report_equal_builds()
        different = [benchmark for benchmark in benchmarks if not benchmark.one_build]
        rule = self._rule(different)
        rule = yield from self._measure(different, rule)
        self._notes += self._skipped(different)
        if repeated := self._session.runner.repeated:
            self._notes.append(
                f"repeated {counted(repeated, 'run')} with an end that retry_on names, which is no result"
            )
        self._notes += [words for benchmark in different if (words := benchmark.pairs.relink_failure_words)]
        rows = sorted(
            (row for benchmark in benchmarks for row in benchmark.rows(rule)), key=lambda row: row.rank
        )
        failed_sides = (
            *self._failures.values(),
            *(each for benchmark in different for each in benchmark.failures()),
        )
        gate = Gate(
            title=self._session.study.title,
            file=self._session.study.file,
            base=base,
            head=head,
            rows=tuple(rows),
            failed_sides=tuple(each for each in failed_sides if each.failure.stage != "absent"),
            appeared=_absent(failed_sides, "base"),
            disappeared=_absent(failed_sides, "head"),
            fail_on=self._request.fail_on,
            confidence=self._request.confidence,
            threshold=rule.threshold,
            threshold_source=self._threshold_source(),
            machine=self._session.machine,
            invocations=sum(benchmark.pairs.outcomes.invocations for benchmark in different),
            fresh=self._session.runner.started,
            seconds=self._clock() - began,
            finished=now(),
            layout_noise=self._layout_noise(benchmarks, rows),
            tools=tools_of_both(self._origins.values()),
            differences=(
                *origin_differences(self._origins.values()),
                *self._changed_dependencies(base, head),
            ),
            notes=tuple(self._notes),
        )
        self._session.store.add_comparison(
            ComparisonRecord(machine=gate.machine.id, finished=gate.finished, result=to_plain(gate))
        )
        return gate

    def _refuse_one_program(self) -> None:
        """Raise `StudyError` if every wanted benchmark runs the same program in both; note those that do."""
        study, choice = self._session.study, self._request.choice
        wanted = [
            (name, variant)
            for name in study.benchmarks
            for variant in study.variants
            if choice.of(study, name, variant)
        ]
        reasons = {name: same_everywhere(study, name, variant) for name, variant in wanted}
        mistakes = [
            mistake(study.file, ("benchmark", name, "command"), why) for name, why in reasons.items() if why
        ]
        if mistakes and all(same_everywhere(study, *each) for each in wanted):
            raise StudyError(mistakes)
        self._notes += map(str, mistakes)

    def _refuse_too_few_pairs(self) -> None:
        """Raise `UsageError` if the requested maximum of pairs allows no verdict, before anything is built."""
        most, verdicts = self._request.most, self._verdicts()
        needed = self._pairs_needed()
        if most is not None and most < needed:
            several = verdicts > 1
            metrics = f"verdicts on {verdicts} metrics need" if several else "a verdict on one metric needs"
            fewer = "compare fewer metrics with --metric, " if several else ""
            raise UsageError(
                f"--max-pairs {most}: {metrics} at least {counted(needed, 'pair')} with --confidence "
                f"{self._request.confidence:g}; write --max-pairs {needed} or more, {fewer}or lower the confidence"
            )

    def _verdicts(self) -> int:
        """Return how many verdicts the comparison is planned to have."""
        study, choice = self._session.study, self._request.choice
        return sum(
            len(choice.of(study, name, variant)) for name in study.benchmarks for variant in study.variants
        )

    def _pairs_needed(self) -> int:
        """Return the fewest pairs for the planned verdicts."""
        return replicates_needed(self._verdicts(), error=1.0 - self._request.confidence)

    def _layout_noise(
        self, benchmarks: Sequence[ComparedBenchmark], rows: Sequence[Row]
    ) -> LayoutNoise | None:
        """Return the layout noise of the first metric that certainly differs between these two builds."""
        differs = next((row.metric for row in rows if row.basis == "builds"), None)
        named = (target for benchmark in benchmarks for target in benchmark.targets)
        found = next((target for target in named if ComparedMetric.of(target) == differs), None)
        return None if found is None else layout_noise_of_neighbours(self._session, found)

    def _revisions(self) -> tuple[Revision, Revision]:
        study, source = self._session.study, self._session.source
        if study.searched_source.kind == "directory":
            raise UsageError("a directory has only one revision; a comparison needs two")
        base, head = (find_revision(study, source, name) for name in (self._request.base, self._request.head))
        names = (self._request.base, self._request.head)
        if (
            not {WORKING_TREE, STAGED}.intersection(names)
            and isinstance(source, EditableSource)
            and (named := source.edited()) in (base.id, head.id)
        ):
            self._notes.append(
                f"the working tree has uncommitted changes, which are not measured: {named[:10]} is the commit; "
                'to measure them, write "."'
            )
        if base.id == head.id:
            self._notes.append(self._why_same(names))
        return base, head

    def _why_same(self, names: tuple[str, str]) -> str:
        """Return why two names are the same revision."""
        source, uncommitted = self._session.source, {WORKING_TREE, STAGED}.intersection(names)
        if names[0] == names[1] or not uncommitted:
            return "base and head are the same revision"
        if len(uncommitted) > 1:
            return "the working tree contains what is staged, and nothing else: base and head are the same revision"
        if WORKING_TREE in uncommitted:
            return "the working tree has no changes: base and head are the same revision"
        why = "nothing is staged: base and head are the same revision"
        if isinstance(source, EditableSource) and source.edited():
            return f'{why}; to compare the changes of the working tree, write "." instead of --staged'
        return why

    def _build_both(self, base: Revision, head: Revision) -> Generator[Event, None, list[ComparedBenchmark]]:
        """Build both in every variant, in parallel if possible; return the benchmarks that both can run."""
        sides: dict[SideName, Revision] = {"base": base, "head": head}
        study, choice = self._session.study, self._request.choice
        wanted = (
            Subject(revision=each, variant=variant) for variant in study.variants for each in sides.values()
        )
        yield from self._session.subject_builder.build_in_parallel(
            subject for subject in wanted if self._wanted(subject)
        )
        benchmarks = []
        most = self._request.most
        most_per_layout = PAIRS_PER_LAYOUT
        if most is not None:
            most_per_layout = min(PAIRS_PER_LAYOUT, max(1, most // self._pairs_needed()))
        for variant in study.variants:
            built: dict[str, dict[SideName, list[Ready]]] = {}
            for side, revision in sides.items():
                for ready in (yield from self._build(side, Subject(revision=revision, variant=variant))):
                    built.setdefault(ready.cell.benchmark, {}).setdefault(side, []).append(ready)
            benchmarks += [
                ComparedBenchmark(
                    self._session,
                    ready_cells,
                    choice.of(study, name, variant),
                    clock=self._clock,
                    most_per_layout=most_per_layout,
                    strict_maximum=most is not None,
                )
                for name, ready_cells in built.items()
                if len(ready_cells) == len(sides)
            ]
        return [benchmark for benchmark in benchmarks if benchmark.targets]

    def _build(self, side: SideName, subject: Subject) -> Generator[Event, None, list[Ready]]:
        ready_cells = []
        for cell in self._wanted(subject):
            ready = yield from self._session.subject_builder.ready(cell)
            if isinstance(ready, Failure):
                benchmark = cell.benchmark if ready.stage == "link" else ""
                failed = FailedSide(
                    side=side,
                    variant=subject.variant,
                    benchmark=benchmark,
                    point="",
                    failure=ready,
                    study_line=failed_line(self._session, cell, ready, benchmark or None),
                )
                self._failures.setdefault((side, subject.variant, benchmark), failed)
            else:
                ready_cells.append(ready)
                if ready.runnable.origin is not None:
                    origins = self._origins.setdefault((subject.variant, cell.benchmark), {})
                    origins[side] = ready.runnable.origin
        return ready_cells

    def _changed_dependencies(self, base: Revision, head: Revision) -> Iterator[EnvironmentDifference]:
        """Yield the files that name versions of dependencies and differ between both revisions."""
        paths: Sequence[str] = ()
        with suppress(SourceError):
            paths = self._session.source.touched((base, head))[1]
        found = [path for path in paths if PurePath(path).name in DEPENDENCY_FILES]
        yield from (EnvironmentDifference(name=path) for path in sorted(found)[:MOST_DEPENDENCY_FILES])

    def _wanted(self, subject: Subject) -> list[Cell]:
        """Return the cells of a subject that the requested metrics need."""
        study = self._session.study
        needed = {
            (name, point)
            for name in study.benchmarks
            for target in self._request.choice.of(study, name, subject.variant)
            for point in target.points
        }
        return [cell for cell in cells(study, subject) if (cell.benchmark, cell.point) in needed]

    def _rule(self, benchmarks: Sequence[ComparedBenchmark]) -> Rule:
        study, threshold = self._session.study, self._request.threshold
        return rule_for(
            study.measure,
            sum(len(benchmark.targets) for benchmark in benchmarks),
            error=1.0 - self._request.confidence,
            threshold=self._study_threshold if threshold is None else threshold,
            most=self._request.most,
        )

    def _threshold_source(self) -> str:
        """Return which option or key of the study sets the threshold."""
        if self._request.threshold is not None:
            return "--threshold"
        return "[measure] precision" if self._study_threshold is None else "[find] threshold"

    @property
    def _study_threshold(self) -> float | None:
        study, choice = self._session.study, self._request.choice
        return study.find.threshold_for(
            target.scale
            for name in study.benchmarks
            for variant in study.variants
            for target in choice.of(study, name, variant)
        )

    def _measure(self, benchmarks: Sequence[ComparedBenchmark], rule: Rule) -> Generator[Event, None, Rule]:
        """Measure replicates of all unsettled comparisons, round by round; return the rule for their analysis."""
        began, rounds, budget = self._clock(), 0, self._request.budget_seconds
        progress: dict[ComparedBenchmark, Progress] = {}
        for benchmark in benchmarks:
            yield from benchmark.pairs.begin()
            progress[benchmark] = benchmark.pairs.progress(rule)
        while pending := [benchmark for benchmark in benchmarks if benchmark.needs_more(rule)]:
            spent = self._clock() - began
            if budget is not None and rounds and spent * (rounds + 1) / rounds > budget:
                self._notes.append(
                    f"the budget ended the comparison after {counted(rounds, 'round')}, "
                    f"with {counted(len(pending), 'benchmark')} unsettled"
                )
                break
            progress |= {each: progress[each].ended() for each in progress if each not in pending}
            for number, benchmark in enumerate(pending):
                if budget is not None and number and self._clock() - began > budget:
                    break
                yield from benchmark.pairs.run_pair()
                progress[benchmark] = benchmark.pairs.progress(rule)
                yield Progress.of_all(progress.values())
            rounds += 1
            if budget is not None and rounds == 1:
                yield from self._budget_warning(rule, self._clock() - began)
            if budget is not None and rounds == ROUNDS_TO_ESTIMATE:
                rule = self._fitted_to_budget(rule, (self._clock() - began) / rounds)
                for benchmark in benchmarks:
                    benchmark.discard_results()
        return rule

    def _budget_warning(self, rule: Rule, seconds: float) -> Iterator[Event]:
        """Warn after the first round, which took `seconds`, if the budget will not suffice for a verdict."""
        assert self._request.budget_seconds is not None
        budget, pairs = self._request.budget_seconds, replicates_needed(rule.comparisons, error=rule.error)
        if seconds * pairs > budget:
            yield BudgetTooSmall(
                verdicts=rule.comparisons, pairs=pairs, seconds=seconds * pairs, budget=budget
            )

    def _fitted_to_budget(self, rule: Rule, seconds: float) -> Rule:
        """Return the rule for as many pairs as the budget allows, at least as many as a verdict needs.

        The number depends on the cost of a round, not on which side was slower.
        """
        assert self._request.budget_seconds is not None
        fits = int(BUDGET_SHARE * self._request.budget_seconds / max(seconds, 1e-9))
        most = max(replicates_needed(rule.comparisons, error=rule.error), min(rule.most, fits))
        if most < rule.most:
            self._notes.append(
                f"the budget allows at most {counted(most, 'pair')} of each benchmark instead of {rule.most}"
            )
        return replace(rule, most=most)

    @staticmethod
    def _skipped(benchmarks: Sequence[ComparedBenchmark]) -> Iterator[str]:
        skipped = sum(benchmark.pairs.skipped for benchmark in benchmarks)
        if skipped:
            yield f"{counted(skipped, 'larger point')} skipped, because a smaller one reached its limit"
