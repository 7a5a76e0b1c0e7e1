"""Measure new revisions interleaved with a reference, and detect changes.

`alarms_by_pairs` compares each revision with the reference or the last alarm; `alarms_by_history` uses the
whole history.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.measure.pairs import Comparisons, InterleavedPairs, rule_for
from perftrail.model.build import Failure
from perftrail.model.plan import cells
from perftrail.model.subject import Subject
from perftrail.model.target import targets
from perftrail.results.selection import leading_metrics
from perftrail.stats.changepoints import change_points
from perftrail.stats.comparison import Verdict

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence

    from perftrail.measure.events import Event
    from perftrail.measure.session import Session
    from perftrail.measure.subjects import Ready
    from perftrail.model.subject import Revision
    from perftrail.model.target import Target
    from perftrail.stats.comparison import Comparison, Rule
    from perftrail.verbs.watch.state import Level


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedMetric:
    """One metric of a batch: for each revision, the logarithms of its ratios to the reference.

    Revisions with the reference's build are in `same` and have no ratios. `reference_logs` are the logarithms of
    the reference's values, relative to their median.
    """

    target: Target
    reference_logs: tuple[float, ...]
    log_ratios: Mapping[str, tuple[float, ...]]
    same: frozenset[str]
    benchmark: WatchedBenchmark

    def against(self, one: str, other: str) -> Comparison | None:
        """Compare two revisions of the batch; `None` if they are one build, or one was not measured."""
        return self.benchmark.against(self.target, one, other)


class WatchedBenchmark:
    """One benchmark in one variant: the reference interleaved with the others until verdicts are settled."""

    def __init__(self, session: Session, ready_cells: Mapping[str, Sequence[Ready]], reference: str) -> None:
        keys = {name: tuple(ready.runnable.key for ready in each) for name, each in ready_cells.items()}
        self._measured_as = {
            name: next(other for other in keys if keys[other] == key) for name, key in keys.items()
        }
        self.reference = reference
        different = {name: ready_cells[name] for name in dict.fromkeys(self._measured_as.values())}
        self.pairs: InterleavedPairs[str] = InterleavedPairs(session, different)
        self._comparisons: Comparisons[str] = Comparisons(self.pairs.outcomes)
        first = next(iter(ready_cells.values()))[0].cell
        points = set(self.pairs.outcomes.points)
        wanted = (
            target
            for name in leading_metrics(session.study, first.benchmark)
            for target in targets(session.study, first.benchmark, name, first.subject.variant)
        )
        self.targets = tuple(target for target in wanted if points.issuperset(target.points))
        self._rule: Rule | None = None

    @property
    def reference_works(self) -> bool:
        """Whether the reference works, or is untested, at one point or more."""
        broken = {each.ready.cell.point for each in self.pairs.broken() if each.side == self.reference}
        return not broken.issuperset(self.pairs.outcomes.points)

    @property
    def comparisons(self) -> int:
        """Number of verdicts."""
        return len(self.targets) * (len(self.pairs.outcomes.sides) - 1)

    def events(self, rule: Rule) -> Generator[Event, None, None]:
        """Measure until each verdict against the reference is settled."""
        self._rule = rule
        others = [side for side in self.pairs.outcomes.sides if side != self.reference]
        if not others or not self.targets:
            return
        yield from self.pairs.begin()
        while self.pairs.outcomes.active:
            self._rule = self.pairs.rule_in_replicates(rule)
            settled = (
                self._settled(target, other, self._rule) for target in self.targets for other in others
            )
            if self.pairs.outcomes.reached_maximum(self._rule) or all(settled):
                return
            yield from self.pairs.run_pair()
            yield self.pairs.progress(rule)

    def measured(self) -> Iterator[WatchedMetric]:
        """Yield the measurements of each metric."""
        for target in self.targets:
            replicates = self.pairs.outcomes.replicates(target)
            centre = (
                statistics.median(replicate.levels[self.reference] for replicate in replicates)
                if replicates
                else 0.0
            )
            known = self._measured_as.items()
            yield WatchedMetric(
                target=target,
                reference_logs=tuple(replicate.levels[self.reference] - centre for replicate in replicates),
                log_ratios={
                    name: tuple(
                        replicate.levels[side] - replicate.levels[self.reference] for replicate in replicates
                    )
                    for name, side in known
                    if side != self.reference and replicates
                },
                same=frozenset(name for name, side in known if side == self.reference),
                benchmark=self,
            )

    def against(self, target: Target, one: str, other: str) -> Comparison | None:
        """Compare two revisions of the batch."""
        first, second = self._measured_as.get(one), self._measured_as.get(other)
        if first is None or second is None or first == second or self._rule is None:
            return None
        found = self._comparisons.read(target, self._rule, one=first, other=second)
        return None if found is None else found.comparison

    def _settled(self, target: Target, other: str, rule: Rule) -> bool:
        if self.pairs.outcomes.dropped.keys() & set(target.points):
            return True
        return self._comparisons.settled(target, rule, one=self.reference, other=other)


def measured_batch(
    session: Session, reference: Revision, fresh: Sequence[Revision]
) -> Generator[Event, None, list[WatchedMetric] | None]:
    """Build new revisions and measure their metrics interleaved with the reference, in every variant.

    Failed builds and missing metrics are omitted, because the console reports them. Return `None` if the
    reference does not build or run, so that perftrail can compare nothing with it.
    """
    benchmarks: list[WatchedBenchmark] = []
    reference_built = False
    for variant in session.study.variants:
        built: dict[str, dict[str, list[Ready]]] = {}
        for revision in (reference, *fresh):
            for cell in cells(session.study, Subject(revision=revision, variant=variant)):
                ready = yield from session.subject_builder.ready(cell)
                if not isinstance(ready, Failure):
                    built.setdefault(cell.benchmark, {}).setdefault(revision.id, []).append(ready)
        reference_built = reference_built or any(
            reference.id in ready_cells for ready_cells in built.values()
        )
        benchmarks += [
            WatchedBenchmark(session, ready_cells, reference.id)
            for ready_cells in built.values()
            if reference.id in ready_cells and len(ready_cells) > 1
        ]
    yield from session.subject_builder.confirm(
        Subject(revision=revision, variant=variant)
        for variant in session.study.variants
        for revision in (reference, *fresh)
    )
    rule = rule_for(session.study.measure, sum(each.comparisons for each in benchmarks))
    for benchmark in benchmarks:
        yield from benchmark.events(rule)
    if not reference_built or (benchmarks and not any(each.reference_works for each in benchmarks)):
        return None
    return [each for benchmark in benchmarks for each in benchmark.measured()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """A possible change of a metric after `before`, at `at` at the latest."""

    target: Target
    before: str
    at: str


def alarms_by_pairs(measured: WatchedMetric, order: Sequence[str], *, threshold: float) -> list[Alarm]:
    """Compare each revision of a batch, in the order of history, with the last one that changed the level.

    A certain difference of at least `threshold` is an alarm, and later revisions are compared with that revision.
    """
    alarms = []
    current = before = measured.benchmark.reference
    for name in order:
        found = measured.against(current, name)
        differs = found is not None and found.verdict in (Verdict.FASTER, Verdict.SLOWER)
        if found is not None and differs and abs(math.log(found.effect)) >= math.log1p(threshold):
            alarms.append(Alarm(target=measured.target, before=before, at=name))
            current = name
        if name in measured.log_ratios or name in measured.same:
            before = name
    return alarms


def alarms_by_history(
    target: Target, levels: Sequence[Level], *, threshold: float, known: Mapping[str, object]
) -> list[Alarm]:
    """Return the change points of a metric's levels at revisions that are not `known`.

    They reveal changes that are too small for the pairs of one revision, once several revisions have the new level.
    Only change points of at least `threshold` and at the alert level count: smaller ones are often drifting noise.
    """
    points = change_points([(number, each.log_ratios) for number, each in enumerate(levels)])
    return [
        Alarm(target=target, before=levels[point.previous].revision, at=levels[point.position].revision)
        for point in points
        if point.alert
        and abs(math.log(point.effect)) >= math.log1p(threshold)
        and not any(levels[at].revision in known for at in range(point.earliest, point.latest + 1))
    ]
