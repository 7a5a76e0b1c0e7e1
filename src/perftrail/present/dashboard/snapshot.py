"""A snapshot of a study and its store: the data of all pages of the dashboard."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from perftrail import studyfile
from perftrail.charts.history import sparkline as sparkline_path
from perftrail.errors import NoAnswer
from perftrail.measure.events import now
from perftrail.measure.session import stored_builds
from perftrail.model.build import Built, Failure
from perftrail.model.plan import cells, subjects
from perftrail.model.wording import quantity
from perftrail.opening import open_view, results_directory
from perftrail.present.dashboard.metric_history import MetricHistory, metric_histories
from perftrail.present.dashboard.regressions import regressions
from perftrail.present.report.data import read_report_data
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
    from perftrail.present.report.data import ReportData
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


def remaining(data: ReportData) -> Remaining:
    """Return the remaining work of the whole plan. The view must be open."""
    view = data.view
    study, policy = view.study, view.study.measure
    if study.searched_source.kind == "samples":
        return Remaining()
    runnable_rows = _rows_by_runnable(data)
    missing: dict[object, tuple[int, int]] = {}
    to_build, seconds = 0, []
    builds = stored_builds(view, data.revisions)
    built_alike = _built_with_same_tree(view, data.revisions, builds)
    for subject in subjects(study, view.wanted(data.revisions)):
        build = builds.get(built_alike.get(subject, subject))
        if isinstance(build, Failure):
            continue
        if isinstance(build, Built):
            seconds.append(build.seconds)
        else:
            to_build += 1
        keys = data.measured_here.by_subject.get(built_alike.get(subject, subject), {})
        for cell in cells(study, subject):
            name = keys.get((cell.benchmark, cell.point)) or _runnable_identity(cell, build)
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
    built = {(content[each.revision.id], each.variant): each for each in builds}
    return {
        subject: built[content[subject.revision.id], subject.variant]
        for subject in subjects(view.study, revisions)
        if subject not in builds and (content[subject.revision.id], subject.variant) in built
    }


def _runnable_identity(cell: Cell, known: Built | None) -> object:
    """Return an identity of the runnable of a cell without samples: cells with equal builds have equal ones."""
    return cell if known is None else (known.artefact, cell.subject.variant, cell.benchmark, cell.point)


def _rows_by_runnable(data: ReportData) -> dict[object, list[Row]]:
    """Return the rows that decide whether a runnable has enough invocations, by its key."""
    benchmarks = data.view.study.benchmarks
    runnable_rows: dict[object, list[Row]] = {}
    for row in data.rows:
        if row.metric in benchmarks[row.benchmark].leading and row.metric not in data.view.study.derived:
            for key in row.runnables:
                runnable_rows.setdefault(key, []).append(row)
    return runnable_rows


def _missing(rows: Sequence[Row], policy: MeasurePolicy) -> tuple[int, int]:
    """Return the fewest and most missing invocations of a runnable; zero if it failed too often."""
    least, most = policy.invocations.least, policy.invocations.most
    measured = max((len(row.values) for row in rows), default=0)
    failures = max((row.failures for row in rows), default=0)
    if failures > measured:
        return (0, 0)
    if not measured:
        return (policy.warmups + least, policy.warmups + most)
    values_by_row = [row.values for row in rows if row.values]
    if (
        all(
            enough(values, least=min(least, len(values)), most=most, precision=policy.precision)
            for values in values_by_row
            if measured >= least
        )
        and measured + failures >= least
    ):
        return (0, 0)
    done = measured + failures
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
    """The content of a study's store at one time. `page` is the report, `None` without samples.

    Its view is closed. `store_progress` identifies the state of the store. `stored` counts the content of each kind.
    `last_invocation` is the start of the last invocation, empty without one.
    """

    store_progress: StoreProgress
    time: str
    report_data: ReportData
    page: Page | None
    builds: Mapping[str, tuple[BuildRecord, ...]]
    remaining: Remaining
    stored: Mapping[str, int]
    last_invocation: str

    @cached_property
    def histories(self) -> Mapping[str, MetricHistory]:
        """Every metric along the history, by a name that is valid in an address."""
        found: dict[str, MetricHistory] = {}
        for series in metric_histories(self.report_data):
            history_metric = series.history_metric
            name = slug(f"{history_metric.benchmark}-{history_metric.metric}-{history_metric.point}", found)
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
        unit = series.history_metric.unit
        ends = f"{quantity(values[0], unit)} to {quantity(values[-1], unit)}"
        return Sparkline(title=series.title, ends=ends, path=sparkline_path(values))

    @cached_property
    def regressions(self) -> tuple[Regression, ...]:
        """The regressions, the newest first."""
        return regressions(self.report_data)

    @cached_property
    def rows_of(self) -> Mapping[str, tuple[Row, ...]]:
        """The rows of each revision."""
        found: dict[str, list[Row]] = {}
        for row in self.report_data.rows:
            found.setdefault(row.subject.revision.id, []).append(row)
        return {id_: tuple(rows) for id_, rows in found.items()}

    @cached_property
    def cells_of(self) -> Mapping[str, tuple[Cell, ...]]:
        """The subjects of each runnable, by its key."""
        found: dict[str, list[Cell]] = {}
        for cell, key in self.report_data.measured_here.cells:
            found.setdefault(key, []).append(cell)
        return {key: tuple(cells) for key, cells in found.items()}

    def large_collections(self) -> list[list[object]]:
        """Return the large collections, so that their memory can be freed one by one."""
        data = self.report_data
        points = (series.points for series in self.histories.values())
        return [
            list(each) for each in (data.rows, data.measured_here.cells, data.measured_here.read, *points)
        ]


def take_snapshot(file: str, *, store: str | None) -> Snapshot:
    """Read a study and its store. Builds and measures nothing.

    Raises `PerftrailError` if the study, its source or its store cannot be read.
    """
    study = studyfile.load(file, to_read=True)
    with gc_limited(), open_view(study, store=store) as view:
        progress = view.store.progress()
        data = read_report_data(view, results_directory(study, store))
        builds: dict[str, list[BuildRecord]] = {}
        for record in view.store.builds().values():
            builds.setdefault(record.revision, []).append(record)
        remaining_work = remaining(data)
        snapshot = Snapshot(
            store_progress=progress,
            time=now(),
            report_data=data,
            page=_page(data),
            last_invocation=next((each.started for _, each in view.store.recent(1)), ""),
            builds={revision: tuple(records) for revision, records in builds.items()},
            remaining=remaining_work,
            stored={
                "revisions": len(data.revisions),
                "revisions measured": len(data.measured),
                "builds": progress.builds,
                "invocations": progress.invocations,
                "searches": progress.searches,
            },
        )
        # Computes these now, so that no page waits for them.
        _ = snapshot.histories, snapshot.regressions, snapshot.rows_of, snapshot.cells_of
    return snapshot


def _page(data: ReportData) -> Page | None:
    try:
        return report_of(data)
    except NoAnswer:
        return None
