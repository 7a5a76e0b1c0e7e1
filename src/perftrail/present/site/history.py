"""All publications of a site joined: the history of each metric, its changes, and its state now.

Values of different machines are never compared: changes are searched in the values of each machine alone. The state of
a metric is that of the last comparison of the newest revision by `compare`. Without one, it is the change within the
newest revisions of the machine that measured it last.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from perftrail.model.benchmark import Point
from perftrail.model.metrics import improves
from perftrail.model.recipe import PLAIN
from perftrail.model.subject import Revision, Subject
from perftrail.model.wording import counted, percent
from perftrail.present.answer_sentence import revision_name
from perftrail.results.changes import begin_changes, with_answers
from perftrail.results.rows import Row
from perftrail.stats.series_noise import spread

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftrail.model.metrics import Better
    from perftrail.model.published import Publication, PublishedComparison, PublishedMetric, PublishedVerdict
    from perftrail.model.store_records import SearchRecord
    from perftrail.model.study import Study
    from perftrail.ports import Engine
    from perftrail.results.changes import HistoryChange, HistoryChanges

State = Literal["slower", "faster", "unclear", "same", "retired"]
"""State of a metric; ``slower`` means worse, in whichever direction the metric is better.

``retired``: none of the newest revisions has a value, for example because the benchmark was removed.
"""

STATES: tuple[State, ...] = get_args(State)

RECENT = 20
"""A change within this number of newest measured revisions decides the state."""

FEWEST_REVISIONS = 5
"""With fewer measured revisions of a machine, the state is unclear: no change could be detected."""

DETECTABLE_SIZE = 3.0
"""A change of this many standard deviations of one revision's level is at the alert level after a few revisions."""

JUMP_SHARE, BEFORE = 1.5, 5
"""A newest level that differs from this number before by this multiple of the largest missed change may be a change."""

LARGEST_UNDETECTED = 0.5
"""If a larger change could be missed, the state is unclear."""


@dataclass(frozen=True, slots=True)
class MetricName:
    """The identity of a metric: of a benchmark, in a variant, at a point."""

    benchmark: str
    metric: str
    variant: str
    point: Point

    @classmethod
    def of_row(cls, row: Row) -> MetricName:
        """Return the metric of a row."""
        return cls(row.benchmark, row.metric, row.subject.variant, row.point)

    @classmethod
    def of(cls, published: PublishedMetric | PublishedVerdict) -> MetricName:
        """Return a published metric."""
        point = Point(tuple(published.point.items()))
        return cls(published.benchmark, published.metric, published.variant, point)

    def __str__(self) -> str:
        point = f"[{self.point}]" if self.point.values else ""
        variant = "" if self.variant == PLAIN else f" ({self.variant})"
        return f"{self.benchmark}.{self.metric}{point}{variant}"


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedValues:
    """Every published value of a metric at one revision on one machine, and the build that the last ones are from."""

    values: tuple[float, ...]
    build: str


Joined = dict[MetricName, dict[str, dict[str, JoinedValues]]]
"""Values by metric, machine and revision."""


def joined_values(publications: Sequence[Publication]) -> Joined:
    """Join the values of publications in their order."""
    found: Joined = {}
    for publication in publications:
        for metric in publication.metrics:
            by_machine = found.setdefault(MetricName.of(metric), {})
            by_revision = by_machine.setdefault(publication.machine.id, {})
            for each in metric.measured:
                revision = publication.revisions[each.revision].id
                known = by_revision.get(revision)
                before = () if known is None or each.replaces else known.values
                by_revision[revision] = JoinedValues(values=(*before, *each.values), build=each.build)
    return found


def revisions_in_order(
    publications: Sequence[Publication], history: Sequence[Revision]
) -> tuple[Revision, ...]:
    """Return the published revisions and the present history of the source, the oldest first.

    The present history decides the order. A published revision that it no longer contains follows the one that
    preceded it when it was published, or the last one of the publication before.
    """
    after: dict[str, list[str]] = {}
    known = {revision.id: revision for revision in history}
    before = ""
    for publication in publications:
        for each in publication.revisions:
            if each.id not in known:
                known[each.id] = Revision(id=each.id, label=each.label, time=each.time, summary=each.message)
                after.setdefault(before, []).append(each.id)
            before = each.id
    ordered: list[str] = []
    # Depth first without recursion: a long history of unknown revisions is a chain.
    waiting = [*(revision.id for revision in reversed(history)), *reversed(after.get("", []))]
    while waiting:
        id_ = waiting.pop()
        ordered.append(id_)
        waiting += reversed(after.get(id_, []))
    return tuple(known[id_] for id_ in ordered)


