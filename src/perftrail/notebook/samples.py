"""The samples of a study as an Arrow table: from the store's columns to the table's, all at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # it has no types of its own

from perftrail.model.measurement import weight
from perftrail.notebook.tables import (
    SAMPLES,
    TYPES,
    column_of,
    moment,
    own_units,
    parameters,
    point_values,
    table,
    with_parameters,
)
from perftrail.results.measured import MeasuredHere
from perftrail.store.columns import NO_METHOD

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from perftrail.measure.session import View
    from perftrail.model.plan import Cell
    from perftrail.model.study import Study
    from perftrail.store.columns import SampleColumns

    Whole = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What each runnable of the study stands for: cells in the order of history, each with its runnable's key."""

    cells: tuple[Cell, ...]
    keys: tuple[str, ...]
    positions: Mapping[str, int]


def standing(view: View) -> Standing:
    """Say which runnables are the study's, as its file is now. Makes nothing."""
    cells = MeasuredHere(view).cells
    return Standing(
        cells=tuple(cell for cell, _ in cells),
        keys=tuple(key for _, key in cells),
        positions={revision.id: position for position, revision in enumerate(view.source.history())},
    )


def samples_table(
    study: Study, known: Standing, columns: SampleColumns, *, machine: str, about: Mapping[str, str]
) -> pa.Table:
    """Put the samples of a study's cells together: by cell in the order of history, by invocation, by metric."""
    taken = _rows(study, known, columns)
    arrays = {
        **_of_cells(study, known, taken),
        **_of_invocations(columns, pa.array(columns.invocation[taken.value])),
        **_of_values(study, known, columns, taken),
        "machine": _named(np.zeros(len(taken.cell), np.int32), [machine]),
    }
    return table(with_parameters(SAMPLES, study), arrays, study, about)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """The rows of the table: of which cell each is, and which of the store's values."""

    cell: Whole
    value: Whole


def _rows(study: Study, known: Standing, columns: SampleColumns) -> _Rows:
    """Choose and order the rows. A runnable's values stand once for each cell that it is."""
    places = {key: place for place, key in enumerate(dict.fromkeys(known.keys))}
    place_of = np.full(max(columns.runnables, default=0) + 1, -1)
    for id, key in columns.runnables.items():
        place_of[id] = places.get(key, -1)
    place = place_of[columns.runnable[columns.invocation]]
    order = np.argsort(place, kind="stable")
    bounds = np.searchsorted(place[order], np.arange(len(places) + 1))
    of_cell = np.array([places[key] for key in known.keys], np.int64)
    counts = np.diff(bounds)[of_cell]
    cell = np.repeat(np.arange(len(of_cell)), counts)
    within = np.arange(len(cell)) - np.repeat(np.cumsum(counts) - counts, counts)
    value = order[bounds[of_cell][cell] + within]
    rank = _known_metrics(study, columns)[_benchmarks(study, known)[cell], columns.metric[value]]
    cell, value, rank = (each[rank >= 0] for each in (cell, value, rank))
    sorted_ = np.lexsort((rank, columns.ordinal[columns.invocation[value]], cell))
    return _Rows(cell=cell[sorted_], value=value[sorted_])


def _benchmarks(study: Study, known: Standing) -> Whole:
    """Give the number of each cell's benchmark."""
    numbers = {name: number for number, name in enumerate(study.benchmarks)}
    return np.array([numbers[cell.benchmark] for cell in known.cells], np.int64)


def _known_metrics(study: Study, columns: SampleColumns) -> Whole:
    """Give for each benchmark and metric's id its place among the benchmark's metrics, -1 of one it lacks."""
    ranks = np.full((len(study.benchmarks), max(columns.metrics, default=0) + 1), -1)
    for number, benchmark in enumerate(study.benchmarks.values()):
        places = {name: place for place, name in enumerate(own_units(benchmark))}
        for id, name in columns.metrics.items():
            ranks[number, id] = places.get(name, -1)
    return ranks


def _of_cells(study: Study, known: Standing, taken: _Rows) -> dict[str, pa.Array]:
    """Give the columns that all samples of a cell share."""
    revisions = [cell.subject.revision for cell in known.cells]
    points = [point_values(study, cell.point) for cell in known.cells]
    by_cell = {
        "position": [known.positions[revision.id] for revision in revisions],
        "revision": [revision.id for revision in revisions],
        "label": [revision.label for revision in revisions],
        "variant": [cell.subject.variant for cell in known.cells],
        "benchmark": [cell.benchmark for cell in known.cells],
        **{name: [point[name] for point in points] for name in map(column_of, parameters(study))},
        "runnable": known.keys,
    }
    kinds = {column.name: column.kind for column in with_parameters(SAMPLES, study)}
    rows = pa.array(taken.cell)
    return {name: pa.array(values, TYPES[kinds[name]]).take(rows) for name, values in by_cell.items()}


def _of_invocations(columns: SampleColumns, rows: pa.Array) -> dict[str, pa.Array]:
    """Give the columns that all values of an invocation share."""
    flags = pa.array(columns.marks, TYPES["names"]).take(pa.array(columns.flags))
    quiet = np.array([weight(marks) > 0.0 for marks in columns.marks])
    return {
        "invocation": pa.array(columns.ordinal).take(rows),
        "started": _moments(columns.started).take(rows),
        "flags": flags.take(rows),
        "quiet": pa.array(quiet[columns.flags]).take(rows),
    }


def _moments(texts: Sequence[str]) -> pa.Array:
    """Read times: all at once as perftrail writes them, one by one where somebody else wrote some."""
    try:
        return pa.array(texts, pa.string()).cast(TYPES["moment"])
    except pa.ArrowInvalid:
        return pa.array([moment(text) for text in texts], TYPES["moment"])


def _of_values(study: Study, known: Standing, columns: SampleColumns, taken: _Rows) -> dict[str, pa.Array]:
    """Give the columns in which each value has its own."""
    metric, method = columns.metric[taken.value], columns.method[taken.value]
    units = list(
        dict.fromkeys(unit for each in study.benchmarks.values() for unit in own_units(each).values())
    )
    unit_of = np.zeros((len(study.benchmarks), max(columns.metrics, default=0) + 1), np.int32)
    for number, benchmark in enumerate(study.benchmarks.values()):
        own = own_units(benchmark)
        for id, name in columns.metrics.items():
            unit_of[number, id] = units.index(own[name]) if name in own else 0
    return {
        "value": pa.array(columns.value[taken.value]),
        "metric": _listed(metric, columns.metrics),
        "unit": _named(unit_of[_benchmarks(study, known)[taken.cell], metric], units),
        "method": _listed(method, columns.methods, missing=method == NO_METHOD),
    }


def _listed(ids: Whole, names: Mapping[int, str], missing: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """Give names by their ids; null where one is missing."""
    place = np.zeros(max(names, default=0) + 1, np.int32)
    place[list(names)] = np.arange(len(names))
    return _named(place[ids], list(names.values()), missing)


def _named(
    places: npt.NDArray[np.int32], names: Sequence[str], missing: npt.NDArray[np.bool_] | None = None
) -> pa.Array:
    """Give names by their places, as a dictionary array that shares the places' memory where none is missing."""
    return pa.DictionaryArray.from_arrays(
        pa.array(places, pa.int32(), mask=missing), pa.array(names, pa.string())
    )
