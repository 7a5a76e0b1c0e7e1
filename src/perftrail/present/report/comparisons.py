"""Comparisons in the report: stored results of `compare`, and comparisons of the study's subjects by their samples."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.charts.comparison import ComparisonRow, ratio_chart
from perftrail.charts.frame import Palette
from perftrail.model.wording import counted, escaped
from perftrail.present.gate import (
    certainty,
    change_title,
    effort,
    failure_line,
    headline,
    levels_words,
    limits,
    metric_name,
    revision_words,
    row_effect,
    unclear_warning,
    verdict_words,
)
from perftrail.present.html_page import Fact, Section, Table, Verdict
from perftrail.present.shared_sentences import ratio_words, sentence
from perftrail.results.gate import decided
from perftrail.results.pairs import decides, paired, sides, undecided_words, usable_pairs, values_of
from perftrail.results.rows import by_block
from perftrail.stats.comparison import FAMILY_ERROR
from perftrail.stats.comparison import Verdict as ComparisonVerdict
from perftrail.stats.ratios import compare_over, compare_unpaired, needed_values
from perftrail.stats.scale import Scale

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from perftrail.charts.frame import Chart
    from perftrail.model.metrics import Better
    from perftrail.present.html_page import Tone
    from perftrail.present.report.data import ReportData
    from perftrail.results.gate import Gate
    from perftrail.results.gate import Row as StoredRow
    from perftrail.results.pairs import Pair
    from perftrail.results.rows import Row
    from perftrail.stats.comparison import Comparison

    PointPairs = tuple[tuple[Row, Row], list[Pair]]
    """A point of two subjects: the rows of the reference and of the subject, and the pairs of both."""


LONGEST = 600
MOST_COMPARISONS = 5
MOST_DRAWN = 20

TONES: dict[ComparisonVerdict, Tone] = {
    ComparisonVerdict.SLOWER: "worse",
    ComparisonVerdict.FASTER: "better",
    ComparisonVerdict.UNCLEAR: "unclear",
}


def compared_verdict(gate: Gate) -> Verdict:
    """Return a comparison as the answer of a report, in the words of `compare`."""
    return Verdict(
        sentence=escaped(sentence(headline(gate)), longest=LONGEST),
        tone=TONES.get(gate.verdict, "plain"),
        facts=(
            Fact(label="Base", text=escaped(revision_words(gate.base), longest=LONGEST)),
            Fact(label="Head", text=escaped(revision_words(gate.head), longest=LONGEST)),
            Fact(label="Certainty", text=sentence(certainty(gate))),
            Fact(label="Measured", text=sentence(f"{effort(gate)}, {gate.finished[:10]}")),
        ),
        notes=tuple(
            escaped(sentence(text), longest=LONGEST)
            for text in (unclear_warning(gate), *limits(gate))
            if text
        ),
    )


def compared_sections(comparisons: Sequence[Gate]) -> Iterator[Section]:
    """Yield a section for each of the latest comparisons."""
    for number, gate in enumerate(comparisons[:MOST_COMPARISONS]):
        omitted = len(comparisons) - MOST_COMPARISONS
        more = (
            (f"{counted(omitted, 'older comparison')} {'is' if omitted == 1 else 'are'} not shown.",)
            if number == MOST_COMPARISONS - 1 and omitted > 0
            else ()
        )
        yield Section(
            name=f"compared-{number}",
            title=f"{gate.head.short} compared with {gate.base.short}, {gate.finished[:10]}",
            paragraphs=(escaped(sentence(headline(gate)), longest=LONGEST), *more),
            chart=_chart(gate, name=f"compared-{number}"),
            tables=(
                Table(
                    name=f"compared-{number}",
                    head=("metric", "base", "head", change_title(gate), "pairs", "verdict"),
                    rows=tuple(
                        (
                            escaped(metric_name(row)),
                            *levels_words(row),
                            escaped(row_effect(row), longest=LONGEST),
                            str(row.pairs),
                            verdict_words(gate, row),
                        )
                        for row in gate.certain_first
                    ),
                    numbers=frozenset({1, 2, 4}),
                ),
                *_failures(gate, number),
            ),
        )


def _failures(gate: Gate, number: int) -> Iterator[Table]:
    if gate.failed_sides:
        rows = tuple((escaped(failure_line(each), longest=LONGEST),) for each in gate.failed_sides)
        yield Table(name=f"compared-{number}-failed", head=("failed",), rows=rows)


def _chart(gate: Gate, *, name: str) -> Chart | None:
    """Return the chart of the first rows with pairs; `None` without any."""
    head = gate.head.short
    rows = [
        ComparisonRow.of(
            row.comparison,
            row=escaped(row.metric.name),
            subject=head,
            ratios=row.ratios,
            verdict=row.word,
        )
        for row in gate.certain_first[:MOST_DRAWN]
        if row.comparison is not None and row.has_verdict and row.scale is Scale.RATIO
    ]
    if not rows:
        return None
    palette = Palette((gate.base.short, head))
    return ratio_chart(
        rows,
        name=name,
        title=f"{head} compared with {gate.base.short}",
        reference=gate.base.short,
        palette=palette,
    )


def comparable(first: Row, second: Row) -> bool:
    """Whether two rows have samples that can be compared as ratios."""
    return all(len(row.values) > 1 and min(row.values) > 0.0 for row in (first, second))


def compare_rows(first: Row, second: Row, *, comparisons: int) -> Comparison:
    """Compare two rows' samples; all `comparisons` of a report share one family-wise error rate."""
    return compare_unpaired(first.values, second.values, level=FAMILY_ERROR / comparisons)


