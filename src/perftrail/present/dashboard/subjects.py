"""Compare any two subjects by their stored samples; list the invocations of a runnable on every machine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, TypedDict

from perftrail.charts.comparison import ComparisonRow, ratio_chart
from perftrail.charts.frame import Palette
from perftrail.errors import UsageError
from perftrail.model.build import Stage
from perftrail.model.measurement import FailedInvocation, Measurement, Phase
from perftrail.model.subject import Subject
from perftrail.model.wording import escaped, quantity
from perftrail.present.html_page import log_end
from perftrail.present.report.comparisons import (
    LEAST_PAIRS,
    comparable,
    compare_pairs_of,
    compare_unpaired_rows,
    count_pairs,
    pairs_of_points,
    stored_row,
)
from perftrail.present.report.words import row_metric, row_value
from perftrail.results.rows import ValueWithIntervalJson
from perftrail.stats.comparison import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from perftrail.charts.frame import Chart
    from perftrail.model.measurement import Machine, Outcome
    from perftrail.model.study import Study
    from perftrail.model.subject import Revision
    from perftrail.ports import Store
    from perftrail.present.report.comparisons import SubjectComparison
    from perftrail.present.report.data import ReportData
    from perftrail.results.rows import Row


MIN_ABBREVIATION = 4
"""Minimum number of characters of an abbreviated revision."""

MOST_DRAWN = 20


class PairedComparisonJson(TypedDict):
    """The comparison of two subjects in one metric."""

    effect: Annotated[ValueWithIntervalJson, "the ratio of the second to the first"]
    confidence: float
    count: Annotated[int, "number of pairs"]
    interleaved: Annotated[bool, "whether the samples are interleaved pairs"]
    verdict: Annotated[Verdict, "slower: worse, in whichever direction the metric is better"]
    words: str


class ComparedMetricJson(TypedDict):
    """One metric of two subjects."""

    metric: str
    first: str
    second: str
    reason: Annotated[str, "why there is no comparison"]
    comparison: PairedComparisonJson | None


class InvocationTimeJson(TypedDict):
    """The time of an invocation."""

    phase: Phase
    ordinal: int
    started: str
    seconds: float


class InvocationFailureJson(TypedDict):
    """The failure of an invocation."""

    stage: Stage
    message: str


class InvocationJson(InvocationTimeJson):
    """One invocation."""

    values: dict[str, float]
    flags: list[str]
    failure: InvocationFailureJson | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedMetric:
    """One metric of both subjects in words, and their comparison.

    `subject_comparison` is `None` without a comparison; `why` is then the reason.
    """

    metric: str
    first: str
    second: str
    subject_comparison: SubjectComparison | None
    why: str = ""

    def as_json(self) -> ComparedMetricJson:
        """Return the JSON of the API."""
        result = self.subject_comparison
        return {
            "metric": self.metric,
            "first": self.first,
            "second": self.second,
            "reason": self.why,
            "comparison": None
            if result is None
            else {
                "effect": {
                    "value": result.comparison.effect,
                    "low": result.comparison.low,
                    "high": result.comparison.high,
                },
                "confidence": result.comparison.confidence,
                "count": result.comparison.pairs,
                "interleaved": result.interleaved,
                "verdict": result.verdict,
                "words": result.words,
            },
        }


def named_revision(data: ReportData, text: str) -> Revision:
    """Return the revision that a text names: its position as ``#12``, its id, the beginning of its id, or its label.

    A label names its newest revision. Raises `UsageError` if no revision or several have this name.
    """
    wanted = text.strip()
    number = wanted.removeprefix("#")
    # Python refuses numbers with thousands of digits
    numbered = wanted != number and number.isdecimal() and len(number) <= len(str(len(data.revisions)))
    if numbered and int(number) < len(data.revisions):
        return data.revisions[int(number)]
    if wanted in data.positions:
        return data.revisions[data.positions[wanted]]
    labelled = [revision for revision in data.revisions if wanted and revision.label == wanted]
    if labelled:
        return labelled[-1]
    matching = (
        [each for each in data.revisions if each.id.startswith(wanted)]
        if len(wanted) >= MIN_ABBREVIATION
        else []
    )
    if len(matching) == 1:
        return matching[0]
    reason = (
        f"{len(matching)} revisions begin with this"
        if matching
        else "no revision of this study has this name"
    )
    raise UsageError(
        f"{escaped(wanted, longest=60) or 'nothing'}: {reason}; write an id of at least {MIN_ABBREVIATION} "
        "characters, a label, or a position in the history as #12"
    )


def default_variants(
    data: ReportData, rows_of: Mapping[str, Sequence[Row]], revision: Revision
) -> tuple[str, str]:
    """Return the first and the last variant with a common metric; without one, those of the study."""
    metrics: dict[str, set[object]] = {}
    for row in rows_of.get(revision.id, ()):
        if row.estimate is not None:
            metrics.setdefault(row.subject.variant, set()).add((row.benchmark, row.point, row.metric))
    both = (
        (one, other)
        for one in data.variants
        for other in reversed(data.variants)
        if one != other and metrics.get(one, set()) & metrics.get(other, set())
    )
    return next(both, (data.variants[0], data.variants[-1]))


def compare_two(
    data: ReportData, rows_of: Mapping[str, Sequence[Row]], first: Subject, second: Subject
) -> tuple[ComparedMetric, ...]:
    """Compare the second subject with the first in every metric that both have.

    The comparison is a stored result of `compare` if there is one; else it uses pairs of the same blocks; else all
    values of both.
    """
    pairs = [(one, other, _why_not(one, other)) for one, other in _common(rows_of, first, second)]
    comparisons = sum(not why for _, _, why in pairs)
    return tuple(
        ComparedMetric(
            metric=row_metric(other),
            first=row_value(one),
            second=row_value(other),
            why=why,
            subject_comparison=None
            if why
            else replace(
                _compare_rows(data, one, other, comparisons=comparisons),
                name=str(second),
                reference=str(first),
            ),
        )
        for one, other, why in pairs
    )


def _why_not(one: Row, other: Row) -> str:
    """Return why two rows cannot be compared; empty if they can."""
    if one.runnables == other.runnables:
        return "the same: their artefacts are equal, and were measured once"
    return "" if comparable(one, other) else "not compared: a comparison needs two values of each"


def comparison_chart(compared: Sequence[ComparedMetric], first: Subject, second: Subject) -> Chart | None:
    """Return the chart of the comparisons; `None` without any."""
    drawn = [each for each in compared if each.subject_comparison is not None][:MOST_DRAWN]
    rows = [
        ComparisonRow.of(
            each.subject_comparison.comparison,
            row=each.metric,
            subject=str(second),
            ratios=each.subject_comparison.ratios,
            verdict=each.subject_comparison.words,
        )
        for each in drawn
        if each.subject_comparison is not None
    ]
    if not rows:
        return None
    has_unpaired = any(
        each.subject_comparison is not None and not each.subject_comparison.interleaved for each in drawn
    )
    more = {"dots": "values", "method": "not all measured as interleaved pairs"} if has_unpaired else {}
    palette = Palette((str(first), str(second)))
    title = f"{second} against {first}"
    return ratio_chart(rows, name="against", title=title, reference=str(first), palette=palette, **more)


def _common(
    rows_of: Mapping[str, Sequence[Row]], first: Subject, second: Subject
) -> Iterator[tuple[Row, Row]]:
    first_rows = {
        (row.benchmark, row.point, row.metric): row
        for row in rows_of.get(first.revision.id, ())
        if row.subject.variant == first.variant and row.estimate is not None
    }
    for row in rows_of.get(second.revision.id, ()):
        one = first_rows.get((row.benchmark, row.point, row.metric))
        if one is not None and row.subject.variant == second.variant and row.estimate is not None:
            yield one, row


def _compare_rows(data: ReportData, one: Row, other: Row, *, comparisons: int) -> SubjectComparison:
    stored = stored_row(data, one, other)
    if stored is not None and stored.comparison is not None:
        unpaired = compare_unpaired_rows(data, one, other, comparisons=comparisons)
        return replace(unpaired, comparison=stored.comparison, ratios=stored.ratios, interleaved=True)
    interleaved = data.search is None or one.subject.revision == other.subject.revision
    if interleaved and data.view.study.searched_source.kind != "samples":
        point_pairs = pairs_of_points(data, [(one, other)])
        if count_pairs(point_pairs) >= LEAST_PAIRS:
            return compare_pairs_of(data, point_pairs, comparisons=comparisons)
    return compare_unpaired_rows(data, one, other, comparisons=comparisons)


LOG_BYTES = 256_000
"""Maximum size of a shown log: its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineInvocations:
    """Every invocation of a runnable on one machine, warm-ups first."""

    machine: Machine
    outcomes: tuple[Outcome, ...]

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics of all invocations, in the order of the invocations."""
        measurements = [each for each in self.outcomes if isinstance(each, Measurement)]
        return tuple(dict.fromkeys(name for each in measurements for name in each.values))


def invocations_of(store: Store, key: str) -> tuple[MachineInvocations, ...]:
    """Return every invocation of a runnable by machine."""
    by_machine = (
        MachineInvocations(machine=machine, outcomes=store.outcomes([key], machine.id).get(key, ()))
        for machine in store.machines().values()
    )
    return tuple(each for each in by_machine if each.outcomes)


def units(study: Study, benchmark: str) -> Mapping[str, str]:
    """Return the unit of each metric of a benchmark; empty for a benchmark that the study no longer has."""
    declared = study.benchmarks.get(benchmark)
    if declared is None:
        return {}
    measured = {name: metric.unit for name, metric in declared.measured.items()}
    return measured | {name: metric.unit for name, metric in declared.metrics.items()}


def value_words(outcome: Outcome, metric: str, unit: str) -> str:
    """Return a metric of an invocation in words, with its method if methods vary."""
    if not isinstance(outcome, Measurement) or metric not in outcome.values:
        return ""
    method = outcome.methods.get(metric)
    return quantity(outcome.values[metric], unit) + (f" ({escaped(method)})" if method else "")


def log_path(outcome: Outcome) -> str:
    """Return the stored path of an invocation's output; empty without one."""
    return outcome.failure.log if isinstance(outcome, FailedInvocation) else outcome.log


def log_of(store: Store, key: str, machine: str, phase: str, ordinal: int, *, results: Path) -> str | None:
    """Return the end of an invocation's log; `None` for an unknown invocation, and without a log.

    Only files below the study's own logs are read.
    """
    for each in store.outcomes([key], machine).get(key, ()):
        if (each.key.phase, each.key.ordinal) == (phase, ordinal):
            return log_end(log_path(each), results, most=LOG_BYTES) or None
    return None


def outcome_json(outcome: Outcome) -> InvocationJson:
    """Return an invocation as JSON of the API."""
    times: InvocationTimeJson = {
        "phase": outcome.key.phase,
        "ordinal": outcome.key.ordinal,
        "started": outcome.started,
        "seconds": outcome.seconds,
    }
    if isinstance(outcome, FailedInvocation):
        failure = outcome.failure
        return {
            **times,
            "values": {},
            "flags": [],
            "failure": {"stage": failure.stage, "message": failure.message},
        }
    return {**times, "values": dict(outcome.values), "flags": list(outcome.flags), "failure": None}
