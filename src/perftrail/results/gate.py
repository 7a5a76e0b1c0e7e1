"""Result of comparing two revisions: a verdict on each metric, and whether the gate fails.

`stored_comparisons` reads the results that `compare` stored.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

# cattrs reads the annotations at run time, so these imports must not be in TYPE_CHECKING.
from perftrail.model.benchmark import Point, Value
from perftrail.model.build import Failure, Stage
from perftrail.model.json_data import from_plain
from perftrail.model.measurement import Machine
from perftrail.model.metrics import Better
from perftrail.model.subject import Revision
from perftrail.stats.comparison import Comparison, Verdict
from perftrail.stats.estimate import Estimate
from perftrail.stats.layout_noise import LayoutNoise
from perftrail.stats.scale import Scale

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from perftrail.measure.session import View
    from perftrail.model.subject import Subject
    from perftrail.model.target import Target

FailOn = Literal["never", "slower", "unclear", "any"]
"""What trips the gate: nothing; a worse metric; also an unclear metric; any verdict except same."""

WORST_FIRST = (Verdict.SLOWER, Verdict.UNCLEAR, Verdict.SAME, Verdict.FASTER)

EXACT = 1e-9
"""Logarithms of ratios are compared with this tolerance: counts differ by 2 % exactly."""

SideName = Literal["base", "head"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedMetric:
    """A metric of a benchmark in one variant at one point, with the names of a `Target`."""

    text: str
    name: str
    benchmark: str
    variant: str
    point: Point
    unit: str
    better: Better

    @classmethod
    def of(cls, target: Target) -> ComparedMetric:
        """Return the metric that a target names."""
        return cls(
            text=target.text,
            name=target.name,
            benchmark=target.benchmark,
            variant=target.variant,
            point=target.open_point,
            unit=target.unit,
            better=target.better,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One metric at one point: its estimates at both revisions, and the comparison of head with base.

    `comparison` is `None` if there is nothing to compare, and `note` is the reason. `one_build`: both revisions
    have the same build, so nothing was measured. The comparison uses `pairs`. Among these, `noisy` pairs were
    used although noisy, because the machine was always noisy; `discarded` pairs were not used. `layouts` is
    the number of layouts of the pairs, 0 if both builds are compared as their recipe links them. `ratios` are
    head/base of each pair, or of each layout's mean. All invocations took `seconds`. `linked`: a linker produced
    the measured program. `at_least`: most runs of one side timed out, so the difference is at least as large.
    """

    metric: ComparedMetric
    base: Estimate | None = None
    head: Estimate | None = None
    comparison: Comparison | None = None
    one_build: bool = False
    pairs: int = 0
    noisy: int = 0
    discarded: int = 0
    layouts: int = 0
    pinned: bool = False
    seconds: float = 0.0
    ratios: tuple[float, ...] = ()
    note: str = ""
    linked: bool = True
    at_least: bool = False

    @property
    def verdict(self) -> Verdict:
        """Verdict on the head: ``slower`` means worse, in whichever direction the metric is better."""
        if self.one_build:
            return Verdict.SAME
        if self.comparison is None:
            return Verdict.UNCLEAR
        return self.comparison.judged(self.metric.better)

    @property
    def word(self) -> str:
        """The verdict in words: for metrics other than time, worse or better."""
        if self.metric.unit == "s" and self.metric.better == "lower":
            return str(self.verdict)
        return {"slower": "worse", "faster": "better"}.get(str(self.verdict), str(self.verdict))

    @property
    def size(self) -> float:
        """How much worse the head is on the metric's scale, below zero if better; zero if unknown."""
        if self.comparison is None:
            return 0.0
        worse = self.comparison.size
        return worse if self.metric.better == "lower" else -worse

    @property
    def rank(self) -> tuple[int, float]:
        """Sort key of rows, the worst first: a certain regression before a possible one."""
        return WORST_FIRST.index(self.verdict), -round(self.size, 9)

    @property
    def has_verdict(self) -> bool:
        """Whether there is a verdict: enough pairs, or nothing to compare."""
        return self.one_build or (
            self.comparison is not None and self.comparison.minimum_detectable is not None
        )

    @property
    def least(self) -> float:
        """Lower bound of the change on the metric's scale, from the interval; zero if there may be none."""
        if self.comparison is None:
            return 0.0
        return max(self.comparison.bounds.low, -self.comparison.bounds.high, 0.0)

    @property
    def scale(self) -> Scale:
        """How the values of both sides are compared."""
        return Scale.RATIO if self.comparison is None else self.comparison.scale

    @property
    def benchmark_in_variant(self) -> tuple[str, str]:
        """The benchmark and the variant, whose points share their pairs."""
        return self.metric.benchmark, self.metric.variant

    @property
    def basis(self) -> Literal["", "builds", "layouts"]:
        """What a certain difference applies to: these two builds, or all layouts of both; empty without one."""
        if self.verdict not in (Verdict.SLOWER, Verdict.FASTER):
            return ""
        return "layouts" if self.layouts else "builds"

    @property
    def bound(self) -> float:
        """Upper bound of the difference from the interval: as a fraction, or on another scale a difference."""
        if self.comparison is None:
            return 0.0 if self.one_build else math.inf
        same = self.scale.effect(0.0)
        return max(self.comparison.high - same, same - self.comparison.low)


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """The levels of base and head; head/base is the effect of their comparison."""

    base: Estimate
    head: Estimate


