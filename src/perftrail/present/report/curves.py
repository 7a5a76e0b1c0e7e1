"""Sections of a report that compare subjects: against a parameter, sample by sample, and for every benchmark."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.charts.curve import CurvePoint, GivenUp, Labels, curve, speed_up
from perftrail.charts.heatmap import MOST_ROWS, Cell, heat
from perftrail.charts.samples import samples
from perftrail.model.measurement import FailedInvocation
from perftrail.model.noisy_samples import enough_quiet, weight
from perftrail.model.notation import format_duration, format_size
from perftrail.model.plan import cells
from perftrail.model.subject import Subject
from perftrail.model.wording import change, escaped
from perftrail.present.html_page import Section, Table
from perftrail.present.report.comparisons import comparable, compare_rows, stored_row
from perftrail.present.report.data import MEMORY
from perftrail.present.report.words import revision_mark, row_value, slug
from perftrail.present.shared_sentences import ratio_words
from perftrail.results.pairs import Shift, Shifts, shifts, sides
from perftrail.results.rows import by_round

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from perftrail.model.benchmark import Point, Value
    from perftrail.model.build import Failure
    from perftrail.present.report.data import ReportData
    from perftrail.results.rows import Row


MOST_SECTIONS = 48
"""Maximum number of charts against a parameter."""

PARALLEL = re.compile(r"thread|core|cpu|worker|job|proc", re.IGNORECASE)
"""Names of parameters whose larger values should make a benchmark faster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _CurveFamily:
    """The rows of one metric of one benchmark along one axis, with all other parameters fixed."""

    benchmark: str
    metric: str
    unit: str
    axis: str
    fixed: Point
    rows: tuple[Row, ...]

    @property
    def title(self) -> str:
        point = f" at {escaped(str(self.fixed))}" if self.fixed.values else ""
        return f"{self.benchmark}.{self.metric} against {self.axis}{point}"


def curve_sections(data: ReportData) -> tuple[Section, ...]:
    """Return each metric against each numeric axis, and the speed-up along thread axes."""
    sections: list[Section] = []
    names: list[str] = []
    for family in _families(data):
        if len(sections) >= MOST_SECTIONS:
            break
        name = slug(f"curve-{family.benchmark}-{family.metric}-{family.axis}", names)
        names.append(name)
        sections.extend(_sections(data, family, name))
    return tuple(sections)


def samples_section(data: ReportData) -> Section | None:
    """Return every sample of the metric of the study's question, by subject."""
    lead = data.lead
    rows = [row for row in data.rows_of(lead) if row.values] if lead is not None else []
    if not rows or lead is None or max(len(row.values) for row in rows) < 2:
        return None
    several = len(data.variants) > 1
    named = {
        f"{revision_mark(row.subject.revision)} {row.subject.variant if several else ''}".strip(): row
        for row in rows
    }
    labels = Labels(
        name="samples", title="Samples", axis="", metric=f"{lead.benchmark}.{lead.metric}", unit=lead.unit
    )
    return Section(
        name="samples",
        title=f"Every sample of {lead.benchmark}.{lead.metric}",
        chart=samples(
            {name: row.values for name, row in named.items()},
            labels=labels,
            palette=data.palette,
            kinds={name: row.subject.variant for name, row in named.items()},
        ),
    )


def _families(data: ReportData) -> Iterator[_CurveFamily]:
    rows = data.compared_rows
    for benchmark, metric in dict.fromkeys((row.benchmark, row.metric) for row in rows):
        own = [row for row in rows if (row.benchmark, row.metric) == (benchmark, metric)]
        for axis in own[0].point.names:
            values = {row.point[axis] for row in own if row.values}
            if len(values) < 2 or not all(isinstance(value, int | float) for value in values):
                continue
            for fixed in _fixed(own, axis):
                yield _CurveFamily(
                    benchmark=benchmark,
                    metric=metric,
                    unit=own[0].unit,
                    axis=axis,
                    fixed=fixed,
                    rows=tuple(row for row in own if row.point.without([axis]) == fixed),
                )


def _fixed(rows: Sequence[Row], axis: str) -> list[Point]:
    """Return the values of the other parameters: every text, but of numbers only the largest."""
    points = dict.fromkeys(row.point.without([axis]) for row in rows if row.values)
    largest: dict[tuple[tuple[str, Value], ...], Point] = {}
    for point in sorted(points, key=_point_order):
        largest[tuple((name, value) for name, value in point.values if isinstance(value, str))] = point
    return list(largest.values())


