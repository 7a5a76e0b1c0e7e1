"""A snapshot of a study and its store: the data of all pages of the dashboard."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from perftrail import studyfile
from perftrail.charts.history import sparkline as path
from perftrail.errors import NoAnswer
from perftrail.measure.events import now
from perftrail.measure.session import stored_builds
from perftrail.model.build import Built, Failure
from perftrail.model.plan import cells, subjects
from perftrail.model.wording import quantity
from perftrail.opening import open_view, results_directory
from perftrail.present.dashboard.metric_history import MetricHistory, metric_histories
from perftrail.present.dashboard.regressions import regressions
from perftrail.present.report.gathered import gather
from perftrail.present.report.report import report_of
from perftrail.present.report.words import slug
from perftrail.results.measured import gc_limited
from perftrail.stats.estimate import enough

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftrail.measure.session import View
    from perftrail.model.build import BuildRecord
    from perftrail.model.plan import Cell
    from perftrail.model.store_records import StoreProgress
    from perftrail.model.study import MeasurePolicy
    from perftrail.model.subject import Revision, Subject
    from perftrail.present.dashboard.regressions import Regression
    from perftrail.present.html_page import Page
    from perftrail.present.report.gathered import Gathered
    from perftrail.results.rows import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Remaining:
    """Remaining builds, the seconds of one (zero if unknown), and the fewest and most remaining invocations.

    `planned` is the least number of invocations of the whole plan.
    """

    builds: int = 0
    build_seconds: float = 0.0
    least: int = 0
    most: int = 0
    planned: int = 0


def remaining(gathered: Gathered) -> Remaining:
    """Return the remaining work of the whole plan. The view must be open."""
    view = gathered.view
    study, policy = view.study, view.study.measure
    if study.searched_source.kind == "samples":
        return Remaining()
    runnable_rows = _rows_by_runnable(gathered)
    missing: dict[object, tuple[int, int]] = {}
    to_build, seconds = 0, []
    builds = stored_builds(view, gathered.revisions)
    built_alike = _built_with_same_tree(view, gathered.revisions, builds)
    for subject in subjects(study, view.wanted(gathered.revisions)):
        known = builds.get(built_alike.get(subject, subject))
        if isinstance(known, Failure):
            continue
        if isinstance(known, Built):
            seconds.append(known.seconds)
        else:
            to_build += 1
        keys = gathered.measured_here.by_subject.get(built_alike.get(subject, subject), {})
        for cell in cells(study, subject):
            name = keys.get((cell.benchmark, cell.point)) or _runnable_identity(cell, known)
            if name not in missing:
                missing[name] = _missing(runnable_rows.get(name, ()), policy)
    return Remaining(
        builds=to_build,
        build_seconds=statistics.median(seconds) if seconds else 0.0,
        least=sum(least for least, _ in missing.values()),
        most=sum(most for _, most in missing.values()),
        planned=len(missing) * (policy.warmups + policy.invocations.least),
    )


def _built_with_same_tree(
    view: View, revisions: Sequence[Revision], builds: Mapping[Subject, Built | Failure]
) -> Mapping[Subject, Subject]:
    """Return, for each subject that was never built, a built subject with the same tree if there is one."""
    content = {revision.id: view.source.content(revision) for revision in revisions}
    known = {(content[each.revision.id], each.variant): each for each in builds}
    return {
        subject: known[content[subject.revision.id], subject.variant]
        for subject in subjects(view.study, revisions)
        if subject not in builds and (content[subject.revision.id], subject.variant) in known
    }


def _runnable_identity(cell: Cell, known: Built | None) -> object:
    """Return an identity of the runnable of a cell without samples: cells with equal builds have equal ones."""
    return cell if known is None else (known.artefact, cell.subject.variant, cell.benchmark, cell.point)


def _rows_by_runnable(gathered: Gathered) -> dict[object, list[Row]]:
    """Return the rows that decide whether a runnable has enough invocations, by its key."""
    benchmarks = gathered.view.study.benchmarks
    runnable_rows: dict[object, list[Row]] = {}
    for row in gathered.rows:
        if row.metric in benchmarks[row.benchmark].leading and row.metric not in gathered.view.study.derived:
            for key in row.runnables:
                runnable_rows.setdefault(key, []).append(row)
    return runnable_rows


def _missing(rows: Sequence[Row], policy: MeasurePolicy) -> tuple[int, int]:
    """Return the fewest and most missing invocations of a runnable; zero if it failed too often."""
    least, most = policy.invocations.least, policy.invocations.most
    taken = max((len(row.values) for row in rows), default=0)
    failures = max((row.failures for row in rows), default=0)
    if failures > taken:
        return (0, 0)
    if not taken:
        return (policy.warmups + least, policy.warmups + most)
    parts = [row.values for row in rows if row.values]
    if (
        all(
            enough(values, least=min(least, len(values)), most=most, precision=policy.precision)
            for values in parts
            if taken >= least
        )
        and taken + failures >= least
    ):
        return (0, 0)
    done = taken + failures
    return (max(1, least - done), max(1, most - done))


MOST_IN_SPARKLINE = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Sparkline:
    """A small chart of a metric along the history: its title, the first and the last value, and an SVG path."""

    title: str
    ends: str
    path: str


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The content of a study's store at `mark`, read at the time `taken`. `page` is the report, `None` without samples.

    Its view is closed. `stored` counts the content of each kind. `active` is the start of the last invocation, empty
    without one.
    """

    mark: StoreProgress
    taken: str
    gathered: Gathered
    page: Page | None
    builds: Mapping[str, tuple[BuildRecord, ...]]
    remaining: Remaining
    stored: Mapping[str, int]
    active: str

    @cached_property
    def histories(self) -> Mapping[str, MetricHistory]:
        """Every metric along the history, by a name that is valid in an address."""
        found: dict[str, MetricHistory] = {}
        for series in metric_histories(self.gathered):
            followed = series.followed
            name = slug(f"{followed.benchmark}-{followed.metric}-{followed.point}", found)
            found[name] = series
        return found

    @cached_property
    def sparkline(self) -> Sparkline | None:
        """The metric of the study's question along the history; `None` with fewer than two values."""
        series = next(iter(self.histories.values()), None)
        points = () if series is None else series.within(0, series.length - 1, most=MOST_IN_SPARKLINE)
        last = points[-1].subject if points else ""
        values = [point.value for point in points if point.subject == last]
        if series is None or len(values) < 2:
            return None
        unit = series.followed.unit
        ends = f"{quantity(values[0], unit)} to {quantity(values[-1], unit)}"
        return Sparkline(title=series.title, ends=ends, path=path(values))

    @cached_property
    def regressions(self) -> tuple[Regression, ...]:
        """The regressions, the newest first."""
        return regressions(self.gathered)

    @cached_property
    def rows_of(self) -> Mapping[str, tuple[Row, ...]]:
        """The rows of each revision."""
        found: dict[str, list[Row]] = {}
        for row in self.gathered.rows:
            found.setdefault(row.subject.revision.id, []).append(row)
        return {id_: tuple(rows) for id_, rows in found.items()}

    @cached_property
    def cells_of(self) -> Mapping[str, tuple[Cell, ...]]:
        """The subjects of each runnable, by its key."""
        found: dict[str, list[Cell]] = {}
        for cell, key in self.gathered.measured_here.cells:
            found.setdefault(key, []).append(cell)
        return {key: tuple(cells) for key, cells in found.items()}

    def pieces(self) -> list[list[object]]:
        """Return the large collections, so that their memory can be freed piece by piece."""
        gathered = self.gathered
        points = (series.points for series in self.histories.values())
        return [
            list(each)
            for each in (gathered.rows, gathered.measured_here.cells, gathered.measured_here.read, *points)
        ]


