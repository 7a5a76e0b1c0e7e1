"""Everything that the dashboard tells of a study, worked out at one moment: pages are then only written down."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from perftrail import studyfile
from perftrail.errors import NoAnswer
from perftrail.workflows.clock import now
from perftrail.workflows.opening import open_view, results_directory
from perftrail.workflows.report import report_of
from perftrail.workflows.reporting.gathered import gather
from perftrail.workflows.reporting.words import slug
from perftrail.workflows.serving.course import Course, courses
from perftrail.workflows.serving.regressions import regressions
from perftrail.workflows.serving.remaining import Remaining, remaining
from perftrail.workflows.uncollected import kept_out

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perftrail.model.build import BuildRecord
    from perftrail.model.plan import Cell
    from perftrail.model.search_record import Mark
    from perftrail.report.page import Page
    from perftrail.workflows.reporting.gathered import Gathered
    from perftrail.workflows.serving.regressions import Regression
    from perftrail.workflows.showing.rows import Row


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """What a study's store said at `mark`, and when it was read. `page` is its report, `None` before there is any.

    The view that it was gathered through is closed: whoever wants more of the store opens that itself. `stored`
    counts what is there of each kind, in words.
    """

    mark: Mark
    taken: str
    gathered: Gathered
    page: Page | None
    builds: Mapping[str, tuple[BuildRecord, ...]]
    remaining: Remaining
    stored: Mapping[str, int]

    @cached_property
    def courses(self) -> Mapping[str, Course]:
        """Every figure that was measured along the history, by a name that is fit for an address."""
        found: dict[str, Course] = {}
        for course in courses(self.gathered):
            followed = course.followed
            name = slug(f"{followed.benchmark}-{followed.metric}-{followed.point}", found)
            found[name] = course
        return found

    @cached_property
    def regressions(self) -> tuple[Regression, ...]:
        """What became worse, the newest first."""
        return regressions(self.gathered)

    @cached_property
    def rows_of(self) -> Mapping[str, tuple[Row, ...]]:
        """What was measured of each revision."""
        found: dict[str, list[Row]] = {}
        for row in self.gathered.rows:
            found.setdefault(row.subject.revision.id, []).append(row)
        return {id_: tuple(rows) for id_, rows in found.items()}

    @cached_property
    def cells_of(self) -> Mapping[str, tuple[Cell, ...]]:
        """What each runnable stands for, by its key."""
        found: dict[str, list[Cell]] = {}
        for cell, key in self.gathered.measured_here.cells:
            found.setdefault(key, []).append(cell)
        return {key: tuple(cells) for key, cells in found.items()}

    def pieces(self) -> list[list[object]]:
        """Give all of which there is very much, for who wants to let go of it bit by bit."""
        gathered = self.gathered
        points = (course.points for course in self.courses.values())
        return [
            list(each)
            for each in (gathered.rows, gathered.measured_here.cells, gathered.measured_here.read, *points)
        ]


def take(file: str, *, store: str | None) -> Snapshot:
    """Read a study and its store as they are now. Makes and measures nothing.

    Raises `PerftrailError` where the study, its source or its store cannot be read.
    """
    study = studyfile.load(file)
    with kept_out(), open_view(study, store=store) as view:
        mark = view.store.mark()
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
        # what is worked out when it is asked for first would make that page late
        _ = snapshot.courses, snapshot.regressions, snapshot.rows_of, snapshot.cells_of
    return snapshot


def _page(gathered: Gathered) -> Page | None:
    try:
        return report_of(gathered)
    except NoAnswer:
        return None