@dataclass(frozen=True, slots=True, kw_only=True)
class SitePoint:
    """A metric at a measured revision, on one machine; `position` counts the measured revisions of the site."""

    position: int
    machine: str
    row: Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Recent:
    """The change that decides a state: the effect is after/before, with its interval.

    `since` is the revision of the change, or of the first of several changes, whose joint effect has no interval.
    `base` is the revision with which `compare` compared. One of them is empty.
    """

    effect: float
    low: float
    high: float
    since: Revision | None = None
    base: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricState:
    """A metric along the history of its site, and its state.

    Changes below the `threshold` do not count, and smaller ones than `undetected` could be missed. `reason` explains an
    unclear state.
    """

    name: MetricName
    unit: str
    better: Better
    points: tuple[SitePoint, ...]
    changes: tuple[HistoryChange, ...]
    state: State
    threshold: float
    undetected: float = 0.0
    recent: Recent | None = None
    reason: str = ""

    @property
    def newest(self) -> SitePoint:
        """The value at the newest revision, of the machine that was used last."""
        return self.points[-1]

    @property
    def is_time(self) -> bool:
        """Whether the metric is a time, so that worse is slower."""
        return self.unit == "s" and self.better == "lower"

    @property
    def size(self) -> float:
        """The size of the change that decides the state, as a logarithm; zero without one."""
        return abs(math.log(self.recent.effect)) if self.recent and self.recent.effect > 0.0 else 0.0

    def is_worse(self, effect: float) -> bool:
        """Whether a ratio after/before is for the worse."""
        return effect != 1.0 and not improves(effect, self.better)


@dataclass(frozen=True, kw_only=True)
class SiteHistory:
    """The joined publications of a site: its measured revisions, and its metrics, the worst first."""

    study: str
    publications: tuple[Publication, ...]
    revisions: tuple[Revision, ...]
    metrics: tuple[MetricState, ...]
    comparison: PublishedComparison | None

    @cached_property
    def current(self) -> tuple[MetricState, ...]:
        """The metrics that newest revisions have."""
        return tuple(each for each in self.metrics if each.state != "retired")

    @cached_property
    def counts(self) -> Mapping[State, int]:
        """The number of metrics in each state."""
        found = Counter(each.state for each in self.metrics)
        return {state: found[state] for state in STATES}

    @cached_property
    def machines(self) -> tuple[str, ...]:
        """The machines of the values, in the order of their first publication."""
        return tuple(dict.fromkeys(each.machine.id for each in self.publications if each.metrics))


def read_history(
    publications: Sequence[Publication],
    history: Sequence[Revision],
    *,
    study: Study,
    searches: Sequence[SearchRecord],
    engine: Engine,
) -> SiteHistory:
    """Join publications, find the changes of each metric, and judge its state.

    `history` is the present history of the source. An `engine` searches the changes. `searches` are the study's: a
    certified change has the effect and the interval of its search, as in every output.
    """
    order = revisions_in_order(publications, history)
    rows = _rows(publications, {revision.id: revision for revision in order})
    measured_ids = {
        row.subject.revision.id for by_name in rows.values() for each in by_name.values() for row in each
    }
    begun = {machine: begin_changes(order, by_name.values(), engine) for machine, by_name in rows.items()}
    found = {machine: with_answers(pending.outcome(), study, searches) for machine, pending in begun.items()}
    measured = tuple(revision for revision in order if revision.id in measured_ids)
    positions = {revision.id: position for position, revision in enumerate(measured)}
    comparison = _comparison_of(publications, measured[-1].id if measured else "")
    described = {MetricName.of(metric): metric for each in publications for metric in each.metrics}
    last_used = {each.machine.id: number for number, each in enumerate(publications) if each.metrics}
    judged = {MetricName.of(each): each for each in comparison.verdicts} if comparison is not None else {}
    threshold = study.find.threshold_for([None]) or study.measure.precision
    changes = _changes(found)
    metrics = [
        _metric(
            metric,
            _points(rows, name, positions, last_used),
            changes.get(name, ()),
            verdict=judged.get(name),
            base=comparison.base_name if comparison is not None else "",
            threshold=threshold,
            revisions=len(measured),
        )
        for name, metric in described.items()
    ]
    return SiteHistory(
        study=publications[-1].study,
        publications=tuple(publications),
        revisions=measured,
        metrics=tuple(
            sorted(metrics, key=lambda each: (STATES.index(each.state), -round(each.size, 9), str(each.name)))
        ),
        comparison=comparison,
    )


def _rows(
    publications: Sequence[Publication], revisions: Mapping[str, Revision]
) -> dict[str, dict[MetricName, list[Row]]]:
    """Return the rows of each metric in the order of the history, by machine."""
    positions = {id_: position for position, id_ in enumerate(revisions)}
    units = {MetricName.of(metric): metric.unit for each in publications for metric in each.metrics}
    found: dict[str, dict[MetricName, list[Row]]] = {}
    subjects: dict[tuple[str, str], Subject] = {}
    for name, by_machine in joined_values(publications).items():
        for machine, by_revision in by_machine.items():
            rows = found.setdefault(machine, {}).setdefault(name, [])
            for id_ in sorted(by_revision, key=positions.__getitem__):
                joined = by_revision[id_]
                subject = subjects.setdefault(
                    (id_, name.variant), Subject(revision=revisions[id_], variant=name.variant)
                )
                rows.append(
                    Row(
                        subject=subject,
                        benchmark=name.benchmark,
                        point=name.point,
                        metric=name.metric,
                        unit=units[name],
                        failures=0,
                        values=joined.values,
                        runnables=frozenset({joined.build or f"{id_} {name.variant}"}),
                    )
                )
    return found


