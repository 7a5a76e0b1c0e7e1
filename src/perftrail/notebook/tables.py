"""Arrow tables of samples, estimates, changes, comparisons and answers: their columns, and their rows.

Names and meanings of columns are a contract: new columns may be added at the end, existing ones do not change.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

import pyarrow as pa  # type: ignore[import-untyped]  # it has no type hints

from perftrail.results.rows import better_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from perftrail.model.benchmark import Benchmark, Point
    from perftrail.model.json_data import Json
    from perftrail.model.metrics import MeasuredMetric, Metric
    from perftrail.model.store_records import SearchRecord
    from perftrail.model.study import Study
    from perftrail.model.subject import Revision
    from perftrail.present.report.comparisons import SubjectComparison
    from perftrail.results.changes import HistoryChange
    from perftrail.results.rows import Row


Kind = Literal["name", "text", "number", "whole", "moment", "truth", "names"]
"""Kind of a column; a `name` is a text that repeats."""

KINDS: dict[Kind, str] = {
    "name": "dictionary<int32, string>",
    "text": "string",
    "number": "double",
    "whole": "int64",
    "moment": "timestamp[us, UTC]",
    "truth": "bool",
    "names": "list<string>",
}
"""Arrow's name of each kind."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column. `unit` is the unit of its values: ``1`` for a ratio or share, `EACH` if each row has another unit."""

    name: str
    kind: Kind
    meaning: str
    unit: str = ""


EACH = "each"
"""Unit of a column if the column ``unit`` has the unit of each row."""


PARAMETERS = Column("PARAMETER…", "number", "One column for each parameter of the study's benchmarks.")
"""Placeholder of the columns for a study's parameters: int64, double or names, depending on their values."""

POSITION = Column(
    "position", "whole", "Position of the revision in the study's history, oldest first, from 0."
)
REVISION = Column("revision", "name", "The revision's full id.")
LABEL = Column("label", "name", "The revision's release or version; empty without one.")
VARIANT = Column("variant", "name", "The variant.")
BENCHMARK = Column("benchmark", "name", "The benchmark.")
METRIC = Column("metric", "name", "The metric.")
UNIT = Column("unit", "name", "The unit of this row's values; empty for a plain number.")
BETTER = Column("better", "name", "Which direction is an improvement: `lower` or `higher`.")

SAMPLES = (
    POSITION,
    REVISION,
    LABEL,
    VARIANT,
    BENCHMARK,
    PARAMETERS,
    METRIC,
    Column("value", "number", "The value.", EACH),
    UNIT,
    Column(
        "invocation",
        "whole",
        "Number of the invocation of this runnable, from 0. Invocations with equal numbers belong to one round.",
    ),
    Column("started", "moment", "Start time of the invocation; null if the store has no valid time."),
    Column("machine", "name", "The machine of the sample."),
    Column(
        "flags",
        "names",
        "Flags of the sample: `busy`, `stolen`, `throttled`, `output-cut`…",
    ),
    Column("quiet", "truth", "Whether the sample is not noisy; estimates prefer quiet samples."),
    Column("method", "name", "Method of measurement, if several exist; else null."),
    Column(
        "runnable",
        "name",
        "Key of the runnable. Subjects with equal builds share it; each of them has a row for each sample.",
    ),
)
"""One row for each value of each invocation."""

ESTIMATES = (
    POSITION,
    REVISION,
    LABEL,
    VARIANT,
    BENCHMARK,
    PARAMETERS,
    METRIC,
    Column("value", "number", "The median of the samples; null without samples.", EACH),
    Column("low", "number", "The lower end of the median's interval.", EACH),
    Column("high", "number", "The upper end of the median's interval.", EACH),
    UNIT,
    BETTER,
    Column(
        "confidence", "number", "Confidence of the interval: 0.95, less with fewer than six samples.", "1"
    ),
    Column("count", "whole", "Number of samples of the estimate."),
    Column("failures", "whole", "Number of invocations without a value."),
    Column("flags", "names", "Every flag of the samples."),
    Column(
        "noise",
        "text",
        "Number of noisy samples, and whether they were used; empty without noisy samples.",
    ),
    Column("time", "moment", "Time of the revision; null if its source has none."),
    Column("summary", "text", "The first line of the revision's message, which is untrusted text."),
)
"""One row for each metric of each subject at each point, as in `perftrail show`."""

