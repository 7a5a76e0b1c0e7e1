"""Collect everything that `show` prints: samples, analyses and searches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypedDict

from perftrail.model.source import PinsJson
from perftrail.results.changes import HistoryChangeJson, history_changes, revisions_to_describe, with_answers
from perftrail.results.growth import GrowthAtRowJson, growth_along
from perftrail.results.measured import MeasuredHere, gc_disabled
from perftrail.results.pairs import ShiftJson, by_benchmark
from perftrail.results.rows import RowJson, ValueWithIntervalJson, interval_json, rows
from perftrail.results.scaling import ThreadScalingJson, thread_scalings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from perftrail.measure.session import View
    from perftrail.model.source import Pins
    from perftrail.model.store_records import SearchRecord, StepRecord
    from perftrail.model.subject import Revision
    from perftrail.results.changes import HistoryChanges
    from perftrail.results.growth import Growths
    from perftrail.results.pairs import Shift
    from perftrail.results.rows import Row
    from perftrail.results.scaling import ThreadScalings


class RankedChangeJson(HistoryChangeJson):
    """A change along the history, and its rank by importance."""

    rank: int


class ShownRowJson(RowJson, PinsJson):
    """A row, with the change and the fits that belong to it."""

    message: Annotated[str, "the first line of the revision's message"]
    same_build_as: Annotated[
        str | None, "the first of the neighbouring revisions with the same build, whose samples these are"
    ]
    change: RankedChangeJson | None
    correlation: Annotated[ValueWithIntervalJson | None, "of neighbouring samples"]
    growth: list[GrowthAtRowJson]
    by_benchmark: ShiftJson | None
    scaling: ThreadScalingJson | None


class StoredSearchJson(TypedDict):
    """A search on this machine."""

    question: Mapping[str, object]
    started: str
    answer: Annotated[Mapping[str, object] | None, "what `find --json` printed; null: it has not ended"]


class SearchStepJson(TypedDict):
    """One step of a search: its action, the result, and the belief after it."""

    number: int
    words: str
    action: Mapping[str, object]
    observation: Mapping[str, object]
    belief: Mapping[str, object]


class SearchStepsJson(TypedDict):
    """All searches on this machine, and the steps of one of them."""

    number: Annotated[int, "which search, counted from 1"]
    searches: list[StoredSearchJson]
    question: Mapping[str, object]
    steps: list[SearchStepJson]
    answer: Mapping[str, object] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """All rows that were measured here, with their analyses along the history and along each axis.

    `pins` are the revisions of the other sources.
    """

    view: View
    measured: MeasuredHere
    rows: tuple[Row, ...]
    changes: HistoryChanges
    growths: Growths
    pins: Pins

    def scalings(self) -> ThreadScalings:
        """How subjects scale with their threads, at the revisions that a report describes."""
        known = searches(self.view)
        return thread_scalings(
            self.view,
            measured=self.measured,
            choose=lambda revisions: revisions_to_describe(revisions, known),
        )

    def described_growths(self) -> tuple[Revision, ...]:
        """The revisions whose growth a report describes, in the order of history."""
        return revisions_to_describe(self.growths.measured, searches(self.view))

    @property
    def by_benchmark(self) -> tuple[Shift, ...]:
        """Differences of variants from the first one, by benchmark."""
        return by_benchmark(self.view, self.measured, self.rows)

    def as_json(self) -> list[ShownRowJson]:
        """Return all `json_rows`."""
        return list(self.json_rows())

    def json_rows(self) -> Iterator[ShownRowJson]:
        """Yield every row as `show --json` prints it, with the changes and fits at it."""
        begun: dict[Row, RankedChangeJson] = {
            change.row: {**change.as_json(), "rank": rank}
            for rank, change in enumerate(self.changes.ranked, start=1)
        }
        alike = {
            each.row: interval_json(each.correlation.value, each.correlation.low, each.correlation.high)
            for each in self.changes.correlated
        }
        shifted = {shift.row: shift.as_json() for shift in self.by_benchmark}
        scaled = {each.row_key: each for each in thread_scalings(self.view, measured=self.measured).found}
        equal = equal_builds(self.rows)
        for row in self.rows:
            yield {
                **row.as_json(),
                **self.pins.as_json(),
                "message": row.subject.revision.summary,
                "same_build_as": first.id if (first := equal.get(id(row))) is not None else None,
                "change": begun.get(row),
                "correlation": alike.get(row),
                "growth": self.growths.as_json(row),
                "by_benchmark": shifted.get(row),
                "scaling": found.as_json()
                if (found := scaled.get((row.subject, row.benchmark, row.point, row.metric)))
                else None,
            }


def equal_builds(rows: Sequence[Row]) -> dict[int, Revision]:
    """Return, for each row by its id, the first of the neighbouring revisions with the same build, if it is another.

    Neighbours are the measured revisions before and after in the row's series: a metric of a variant at a point.
    """
    first: dict[tuple[object, ...], Row] = {}
    found: dict[int, Revision] = {}
    for row in rows:
        series = (row.subject.variant, row.benchmark, row.point, row.metric)
        before = first.get(series)
        if before is not None and row.runnables and before.runnables == row.runnables:
            found[id(row)] = before.subject.revision
        else:
            first[series] = row
    return found


@gc_disabled()
def show(view: View, *, metrics: Sequence[str] | None = None) -> Shown:
    """Read and analyse the samples of this machine; `metrics` selects by name. Builds and measures nothing."""
    measured = MeasuredHere(view)
    found = rows(view, metrics=metrics, measured=measured)
    if len(view.study.variants) == 1:  # only comparisons of variants need them again
        measured.forget_samples()
    return Shown(
        view=view,
        measured=measured,
        rows=found,
        changes=with_answers(history_changes(measured.history, found), view.study, searches(view)),
        growths=growth_along(view, found, metrics=metrics, measured=measured),
        pins=view.pins,
    )


def searches(view: View) -> tuple[SearchRecord, ...]:
    """Return every search of this machine, ended or not, the latest last."""
    return tuple(record for record in view.store.searches() if record.machine == view.machine.id)


def steps(view: View, record: SearchRecord) -> Sequence[StepRecord]:
    """Return the steps of a search."""
    return view.store.steps(record.key, record.machine)