def _point_order(point: Point) -> list[tuple[int, float, str]]:
    return [_value_order(value) for _, value in point.values]


def _value_order(value: Value) -> tuple[int, float, str]:
    return (0, float(value), "") if isinstance(value, int | float) else (1, 0.0, value)


def _sections(data: ReportData, family: _CurveFamily, name: str) -> Iterator[Section]:
    points = [point for row in family.rows for point in _curve_point(data, family, row)]
    given_up = list(_given_up(data, family))
    labels = Labels(name=name, title=family.title, axis=family.axis, metric=family.metric, unit=family.unit)
    table = _table(data, family, given_up, name)
    revision = (
        f"At {revision_mark(data.compared[-1])}." if len(data.variants) > 1 and len(data.measured) > 1 else ""
    )
    question = data.question_metric
    yield Section(
        name=name,
        title=family.title,
        answers=question is not None and any(question.is_of(row) for row in family.rows),
        paragraphs=(revision,) if revision else (),
        chart=curve(points, given_up, labels=labels, palette=data.palette),
        tables=(table,),
    )
    if family.unit == "s" and PARALLEL.search(family.axis) and family.metric != "cpu":
        title = f"Speed-up of {family.benchmark}.{family.metric} with {family.axis}"
        labels = Labels(name=f"speed-up-{name}", title=title, axis=family.axis, metric="speed-up", unit="")
        chart = speed_up(points, labels=labels, palette=data.palette)
        yield Section(name=chart.name, title=title, chart=chart)


def _curve_point(data: ReportData, family: _CurveFamily, row: Row) -> Iterator[CurvePoint]:
    x, estimate = row.point[family.axis], row.estimate
    if estimate is not None and isinstance(x, int | float):
        yield CurvePoint(
            subject=data.subject_name(row),
            at=float(x),
            value=estimate.value,
            low=estimate.low,
            high=estimate.high,
            count=estimate.count,
        )


def _given_up(data: ReportData, family: _CurveFamily) -> Iterator[GivenUp]:
    """Return the planned points without a sample, with their failure or the failed smaller point."""
    study = data.view.study
    benchmark = study.benchmarks[family.benchmark]
    by_point = {(row.subject, row.point): row for row in family.rows}
    for subject in dict.fromkeys(row.subject for row in family.rows):
        gave_up = False
        for point in _planned(data, family, subject):
            row, x = by_point.get((subject, point)), point[family.axis]
            if not isinstance(x, int | float) or (row is not None and row.values):
                continue
            failure = None if row is None else _failure(data, row)
            if failure is None and not gave_up:
                continue
            gave_up = gave_up or (benchmark.give_up and failure is not None)
            yield GivenUp(
                subject=subject.variant if len(study.variants) > 1 else revision_mark(subject.revision),
                at=float(x),
                why="skipped" if failure is None else _why(data, family, failure),
                limit=_limit(data, family, failure),
            )


def _planned(data: ReportData, family: _CurveFamily, subject: Subject) -> list[Point]:
    points = [
        cell.point
        for cell in cells(data.view.study, subject)
        if cell.benchmark == family.benchmark and cell.point.without([family.axis]) == family.fixed
    ]
    return sorted(points, key=lambda point: _value_order(point[family.axis]))


def _failure(data: ReportData, row: Row) -> Failure | None:
    outcomes_by_runnable: Mapping[str, Sequence[object]] = data.view.store.outcomes(
        tuple(row.runnables), data.view.machine.id
    )
    failed = [
        each
        for outcomes in outcomes_by_runnable.values()
        for each in outcomes
        if isinstance(each, FailedInvocation)
    ]
    return failed[-1].failure if failed else None


def _why(data: ReportData, family: _CurveFamily, failure: Failure) -> str:
    benchmark = data.view.study.benchmarks[family.benchmark]
    if failure.stage == "timeout":
        return f"over {format_duration(benchmark.timeout_seconds)}"
    if failure.stage == "memory" and benchmark.memory_limit_bytes is not None:
        return f"over {format_size(benchmark.memory_limit_bytes)}"
    return failure.stage


def _limit(data: ReportData, family: _CurveFamily, failure: Failure | None) -> float | None:
    benchmark = data.view.study.benchmarks[family.benchmark]
    if family.unit == "s" and (failure is None or failure.stage == "timeout"):
        return benchmark.timeout_seconds
    limit = benchmark.memory_limit_bytes
    return float(limit) if family.unit == "B" and limit is not None else None