def unpaired_ratios(first: Row, second: Row) -> Sequence[float]:
    """Return the second row's values as ratios to the median of the first's."""
    median = statistics.median(first.values)
    return tuple(value / median for value in second.values)


LEAST_PAIRS = 3
"""Minimum number of pairs for a comparison in the report."""

MOST_ROWS = 20
"""Maximum number of comparisons in the chart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectComparison:
    """A subject compared with the reference in one metric of one benchmark, over every common point.

    Over several points the effect is the geometric mean. If the values are not `interleaved`, all values of both
    subjects at one point are compared. `decides` is false for times from noisy samples. `in_question`: this is the
    metric of the study's question. `where` is the point, or the number of points.
    """

    name: str
    where: str
    reference: str
    benchmark: str
    metric: str
    unit: str
    better: Better
    ratios: tuple[float, ...]
    comparison: Comparison
    points: int = 1
    interleaved: bool = True
    decides: bool = True
    in_question: bool = False

    @property
    def qualified_metric(self) -> str:
        """The compared metric: benchmark, name and point."""
        return f"{self.benchmark}.{self.metric} {self.where}".strip()

    @property
    def verdict(self) -> ComparisonVerdict:
        """The verdict: ``slower`` means worse; unclear if the samples decide nothing."""
        return self.comparison.judged(self.better) if self.decides else ComparisonVerdict.UNCLEAR

    @property
    def differs(self) -> bool:
        """Whether the two differ significantly."""
        return self.verdict in ("faster", "slower")

    @property
    def size(self) -> float:
        """The larger value over the smaller."""
        return max(self.comparison.effect, 1.0 / self.comparison.effect)

    @property
    def unit_noun(self) -> str:
        """What the comparison counts: ``pairs`` or ``values``."""
        return "pairs" if self.interleaved else "values"

    @property
    def words(self) -> str:
        """The verdict for people."""
        comparison = self.comparison
        if self.differs:
            return "better" if self.verdict == "faster" else "worse"
        return undecided_words(comparison, decides=self.decides, counted=self.unit_noun, needed=self.needed)

    @property
    def needed(self) -> int:
        """Fewest pairs or values for a verdict, if all agree."""
        comparison = self.comparison
        return comparison.needed_pairs if self.interleaved else needed_values(comparison.level)


def compare_subjects(data: ReportData) -> tuple[SubjectComparison, ...]:
    """Compare the subjects with the first: variants at one revision, else the newest revision with the oldest.

    Only invocations of one block can be paired. After a search, only variants are compared.
    """
    several = len(data.variants) > 1
    if not data.compared or (data.search is not None and not several):
        return ()
    if data.view.study.searched_source.kind == "samples":
        return _compare_imported(data, data.compared_rows)
    measured = [pairs_of_points(data, points) for points in _groups(data)]
    enough = [each for each in measured if count_pairs(each) >= LEAST_PAIRS]
    return in_order([compare_pairs_of(data, each, comparisons=len(enough)) for each in enough])


def in_order(comparisons: Sequence[SubjectComparison]) -> tuple[SubjectComparison, ...]:
    """Order comparisons: the study's question first, then by metric, times first."""
    metrics = list(dict.fromkeys(each.metric for each in comparisons))
    return tuple(
        sorted(
            comparisons, key=lambda each: (not each.in_question, each.unit != "s", metrics.index(each.metric))
        )
    )