def levels_of_ratio(base: Estimate, head: Estimate, *, ratio: float) -> Levels:
    """Return two medians, moved by the same factor in opposite directions so that head/base is the ratio of the pairs.

    The ratio of two medians is not the centre of the ratios of their pairs, which is the more precise estimate.
    """
    quotient = head.value / base.value
    if not 0.0 < quotient < math.inf:
        return Levels(base=base, head=head)
    factor = math.sqrt(ratio / quotient)
    return Levels(base=base.scaled(1.0 / factor), head=head.scaled(factor))


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedSide:
    """A side that failed to build or to run: the location in the study, and the failure.

    `study_line` is the line of the study file that the failure is about: ``perftrail.toml:7 (build.steps)``.
    """

    side: SideName
    variant: str
    benchmark: str
    point: str
    failure: Failure
    study_line: str = ""

    @property
    def location(self) -> str:
        """The location of the failure, as narrowly as known; empty if it is everywhere."""
        named = f"{self.benchmark} {self.point}".strip()
        return f"{named} ({self.variant})".strip() if self.variant != "plain" else named

    @property
    def title(self) -> str:
        """The title of the failure: its location, or its stage if it is everywhere."""
        return self.location or self.failure.stage


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentDifference:
    """A difference between base and head that is not their program's own text: `name` is what differs.

    That is ``recipe``, a tool, or a file that names versions of dependencies. `base` and `head` are its two values;
    both are empty for a file.
    """

    name: str
    base: str = ""
    head: str = ""


class GateRevisionJson(TypedDict):
    """One of the two revisions."""

    id: str
    label: str
    summary: str


class GateEstimateJson(TypedDict):
    """The level of one revision, in the metric's unit, with its interval; the ratio of both levels is the effect."""

    value: float
    low: Annotated[float | None, "null: unbounded"]
    high: Annotated[float | None, "null: unbounded"]
    confidence: float


class GateEffectJson(TypedDict):
    """The ratio head/base with its interval."""

    value: float
    low: Annotated[float | None, "null: unbounded"]
    high: Annotated[float | None, "null: unbounded"]
    confidence: Annotated[float, "confidence of all intervals together, whenever measuring stopped"]


class GateDifferenceJson(TypedDict):
    """The difference head − base with its interval, for metrics that have no ratio; of rates in shares."""

    difference: float
    low: float
    high: float
    confidence: Annotated[float, "confidence of all intervals together, whenever measuring stopped"]