CHANGES = (
    POSITION,
    REVISION,
    LABEL,
    VARIANT,
    BENCHMARK,
    PARAMETERS,
    METRIC,
    UNIT,
    BETTER,
    Column("before", "number", "The level before.", EACH),
    Column("after", "number", "The level from this revision on.", EACH),
    Column("effect", "number", "after/before, or after − before on another scale than the ratio.", "1"),
    Column("low", "number", "The lower end of the effect's 95 % interval.", "1"),
    Column("high", "number", "The upper end of the effect's 95 % interval.", "1"),
    Column("p_value", "number", "Probability of such a change if nothing changed.", "1"),
    Column(
        "size_in_noise",
        "number",
        "Size of the change divided by the noise of one revision, without sign.",
        "1",
    ),
    Column("size_in_noise_low", "number", "The lower end of the size's 95 % interval.", "1"),
    Column("size_in_noise_high", "number", "The upper end of the size's 95 % interval.", "1"),
    Column(
        "alert",
        "truth",
        "Whether the change is certainly large and shown by several builds, or certified by a search.",
    ),
    Column(
        "candidates",
        "names",
        "Candidates for the culprit, oldest first: several if some were not measured.",
    ),
    Column("earliest", "name", "The first possible revision of the change, with 95 % confidence."),
    Column("latest", "name", "The last possible revision of the change, with 95 % confidence."),
)
"""One row for each change point along the history, as below the table of `perftrail show`."""

COMPARISONS = (
    Column("subject", "name", "The compared variant, or the revision with its short id and label."),
    Column("reference", "name", "The reference: the first variant, or the oldest measured revision."),
    BENCHMARK,
    METRIC,
    BETTER,
    Column(
        "effect",
        "number",
        "subject/reference of interleaved pairs; over several points, the geometric mean.",
        "1",
    ),
    Column("low", "number", "The lower end of the effect's interval.", "1"),
    Column("high", "number", "The upper end of the effect's interval.", "1"),
    Column("confidence", "number", "Confidence of all intervals of the table together.", "1"),
    Column("pairs", "whole", "Number of pairs over all points."),
    Column(
        "verdict",
        "name",
        "`faster`, `slower`, `same` or `unclear`. `slower` means worse, in whichever direction the metric is better.",
    ),
    Column("improved", "truth", "Whether a certain difference is an improvement; null without one."),
    Column(
        "minimum_detectable",
        "number",
        "The relative change that this number of pairs detects with a probability of 80 %; null with too few pairs.",
        "1",
    ),
)
"""One row for each metric of each benchmark and subject, as `perftrail report` compares them."""

ANSWERS = (
    Column("search", "whole", "Number of the search in `perftrail show --search N`."),
    Column("started", "moment", "Start time of the search."),
    METRIC,
    BENCHMARK,
    VARIANT,
    UNIT,
    BETTER,
    Column("scale", "name", "How values are compared: by `ratio`, `difference` or `rate`."),
    Column("first", "name", "The older end of the range."),
    Column("last", "name", "The newer end of the range."),
    Column(
        "verdict",
        "name",
        "`found`, `range`, `several`, `none` or `unclear`; null before the search has ended.",
    ),
    Column("reason", "text", "Why the search ended."),
    Column("confidence", "number", "Probability of the whole answer.", "1"),
    Column(
        "minimum_detectable",
        "number",
        "No further change of this relative size is between the measured builds.",
        "1",
    ),
    Column("ends", "number", "newest/oldest measured build, or their difference; null without rounds.", "1"),
    Column("rest", "number", "What the changes do not explain of `ends`.", "1"),
    Column("revisions", "whole", "Number of revisions in the range."),
    Column("builds", "whole", "Number of builds, failed ones included."),
    Column("invocations", "whole", "Number of invocations."),
    Column("seconds", "number", "Time of building and measuring.", "s"),
    Column("change", "whole", "Number of the change in the answer, from 0; null without a change."),
    Column("kind", "name", "Kind of the change: a `step`, or a `ramp` of many small changes."),
    Column("candidates", "names", "Candidates for the culprit, oldest first."),
    Column("sure", "number", "Probability that the culprit is among the candidates.", "1"),
    Column("before", "number", "The level before.", EACH),
    Column("after", "number", "The level after.", EACH),
    Column("effect", "number", "after/before, or after − before on another scale than the ratio.", "1"),
    Column("low", "number", "The lower end of the effect's 95 % interval.", "1"),
    Column("high", "number", "The upper end of the effect's 95 % interval.", "1"),
    Column(
        "inside",
        "text",
        "The search inside the merge, if the culprit is one, as JSON; else null.",
    ),
)
"""One row for each change that a search found; a search without a change, or without an answer, has one row."""

COMMON = frozenset(column.name for columns in (SAMPLES, ESTIMATES, CHANGES) for column in columns)
"""Column names that parameters' columns must not have."""


