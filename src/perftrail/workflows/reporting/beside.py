"""Subjects beside each other: pairs of invocations that ran in turns, and what they say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.analysis.compare import Rule, compare
from perftrail.figures.against import Against, against
from perftrail.model.conditions import weight
from perftrail.model.measurement import Measurement
from perftrail.model.quantity import decimals, percent
from perftrail.report.page import Section, Table
from perftrail.workflows.reporting.apart import comparable, compare_rows, ratios_apart

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from perftrail.analysis.compare import Comparison
    from perftrail.model.metrics import Better
    from perftrail.workflows.reporting.gathered import Gathered
    from perftrail.workflows.showing.rows import Row

LEAST_PAIRS = 3
MOST_ROWS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """A subject compared with the reference in one metric of one benchmark, over every point both have.

    Where nothing was taken `in_turns` it is at one point, of all values of the one against all of the other.
    """

    name: str
    where: str
    reference: str
    benchmark: str
    metric: str
    better: Better
    ratios: tuple[float, ...]
    comparison: Comparison
    in_turns: bool = True

    @property
    def verdict(self) -> str:
        """The verdict's word."""
        return str(self.comparison.verdict)

    @property
    def counted(self) -> str:
        """What the comparison's numbers count."""
        return "pairs" if self.in_turns else "values"

    @property
    def words(self) -> str:
        """The verdict as people read it."""
        found = self.comparison
        if self.verdict in ("faster", "slower"):
            good = (found.effect < 1.0) == (self.better == "lower")
            return "better" if good else "worse"
        if found.smallest_seen is None:
            return f"too few {self.counted} to say"
        return f"{self.verdict}; {percent(found.smallest_seen)} would have been seen"


def compare_subjects(gathered: Gathered) -> tuple[Beside, ...]:
    """Compare the subjects with the first: variants at one revision, else the newest revision with the oldest.

    Only what `run` measured in turns can be paired; a search's invocations cannot, so after one there are none.
    """
    several = len(gathered.variants) > 1
    if not gathered.compared or (gathered.search is not None and not several):
        return ()
    if gathered.view.study.walked.kind == "samples":
        return _apart(gathered, gathered.compared_rows)
    found: dict[tuple[str, str, str], list[tuple[Row, Row]]] = {}
    for first, second in _pairs(gathered, gathered.compared_rows):
        name = (second.benchmark, second.metric, gathered.subject_name(second))
        found.setdefault(name, []).append((first, second))
    values = [(points, _all_paired(gathered, points)) for points in found.values()]
    kept = [each for each in values if len(each[1]) >= LEAST_PAIRS][:MOST_ROWS]
    return tuple(_beside(gathered, *each, comparisons=len(kept)) for each in kept)


def _apart(gathered: Gathered, rows: Sequence[Row]) -> tuple[Beside, ...]:
    """Compare imported samples, which nothing says were taken in turns, at each point."""
    pairs = [(first, second) for first, second in _pairs(gathered, rows) if comparable(first, second)]
    kept = pairs[:MOST_ROWS]
    return tuple(
        Beside(
            name=gathered.subject_name(second),
            where=str(second.point),
            reference=gathered.subject_name(first),
            benchmark=second.benchmark,
            metric=second.metric,
            better=gathered.followed(second).better,
            ratios=tuple(ratios_apart(first, second)),
            comparison=compare_rows(first, second, comparisons=len(kept)),
            in_turns=False,
        )
        for first, second in kept
    )


def beside_section(gathered: Gathered, beside: Sequence[Beside]) -> Section | None:
    """Draw the comparisons, with their table; nothing where there are none."""
    if not beside:
        return None
    reference, several = beside[0].reference, len({(each.benchmark, each.metric) for each in beside}) > 1
    rows = [
        Against(
            row=_row_name(each, several=several or not each.in_turns),
            subject=each.name,
            ratios=each.ratios,
            effect=each.comparison.effect,
            low=each.comparison.low,
            high=each.comparison.high,
            verdict=each.words,
        )
        for each in beside
    ]
    title = f"Against {reference}"
    apart = {} if beside[0].in_turns else {"dots": "values", "taken": "not measured in turns"}
    return Section(
        name="against",
        title=title,
        figure=against(
            rows, name="against", title=title, reference=reference, palette=gathered.palette, **apart
        ),
        tables=(
            Table(
                name="against",
                head=(
                    "subject",
                    "metric",
                    "effect",
                    "interval",
                    beside[0].counted,
                    "verdict",
                ),
                rows=tuple(_texts(each) for each in beside),
                numbers=frozenset({2, 3, 4}),
            ),
        ),
    )


