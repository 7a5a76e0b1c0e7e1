"""Compare subjects with a reference by pairs of values from the same blocks.

`paired` builds the pairs and `usable_pairs` chooses the usable ones. `shifts` compares at every point, and
over all points of a benchmark.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Annotated, TypedDict

from perftrail.model.benchmark import Value
from perftrail.model.noisy_samples import ENOUGH_QUIET, enough_quiet, weight
from perftrail.model.wording import percent
from perftrail.results.rows import ValueWithIntervalJson, better_of, by_block, interval_json
from perftrail.stats.comparison import Verdict
from perftrail.stats.ratios import compare_over

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from perftrail.measure.session import View
    from perftrail.model.benchmark import Point
    from perftrail.model.metrics import Better
    from perftrail.model.noisy_samples import FlaggedSample
    from perftrail.model.study import Study
    from perftrail.model.subject import Subject
    from perftrail.results.measured import MeasuredHere
    from perftrail.results.rows import Row
    from perftrail.stats.comparison import Comparison


Blocks = tuple[str, ...]
"""The names of the blocks of a value's samples."""

BUSY = "unclear: the machine was busy"
"""The verdict of pairs that are not valid evidence, see `decides`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Values of two subjects in the same blocks, both above zero; `quiet`: neither sample was noisy."""

    first: float
    second: float
    quiet: bool


def paired(first: Mapping[Blocks, FlaggedSample], second: Mapping[Blocks, FlaggedSample]) -> list[Pair]:
    """Pair the values of two subjects by block, in the order of the first subject's."""
    return [
        Pair(
            first=first[at].value,
            second=second[at].value,
            quiet=all(weight(each[at].flags) > 0.0 for each in (first, second)),
        )
        for at in first
        if at in second
        if first[at].value > 0.0 and second[at].value > 0.0
    ]


def usable_pairs(points: Sequence[Sequence[Pair]]) -> list[list[Pair]]:
    """Return the quiet pairs of some points if they are enough and every point has some; else all pairs."""
    quiet = [[pair for pair in pairs if pair.quiet] for pairs in points]
    enough = all(quiet) and enough_quiet(sum(map(len, quiet)), least=ENOUGH_QUIET)
    return quiet if enough else [list(pairs) for pairs in points]


def values_of(points: Sequence[Sequence[Pair]]) -> list[list[tuple[float, float]]]:
    """Return the values of the pairs of some points, in the form for comparison."""
    return [[(pair.first, pair.second) for pair in pairs] for pairs in points]


def decides(unit: str, pairs: Iterable[Pair]) -> bool:
    """Whether pairs of values with this unit are valid evidence: noisy times are not."""
    return unit != "s" or all(pair.quiet for pair in pairs)


class ShiftJson(TypedDict):
    """The difference from a reference variant, over all points."""

    against: Annotated[str, "the reference variant"]
    points: list[dict[str, Value]]
    effect: ValueWithIntervalJson
    confidence: float
    pairs: int
    verdict: Annotated[Verdict, "slower: worse, in whichever direction the metric is better"]
    minimum_detectable: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """Difference of a subject from a reference in one metric of a benchmark, at one point or over several.

    Over several points the effect is the geometric mean of the points' effects. `row` is the subject's, at
    the first point. `decides` is false for times from noisy samples.
    """

    reference: Subject
    row: Row
    points: tuple[Point, ...]
    better: Better
    comparison: Comparison
    decides: bool

    @property
    def verdict(self) -> Verdict:
        """The verdict: ``slower`` means worse. Unclear if the samples are not valid evidence."""
        return self.comparison.judged(self.better) if self.decides else Verdict.UNCLEAR

    @property
    def differs(self) -> bool:
        """Whether the two differ significantly."""
        return self.verdict in (Verdict.FASTER, Verdict.SLOWER)

    @property
    def words(self) -> str:
        """The verdict in words; empty for a difference, which its effect describes."""
        found = self.comparison
        if self.differs:
            return "more" if found.effect > 1.0 else "less"
        return undecided_words(found, decides=self.decides, counted="pairs", needed=found.needed_pairs)

    def as_json(self) -> ShiftJson:
        """Return the difference as plain data."""
        found = self.comparison
        return {
            "against": self.reference.variant,
            "points": [dict(point.values) for point in self.points],
            "effect": interval_json(found.effect, found.low, found.high),
            "confidence": found.confidence,
            "pairs": found.pairs,
            "verdict": self.verdict,
            "minimum_detectable": found.minimum_detectable,
        }