def _table(data: ReportData, family: _CurveFamily, given_up: Sequence[GivenUp], name: str) -> Table:
    """Return the table with points as rows and subjects as columns."""
    names = list(dict.fromkeys(data.subject_name(row) for row in family.rows))
    texts = {(data.subject_name(row), _number(row.point[family.axis])): row_value(row) for row in family.rows}
    texts |= {(each.subject, each.at): each.why for each in given_up}
    xs = sorted({x for _, x in texts})
    return Table(
        name=name,
        head=(family.axis, *names),
        rows=tuple((f"{x:g}", *(texts.get((each, x), "–") for each in names)) for x in xs),
        numbers=frozenset(range(len(names) + 1)),
    )


def _number(value: Value) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


LONGEST_LABEL = 56


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatRow:
    """A row of the chart: one point, or all points of a benchmark, with each subject's difference by its name.

    `whole`: the row is that of all points.
    """

    label: str
    whole: bool
    shifts: Mapping[str, Shift]

    @property
    def size(self) -> float:
        """The largest certain difference of a subject from the reference; zero without one."""
        differences = (abs(math.log(each.comparison.effect)) for each in self.shifts.values() if each.differs)
        return max(differences, default=0.0)


def all_benchmarks_section(data: ReportData) -> Section | None:
    """Return every benchmark at every point for each subject; `None` without several points to compare."""
    rows = [row for row in data.compared_rows if row.metric != MEMORY]
    row_pairs = [pair for pair in sides(rows, data.variants) if not _answered(data, *pair)]
    compared = {(row.benchmark, row.metric, row.point) for _, row in row_pairs}
    if len(compared) < 2:
        return None
    rows = [row for row in rows if (row.benchmark, row.metric, row.point) in compared]
    differences = (
        _compare_unpaired(data, row_pairs) if _not_interleaved(data) else _compare_paired(data, row_pairs)
    )
    lines = list(_lines(data, rows, differences))
    columns = list(dict.fromkeys(data.subject_name(row) for _, row in row_pairs))
    reference = data.subject_name(row_pairs[0][0])
    drawn = largest_differences(lines)
    chart = heat(
        [_cell(line, column) for line in drawn for column in columns],
        reference=reference,
        name="heat-every-benchmark",
        omitted_rows=len(lines) - len(drawn),
    )
    return Section(
        name="heat",
        title=chart.title,
        paragraphs=(_how_many_differ(differences),),
        chart=chart,
        tables=tuple(_tables(lines)),
    )


def _answered(data: ReportData, first: Row, row: Row) -> bool:
    """Whether the report's answer has this metric already, from `find` or `compare`."""
    searched = {str(answer.get("metric")) for answer in data.answers} if len(data.variants) < 2 else ()
    named = (row.metric, f"{row.benchmark}.{row.metric}")
    return any(name in searched for name in named) or stored_row(data, first, row) is not None


def _not_interleaved(data: ReportData) -> bool:
    """Whether the samples are not interleaved: imported samples, and those of a search."""
    searched = data.search is not None and len(data.variants) < 2
    return searched or data.view.study.searched_source.kind == "samples"


def _compare_paired(data: ReportData, row_pairs: Sequence[tuple[Row, Row]]) -> Shifts:
    return shifts(data.view, data.measured_here, row_pairs)


def _compare_unpaired(data: ReportData, row_pairs: Sequence[tuple[Row, Row]]) -> Shifts:
    """Compare all values of both subjects at each point, because they are not interleaved pairs."""
    pairs = [each for each in row_pairs if comparable(*each)]
    return Shifts(
        by_point=tuple(
            Shift(
                reference=first.subject,
                row=row,
                points=(row.point,),
                better=data.history_metric(row).better,
                comparison=compare_rows(first, row, comparisons=len(pairs)),
                decides=row.unit != "s" or not any(_disturbed(data, each) for each in (first, row)),
            )
            for first, row in pairs
        ),
        by_benchmark=(),
    )


def _disturbed(data: ReportData, row: Row) -> bool:
    """Whether a row uses noisy values."""
    samples = by_round(data.view, data.measured_here, row).values()
    quiet = sum(weight(each.flags) > 0.0 for each in samples)
    return quiet < len(samples) and not enough_quiet(quiet, least=data.view.study.measure.invocations.least)