class GateRowJson(TypedDict):
    """The comparison of one metric."""

    metric: str
    name: str
    benchmark: str
    variant: str
    point: dict[str, Value]
    unit: str
    better: Better
    base: GateEstimateJson | None
    head: GateEstimateJson | None
    scale: Annotated[
        Scale, "how values are compared: effect has a difference instead of a value unless by their ratio"
    ]
    effect: GateEffectJson | GateDifferenceJson | None
    verdict: Annotated[Verdict, "slower: worse, in whichever direction the metric is better"]
    trips: Annotated[bool, "whether it trips the gate"]
    minimum_detectable: Annotated[
        float | None,
        "the change that this number of pairs detects with a probability of 80 %; null: too few pairs",
    ]
    more_pairs: Annotated[
        int | None,
        "about this number of further pairs would detect a change of the threshold; null: a change of the threshold is"
        " not missed, or there are too few pairs",
    ]
    pairs: Annotated[int, "number of pairs; with several pairs to a layout, their mean counts as one"]
    noisy: Annotated[int, "noisy pairs among these, on a machine that was busy all the time"]
    discarded: Annotated[int, "noisy pairs that others replaced"]
    layouts: Annotated[int, "number of memory layouts; 0: builds as their recipe links them"]
    pinned: Annotated[bool, "whether layouts place code that a commit does not change alike in both builds"]
    basis: Annotated[
        Literal["", "builds", "layouts"],
        "builds: these two builds differ; layouts: the change differs over newly linked layouts; empty: unclear",
    ]
    seconds: Annotated[float, "seconds that its invocations took"]
    at_least: Annotated[bool, "whether most runs of one side timed out, so that the effect is a lower bound"]
    one_build: Annotated[bool, "whether both revisions have the same build"]
    note: Annotated[str, "why there is no value"]


class GateFailureJson(TypedDict):
    """A revision that failed to build or to run."""

    side: SideName
    variant: str
    benchmark: str
    point: str
    stage: Stage
    message: str
    log: str
    study_line: Annotated[str, "the line and key of the study file that the failure is about"]


class EnvironmentDifferenceJson(TypedDict):
    """A difference between base and head besides their program's own text; a file has no values."""

    name: Annotated[str, "recipe, a tool, or a file that names versions of dependencies"]
    base: str
    head: str


class LayoutNoiseJson(TypedDict):
    """Standard deviation of a build's level over memory layouts, in logarithms, and its number of builds."""

    value: float
    builds: int