def take(file: str, *, store: str | None) -> Snapshot:
    """Read a study and its store. Builds and measures nothing.

    Raises `PerftrailError` if the study, its source or its store cannot be read.
    """
    study = studyfile.load(file, to_read=True)
    with gc_limited(), open_view(study, store=store) as view:
        mark = view.store.progress()
        gathered = gather(view, results_directory(study, store))
        builds: dict[str, list[BuildRecord]] = {}
        for record in view.store.builds().values():
            builds.setdefault(record.revision, []).append(record)
        left = remaining(gathered)
        snapshot = Snapshot(
            mark=mark,
            taken=now(),
            gathered=gathered,
            page=_page(gathered),
            active=next((each.started for _, each in view.store.recent(1)), ""),
            builds={revision: tuple(records) for revision, records in builds.items()},
            remaining=left,
            stored={
                "revisions": len(gathered.revisions),
                "revisions measured": len(gathered.measured),
                "builds": mark.builds,
                "invocations": mark.invocations,
                "searches": mark.searches,
            },
        )
        # computed now, so that no page has to wait for them
        _ = snapshot.histories, snapshot.regressions, snapshot.rows_of, snapshot.cells_of
    return snapshot


def _page(gathered: Gathered) -> Page | None:
    try:
        return report_of(gathered)
    except NoAnswer:
        return None
