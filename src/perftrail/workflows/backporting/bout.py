"""One benchmark of a back-port: started side by side until its metrics are settled, and what they say then."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from perftrail.analysis.carried import carried
from perftrail.analysis.compare import FAMILY_ERROR, Rule, Verdict, compare
from perftrail.analysis.estimate import estimate
from perftrail.model.build import Failure
from perftrail.model.conditions import enough_quiet
from perftrail.model.plan import larger
from perftrail.model.target import TargetError, parse_metric, resolve, targets
from perftrail.workflows.backporting.report import Missing, Role, Stand
from perftrail.workflows.backporting.units import Units
from perftrail.workflows.events import GivenUp, Progress, SameArtefact
from perftrail.workflows.workshop import Start

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence

    from perftrail.analysis.carried import Carried
    from perftrail.analysis.compare import Comparison
    from perftrail.model.policies import MeasurePolicy
    from perftrail.model.study import Study
    from perftrail.model.target import Target
    from perftrail.workflows.backporting.units import Unit
    from perftrail.workflows.events import Event
    from perftrail.workflows.session import Session
    from perftrail.workflows.workshop import Ready

BESIDES = ("wall", "cpu", "peak_memory")
"""What is compared beside a benchmark's own metrics: a gain in one of them is often paid in another."""


def rule_for(policy: MeasurePolicy, comparisons: int) -> Rule:
    """Make the rule for a back-port's verdicts: as many units as the study allows, or as a verdict takes.

    A difference below the study's precision counts as none.
    """
    needed = 1 + math.ceil(-math.log2(FAMILY_ERROR / max(1, comparisons)))
    return Rule(
        most=max(policy.invocations.most, needed),
        comparisons=max(1, comparisons),
        smallest=policy.precision,
    )


def wanted_metrics(study: Study) -> frozenset[str]:
    """Name the figures that a study looks for: in full where one is meant, else the metric by itself."""
    return frozenset(_full_name(study, metric) for metric in study.find.metric)


