"""A metric along a history or a part of it, with as many points as a screen can show."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from perftrail.charts.curve import Labels
from perftrail.charts.frame import MOST, HistoryPoint
from perftrail.charts.history import history
from perftrail.present.report.history import along_history, events

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from perftrail.charts.frame import Chart
    from perftrail.charts.history import Events
    from perftrail.model.json_data import Json
    from perftrail.present.report.data import HistoryMetric, ReportData
    from perftrail.results.changes import HistoryChange

    Indexes = npt.NDArray[np.intp]

MOST_MARKS = 200
"""Maximum number of marked failures in one chart."""


@dataclass(frozen=True, kw_only=True)
class MetricHistory:
    """A metric along the history: `points` ordered by subject and position, and the events."""

    report_data: ReportData
    history_metric: HistoryMetric
    points: tuple[HistoryPoint, ...]

    @property
    def title(self) -> str:
        """The metric in words."""
        point = f" at {self.history_metric.point}" if self.history_metric.point.values else ""
        return f"{self.history_metric.benchmark}.{self.history_metric.metric}{point}"

    @property
    def length(self) -> int:
        """Number of revisions of the history."""
        return len(self.report_data.revisions)

    def changes_between(self, first: int, last: int) -> tuple[HistoryChange, ...]:
        """Return the changes between two positions, the oldest first."""
        changes = (each for each in self.report_data.changes if self.history_metric.is_of(each.row))
        inside = [each for each in changes if first <= each.point.position <= last]
        return tuple(sorted(inside, key=lambda each: each.point.position))

    @cached_property
    def events(self) -> Events:
        """The events along the whole history."""
        return events(self.report_data, self.history_metric)

    def within(self, first: int, last: int, *, most: int = MOST) -> tuple[HistoryPoint, ...]:
        """Return the points between two positions. If there are more than `most`, neighbours are combined.

        Each subject's history is divided into ranges of equal width. A combined point has the median of its values, and
        the whole range of their intervals.
        """
        columns = self._columns
        inside = np.flatnonzero((columns.position >= first) & (columns.position <= last))
        if len(inside) <= most:
            return tuple(self.points[index] for index in inside)
        subjects = len(np.unique(columns.subject[inside]))
        width = -(-(last - first + 1) * subjects // most)
        range_number = (columns.position[inside] - first) // width
        starts = np.flatnonzero(np.diff(range_number) | np.diff(columns.subject[inside])) + 1
        return self._combine_ranges(inside, np.concatenate(([0], starts)))

    def _combine_ranges(self, inside: Indexes, starts: Indexes) -> tuple[HistoryPoint, ...]:
        """Combine each range of the points `inside`; `starts` are the indexes at which the ranges begin."""
        columns = self._columns
        sizes = np.diff(np.append(starts, len(inside)))
        values = columns.value[inside]
        ordered = values[np.lexsort((values, np.repeat(np.arange(len(starts)), sizes)))]
        middles = (ordered[starts + (sizes - 1) // 2] + ordered[starts + sizes // 2]) / 2
        return tuple(
            self._combined(self.points[one], self.points[other], *values)
            for one, other, *values in zip(
                inside[starts].tolist(),
                inside[starts + sizes - 1].tolist(),
                middles.tolist(),
                np.minimum.reduceat(columns.low[inside], starts).tolist(),
                np.maximum.reduceat(columns.high[inside], starts).tolist(),
                np.add.reduceat(columns.count[inside], starts).tolist(),
                sizes.tolist(),
                strict=True,
            )
        )

    @staticmethod
    def _combined(
        first: HistoryPoint,
        last: HistoryPoint,
        value: float,
        low: float,
        high: float,
        count: int,
        points: int,
    ) -> HistoryPoint:
        if points == 1:
            return first
        return HistoryPoint(
            position=first.position,
            subject=first.subject,
            revision=f"{first.revision} to {last.revision}",
            value=value,
            low=low,
            high=high,
            count=count,
            last=last.position,
            of=points,
        )

    def chart(self, first: int, last: int) -> Chart:
        """Return the chart from one position to another."""
        return self._whole if (first, last) == (0, self.length - 1) else self._drawn(first, last)

    @cached_property
    def _whole(self) -> Chart:
        return self._drawn(0, self.length - 1)

    def _drawn(self, first: int, last: int) -> Chart:
        points = self.within(first, last)
        labels = Labels(
            name="history",
            title=self.title,
            axis="position in the history",
            metric=self.history_metric.metric,
            unit=self.history_metric.unit,
        )
        drawn = history(
            points, self._events_between(first, last), labels=labels, palette=self.report_data.palette
        )
        return replace(drawn, spec=_framed(drawn.spec, first, last))

    def _events_between(self, first: int, last: int) -> Events:
        events = self.events
        failed = [mark for mark in events.failed if first <= mark.position <= last]
        step = -(-len(failed) // MOST_MARKS) or 1
        return replace(
            events,
            changes=tuple(mark for mark in events.changes if first <= mark.position <= last),
            releases=tuple(mark for mark in events.releases if first <= mark.position <= last),
            failed=tuple(failed[::step]),
            gaps=tuple(
                replace(gap, first=max(gap.first, first), last=min(gap.last, last))
                for gap in events.gaps
                if gap.first <= last and gap.last >= first
            ),
            steps=tuple(mark for mark in events.steps if first <= mark.position <= last),
        )

    @cached_property
    def _columns(self) -> _Columns:
        subjects = {name: number for number, name in enumerate(dict.fromkeys(p.subject for p in self.points))}
        return _Columns(
            position=np.array([point.position for point in self.points], dtype=np.int64),
            subject=np.array([subjects[point.subject] for point in self.points], dtype=np.int64),
            value=np.array([point.value for point in self.points]),
            low=np.array([point.low for point in self.points]),
            high=np.array([point.high for point in self.points]),
            count=np.array([point.count for point in self.points], dtype=np.int64),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Columns:
    """The points as arrays, one element for each."""

    position: npt.NDArray[np.int64]
    subject: npt.NDArray[np.int64]
    value: npt.NDArray[np.float64]
    low: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]
    count: npt.NDArray[np.int64]


def metric_histories(data: ReportData) -> Iterator[MetricHistory]:
    """Yield each metric along the history, that of the study's question first."""
    lead = data.lead
    known: Sequence[HistoryMetric] = list(
        dict.fromkeys(data.history_metric(rows[0]) for rows in data.rows_by_metric.values())
    )
    for history_metric in (*([lead] if lead is not None else []), *(each for each in known if each != lead)):
        points = along_history(data, history_metric)
        if points:
            ordered = sorted(points, key=lambda point: (point.subject, point.position))
            yield MetricHistory(report_data=data, history_metric=history_metric, points=tuple(ordered))


def _framed(spec: dict[str, Json], first: int, last: int) -> dict[str, Json]:
    """Restrict the horizontal axis of a chart to a part of the history."""
    layers = spec["layer"]
    assert isinstance(layers, list)
    for layer in layers:
        assert isinstance(layer, dict)
        encoding = layer["encoding"]
        assert isinstance(encoding, dict)
        x_axis = encoding.get("x")
        if isinstance(x_axis, dict) and isinstance(x_axis.get("scale"), dict):
            scale = x_axis["scale"]
            assert isinstance(scale, dict)
            scale["domain"] = [first - 0.5, last + 0.5]
        mark = layer["mark"]
        if isinstance(mark, dict):
            mark["clip"] = mark.get("type") != "text"
    return spec