def drawn_comparisons(comparisons: Sequence[SubjectComparison]) -> list[SubjectComparison]:
    """Return the comparisons to draw: the study's question, then the largest certain differences, in their order."""

    def rank(index: int) -> tuple[bool, float]:
        each = comparisons[index]
        return not each.in_question, -each.size if each.differs else 0.0

    order = sorted(range(len(comparisons)), key=rank)
    return [comparisons[index] for index in sorted(order[:MOST_ROWS])]


def _groups(data: ReportData) -> list[list[tuple[Row, Row]]]:
    """Return each metric of each subject with its points, without those that `compare` has compared.

    The metric of the study's question comes first, with its own point alone.
    """
    question = data.question_metric
    in_question: dict[str, list[tuple[Row, Row]]] = {}
    every: dict[tuple[str, str, str], list[tuple[Row, Row]]] = {}
    for first, second in sides(data.compared_rows, data.variants):
        name = data.subject_name(second)
        every.setdefault((second.benchmark, second.metric, name), []).append((first, second))
        if question is not None and question.is_of(second):
            in_question.setdefault(name, []).append((first, second))
    others = (points for points in every.values() if points not in in_question.values())
    groups = [*in_question.values(), *others]
    return [group for group in groups if not _decided(data, group)]


def _decided(data: ReportData, group: Sequence[tuple[Row, Row]]) -> bool:
    """Whether `compare` has compared the same subjects in the same metric at every point: its result counts."""
    return all(stored_row(data, first, second) is not None for first, second in group)


def stored_row(data: ReportData, first: Row, second: Row) -> StoredRow | None:
    """Return the result of `compare` for two rows; `None` without one."""
    return decided(
        data.comparisons,
        first.subject,
        second.subject,
        benchmark=second.benchmark,
        metric=second.metric,
        point=second.point,
    )


def _compare_imported(data: ReportData, rows: Sequence[Row]) -> tuple[SubjectComparison, ...]:
    """Compare imported samples, which may not be interleaved, at each point."""
    pairs = [(first, second) for first, second in sides(rows, data.variants) if comparable(first, second)]
    return in_order([compare_unpaired_rows(data, *pair, comparisons=len(pairs)) for pair in pairs])


def compare_unpaired_rows(
    data: ReportData, first: Row, second: Row, *, comparisons: int
) -> SubjectComparison:
    """Compare two rows of samples that are not interleaved; all `comparisons` share one error rate."""
    question = data.question_metric
    return SubjectComparison(
        name=data.subject_name(second),
        where=str(second.point),
        reference=data.subject_name(first),
        benchmark=second.benchmark,
        metric=second.metric,
        unit=second.unit,
        better=data.history_metric(second).better,
        ratios=tuple(unpaired_ratios(first, second)),
        comparison=compare_rows(first, second, comparisons=comparisons),
        interleaved=False,
        in_question=question is not None and question.is_of(second),
    )