TYPES: Mapping[Kind, pa.DataType] = {
    "name": pa.dictionary(pa.int32(), pa.string()),
    "text": pa.string(),
    "number": pa.float64(),
    "whole": pa.int64(),
    "moment": pa.timestamp("us", tz="UTC"),
    "truth": pa.bool_(),
    "names": pa.list_(pa.string()),
}
"""Arrow's type of each kind of column."""

LARGEST = 2**63 - 1
"""The largest integer of Arrow's int64."""


def rows_table(
    columns: Sequence[Column], study: Study, rows: Sequence[Mapping[str, object]], about: Mapping[str, str]
) -> pa.Table:
    """Return a table of rows, each with a value by the name of every column, including the parameters'."""
    every = with_parameters(columns, study)
    arrays = {each.name: pa.array([row[each.name] for row in rows], TYPES[each.kind]) for each in every}
    return table(every, arrays, study, about)


def table(
    columns: Sequence[Column], arrays: Mapping[str, pa.Array], study: Study, about: Mapping[str, str]
) -> pa.Table:
    """Return a table of columns. The fields' metadata has their meanings, and the table's metadata is `about`."""
    units = json.dumps(units_of(study))
    fields = [pa.field(each.name, TYPES[each.kind], metadata=_metadata(each, units)) for each in columns]
    return pa.Table.from_arrays(
        [arrays[each.name] for each in columns], schema=pa.schema(fields, metadata=dict(about))
    )


def with_parameters(columns: Sequence[Column], study: Study) -> tuple[Column, ...]:
    """Return the columns, with those of the parameters instead of their placeholder."""
    if PARAMETERS not in columns:
        return tuple(columns)
    at = columns.index(PARAMETERS)
    own = (
        Column(
            column_of(name),
            _kind(study, name),
            f"The parameter {name}; null if the benchmark does not have it.",
        )
        for name in parameters(study)
    )
    return (*columns[:at], *own, *columns[at + 1 :])


def parameters(study: Study) -> tuple[str, ...]:
    """Return every parameter of every benchmark, in the order of the study."""
    return tuple(dict.fromkeys(name for each in study.benchmarks.values() for name in each.parameters))


def column_of(parameter: str) -> str:
    """Return a parameter's column: its name, unless every table has a column of that name.

    >>> column_of("threads"), column_of("value")
    ('threads', 'point.value')
    """
    return f"point.{parameter}" if parameter in COMMON else parameter


def point_values(study: Study, point: Point) -> dict[str, object]:
    """Return a point's value for each parameter's column; `None` without one."""
    known = point.as_dict()
    found: dict[str, object] = {}
    for name in parameters(study):
        value = known.get(name)
        text = value is not None and _kind(study, name) == "name"
        found[column_of(name)] = str(value) if text else value
    return found


def units_of(study: Study) -> dict[str, str]:
    """Return the unit of every metric by ``benchmark.metric``, including derived ones."""
    found = {
        f"{name}.{metric}": unit
        for name, benchmark in study.benchmarks.items()
        for metric, unit in own_units(benchmark).items()
    }
    return found | {f"{each.benchmark}.{name}": each.unit for name, each in study.derived.items()}


def own_units(benchmark: Benchmark) -> dict[str, str]:
    """Return the unit of each metric of a benchmark without derived ones, declared metrics first."""
    known: dict[str, Metric | MeasuredMetric] = {**benchmark.metrics, **benchmark.measured}
    return {name: metric.unit for name, metric in known.items()}


def moment(text: str) -> datetime | None:
    """Parse a stored time, which is in UTC if it has no time zone; return `None` for an invalid one.

    >>> print(moment("2025-11-21T03:00:00+01:00"), moment("yesterday"))
    2025-11-21 02:00:00+00:00 None
    """
    try:
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _kind(study: Study, parameter: str) -> Kind:
    values = [value for each in study.benchmarks.values() for value in each.parameters.get(parameter, ())]
    if any(isinstance(value, str) for value in values):
        return "name"
    whole = all(isinstance(value, int) and abs(value) <= LARGEST for value in values)
    return "whole" if whole else "number"


def _metadata(column: Column, units: str) -> dict[str, str]:
    """Return the metadata of a field: its meaning, and its unit or the units of all metrics."""
    data = {"meaning": column.meaning}
    if column.unit == EACH:
        return data | {"units": units}
    return data | {"unit": column.unit} if column.unit else data


Values = dict[str, object]


def estimate_rows(study: Study, history: Sequence[Revision], rows: Sequence[Row]) -> list[Values]:
    """Return the rows of `show`."""
    positions = _positions(history)
    return [
        {
            **_where(study, positions, row),
            "value": None if row.estimate is None else row.estimate.value,
            "low": None if row.estimate is None else row.estimate.low,
            "high": None if row.estimate is None else row.estimate.high,
            "confidence": None if row.estimate is None else row.estimate.confidence,
            "count": 0 if row.estimate is None else row.estimate.count,
            "failures": row.failures,
            "flags": list(row.flags),
            "noise": row.noise,
            "time": moment(row.subject.revision.time),
            "summary": row.subject.revision.summary,
        }
        for row in rows
    ]


