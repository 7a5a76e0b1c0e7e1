"""Measure old, patched and fixed revisions interleaved, until the retained gain is known.

`BackportedBenchmark` measures one benchmark until its metrics are settled. `Backport` runs all of them and returns the
report.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from perftrail.measure.pairs import InterleavedPairs, compared, rule_for
from perftrail.model.build import Failure
from perftrail.model.plan import cells
from perftrail.model.subject import Subject
from perftrail.model.target import TargetError, parse_metric, resolve, targets
from perftrail.stats.comparison import Verdict
from perftrail.stats.estimate import estimate
from perftrail.stats.retained_gain import estimate_retained_gain
from perftrail.verbs.backport.result import BackportReport, FailedRole, MetricResult, Role

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from perftrail.measure.events import Event
    from perftrail.measure.pairs import Replicate
    from perftrail.measure.session import Session
    from perftrail.measure.subjects import Ready
    from perftrail.model.study import Study
    from perftrail.model.subject import Revision
    from perftrail.model.target import Target
    from perftrail.stats.comparison import Comparison, Rule
    from perftrail.stats.retained_gain import RetainedGain
    from perftrail.verbs.backport.patch import FittedPatch


COST_METRICS = ("wall", "cpu", "peak_memory")
"""Metrics compared in addition to a benchmark's own: a gain in one metric often costs another."""


def searched_metrics(study: Study) -> frozenset[str]:
    """Return the metrics that a study searches for: full names, or names without a benchmark."""
    return frozenset(_full_name(study, metric) for metric in study.find.metric)


class BackportedBenchmark:
    """Measures one benchmark in one variant, in blocks of adjacent invocations in random order.

    It ends when every leading metric has a verdict and an interval as narrow as the study's precision. It also ends
    at the rule's maximum number of replicates.
    """

    def __init__(self, session: Session, ready_cells: Mapping[Role, Sequence[Ready]]) -> None:
        self._session = session
        self._pairs = InterleavedPairs(session, ready_cells)
        self._benchmark = session.study.benchmarks[self._pairs.benchmark]
        self._outcomes = self._pairs.outcomes
        self._searched = searched_metrics(session.study)
        self._targets = self._every_target(self._pairs.variant)

    @property
    def comparisons(self) -> int:
        """Number of intervals: patched and fixed against old, and the retained gain."""
        return len(self._targets) * (3 if Role.FIXED in self._outcomes.sides else 1)

    @property
    def equal(self) -> tuple[tuple[Role, Role], ...]:
        """Subjects with equal builds at every point, measured only once."""
        return self._pairs.equal

    @property
    def skipped(self) -> int:
        """Number of points skipped after a smaller one failed."""
        return self._pairs.skipped

    @property
    def invocations(self) -> int:
        """Number of invocations that the values come from."""
        return self._outcomes.invocations

    def events(self, rule: Rule) -> Generator[Event, None, None]:
        """Run block after block; yield events."""
        yield from self._pairs.report_equal_builds()
        yield from self._pairs.begin()
        while not self._done(rule):
            yield from self._pairs.run_pair()
            yield self._pairs.progress(rule)

    def results(self, rule: Rule) -> tuple[MetricResult, ...]:
        """Return the values of the three subjects for every metric at every point, the study's own metrics first."""
        return tuple(self._result(target, self._pairs.rule_in_replicates(rule)) for target in self._targets)

    def broken(self) -> tuple[FailedRole, ...]:
        """Return the subjects that could not be measured at a point, with the reasons."""
        return tuple(
            FailedRole(role=each.side, where=str(each.ready.cell), failure=each.failure)
            for each in self._pairs.broken()
        )

    def _every_target(self, variant: str) -> tuple[Target, ...]:
        study = self._session.study
        derived = [name for name, each in study.derived.items() if each.benchmark == self._pairs.benchmark]
        costs = [name for name in COST_METRICS if name in self._benchmark.measured]
        names = dict.fromkeys((*derived, *self._benchmark.leading, *costs))
        found = [target for name in names for target in targets(study, self._pairs.benchmark, name, variant)]
        return tuple(target for target in found if set(target.points) <= set(self._outcomes.points))

    def _is_leading(self, target: Target) -> bool:
        """Whether a metric decides the length: declared, derived, searched for, or the only one."""
        declared = target.text not in COST_METRICS or target.text in self._benchmark.leading
        return declared or not self._searched.isdisjoint((target.text, target.name))

    def _done(self, rule: Rule) -> bool:
        rule = self._pairs.rule_in_replicates(rule)
        if not self._outcomes.active or self._outcomes.reached_maximum(rule):
            return True
        leading = [target for target in self._targets if self._is_leading(target)]
        measurable = [target for target in leading if not self._outcomes.dropped.keys() & set(target.points)]
        return bool(measurable) and all(self._is_settled(target, rule) for target in measurable)

    def _is_settled(self, target: Target, rule: Rule) -> bool:
        replicates = self._analysed(target, rule)
        if len(replicates) >= rule.most or (not replicates and self._outcomes.replicate_count >= rule.most):
            return True
        if len(replicates) < max(rule.analyses[0], self._session.study.measure.invocations.least):
            return False
        roles = [role for role in self._outcomes.sides if role is not Role.OLD]
        return all(
            found.verdict is not Verdict.UNCLEAR
            and math.log(found.high / found.low) / 2.0 <= self._session.study.measure.precision
            for found in (compared(replicates, rule, Role.OLD, role) for role in roles)
        )

    def _analysed(self, target: Target, rule: Rule) -> list[Replicate[Role]]:
        """Return the replicates of a metric up to the last interim analysis, because a stop between two is not one."""
        replicates = self._outcomes.replicates(target)
        analyses = [count for count in rule.analyses if count <= len(replicates)]
        return replicates[: analyses[-1]] if analyses else replicates

    def _result(self, target: Target, rule: Rule) -> MetricResult:
        replicates = self._analysed(target, rule)
        logs = {
            role: [replicate.levels[role] for replicate in replicates]
            for role in self._outcomes.sides
            if replicates
        }
        return MetricResult(
            target=target,
            leading=self._is_leading(target),
            estimates={role: estimate([math.exp(value) for value in each]) for role, each in logs.items()},
            replicates=len(replicates),
            noisy=sum(replicate.noisy for replicate in replicates),
            discarded=self._outcomes.discarded(target),
            layouts=len(replicates) if self._outcomes.relinked else 0,
            linked=self._outcomes.linked,
            patched_against_old=_compared(replicates, Role.PATCHED, rule),
            fixed_against_old=_compared(replicates, Role.FIXED, rule),
            retained=_retained(logs, rule),
            note="" if replicates else self._outcomes.why_missing(target),
        )