def comparison_section(data: ReportData, compared: Sequence[SubjectComparison]) -> Section | None:
    """Return the chart and table of the comparisons; `None` without any."""
    if not compared:
        return None
    drawn = drawn_comparisons(compared)
    reference, several = compared[0].reference, len({(each.benchmark, each.metric) for each in drawn}) > 1
    rows = [
        ComparisonRow.of(
            each.comparison,
            row=_row_name(each, several=several or not each.interleaved),
            subject=each.name,
            ratios=each.ratios,
            verdict=each.words,
        )
        for each in drawn
    ]
    title = f"Against {reference}"
    method = (
        {} if compared[0].interleaved else {"dots": "values", "method": "not measured as interleaved pairs"}
    )
    return Section(
        name="against",
        title=title,
        answers=any(each.in_question for each in compared),
        paragraphs=(_how_many_drawn(compared),) if len(drawn) < len(compared) else (),
        chart=ratio_chart(
            rows, name="against", title=title, reference=reference, palette=data.palette, **method
        ),
        tables=(
            Table(
                name="against",
                head=(
                    "subject",
                    "metric",
                    "effect",
                    "interval",
                    compared[0].unit_noun,
                    "verdict",
                ),
                rows=tuple(_texts(each) for each in compared),
                numbers=frozenset({2, 3, 4}),
            ),
        ),
    )


def _how_many_drawn(compared: Sequence[SubjectComparison]) -> str:
    """Return how many of the comparisons are drawn."""
    differing = sum(each.differs for each in compared)
    return (
        f"{differing} of {len(compared)} comparisons certainly differ. The chart has {MOST_ROWS} comparisons: the "
        "study's question, then the largest differences. The table has all comparisons."
    )


def _row_name(each: SubjectComparison, *, several: bool) -> str:
    """Return the name of a chart's row, with its metric if there are `several`."""
    metric = f"{each.benchmark}.{each.metric}" if several else ""
    return " ".join(part for part in (each.name, metric, "" if each.interleaved else each.where) if part)


def _texts(each: SubjectComparison) -> tuple[str, ...]:
    comparison = each.comparison
    return (
        each.name,
        each.qualified_metric,
        *ratio_words(comparison.effect, comparison.low, comparison.high),
        str(comparison.pairs),
        each.words,
    )


def pairs_of_points(data: ReportData, points: Sequence[tuple[Row, Row]]) -> list[PointPairs]:
    """Return the points with pairs of the same blocks, each with its usable pairs."""
    view, measured = data.view, data.measured_here
    with_pairs = [(rows, paired(*(by_block(view, measured, row) for row in rows))) for rows in points]
    paired_points = [(rows, pairs) for rows, pairs in with_pairs if pairs]
    return [
        (rows, pairs)
        for (rows, _), pairs in zip(
            paired_points, usable_pairs([each for _, each in paired_points]), strict=True
        )
    ]


def count_pairs(points: Sequence[PointPairs]) -> int:
    """Return the number of pairs of some points."""
    return sum(len(pairs) for _, pairs in points)


def compare_pairs_of(
    data: ReportData, point_pairs: Sequence[PointPairs], *, comparisons: int
) -> SubjectComparison:
    """Compare by pairs of the same blocks over some points; all `comparisons` share one error rate."""
    points = [rows for rows, _ in point_pairs]
    groups = [pairs for _, pairs in point_pairs]
    pairs = [pair for each in groups for pair in each]
    first, second = points[0]
    question = data.question_metric
    return SubjectComparison(
        name=data.subject_name(second),
        where=_where(data, points),
        reference=data.subject_name(first),
        benchmark=second.benchmark,
        metric=second.metric,
        unit=second.unit,
        better=data.history_metric(second).better,
        ratios=tuple(pair.second / pair.first for pair in pairs),
        comparison=compare_over(values_of(groups), comparisons=comparisons),
        points=len(points),
        decides=decides(second.unit, pairs),
        in_question=question is not None and all(question.is_of(row) for _, row in points),
    )


def _where(data: ReportData, points: Sequence[tuple[Row, Row]]) -> str:
    """Return the number of points of a comparison, or its only point."""
    if len(points) > 1:
        return f"over {len(points)} points"
    question = data.question_metric
    one_point = question is not None and question.point is not None and question.is_of(points[0][1])
    return str(points[0][1].point) if one_point else ""