class GateJson(TypedDict):
    """The comparison of two revisions."""

    verdict: Annotated[Verdict, "the most important one: slower, unclear, faster, same"]
    tripped: bool
    undecided: Annotated[
        int, "number of unclear metrics that do not fail the gate; fail_on unclear makes it fail"
    ]
    fail_on: FailOn
    exit_code: Annotated[
        int, "3: the gate failed; 1: no answer, or the head fails where the base works; else 0"
    ]
    study: str
    base: GateRevisionJson
    head: GateRevisionJson
    confidence: Annotated[float, "of all verdicts and intervals together"]
    threshold: Annotated[float, "the relative change below which two values count as the same"]
    comparisons: Annotated[list[GateRowJson], "the worst first"]
    failures: list[GateFailureJson]
    invocations: Annotated[int, "invocations that the values come from"]
    fresh: Annotated[int, "invocations of this comparison"]
    seconds: Annotated[float, "seconds from the first build to the answer"]
    machine: str
    tools: Annotated[list[str], "the versions of the tools that built both revisions"]
    differences: Annotated[
        list[EnvironmentDifferenceJson], "what differs between base and head besides their program's own text"
    ]
    layout_noise: Annotated[
        LayoutNoiseJson | None,
        "null: fewer than five unchanged neighbours are measured, or no difference is sure",
    ]
    appeared: Annotated[list[str], "benchmarks that only the suites of the head have"]
    disappeared: Annotated[list[str], "benchmarks that only the suites of the base have"]
    why: Annotated[list[str], "the responsible functions of the slower benchmarks, with --explain"]
    notes: list[str]
    repeat: Annotated[str, "the command that repeats the comparison"]
    find: Annotated[str, "the command that searches for the culprit"]
    explain: Annotated[
        str, "the command that explains the largest change; empty unless the base is the head's first parent"
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """A comparison of a head with a base: its rows, the worst first, and whether the gate trips.

    The family-wise error rate of all verdicts is ``1 - confidence``. `threshold` is the smallest relative change
    worth reporting, and `threshold_source` the option or key that sets it. `invocations` are those that the metrics
    use; `fresh` were started now, in `seconds`. `failed_sides` are the sides that failed, `finished` is the time of
    the comparison. `layout_noise` is the spread between builds of this history without a change, `None` if unknown.
    `tools` are the versions of the tools that built both, and `differences` is what differs besides the program's text.
    `appeared` are benchmarks that only the suites of the head have, `disappeared` those that only the base has.
    `why` are the functions that made benchmarks slower, in words. `notes` limit the answer. `repeat`, `find_command`
    and `explain_command` are the commands that repeat the comparison, search for the culprit of the first of `changes`,
    and explain that change. The last one is empty unless the base is the head's first parent.
    """

    title: str
    file: str
    base: Revision
    head: Revision
    rows: tuple[Row, ...]
    failed_sides: tuple[FailedSide, ...]
    fail_on: FailOn
    confidence: float
    threshold: float
    machine: Machine
    invocations: int
    fresh: int
    seconds: float
    finished: str
    layout_noise: LayoutNoise | None = None
    tools: tuple[str, ...] = ()
    differences: tuple[EnvironmentDifference, ...] = ()
    appeared: tuple[str, ...] = ()
    disappeared: tuple[str, ...] = ()
    why: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    repeat: str = ""
    find_command: str = ""
    explain_command: str = ""
    threshold_source: str = "--threshold"

    @property
    def changes(self) -> tuple[Row, ...]:
        """The certain changes: first those that trip the gate, then the others; each the largest first."""
        found = [row for row in self.rows if row.verdict in (Verdict.SLOWER, Verdict.FASTER)]
        return tuple(sorted(found, key=lambda row: (not self.trips(row), -round(abs(row.size), 9))))

    @property
    def certain_first(self) -> tuple[Row, ...]:
        """All rows: the certain changes, then the unclear and the unchanged ones."""
        others = [row for row in self.rows if row.verdict in (Verdict.UNCLEAR, Verdict.SAME)]
        return (*self.changes, *others)

    def trips(self, row: Row) -> bool:
        """Whether a row trips the gate.

        A certain difference trips it if the lower bound of its size reaches the threshold. An unclear row trips with
        ``unclear`` and ``any``.
        """
        is_large = self.reaches_threshold(row)
        match self.fail_on:
            case "never":
                return False
            case "slower":
                return row.verdict is Verdict.SLOWER and is_large
            case "unclear":
                return row.verdict is Verdict.UNCLEAR or (row.verdict is Verdict.SLOWER and is_large)
            case "any":
                return row.verdict is Verdict.UNCLEAR or (row.verdict is not Verdict.SAME and is_large)

    def could_miss(self, row: Row) -> bool:
        """Whether a change as large as the threshold could be missed: the row is unclear, and its noise hides it."""
        found = row.comparison
        return (
            row.verdict is Verdict.UNCLEAR
            and found is not None
            and found.minimum_detectable is not None
            and found.minimum_detectable > self.threshold * (1.0 + EXACT)
        )

    def more_pairs(self, row: Row) -> int:
        """Return about how many more pairs of a row would detect a change of the threshold, with this noise.

        The minimum detectable change falls with the square root of the number of pairs.
        """
        assert row.comparison is not None
        assert row.comparison.minimum_detectable is not None
        scale = row.comparison.scale
        ratio = scale.on_scale(row.comparison.minimum_detectable) / scale.on_scale(self.threshold)
        return max(1, math.ceil(row.pairs * (ratio**2 - 1.0)))

    def useful_pairs(self, row: Row) -> int:
        """Return about how many pairs in total would lead to a verdict on an unclear row; zero if nothing is known."""
        found = row.comparison
        if found is None or not row.pairs:
            return 0
        if found.minimum_detectable is None:
            return 2 * found.needed_pairs * max(1, round(row.pairs / found.pairs))
        return row.pairs + self.more_pairs(row) if self.could_miss(row) else 2 * row.pairs

    def seconds_to(self, pairs: int) -> float:
        """Return about how many more seconds the benchmarks with unclear rows take to reach this number of pairs.

        The estimate includes noisy pairs that others replace. Builds exist already.
        """
        total = 0.0
        for name in {row.benchmark_in_variant for row in self.rows if row.verdict is Verdict.UNCLEAR}:
            rows = [row for row in self.rows if row.benchmark_in_variant == name and row.pairs]
            by_point = {row.metric.point: row.seconds for row in rows}
            known = max((row.pairs for row in rows), default=0)
            if known:
                total += max(0, pairs - known) * sum(by_point.values()) / known
        return total

    def reaches_threshold(self, row: Row) -> bool:
        """Whether a row's change certainly reaches the threshold."""
        return row.least >= row.scale.on_scale(self.threshold) - EXACT

    @property
    def undecided(self) -> tuple[Row, ...]:
        """The unclear rows that do not trip the gate."""
        return tuple(row for row in self.rows if row.verdict is Verdict.UNCLEAR and not self.trips(row))

    @property
    def tripped(self) -> tuple[Row, ...]:
        """The rows that trip the gate, the worst first."""
        return tuple(row for row in self.rows if self.trips(row))

    @property
    def verdict(self) -> Verdict:
        """The most important verdict of all rows."""
        verdicts = {row.verdict for row in self.rows}
        order = (Verdict.SLOWER, Verdict.UNCLEAR, Verdict.FASTER, Verdict.SAME)
        return next((each for each in order if each in verdicts), Verdict.UNCLEAR)

    @property
    def broken(self) -> tuple[FailedSide, ...]:
        """The failures of the head that the base does not have."""
        failed_at_base = {
            (each.variant, each.benchmark, each.point) for each in self.failed_sides if each.side == "base"
        }
        return tuple(
            each
            for each in self.failed_sides
            if each.side == "head" and (each.variant, each.benchmark, each.point) not in failed_at_base
        )

    @property
    def answered(self) -> bool:
        """Whether the comparison has an answer: at least one verdict, and no broken head."""
        return any(row.has_verdict for row in self.rows) and not self.broken

    @property
    def exit_code(self) -> int:
        """Exit code: 3 if the gate trips, 1 without an answer, else 0."""
        if self.tripped:
            return 3
        return 0 if self.answered else 1

    def as_json(self) -> GateJson:
        """Return the comparison as `compare --json` prints it."""
        return {
            "verdict": self.verdict,
            "tripped": bool(self.tripped),
            "undecided": len(self.undecided),
            "fail_on": self.fail_on,
            "exit_code": self.exit_code,
            "study": self.title,
            "base": _revision(self.base),
            "head": _revision(self.head),
            "confidence": self.confidence,
            "threshold": self.threshold,
            "comparisons": [self._row(row) for row in self.rows],
            "failures": [
                {
                    "side": each.side,
                    "variant": each.variant,
                    "benchmark": each.benchmark,
                    "point": each.point,
                    "stage": each.failure.stage,
                    "message": each.failure.message,
                    "log": each.failure.log,
                    "study_line": each.study_line,
                }
                for each in self.failed_sides
            ],
            "invocations": self.invocations,
            "fresh": self.fresh,
            "seconds": round(self.seconds, 3),
            "machine": self.machine.id,
            "tools": list(self.tools),
            "differences": [
                {"name": each.name, "base": each.base, "head": each.head} for each in self.differences
            ],
            "layout_noise": None
            if self.layout_noise is None
            else {"value": self.layout_noise.value, "builds": self.layout_noise.builds},
            "appeared": list(self.appeared),
            "disappeared": list(self.disappeared),
            "why": list(self.why),
            "notes": list(self.notes),
            "repeat": self.repeat,
            "find": self.find_command,
            "explain": self.explain_command,
        }

    def _row(self, row: Row) -> GateRowJson:
        found = row.comparison
        return {
            "metric": row.metric.text,
            "name": row.metric.name,
            "benchmark": row.metric.benchmark,
            "variant": row.metric.variant,
            "point": dict(row.metric.point.values),
            "unit": row.metric.unit,
            "better": row.metric.better,
            "base": _estimate(row.base),
            "head": _estimate(row.head),
            "scale": row.scale,
            "effect": None if found is None else _effect(found),
            "verdict": row.verdict,
            "trips": self.trips(row),
            "minimum_detectable": None if found is None else found.minimum_detectable,
            "more_pairs": self.more_pairs(row) if self.could_miss(row) else None,
            "pairs": row.pairs,
            "noisy": row.noisy,
            "discarded": row.discarded,
            "layouts": row.layouts,
            "pinned": row.pinned,
            "basis": row.basis,
            "seconds": round(row.seconds, 3),
            "at_least": row.at_least,
            "one_build": row.one_build,
            "note": row.note,
        }


def _revision(revision: Revision) -> GateRevisionJson:
    return {"id": revision.id, "label": revision.label, "summary": revision.summary}


def _effect(found: Comparison) -> GateEffectJson | GateDifferenceJson:
    if found.scale is Scale.RATIO:
        return {
            "value": found.effect,
            "low": found.low,
            "high": found.high,
            "confidence": found.confidence,
        }
    return {
        "difference": found.effect,
        "low": found.low,
        "high": found.high,
        "confidence": found.confidence,
    }


def _estimate(found: Estimate | None) -> GateEstimateJson | None:
    if found is None:
        return None
    return {"value": found.value, "low": found.low, "high": found.high, "confidence": found.confidence}


def stored_comparisons(view: View) -> tuple[Gate, ...]:
    """Return the last comparison of each pair of revisions on this machine, the latest first.

    Results in the form of another version of perftrail are omitted; `unreadable_comparisons` counts them.
    """
    found: dict[tuple[str, str], Gate] = {}
    for gate in _stored(view):
        if gate is not None:
            found.setdefault((gate.base.id, gate.head.id), gate)
    return tuple(found.values())


def unreadable_comparisons(view: View) -> int:
    """Return the number of stored comparisons of this machine that this version of perftrail cannot read."""
    return sum(gate is None for gate in _stored(view))


def _stored(view: View) -> Iterator[Gate | None]:
    """Yield the stored comparisons of this machine, the latest first; `None` for one in another form."""
    for record in reversed(view.store.comparisons()):
        if record.machine == view.machine.id:
            try:
                yield from_plain(Gate, record.result)
            except ValueError:
                yield None


def decided(
    comparisons: Sequence[Gate], base: Subject, head: Subject, *, benchmark: str, metric: str, point: Point
) -> Row | None:
    """Return the row of a metric at a point in the latest comparison of two subjects; `None` without a ratio."""
    if base.variant != head.variant:
        return None
    return next(
        (
            row
            for each in comparisons
            if (each.base.id, each.head.id) == (base.revision.id, head.revision.id)
            for row in each.rows
            if row.comparison is not None
            and row.scale is Scale.RATIO
            and (row.metric.benchmark, row.metric.variant) == (benchmark, base.variant)
            and (row.metric.text, row.metric.point) == (metric, point)
        ),
        None,
    )