def _full_name(study: Study, metric: str) -> str:
    try:
        return resolve(study, metric, study.find.variant or next(iter(study.variants))).name
    except TargetError:
        return parse_metric(metric).name


def _compared(replicates: Sequence[Replicate[Role]], role: Role, rule: Rule) -> Comparison | None:
    """Compare a subject with the old one; `None` if there is nothing to compare."""
    return compared(replicates, rule, Role.OLD, role) if replicates and role in replicates[0].levels else None


def _retained(logs: Mapping[Role, Sequence[float]], rule: Rule) -> RetainedGain | None:
    if Role.FIXED not in logs:
        return None
    old = logs[Role.OLD]
    patched, fixed = (
        [value - base for value, base in zip(logs[role], old, strict=True)]
        for role in (Role.PATCHED, Role.FIXED)
    )
    return estimate_retained_gain(patched, fixed, level=rule.level)


class Backport:
    """Measures a back-port, over every variant, benchmark, point and metric of the study.

    It resumes by itself: existing builds and interleaved samples are reused.
    """

    def __init__(self, session: Session, fitted: FittedPatch) -> None:
        self._session = session
        self._fitted = fitted
        self._revisions = _revisions(fitted)
        self._failures: dict[str, FailedRole] = {}

    def events(self) -> Generator[Event, None, BackportReport]:
        """Build and measure the subjects; yield events and return the report."""
        benchmarks: list[BackportedBenchmark] = []
        variants, revisions = self._session.study.variants, self._revisions.values()
        yield from self._session.subject_builder.build_in_parallel(
            Subject(revision=revision, variant=variant) for variant in variants for revision in revisions
        )
        for variant in variants:
            ready_cells: dict[str, dict[Role, list[Ready]]] = {}
            for role in self._revisions:
                for ready in (yield from self._build(role, variant)):
                    ready_cells.setdefault(ready.cell.benchmark, {}).setdefault(role, []).append(ready)
            benchmarks += [
                BackportedBenchmark(self._session, by_role)
                for by_role in ready_cells.values()
                if by_role.keys() >= {Role.OLD, Role.PATCHED}
            ]
        yield from self._session.subject_builder.confirm(
            Subject(revision=revision, variant=variant)
            for variant in variants
            for revision in self._revisions.values()
        )
        rule = rule_for(self._session.study.measure, sum(each.comparisons for each in benchmarks))
        for each in benchmarks:
            yield from each.events(rule)
        broken = [failed for each in benchmarks for failed in each.broken()]
        return BackportReport(
            fitted=self._fitted,
            metrics=tuple(result for each in benchmarks for result in each.results(rule)),
            failures=(*self._failures.values(), *broken),
            skipped=sum(each.skipped for each in benchmarks),
            equal=tuple(dict.fromkeys(pair for each in benchmarks for pair in each.equal)),
            invocations=sum(each.invocations for each in benchmarks),
            fresh=self._session.runner.started,
            searched=searched_metrics(self._session.study),
            machine=self._session.machine.id,
        )

    def _build(self, role: Role, variant: str) -> Generator[Event, None, list[Ready]]:
        """Build one revision in one variant, and return every benchmark that it can run."""
        subject = Subject(revision=self._revisions[role], variant=variant)
        ready_cells = []
        for cell in cells(self._session.study, subject):
            ready = yield from self._session.subject_builder.ready(cell)
            if isinstance(ready, Failure):
                where = f"{subject} {cell.benchmark}" if ready.stage == "link" else str(subject)
                self._failures.setdefault(where, FailedRole(role=role, where=where, failure=ready))
            else:
                ready_cells.append(ready)
        return ready_cells


def _revisions(fitted: FittedPatch) -> Mapping[Role, Revision]:
    """Return the measured revisions in the order of the report."""
    revisions = {Role.OLD: fitted.patched.base, Role.PATCHED: fitted.patched.revision}
    return revisions if fitted.fix is None else {**revisions, Role.FIXED: fitted.fix}
