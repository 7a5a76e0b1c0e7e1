"""A report's section of every benchmark: how far each subject lies from the reference, point by point and in all."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.charts.heatmap import MOST_ROWS, Cell, heat
from perftrail.model.measurement import enough_quiet, weight
from perftrail.model.quantity import change, decimals
from perftrail.report.page import Section, Table
from perftrail.workflows.reporting.apart import comparable, compare_rows
from perftrail.workflows.reporting.gathered import MEMORY
from perftrail.workflows.reporting.words import shown
from perftrail.workflows.showing.by_benchmark import Shift, Shifts, shifts, sides
from perftrail.workflows.showing.rows import by_round

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from perftrail.model.benchmark import Point
    from perftrail.workflows.reporting.gathered import Gathered
    from perftrail.workflows.showing.rows import Row

LONGEST_LABEL = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A row of the figure: one point, or all points of a benchmark, with each subject's shift by its name."""

    label: str
    whole: bool
    shifts: Mapping[str, Shift]

    @property
    def size(self) -> float:
        """How far the subject that differs most lies from the reference; nothing where none does for sure."""
        told = (abs(math.log(each.comparison.effect)) for each in self.shifts.values() if each.differs)
        return max(told, default=0.0)


def heat_section(gathered: Gathered) -> Section | None:
    """Draw every benchmark at every point, subject by subject, where there are several of both."""
    rows = [row for row in gathered.compared_rows if row.metric != MEMORY]
    opposite = list(sides(rows, gathered.variants))
    places = {(row.benchmark, row.metric, row.point) for row in rows}
    if len(places) < 2 or not opposite:
        return None
    found = _apart(gathered, opposite) if _lacks_turns(gathered) else _in_turns(gathered, opposite)
    lines = list(_lines(gathered, rows, found))
    columns = list(dict.fromkeys(gathered.subject_name(row) for _, row in opposite))
    reference = gathered.subject_name(opposite[0][0])
    drawn = that_differ_most(lines)
    figure = heat(
        [_cell(line, column) for line in drawn for column in columns],
        reference=reference,
        name="heat-every-benchmark",
        left_out=len(lines) - len(drawn),
    )
    return Section(
        name="heat",
        title=figure.title,
        paragraphs=(_counted(found),),
        figure=figure,
        tables=tuple(_tables(lines)),
    )


def _lacks_turns(gathered: Gathered) -> bool:
    """Whether nothing says that the samples were taken in turns: others took them, or a search did."""
    searched = gathered.search is not None and len(gathered.variants) < 2
    return searched or gathered.view.study.walked.kind == "samples"


def _in_turns(gathered: Gathered, opposite: Sequence[tuple[Row, Row]]) -> Shifts:
    return shifts(gathered.view, gathered.measured_here, opposite)


def _apart(gathered: Gathered, opposite: Sequence[tuple[Row, Row]]) -> Shifts:
    """Compare all values of the one with all of the other, point by point: nothing pairs them."""
    known = [each for each in opposite if comparable(*each)]
    return Shifts(
        at=tuple(
            Shift(
                reference=first.subject,
                row=row,
                points=(row.point,),
                comparison=compare_rows(first, row, comparisons=len(known)),
                decides=row.unit != "s" or not any(_disturbed(gathered, each) for each in (first, row)),
            )
            for first, row in known
        ),
        over=(),
    )


def _disturbed(gathered: Gathered, row: Row) -> bool:
    """Whether a row's values have some among them that were taken while something else was at work."""
    marks = by_round(gathered.view, gathered.measured_here, row).values()
    quiet = sum(weight(each.flags) > 0.0 for each in marks)
    return quiet < len(marks) and not enough_quiet(quiet, least=gathered.view.study.measure.invocations.least)