class Bout:
    """Starts the subjects of one benchmark in one variant in units of adjacent starts.

    Every second unit runs backwards (ABC, CBA), so that drift hits all alike. It ends when every leading metric
    has its verdicts with intervals as narrow as the study's precision, or at the rule's most units.
    """

    def __init__(self, session: Session, readies: Mapping[Role, Sequence[Ready]]) -> None:
        first = readies[Role.OLD][0].cell
        self._session = session
        self._name = first.benchmark
        self._benchmark = session.study.benchmarks[first.benchmark]
        self._units = Units(session.bench, readies)
        self._wanted = wanted_metrics(session.study)
        self._targets = self._every_target(first.subject.variant)

    @property
    def comparisons(self) -> int:
        """How many intervals it gives: patched and fixed against old, and the share that is carried."""
        return len(self._targets) * (3 if Role.FIXED in self._units.roles else 1)

    @property
    def equal(self) -> tuple[tuple[Role, Role], ...]:
        """Who is one build with whom at every point, and so measured once."""
        units = self._units
        numbered = list(enumerate(units.roles))
        return tuple(
            (one, other)
            for number, one in numbered
            for _, other in numbered[number + 1 :]
            if all(
                units.ready(one, point).runnable.key == units.ready(other, point).runnable.key
                for point in units.points
            )
        )

    @property
    def skipped(self) -> int:
        """How many points were given up without a start, after a smaller one failed."""
        return sum(failure is None for failure in self._units.dropped.values())

    @property
    def invocations(self) -> int:
        """How many starts its figures stand on."""
        return self._units.started()

    def events(self, rule: Rule) -> Generator[Event, None, None]:
        """Start unit after unit; yields what happens."""
        for pair in self.equal:
            readies = [self._units.ready(role, self._units.points[0]) for role in pair]
            yield SameArtefact(benchmark=self._name, subjects=tuple(each.cell.subject for each in readies))
        yield from self._give_up()
        for ordinal in range(self._session.study.measure.warmups):
            yield from self._start(
                Start(ready=ready, key=self._session.bench.key(ready, "warmup", ordinal))
                for ready in self._units.alive
            )
        yield from self._give_up()
        while not self._done(rule):
            ordinal = self._units.next()
            turned = self._units.alive if ordinal % 2 == 0 else self._units.alive[::-1]
            yield from self._start(
                Start(ready=ready, key=self._session.bench.key(ready, "sample", ordinal)) for ready in turned
            )
            yield from self._give_up()
            yield self._progress(rule)

    def stands(self, rule: Rule) -> tuple[Stand, ...]:
        """Say for every metric at every point how the three stand, the study's own metrics first."""
        return tuple(self._stand(target, rule) for target in self._targets)

    def broken(self) -> tuple[Missing, ...]:
        """The subjects that could not be measured at a point, and why."""
        readies = [
            (role, self._units.ready(role, point))
            for role in self._units.roles
            for point in self._units.points
        ]
        return tuple(
            Missing(role=role, where=str(ready.cell), failure=failure)
            for role, ready in readies
            if (failure := self._units.why_broken(ready)) is not None
        )

    def _every_target(self, variant: str) -> tuple[Target, ...]:
        study = self._session.study
        derived = [name for name, each in study.derived.items() if each.benchmark == self._name]
        besides = [name for name in BESIDES if name in self._benchmark.measured]
        names = dict.fromkeys((*derived, *self._benchmark.leading, *besides))
        found = [target for name in names for target in targets(study, self._name, name, variant)]
        return tuple(target for target in found if set(target.points) <= set(self._units.points))

    def _leads(self, target: Target) -> bool:
        """Whether a metric is measured for: declared, derived, looked for, or the only one that there is."""
        declared = target.text not in BESIDES or target.text in self._benchmark.leading
        return declared or not self._wanted.isdisjoint((target.text, target.name))

    def _start(self, starts: Iterator[Start]) -> Generator[Event, None, None]:
        """Perform the starts that are not known; those of one build are one start."""
        for start in starts:
            if (start.key.phase, start.key.ordinal) not in self._session.bench.known(start.ready):
                yield from self._session.bench.perform((start,))

    def _give_up(self) -> Generator[Event, None, None]:
        """Drop points at which somebody cannot be measured, and larger ones where the study says so."""
        dropped = self._units.dropped
        for point in self._units.points:
            readies = (
                [] if point in dropped else [self._units.ready(role, point) for role in self._units.roles]
            )
            for ready in readies:
                failure = self._units.why_broken(ready)
                if failure is None:
                    continue
                dropped[point] = failure
                beyond = [each for each in self._units.alive if self._is_beyond(each, ready, failure)]
                if beyond:
                    dropped.update((each.cell.point, None) for each in beyond)
                    yield GivenUp(cells=tuple(each.cell for each in beyond), because=ready.cell)
                break

    def _is_beyond(self, ready: Ready, broken: Ready, failure: Failure) -> bool:
        gives_up = self._benchmark.give_up and failure.stage in ("timeout", "memory")
        return gives_up and larger(ready.cell, broken.cell)

    def _done(self, rule: Rule) -> bool:
        if not self._units.alive or len(self._units.whole()) >= rule.most:
            return True
        leading = [target for target in self._targets if self._leads(target)]
        alive = [target for target in leading if not self._units.dropped.keys() & set(target.points)]
        return bool(alive) and all(self._is_settled(target, rule) for target in alive)

    def _is_settled(self, target: Target, rule: Rule) -> bool:
        stand = self._stand(target, rule)
        if stand.units < max(rule.looks[0], self._session.study.measure.invocations.least):
            return False
        found = [stand.got, *([stand.gain] if Role.FIXED in self._units.roles else [])]
        return all(
            each is not None
            and each.verdict is not Verdict.UNCLEAR
            and math.log(each.high / each.low) / 2.0 <= self._session.study.measure.precision
            for each in found
        )

    def _stand(self, target: Target, rule: Rule) -> Stand:
        """Read a metric off the units up to the last look: stopping between two looks is no further look."""
        units = self._usable(target, rule)
        looked = [count for count in rule.looks if count <= len(units)]
        units = units[: looked[-1]] if looked else units
        logs = {role: [unit.logs[role] for unit in units] for role in self._units.roles if units}
        return Stand(
            target=target,
            leading=self._leads(target),
            figures={role: estimate([math.exp(value) for value in each]) for role, each in logs.items()},
            units=len(units),
            marked=sum(not unit.quiet for unit in units),
            got=_compared(logs, Role.PATCHED, rule),
            gain=_compared(logs, Role.FIXED, rule),
            carried=_carried(logs, rule),
            note="" if units else self._why_nothing(target),
        )

    def _usable(self, target: Target, rule: Rule) -> list[Unit]:
        """The units that have a figure of each, only the unmarked ones where these are enough for a verdict."""
        units = self._units.of(target)
        quiet = [unit for unit in units if unit.quiet]
        enough = enough_quiet(len(quiet), least=self._session.study.measure.invocations.least)
        return quiet if enough and len(quiet) >= rule.looks[0] else units

    def _why_nothing(self, target: Target) -> str:
        failures = (self._units.evaluated(target, ordinal) for ordinal in self._units.whole())
        return next((each.message for each in failures if isinstance(each, Failure)), "could not be measured")

    def _progress(self, rule: Rule) -> Progress:
        done, each = len(self._units.whole()), len(self._units.alive)
        look = next((count for count in rule.looks if count > done), rule.most)
        least, most = max(0, look - done) * each, max(0, rule.most - done) * each
        seconds = self._units.seconds_each()
        return Progress(
            done=done * each,
            left_least=least,
            left_most=most,
            seconds_least=least * seconds,
            seconds_most=most * seconds,
        )


def _full_name(study: Study, metric: str) -> str:
    try:
        return resolve(study, metric, study.find.variant or next(iter(study.variants))).name
    except TargetError:
        return parse_metric(metric).name


def _compared(logs: Mapping[Role, Sequence[float]], role: Role, rule: Rule) -> Comparison | None:
    """Somebody against the old one, None where there is nothing to compare."""
    if role not in logs:
        return None
    first, second = ([math.exp(value) for value in logs[each]] for each in (Role.OLD, role))
    return compare(first, second, rule)


def _carried(logs: Mapping[Role, Sequence[float]], rule: Rule) -> Carried | None:
    if Role.FIXED not in logs:
        return None
    old = logs[Role.OLD]
    patched, fixed = (
        [value - base for value, base in zip(logs[role], old, strict=True)]
        for role in (Role.PATCHED, Role.FIXED)
    )
    return carried(patched, fixed, level=rule.level(len(old)))
