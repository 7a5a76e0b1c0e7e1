"""Compare two revisions: interleaved pairs of every wanted metric, until each verdict is settled or time is up.

`Compare` runs the comparison and returns a `Gate`. `ComparedBenchmark` compares base and head of one benchmark in one
variant. `neighbours_noise` estimates layout noise from neighbouring revisions that were measured in the same
blocks.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from perftrail.errors import UsageError
from perftrail.measure.events import HistoryRead, now
from perftrail.measure.pairs import Clock, Comparisons, InterleavedPairs, logarithm, rule_for, units_needed
from perftrail.model.build import Failure
from perftrail.model.json_data import to_plain
from perftrail.model.measurement import Measurement
from perftrail.model.plan import cells
from perftrail.model.search_record import ComparisonRecord
from perftrail.model.subject import Subject
from perftrail.model.wording import counted
from perftrail.ports import EditableSource
from perftrail.results.gate import ComparedMetric, FailedSide, Gate, Row
from perftrail.results.selection import TIMES, Choice
from perftrail.stats.comparison import FAMILY_ERROR, Verdict, layout_noise
from perftrail.stats.estimate import estimate
from perftrail.verbs.backport.patch import find_revision

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence

    from perftrail.measure.events import Event
    from perftrail.measure.pairs import ComparedUnits
    from perftrail.measure.session import Session
    from perftrail.measure.subjects import Ready
    from perftrail.model.measurement import Outcome, Runnable
    from perftrail.model.plan import Cell
    from perftrail.model.subject import Revision
    from perftrail.model.target import Target
    from perftrail.results.gate import FailOn, SideName
    from perftrail.stats.comparison import LayoutNoise, Rule


class ComparedBenchmark:
    """Base and head of one benchmark, and the compared metrics, at the points that these need."""

    def __init__(
        self,
        session: Session,
        readies: Mapping[SideName, Sequence[Ready]],
        targets: Sequence[Target],
        *,
        clock: Clock,
    ) -> None:
        needed = {point for target in targets for point in target.points}
        self.turns = InterleavedPairs(
            session,
            {side: [ready for ready in each if ready.cell.point in needed] for side, each in readies.items()},
            clock=clock,
        )
        self._units = self.turns.units
        self._comparisons: Comparisons[SideName] = Comparisons(self._units)
        there = set(self._units.points)
        self.targets = tuple(target for target in targets if there.issuperset(target.points))

    @property
    def one_build(self) -> bool:
        """Whether base and head are one build, so that there is nothing to compare."""
        return bool(self.turns.equal)

    def open(self, rule: Rule) -> bool:
        """Whether more units can settle a verdict.

        If one of the benchmark's times differs by the threshold for sure, its other times need no further
        units.
        """
        rule = self.turns.rule_in_units(rule)
        if not self._units.active or self._units.full(rule):
            return False
        times = [target for target in self._alive() if target.text in TIMES]
        differ = {target.points for target in times if _differs(self._read(target, rule), rule)}
        return any(
            not self._comparisons.settled(target, rule, one="base", other="head")
            and not (target in times and target.points in differ)
            for target in self._alive()
        )

    def rows(self, rule: Rule) -> tuple[Row, ...]:
        """Return the comparison of every metric that both sides have; `lost` has the others."""
        return tuple(self._row(target, self.turns.rule_in_units(rule)) for target in self._alive())

    def lost(self) -> tuple[FailedSide, ...]:
        """Return the sides that could not be measured, with their points."""
        return tuple(
            FailedSide(
                side=each.side,
                variant=self.turns.variant,
                benchmark=self.turns.benchmark,
                point=str(each.ready.cell.point),
                failure=each.failure,
            )
            for each in self.turns.broken()
        )

    def forget(self) -> None:
        """Discard results of a rule that no longer applies."""
        self._comparisons.forget()

    def _alive(self) -> list[Target]:
        return [target for target in self.targets if not self._units.dropped.keys() & set(target.points)]

    def _read(self, target: Target, rule: Rule) -> ComparedUnits[SideName] | None:
        return self._comparisons.read(target, rule, one="base", other="head")

    def _row(self, target: Target, rule: Rule) -> Row:
        metric = ComparedMetric.of(target)
        if self.one_build:
            return Row(metric=metric, one_build=True)
        found = self._read(target, rule)
        if found is None:
            return Row(metric=metric, note=self._units.why_missing(target))
        base, head = ([unit.logs[side] for unit in found.units] for side in self._units.sides)
        return Row(
            metric=metric,
            base=estimate([math.exp(value) for value in base]),
            head=estimate([math.exp(value) for value in head]),
            comparison=found.comparison,
            noisy=sum(unit.noisy for unit in found.units),
            discarded=self._units.discarded(target),
            pairs=sum(unit.pairs for unit in found.units),
            layouts=len(found.units) if self._units.relinked else 0,
            seconds=self._units.seconds(target),
            ratios=tuple(math.exp(after - before) for before, after in zip(base, head, strict=True)),
        )


def _differs(found: ComparedUnits[SideName] | None, rule: Rule) -> bool:
    """Whether a metric differs for sure by the threshold or more."""
    if found is None or found.comparison.verdict not in (Verdict.FASTER, Verdict.SLOWER):
        return False
    return max(math.log(found.comparison.low), -math.log(found.comparison.high)) >= rule.worth


MOST_REVISIONS = 400
"""Number of newest revisions of a history to examine."""


def neighbours_noise(session: Session, target: Target) -> LayoutNoise | None:
    """Estimate the difference between builds in a metric without a change; builds and starts nothing.

    Only metrics of a single point are used, and only builds as their recipe links them.
    """
    if len(target.points) != 1:
        return None
    revisions = session.source.history()[-MOST_REVISIONS:]
    known = [_runnable(session, revision, target) for revision in revisions]
    keys = tuple({each.key for each in known if each is not None})
    held = session.store.outcomes(keys, session.machine.id) if keys else {}
    logs = {key: _by_block(target, outcomes) for key, outcomes in held.items()}
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


ROUNDS_TO_JUDGE = 5
"""Number of rounds after which the cost of a round is known."""

FITTING = 0.9
"""The share of the rounds that fit into the budget by their cost so far and that the rule relies on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareRequest:
    """What to compare: base and head by any name that the source knows, the metrics, and the confidence.

    `threshold` is the smallest relative change worth reporting, the study's precision unless set. `most`
    pairs replace the study's maximum number of invocations. Measuring takes at most `budget_seconds`.
    """

    base: str
    head: str
    choice: Choice = field(default_factory=Choice)
    fail_on: FailOn = "never"
    threshold: float | None = None
    confidence: float = 1.0 - FAMILY_ERROR
    budget_seconds: float | None = None
    most: int | None = None