def _points(
    rows: Mapping[str, Mapping[MetricName, Sequence[Row]]],
    name: MetricName,
    positions: Mapping[str, int],
    last_used: Mapping[str, int],
) -> tuple[SitePoint, ...]:
    """Return the points of a metric, the machine that was used last at the end of each revision."""
    found = [
        SitePoint(position=positions[row.subject.revision.id], machine=machine, row=row)
        for machine, by_name in rows.items()
        for row in by_name.get(name, ())
    ]
    return tuple(sorted(found, key=lambda each: (each.position, last_used.get(each.machine, -1))))


def _changes(found: Mapping[str, HistoryChanges]) -> dict[MetricName, list[tuple[str, HistoryChange]]]:
    """Return the changes of each metric at the alert level, with their machine, in the order of the history."""
    by_name: dict[MetricName, list[tuple[str, HistoryChange]]] = {}
    for machine, changes in found.items():
        for each in sorted(changes.alerts, key=lambda change: change.point.position):
            by_name.setdefault(MetricName.of_row(each.row), []).append((machine, each))
    return by_name


def _comparison_of(publications: Sequence[Publication], newest: str) -> PublishedComparison | None:
    """Return the last comparison whose head is the newest revision."""
    found = [each for publication in publications for each in publication.comparisons if each.head == newest]
    return max(found, key=lambda each: each.finished, default=None)


def _metric(
    metric: PublishedMetric,
    points: tuple[SitePoint, ...],
    changes: Sequence[tuple[str, HistoryChange]],
    *,
    verdict: PublishedVerdict | None,
    base: str,
    threshold: float,
    revisions: int,
) -> MetricState:
    machine = points[-1].machine
    own = [each for each in points if each.machine == machine]
    recent, reason, undetected = None, "", 0.0
    if verdict is not None:
        state: State = verdict.verdict
        if verdict.effect > 0.0:
            recent = Recent(effect=verdict.effect, low=verdict.low, high=verdict.high, base=base)
        elif state == "unclear":
            reason = "the comparison has too few pairs"
    elif points[-1].position < revisions - RECENT:
        state, reason = "retired", f"last measured at {revision_name(points[-1].row.subject.revision)}"
    else:
        newest = {each.row.subject.revision.id for each in own[-RECENT:]}
        recent = _recent(
            [each for where, each in changes if where == machine and each.row.subject.revision.id in newest]
        )
        undetected = undetected_change(own[-RECENT:])
        if recent is not None and abs(math.log(recent.effect)) >= math.log1p(threshold):
            state = "faster" if improves(recent.effect, metric.better) else "slower"
        elif len(own) < FEWEST_REVISIONS:
            state, reason = "unclear", f"{counted(len(own), 'revision')} of this machine: too few"
        elif abs(math.log(jump := newest_jump(own))) >= JUMP_SHARE * math.log1p(max(threshold, undetected)):
            state, reason = "unclear", "possible change"
            recent = Recent(effect=jump, low=jump, high=jump, since=own[-1].row.subject.revision)
        elif undetected > LARGEST_UNDETECTED:
            state = "unclear"
            reason = f"noisy: a change below {percent(undetected)} could be missed"
        else:
            state = "same"
    return MetricState(
        name=MetricName.of(metric),
        unit=metric.unit,
        better=metric.better,
        points=points,
        changes=tuple(change for _, change in changes),
        state=state,
        threshold=threshold,
        undetected=undetected,
        recent=recent,
        reason=reason,
    )


def undetected_change(points: Sequence[SitePoint]) -> float:
    """Return the relative change that could be missed among neighbouring points, from the noise of their medians."""
    estimates = [each.row.estimate for each in points]
    levels = np.array([each.value for each in estimates if each is not None and each.value > 0.0])
    if len(levels) < FEWEST_REVISIONS:
        return 0.0
    noise = spread(np.diff(np.log(levels))) / math.sqrt(2.0)
    return math.expm1(min(DETECTABLE_SIZE * noise, 100.0))


def newest_jump(points: Sequence[SitePoint]) -> float:
    """Return the ratio of the newest level to the median of the levels before it; 1 without enough levels."""
    estimates = [each.row.estimate for each in points[-1 - BEFORE :]]
    levels = [each.value for each in estimates if each is not None and each.value > 0.0]
    return levels[-1] / statistics.median(levels[:-1]) if len(levels) > BEFORE else 1.0


def _recent(changes: Sequence[HistoryChange]) -> Recent | None:
    """Return the effect of recent changes together; only that of a single change has an interval."""
    if not changes:
        return None
    first, last = changes[0].point, changes[-1].point
    if len(changes) == 1:
        return Recent(
            effect=first.effect, low=first.low, high=first.high, since=changes[0].row.subject.revision
        )
    effect = last.after / first.before
    return Recent(effect=effect, low=effect, high=effect, since=changes[0].row.subject.revision)