def too_few(found: Comparison, counted: str, *, needed: int) -> str:
    """Return how many pairs or values a verdict needs, and whether all of them agree so far.

    >>> from perftrail.stats.ratios import compare_unpaired
    >>> too_few(compare_unpaired([1.0, 1.1, 1.2], [9.8, 9.9, 10.1], level=0.01), "values", needed=5)
    'unclear: more in all 3 values, a verdict needs 5'
    """
    side = "more" if found.low > 1.0 else "less" if found.high < 1.0 else ""
    if side and found.pairs > 1:
        return f"unclear: {side} in all {found.pairs} {counted}, a verdict needs {needed}"
    return f"unclear: {found.pairs} {counted}, a verdict needs {needed}"


def undecided_words(found: Comparison, *, decides: bool, counted: str, needed: int) -> str:
    """Return a verdict without a difference: the machine was busy, too few samples, or the detectable change."""
    if not decides:
        return BUSY
    if found.minimum_detectable is None:
        return too_few(found, counted, needed=needed)
    return f"{found.verdict}; {percent(found.minimum_detectable)} would have been detected"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shifts:
    """Differences of subjects from a reference: at each point, and over all points of each benchmark.

    A benchmark with one point is in both.
    """

    by_point: tuple[Shift, ...]
    by_benchmark: tuple[Shift, ...]


def sides(rows: Sequence[Row], variants: Sequence[str]) -> Iterator[tuple[Row, Row]]:
    """Yield each row with its reference: the first variant at its revision, or the first revision."""
    references: dict[tuple[object, ...], Row] = {}
    for row in rows:
        if not row.values:
            continue
        reference_revision = row.subject.revision if len(variants) > 1 else None
        reference = references.setdefault((row.benchmark, row.point, row.metric, reference_revision), row)
        if reference is not row and reference.subject.variant == variants[0]:
            yield reference, row


def shifts(view: View, measured: MeasuredHere, rows: Sequence[tuple[Row, Row]]) -> Shifts:
    """Compare rows with their references by pairs of the same block, with one family-wise error rate."""
    compared = [
        _RowPairs(first=first, row=row, pairs=found) for first, row, found in _paired(view, measured, rows)
    ]
    groups: dict[tuple[object, ...], list[_RowPairs]] = {}
    for each in compared:
        groups.setdefault((each.row.subject, each.row.benchmark, each.row.metric), []).append(each)
    many = len(compared) + sum(len(group) > 1 for group in groups.values())
    return Shifts(
        by_point=tuple(_shift(view.study, [each], comparisons=many) for each in compared),
        by_benchmark=tuple(_shift(view.study, group, comparisons=many) for group in groups.values()),
    )


def by_benchmark(view: View, measured: MeasuredHere, rows: Sequence[Row]) -> tuple[Shift, ...]:
    """Compare the variants with the first one, by benchmark, at the last revision measured.

    Empty with fewer than two variants or measured benchmarks, for imported samples, and without common
    blocks.
    """
    variants = tuple(view.study.variants)
    if len(variants) < 2 or not measured.cells or view.study.searched_source.kind == "samples":
        return ()
    last = measured.cells[-1][0].subject.revision
    here = [row for row in rows if row.subject.revision == last]
    if len({row.benchmark for row in here}) < 2:
        return ()
    return shifts(view, measured, list(sides(here, variants))).by_benchmark


@dataclass(frozen=True, slots=True, kw_only=True)
class _RowPairs:
    """A row, its reference, and their pairs."""

    first: Row
    row: Row
    pairs: list[Pair]


def _paired(
    view: View, measured: MeasuredHere, rows: Sequence[tuple[Row, Row]]
) -> Iterator[tuple[Row, Row, list[Pair]]]:
    for first, row in rows:
        found = paired(by_block(view, measured, first), by_block(view, measured, row))
        if found:
            yield first, row, found


def _shift(study: Study, group: Sequence[_RowPairs], *, comparisons: int) -> Shift:
    """Compare over the points of a group together."""
    used = usable_pairs([each.pairs for each in group])
    return Shift(
        reference=group[0].first.subject,
        row=group[0].row,
        points=tuple(each.row.point for each in group),
        better=better_of(study, group[0].row),
        comparison=compare_over(values_of(used), comparisons=comparisons),
        decides=decides(group[0].row.unit, chain.from_iterable(used)),
    )