def _lines(data: ReportData, rows: Sequence[Row], differences: Shifts) -> Iterator[HeatRow]:
    """Yield the rows of the chart by benchmark: the benchmark as a whole, then its points."""
    by_point: dict[tuple[str, str, Point], dict[str, Shift]] = {}
    by_benchmark: dict[tuple[str, str], dict[str, Shift]] = {}
    for each in differences.by_point:
        row = each.row
        by_point.setdefault((row.benchmark, row.metric, row.point), {})[data.subject_name(row)] = each
    for each in differences.by_benchmark:
        by_benchmark.setdefault((each.row.benchmark, each.row.metric), {})[data.subject_name(each.row)] = each
    groups: dict[str, dict[str, dict[Point, None]]] = {}
    for row in rows:
        groups.setdefault(row.benchmark, {}).setdefault(row.metric, {})[row.point] = None
    several = len({metric for metrics in groups.values() for metric in metrics}) > 1
    labels: set[str] = set()
    for benchmark, metrics in groups.items():
        for metric, points in metrics.items():
            name = f"{benchmark}.{metric}" if several else benchmark
            if len(points) > 1:
                yield HeatRow(
                    label=_label(f"{name}: all {len(points)}", labels),
                    whole=True,
                    shifts=by_benchmark.get((benchmark, metric), {}),
                )
            for point in points:
                label = _label(f"{name} {_point_name(point)}", labels)
                yield HeatRow(label=label, whole=False, shifts=by_point.get((benchmark, metric, point), {}))


def _label(text: str, taken: set[str]) -> str:
    """Return a label that no other row has, shortened in the middle, because the ends of names differ."""
    label = escaped(text.strip(), longest=None)
    if len(label) > LONGEST_LABEL:
        label = f"{label[: LONGEST_LABEL // 2 - 1]}…{label[-LONGEST_LABEL // 2 :]}"
    numbered = (f"{label} ({number})" for number in itertools.count(2))
    distinct = label if label not in taken else next(each for each in numbered if each not in taken)
    taken.add(distinct)
    return distinct


def _point_name(point: Point) -> str:
    """Return a point in words: texts alone, numbers with their parameters."""
    return " ".join(value if isinstance(value, str) else f"{name}={value}" for name, value in point.values)


def largest_differences(lines: Sequence[HeatRow]) -> list[HeatRow]:
    """Return the lines to draw: benchmarks as a whole, and the points with the largest differences."""
    if len(lines) <= MOST_ROWS:
        return list(lines)
    order = sorted(range(len(lines)), key=lambda index: (not lines[index].whole, -lines[index].size))
    drawn = set(order[:MOST_ROWS])
    return [line for index, line in enumerate(lines) if index in drawn]


def _cell(line: HeatRow, column: str) -> Cell:
    shift = line.shifts.get(column)
    if shift is None:
        return Cell(row=line.label, column=column, ratio=None, whole=line.whole, why="no value")
    comparison = shift.comparison
    return Cell(
        row=line.label,
        column=column,
        ratio=comparison.effect,
        low=comparison.low,
        high=comparison.high,
        standing="differs" if shift.differs else "same" if shift.verdict == "same" else "unclear",
        whole=line.whole,
    )


def _how_many_differ(differences: Shifts) -> str:
    """Return how many benchmarks and points differ."""
    differing = [
        sum(each.differs for each in some) for some in (differences.by_benchmark, differences.by_point)
    ]
    points = f"{differing[1]} of {len(differences.by_point)} points certainly differ"
    if not differences.by_benchmark:
        return f"{points}. The samples are not interleaved: all values of both subjects are compared."
    return (
        f"{differing[0]} of {len(differences.by_benchmark)} benchmarks as a whole and {points}. "
        "A benchmark as a whole is the geometric mean of its points' ratios, from interleaved pairs."
    )


def _tables(lines: Sequence[HeatRow]) -> Iterator[Table]:
    """Yield a table of benchmarks as a whole, and one of every point."""
    subjects = {name for line in lines for name in line.shifts}
    head = (
        "benchmark",
        *(("subject",) if len(subjects) > 1 else ()),
        "ratio",
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
    comparison = shift.comparison
    return (
        *ratio_words(comparison.effect, comparison.low, comparison.high),
        str(comparison.pairs),
        change(comparison.effect) if shift.differs else shift.words,
    )