def _lines(gathered: Gathered, rows: Sequence[Row], found: Shifts) -> Iterator[Line]:
    """Give the rows of the figure, grouped by benchmark: above its points the benchmark as a whole."""
    at: dict[tuple[str, str, Point], dict[str, Shift]] = {}
    over: dict[tuple[str, str], dict[str, Shift]] = {}
    for each in found.at:
        row = each.row
        at.setdefault((row.benchmark, row.metric, row.point), {})[gathered.subject_name(row)] = each
    for each in found.over:
        over.setdefault((each.row.benchmark, each.row.metric), {})[gathered.subject_name(each.row)] = each
    groups: dict[str, dict[str, dict[Point, None]]] = {}
    for row in rows:
        groups.setdefault(row.benchmark, {}).setdefault(row.metric, {})[row.point] = None
    several = len({metric for metrics in groups.values() for metric in metrics}) > 1
    for benchmark, metrics in groups.items():
        for metric, points in metrics.items():
            name = f"{benchmark}.{metric}" if several else benchmark
            if len(points) > 1:
                yield Line(
                    label=_label(f"{name}: all {len(points)}"),
                    whole=True,
                    shifts=over.get((benchmark, metric), {}),
                )
            for point in points:
                label = _label(f"{name} {_point(point)}")
                yield Line(label=label, whole=False, shifts=at.get((benchmark, metric, point), {}))


def _label(text: str) -> str:
    return shown(text.strip(), longest=LONGEST_LABEL)


def _point(point: Point) -> str:
    """Name a point: texts by themselves, numbers with what they are of."""
    return " ".join(value if isinstance(value, str) else f"{name}={value}" for name, value in point.values)


def that_differ_most(lines: Sequence[Line]) -> list[Line]:
    """Give all lines, or as many as are drawn: benchmarks as a whole, and the points that differ most."""
    if len(lines) <= MOST_ROWS:
        return list(lines)
    kept = set(sorted(range(len(lines)), key=lambda at: (not lines[at].whole, -lines[at].size))[:MOST_ROWS])
    return [line for at, line in enumerate(lines) if at in kept]


def _cell(line: Line, column: str) -> Cell:
    shift = line.shifts.get(column)
    if shift is None:
        return Cell(row=line.label, column=column, ratio=None, whole=line.whole, why="no value")
    found = shift.comparison
    return Cell(
        row=line.label,
        column=column,
        ratio=found.effect,
        low=found.low,
        high=found.high,
        standing="differs" if shift.differs else "same" if shift.verdict == "same" else "unclear",
        whole=line.whole,
    )


def _counted(found: Shifts) -> str:
    """Say how many benchmarks and points differ."""
    differ = [sum(each.differs for each in some) for some in (found.over, found.at)]
    points = f"{differ[1]} of {len(found.at)} points differ for sure"
    if not found.over:
        return f"{points}. Nothing was taken in turns: all values of one subject are held against all of the other."
    return (
        f"{differ[0]} of {len(found.over)} benchmarks as a whole and {points}. A benchmark as a whole is the geometric "
        "mean of its points' ratios, of pairs that were taken in turns."
    )


def _tables(lines: Sequence[Line]) -> Iterator[Table]:
    """A table of benchmarks as a whole, and one of every point."""
    subjects = {name for line in lines for name in line.shifts}
    head = (
        "benchmark",
        *(("subject",) if len(subjects) > 1 else ()),
        "times",
        "interval",
        "pairs",
        "verdict",
    )
    for name, title, whole in (("by-benchmark", "By benchmark", True), ("heat", "At every point", False)):
        rows = tuple(
            (line.label, *((subject,) if len(subjects) > 1 else ()), *_texts(shift))
            for line in lines
            for subject, shift in line.shifts.items()
            if line.whole == whole
        )
        if rows:
            numbers = frozenset(range(len(head) - 4, len(head) - 1))
            yield Table(name=name, title=title, head=head, rows=rows, numbers=numbers)


def _texts(shift: Shift) -> tuple[str, ...]:
    found = shift.comparison
    digits = decimals(found.effect, found.low, found.high)
    return (
        f"× {found.effect:.{digits}f}",
        f"{found.low:.{digits}f} to {found.high:.{digits}f}",
        str(found.pairs),
        change(found.effect) if shift.differs else shift.words,
    )