def _row_name(each: Beside, *, several: bool) -> str:
    """Name a row of the figure: with what it compares, where `several` figures are compared."""
    figure = f"{each.benchmark}.{each.metric}" if several else ""
    return " ".join(part for part in (each.name, figure, "" if each.in_turns else each.where) if part)


def _texts(each: Beside) -> tuple[str, ...]:
    found = each.comparison
    digits = decimals(found.effect, found.low, found.high)
    return (
        each.name,
        f"{each.benchmark}.{each.metric} {each.where}".strip(),
        f"× {found.effect:.{digits}f}",
        f"{found.low:.{digits}f} to {found.high:.{digits}f}",
        str(found.pairs),
        each.words,
    )


def _pairs(gathered: Gathered, rows: Sequence[Row]) -> Iterator[tuple[Row, Row]]:
    """Pair each row with its reference's: the first variant of its revision, or the oldest revision."""
    firsts: dict[tuple[object, ...], Row] = {}
    several = len(gathered.variants) > 1
    for row in rows:
        if row.metric in gathered.view.study.derived or row.estimate is None:
            continue
        key = (row.benchmark, row.point, row.metric, row.subject.revision if several else None)
        reference = firsts.setdefault(key, row)
        wanted = gathered.variants[0] if several else reference.subject.variant
        if reference is not row and reference.subject.variant == wanted:
            yield reference, row


def _paired(gathered: Gathered, first: Row, second: Row) -> tuple[tuple[float, float], ...]:
    """The values of invocations of the same round, both above zero; without those that noise marks, if enough."""
    one, other = (_by_ordinal(gathered, row) for row in (first, second))
    rounds = [number for number in sorted(one) if number in other]
    quiet = [number for number in rounds if one[number][1] and other[number][1]]
    used = quiet if len(quiet) >= min(10, len(rounds)) else rounds
    pairs = ((one[number][0], other[number][0]) for number in used)
    return tuple((left, right) for left, right in pairs if left > 0.0 and right > 0.0)


def _by_ordinal(gathered: Gathered, row: Row) -> Mapping[int, tuple[float, bool]]:
    """A row's values by round, each with whether it was quiet."""
    held = gathered.view.store.outcomes(tuple(row.runnables), gathered.view.machine.id)
    return {
        outcome.key.ordinal: (outcome.values[row.metric], weight(outcome.flags) > 0.0)
        for outcomes in held.values()
        for outcome in outcomes
        if isinstance(outcome, Measurement) and outcome.key.phase == "sample" and row.metric in outcome.values
    }


def _all_paired(gathered: Gathered, points: Sequence[tuple[Row, Row]]) -> tuple[tuple[float, float], ...]:
    """The pairs of every point together: were there no difference, each could as well be the other way round."""
    return tuple(pair for first, second in points for pair in _paired(gathered, first, second))


def _beside(
    gathered: Gathered,
    points: Sequence[tuple[Row, Row]],
    pairs: tuple[tuple[float, float], ...],
    *,
    comparisons: int,
) -> Beside:
    first, second = points[0]
    rule = Rule(most=max(len(pairs), 2), comparisons=comparisons)
    return Beside(
        name=gathered.subject_name(second),
        where="" if len(points) == 1 else f"over {len(points)} points",
        reference=gathered.subject_name(first),
        benchmark=second.benchmark,
        metric=second.metric,
        better=gathered.followed(second).better,
        ratios=tuple(right / left for left, right in pairs),
        comparison=compare([left for left, _ in pairs], [right for _, right in pairs], rule),
    )
