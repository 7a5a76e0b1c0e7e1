"""Arrow tables from values, as their columns say."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa  # type: ignore[import-untyped]  # it has no types of its own

from perftrail.notebook.columns import COMMON, EACH, PARAMETERS, Column

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftrail.model.benchmark import Benchmark, Point
    from perftrail.model.metrics import MeasuredMetric, Metric
    from perftrail.model.study import Study
    from perftrail.notebook.columns import Kind

TYPES: Mapping[Kind, pa.DataType] = {
    "name": pa.dictionary(pa.int32(), pa.string()),
    "text": pa.string(),
    "number": pa.float64(),
    "whole": pa.int64(),
    "moment": pa.timestamp("us", tz="UTC"),
    "truth": pa.bool_(),
    "names": pa.list_(pa.string()),
}
"""Each kind of column as Arrow keeps it."""

LARGEST = 2**63 - 1
"""The largest whole number that Arrow's int64 holds."""


def rows_table(
    columns: Sequence[Column], study: Study, rows: Sequence[Mapping[str, object]], about: Mapping[str, str]
) -> pa.Table:
    """Make a table of rows, each with a value by the name of every column, and by that of each parameter's."""
    every = with_parameters(columns, study)
    arrays = {each.name: pa.array([row[each.name] for row in rows], TYPES[each.kind]) for each in every}
    return table(every, arrays, study, about)


def table(
    columns: Sequence[Column], arrays: Mapping[str, pa.Array], study: Study, about: Mapping[str, str]
) -> pa.Table:
    """Put columns together: what each means stands in its field's metadata, `about` in the table's."""
    units = json.dumps(units_of(study))
    fields = [pa.field(each.name, TYPES[each.kind], metadata=_metadata(each, units)) for each in columns]
    return pa.Table.from_arrays(
        [arrays[each.name] for each in columns], schema=pa.schema(fields, metadata=dict(about))
    )


def with_parameters(columns: Sequence[Column], study: Study) -> tuple[Column, ...]:
    """Put the study's parameters where the columns say that they stand, if they do."""
    if PARAMETERS not in columns:
        return tuple(columns)
    at = columns.index(PARAMETERS)
    own = (
        Column(
            column_of(name), _kind(study, name), f"The parameter {name}; null where the benchmark has none."
        )
        for name in parameters(study)
    )
    return (*columns[:at], *own, *columns[at + 1 :])


def parameters(study: Study) -> tuple[str, ...]:
    """Name every parameter of every benchmark, in the order of the study."""
    return tuple(dict.fromkeys(name for each in study.benchmarks.values() for name in each.parameters))


def column_of(parameter: str) -> str:
    """Name a parameter's column: as itself, unless a table has a column of that name for every study.

    >>> column_of("threads"), column_of("value")
    ('threads', 'point.value')
    """
    return f"point.{parameter}" if parameter in COMMON else parameter


def point_values(study: Study, point: Point) -> dict[str, object]:
    """Give a point's value for each parameter's column, nothing where the point lacks it."""
    known = point.as_dict()
    found: dict[str, object] = {}
    for name in parameters(study):
        value = known.get(name)
        text = value is not None and _kind(study, name) == "name"
        found[column_of(name)] = str(value) if text else value
    return found


def units_of(study: Study) -> dict[str, str]:
    """Give the unit of every metric by ``benchmark.metric``, derived ones too."""
    found = {
        f"{name}.{metric}": unit
        for name, benchmark in study.benchmarks.items()
        for metric, unit in own_units(benchmark).items()
    }
    return found | {f"{each.benchmark}.{name}": each.unit for name, each in study.derived.items()}


def own_units(benchmark: Benchmark) -> dict[str, str]:
    """Give the unit of each metric that a benchmark's invocations may give, declared ones first."""
    known: dict[str, Metric | MeasuredMetric] = {**benchmark.metrics, **benchmark.measured}
    return {name: metric.unit for name, metric in known.items()}


def moment(text: str) -> datetime | None:
    """Read a time as the store keeps it, in UTC where it does not say; nothing where it is none.

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
    """Say of a field what it means, and its unit, or the units of every metric where rows have their own."""
    told = {"meaning": column.meaning}
    if column.unit == EACH:
        return told | {"units": units}
    return told | {"unit": column.unit} if column.unit else told