class Compare:
    """Measures every metric of base and head interleaved. It resumes by itself: stored pairs are reused."""

    def __init__(self, session: Session, request: CompareRequest, *, clock: Clock = time.monotonic) -> None:
        self._session = session
        self._request = request
        self._clock = clock
        self._lost: dict[tuple[str, ...], FailedSide] = {}
        self._notes: list[str] = []

    def events(self) -> Generator[Event, None, Gate]:
        """Build and measure both; yield events and return the result."""
        base, head = self._revisions()
        yield HistoryRead(revisions=(base, head))
        began = self._clock()
        duels = yield from self._made(base, head)
        yield from self._session.subject_builder.confirm()
        for duel in duels:
            yield from duel.turns.report_equal_builds()
        apart = [duel for duel in duels if not duel.one_build]
        rule = self._rule(apart)
        rule = yield from self._measured(apart, rule)
        self._notes += self._skipped(apart)
        self._notes += [words for duel in apart if (words := duel.turns.relink_failure_words)]
        rows = sorted((row for duel in duels for row in duel.rows(rule)), key=lambda row: row.rank)
        gate = Gate(
            title=self._session.study.title,
            file=self._session.study.file,
            base=base,
            head=head,
            rows=tuple(rows),
            lost=(*self._lost.values(), *(each for duel in apart for each in duel.lost())),
            fail_on=self._request.fail_on,
            confidence=self._request.confidence,
            threshold=rule.threshold,
            machine=self._session.machine,
            invocations=sum(duel.turns.units.started() for duel in apart),
            fresh=self._session.bench.started,
            seconds=self._clock() - began,
            taken=now(),
            layout_noise=self._layout_noise(duels, rows),
            notes=tuple(self._notes),
        )
        self._session.store.add_comparison(
            ComparisonRecord(machine=gate.machine.id, finished=gate.taken, result=to_plain(gate))
        )
        return gate

    def _layout_noise(self, duels: Sequence[ComparedBenchmark], rows: Sequence[Row]) -> LayoutNoise | None:
        """Return the noise of the first metric that differs between these two builds for sure."""
        differs = next((row.metric for row in rows if row.basis == "builds"), None)
        named = (target for duel in duels for target in duel.targets)
        found = next((target for target in named if ComparedMetric.of(target) == differs), None)
        return None if found is None else neighbours_noise(self._session, found)

    def _revisions(self) -> tuple[Revision, Revision]:
        study, source = self._session.study, self._session.source
        if study.searched_source.kind == "directory":
            raise UsageError("a directory has only one revision: there is nothing to compare it with")
        base, head = (find_revision(study, source, name) for name in (self._request.base, self._request.head))
        if isinstance(source, EditableSource) and (named := source.edited()) in (base.id, head.id):
            self._notes.append(
                "the working tree has uncommitted changes, which are not measured: "
                f"{named[:10]} is the commit"
            )
        if base.id == head.id:
            self._notes.append("base and head are the same revision")
        return base, head

    def _made(self, base: Revision, head: Revision) -> Generator[Event, None, list[ComparedBenchmark]]:
        """Build both in every variant, in parallel if possible, and pair everything that both can run."""
        sides: dict[SideName, Revision] = {"base": base, "head": head}
        study, choice = self._session.study, self._request.choice
        wanted = (
            Subject(revision=each, variant=variant) for variant in study.variants for each in sides.values()
        )
        yield from self._session.subject_builder.ahead(subject for subject in wanted if self._wanted(subject))
        duels = []
        for variant in study.variants:
            made: dict[str, dict[SideName, list[Ready]]] = {}
            for side, revision in sides.items():
                for ready in (yield from self._make(side, Subject(revision=revision, variant=variant))):
                    made.setdefault(ready.cell.benchmark, {}).setdefault(side, []).append(ready)
            duels += [
                ComparedBenchmark(
                    self._session, readies, choice.of(study, benchmark, variant), clock=self._clock
                )
                for benchmark, readies in made.items()
                if len(readies) == len(sides)
            ]
        return [duel for duel in duels if duel.targets]

    def _make(self, side: SideName, subject: Subject) -> Generator[Event, None, list[Ready]]:
        readies = []
        for cell in self._wanted(subject):
            ready = yield from self._session.subject_builder.ready(cell)
            if isinstance(ready, Failure):
                benchmark = cell.benchmark if ready.stage == "link" else ""
                lost = FailedSide(
                    side=side, variant=subject.variant, benchmark=benchmark, point="", failure=ready
                )
                self._lost.setdefault((side, subject.variant, benchmark), lost)
            else:
                readies.append(ready)
        return readies

    def _wanted(self, subject: Subject) -> list[Cell]:
        """Return the cells of a subject that give the wanted metrics."""
        study = self._session.study
        needed = {
            (name, point)
            for name in study.benchmarks
            for target in self._request.choice.of(study, name, subject.variant)
            for point in target.points
        }
        return [cell for cell in cells(study, subject) if (cell.benchmark, cell.point) in needed]

    def _rule(self, duels: Sequence[ComparedBenchmark]) -> Rule:
        return rule_for(
            self._session.study.measure,
            sum(len(duel.targets) for duel in duels),
            error=1.0 - self._request.confidence,
            threshold=self._request.threshold,
            most=self._request.most,
        )

    def _measured(self, duels: Sequence[ComparedBenchmark], rule: Rule) -> Generator[Event, None, Rule]:
        """Measure units round by round, of all comparisons that are not settled; return the rule for reading them."""
        began, rounds, budget = self._clock(), 0, self._request.budget_seconds
        for duel in duels:
            yield from duel.turns.begin()
        while pending := [duel for duel in duels if duel.open(rule)]:
            spent = self._clock() - began
            if budget is not None and rounds and spent * (rounds + 1) / rounds > budget:
                self._notes.append(
                    f"the budget ended the comparison after {rounds} rounds, with {len(pending)} benchmarks unsettled"
                )
                break
            for duel in pending:
                yield from duel.turns.unit()
                yield duel.turns.progress(rule)
            rounds += 1
            if budget is not None and rounds == ROUNDS_TO_JUDGE:
                rule = self._fitted(rule, (self._clock() - began) / rounds)
                for duel in duels:
                    duel.forget()
        return rule

    def _fitted(self, rule: Rule, seconds: float) -> Rule:
        """Return the rule for as many pairs as the budget allows, at least as many as a verdict needs.

        The number depends on the cost of a round, not on which side was slower.
        """
        assert self._request.budget_seconds is not None
        fits = int(FITTING * self._request.budget_seconds / max(seconds, 1e-9))
        most = max(units_needed(rule.comparisons, error=rule.error), min(rule.most, fits))
        if most < rule.most:
            self._notes.append(
                f"the budget allows at most {most} pairs of each benchmark instead of {rule.most}"
            )
        return replace(rule, most=most)

    @staticmethod
    def _skipped(duels: Sequence[ComparedBenchmark]) -> Iterator[str]:
        skipped = sum(duel.turns.skipped for duel in duels)
        if skipped:
            yield f"{counted(skipped, 'larger point')} skipped, because a smaller one reached its limit"