def change_rows(study: Study, history: Sequence[Revision], changes: Sequence[HistoryChange]) -> list[Values]:
    """Return the change points of `show`, each at the first revision measured after it."""
    positions = _positions(history)
    return [
        {
            **_where(study, positions, each.row),
            "before": each.point.before,
            "after": each.point.after,
            "effect": each.point.effect,
            "low": each.point.low,
            "high": each.point.high,
            "p_value": each.point.p_value,
            "size_in_noise": each.point.size,
            "size_in_noise_low": each.point.size_low,
            "size_in_noise_high": each.point.size_high,
            "alert": each.point.alert,
            "candidates": [revision.id for revision in each.candidates],
            "earliest": each.earliest.id,
            "latest": each.latest.id,
        }
        for each in changes
    ]


def comparison_rows(compared: Sequence[SubjectComparison]) -> list[Values]:
    """Return the comparisons of `report`."""
    return [
        {
            "subject": each.name,
            "reference": each.reference,
            "benchmark": each.benchmark,
            "metric": each.metric,
            "better": each.better,
            "effect": each.comparison.effect,
            "low": each.comparison.low,
            "high": each.comparison.high,
            "confidence": each.comparison.confidence,
            "pairs": each.comparison.pairs,
            "verdict": each.verdict,
            "improved": {"faster": True, "slower": False}.get(each.verdict),
            "minimum_detectable": each.comparison.minimum_detectable,
        }
        for each in compared
    ]


def answer_rows(searches: Sequence[SearchRecord]) -> list[Values]:
    """Return a row for each change of each answer of each search; one row for a search without any."""
    return [
        {**_question_values(number, record), **_answer_values(answer), **change}
        for number, record in enumerate(searches, start=1)
        for answer in _answers(record)
        for change in _changes(answer)
    ]


def _positions(history: Sequence[Revision]) -> Mapping[str, int]:
    return {revision.id: position for position, revision in enumerate(history)}


def _where(study: Study, positions: Mapping[str, int], row: Row) -> Values:
    revision = row.subject.revision
    return {
        "position": positions[revision.id],
        "revision": revision.id,
        "label": revision.label,
        "variant": row.subject.variant,
        "benchmark": row.benchmark,
        **point_values(study, row.point),
        "metric": row.metric,
        "unit": row.unit,
        "better": better_of(study, row),
    }


def _question_values(number: int, record: SearchRecord) -> Values:
    question = record.question
    return {
        "search": number,
        "started": moment(record.started),
        **{name: question.get(name) for name in ("metric", "benchmark", "variant", "first", "last")},
    }


ANSWERED = (
    *("unit", "better", "scale", "verdict", "reason", "confidence", "minimum_detectable"),
    *("revisions", "builds", "invocations", "seconds"),
)


def _answers(record: SearchRecord) -> Sequence[Mapping[str, Json]]:
    """Return the answers of a search, one for each metric; an empty one if it has not ended."""
    if record.answer is None:
        return ({},)
    several = record.answer.get("metrics")
    return (
        [each for each in several if isinstance(each, dict)]
        if isinstance(several, list)
        else (record.answer,)
    )


def _answer_values(answer: Mapping[str, Json]) -> Values:
    named = {name: answer[name] for name in ("metric", "benchmark", "variant") if name in answer}
    differences = {name: _size(answer.get(name)) for name in ("ends", "rest")}
    return {**{name: answer.get(name) for name in ANSWERED}, **differences, **named}


def _size(difference: Json) -> Json:
    """Return a ratio or a difference; `None` without one, as in answers of earlier versions."""
    return difference.get("ratio", difference.get("difference")) if isinstance(difference, dict) else None


def _changes(answer: Mapping[str, Json]) -> Iterator[Values]:
    found = answer.get("changes")
    changes = found if isinstance(found, list) else []
    for number, change in enumerate(changes or [None]):
        result = change if isinstance(change, dict) else {}
        effect = result.get("effect")
        interval = effect if isinstance(effect, dict) else {}
        inside = result.get("inside")
        yield {
            "change": number if result else None,
            "kind": result.get("kind"),
            "candidates": result.get("revisions"),
            "sure": result.get("confidence"),
            "before": result.get("before"),
            "after": result.get("after"),
            "effect": interval.get("value", interval.get("difference")),
            "low": interval.get("low"),
            "high": interval.get("high"),
            "inside": None if inside is None else json.dumps(inside),
        }
