"""A study in Python: its tables and charts, computed when they are requested.

`ShownChart` is a chart in a notebook: interactive if possible, else a static image. Samples are read from the store as
columns, and become columns of an Arrow table without a Python object for each row.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # it has no type hints

from perftrail._version import __version__
from perftrail.charts.frame import themed
from perftrail.errors import NOTHING_MEASURED, NoAnswer, UsageError
from perftrail.model.noisy_samples import weight
from perftrail.model.wording import quoted, suggestion
from perftrail.notebook.tables import (
    ANSWERS,
    CHANGES,
    COMPARISONS,
    ESTIMATES,
    SAMPLES,
    TYPES,
    answer_rows,
    change_rows,
    column_of,
    comparison_rows,
    estimate_rows,
    moment,
    own_units,
    parameters,
    point_values,
    rows_table,
    table,
    with_parameters,
)
from perftrail.opening import open_view, results_database, results_directory
from perftrail.present.report.comparisons import compare_subjects
from perftrail.present.report.data import read_report_data
from perftrail.present.report.report import make_report
from perftrail.results.changes import history_changes
from perftrail.results.measured import MeasuredHere
from perftrail.results.rows import rows
from perftrail.results.show import searches
from perftrail.store import on_server
from perftrail.store.columns import NO_METHOD, columns_of, sample_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    import numpy.typing as npt

    from perftrail.charts.frame import Chart, Spec
    from perftrail.measure.session import View
    from perftrail.model.json_data import Json
    from perftrail.model.plan import Cell
    from perftrail.model.study import Study
    from perftrail.store.columns import SampleColumns

    Whole = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredCells:
    """The cells of a study in the order of its history, each with its runnable's key."""

    cells: tuple[Cell, ...]
    keys: tuple[str, ...]
    positions: Mapping[str, int]


def measured_cells(view: View) -> MeasuredCells:
    """Return the measured cells of a study, each with the key of its runnable. Builds nothing."""
    cells = MeasuredHere(view).cells
    return MeasuredCells(
        cells=tuple(cell for cell, _ in cells),
        keys=tuple(key for _, key in cells),
        positions={revision.id: position for position, revision in enumerate(view.source.history())},
    )


def samples_table(
    study: Study, known: MeasuredCells, columns: SampleColumns, *, machine: str, about: Mapping[str, str]
) -> pa.Table:
    """Return the samples of a study's cells, by cell in the order of the history, by invocation, by metric."""
    selected = _rows(study, known, columns)
    arrays = {
        **_of_cells(study, known, selected),
        **_of_invocations(columns, pa.array(columns.invocation[selected.value])),
        **_of_values(study, known, columns, selected),
        "machine": _named(np.zeros(len(selected.cell), np.int32), [machine]),
    }
    return table(with_parameters(SAMPLES, study), arrays, study, about)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """The rows of the table: the index of the cell and of the stored value of each."""

    cell: Whole
    value: Whole


def _rows(study: Study, known: MeasuredCells, columns: SampleColumns) -> _Rows:
    """Select and order the rows. A runnable's values occur once for each of its cells."""
    indexes = {key: index for index, key in enumerate(dict.fromkeys(known.keys))}
    index_of = np.full(max(columns.runnables, default=0) + 1, -1)
    for id, key in columns.runnables.items():
        index_of[id] = indexes.get(key, -1)
    index = index_of[columns.runnable[columns.invocation]]
    order = np.argsort(index, kind="stable")
    bounds = np.searchsorted(index[order], np.arange(len(indexes) + 1))
    of_cell = np.array([indexes[key] for key in known.keys], np.int64)
    counts = np.diff(bounds)[of_cell]
    cell = np.repeat(np.arange(len(of_cell)), counts)
    within = np.arange(len(cell)) - np.repeat(np.cumsum(counts) - counts, counts)
    value = order[bounds[of_cell][cell] + within]
    rank = _known_metrics(study, columns)[_benchmarks(study, known)[cell], columns.metric[value]]
    cell, value, rank = (each[rank >= 0] for each in (cell, value, rank))
    sorted_ = np.lexsort((rank, columns.ordinal[columns.invocation[value]], cell))
    return _Rows(cell=cell[sorted_], value=value[sorted_])


def _benchmarks(study: Study, known: MeasuredCells) -> Whole:
    """Return the number of each cell's benchmark."""
    numbers = {name: number for number, name in enumerate(study.benchmarks)}
    return np.array([numbers[cell.benchmark] for cell in known.cells], np.int64)


def _known_metrics(study: Study, columns: SampleColumns) -> Whole:
    """Return, for each benchmark and metric id, the metric's position in the benchmark; -1 if it is missing."""
    ranks = np.full((len(study.benchmarks), max(columns.metrics, default=0) + 1), -1)
    for number, benchmark in enumerate(study.benchmarks.values()):
        indexes = {name: index for index, name in enumerate(own_units(benchmark))}
        for id, name in columns.metrics.items():
            ranks[number, id] = indexes.get(name, -1)
    return ranks


def _of_cells(study: Study, known: MeasuredCells, selected: _Rows) -> dict[str, pa.Array]:
    """Return the columns that all samples of a cell share."""
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
    rows = pa.array(selected.cell)
    return {name: pa.array(values, TYPES[kinds[name]]).take(rows) for name, values in by_cell.items()}


def _of_invocations(columns: SampleColumns, rows: pa.Array) -> dict[str, pa.Array]:
    """Return the columns that all values of an invocation share."""
    flags = pa.array(columns.flag_sets, TYPES["names"]).take(pa.array(columns.flags))
    quiet = np.array([weight(marks) > 0.0 for marks in columns.flag_sets])
    return {
        "invocation": pa.array(columns.ordinal).take(rows),
        "started": _moments(columns.started).take(rows),
        "flags": flags.take(rows),
        "quiet": pa.array(quiet[columns.flags]).take(rows),
    }


def _moments(texts: Sequence[str]) -> pa.Array:
    """Parse times: at once in perftrail's own form, else one by one."""
    try:
        return pa.array(texts, pa.string()).cast(TYPES["moment"])
    except pa.ArrowInvalid:
        return pa.array([moment(text) for text in texts], TYPES["moment"])


def _of_values(
    study: Study, known: MeasuredCells, columns: SampleColumns, selected: _Rows
) -> dict[str, pa.Array]:
    """Return the columns that differ for each value."""
    metric, method = columns.metric[selected.value], columns.method[selected.value]
    units = list(
        dict.fromkeys(unit for each in study.benchmarks.values() for unit in own_units(each).values())
    )
    unit_of = np.zeros((len(study.benchmarks), max(columns.metrics, default=0) + 1), np.int32)
    for number, benchmark in enumerate(study.benchmarks.values()):
        own = own_units(benchmark)
        for id, name in columns.metrics.items():
            unit_of[number, id] = units.index(own[name]) if name in own else 0
    return {
        "value": pa.array(columns.value[selected.value]),
        "metric": _listed(metric, columns.metrics),
        "unit": _named(unit_of[_benchmarks(study, known)[selected.cell], metric], units),
        "method": _listed(method, columns.methods, missing=method == NO_METHOD),
    }


def _listed(ids: Whole, names: Mapping[int, str], missing: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """Return names by their ids; null for a missing one."""
    index = np.zeros(max(names, default=0) + 1, np.int32)
    index[list(names)] = np.arange(len(names))
    return _named(index[ids], list(names.values()), missing)


def _named(
    indexes: npt.NDArray[np.int32], names: Sequence[str], missing: npt.NDArray[np.bool_] | None = None
) -> pa.Array:
    """Return names by position as a dictionary array, without copying the positions if none is missing."""
    return pa.DictionaryArray.from_arrays(
        pa.array(indexes, pa.int32(), mask=missing), pa.array(names, pa.string())
    )


VEGA_LITE = "application/vnd.vegalite.v5+json"
"""Media type that notebooks can draw; the specifications are valid and equal in Vega-Lite 5 and 6."""

SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
SVG = "image/svg+xml"
TEXT = "text/plain"


@dataclass(frozen=True, slots=True, repr=False)
class ShownChart:
    """A chart of a study. A notebook draws it if it is the last value of a cell.

    Titles and captions may contain hostile text, for example names of revisions.
    """

    chart: Chart

    @property
    def name(self) -> str:
        """The chart's name, which is valid as a file name."""
        return self.chart.name

    @property
    def title(self) -> str:
        """The title: what the chart shows."""
        return self.chart.title

    @property
    def caption(self) -> str:
        """The caption: what the marks mean."""
        return self.chart.caption

    @property
    def spec(self) -> Spec:
        """The complete Vega-Lite specification with its data; `altair.Chart.from_dict` accepts it."""
        return {"$schema": SCHEMA, **self._titled().spec}

    def svg(self) -> str:
        """The chart as SVG, on white."""
        from perftrail.present.html_page import svg  # noqa: PLC0415 - the drawing library takes 40 MB

        return svg(self._titled())

    def _titled(self) -> Chart:
        """The chart with the text around it in a report."""
        words: Spec = {"title": {"text": self.title, "anchor": "start"}, "description": self.caption}
        return replace(self.chart, spec=themed({**self.chart.spec, **words}, "light"))

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, Json]:
        """Return the representations that a notebook accepts, in its order of preference.

        Only the requested ones are computed.
        """
        makers: dict[str, Callable[[], Json]] = {
            VEGA_LITE: lambda: self.spec,
            SVG: self.svg,
            TEXT: lambda: repr(self),
        }
        wanted = set(include or makers) - set(exclude or ())
        return {kind: make() for kind, make in makers.items() if kind in wanted}

    def __repr__(self) -> str:
        return f"{self.title}\n{self.caption}".strip()


class OpenedStudy:
    """A study and its results, for reading: `perftrail.open` returns one.

    Every table and chart shows the state of the store at the call. Each call closes the store again, so it does not
    disturb a running measurement. The samples are those of `perftrail show`; without samples, tables are empty.

    Each method raises `StoreError` if the results cannot be read, and `SourceError` if there is no history.
    """

    def __init__(self, study: Study, *, store: str | None = None) -> None:
        self._study = study
        self._store = store

    @property
    def title(self) -> str:
        """The study's question."""
        return self._study.title

    @property
    def file(self) -> Path:
        """The study's file."""
        return Path(self._study.file)

    @property
    def results(self) -> Path:
        """The directory of its results. If the store is on a server, it contains only builds and logs."""
        return results_directory(self._study, self._store)

    def samples(self, metrics: Sequence[str] | None = None) -> pa.Table:
        """Return every sample: one row for each value of each invocation, without warm-ups.

        `metrics` selects by name, by default all measured metrics. Rows are in the order of the history, then by
        benchmark, point, invocation and metric. Derived metrics have estimates, but no samples. Raises `UsageError`
        for an unknown metric.
        """
        self._refuse_unknown(metrics)
        about = self._about("samples")
        with self._view() as view:
            if view is None:
                return rows_table(SAMPLES, self._study, [], about)
            about["machine"] = view.machine.id
            known = measured_cells(view)
            return samples_table(
                self._study, known, self._columns(view, known, metrics), machine=view.machine.id, about=about
            )

    def estimates(self, metrics: Sequence[str] | None = None) -> pa.Table:
        """Return the estimate of each metric of each subject at each point: the median, its interval and its flags.

        `metrics` selects by name, by default the declared ones, or ``wall``, and the derived ones. Rows are in the
        order of the history, then by benchmark and point, derived metrics last. Raises `UsageError` for an unknown
        metric.
        """
        self._refuse_unknown(metrics)
        about = self._about("estimates")
        with self._view() as view:
            found = () if view is None else rows(view, metrics=metrics)
            history = () if view is None else view.source.history()
        return rows_table(ESTIMATES, self._study, estimate_rows(self._study, history, found), about)

    def changes(self, metrics: Sequence[str] | None = None) -> pa.Table:
        """Return the revisions at which a metric changed along the history.

        `metrics` selects as in `estimates`.
        """
        self._refuse_unknown(metrics)
        about = self._about("changes")
        with self._view() as view:
            history = () if view is None else view.source.history()
            found = () if view is None else history_changes(history, rows(view, metrics=metrics)).points
        return rows_table(CHANGES, self._study, change_rows(self._study, history, found), about)

    def comparisons(self) -> pa.Table:
        """Return each subject compared with the first one, over interleaved pairs.

        Variants are compared with the first one at the newest measured revision; with a single variant, revisions
        are compared with the oldest one. A search's samples are not interleaved pairs: after a search, only
        variants are compared.
        """
        about = self._about("comparisons")
        with self._view() as view:
            compared = () if view is None else compare_subjects(read_report_data(view, self.results))
        return rows_table(COMPARISONS, self._study, comparison_rows(compared), about)

    def answers(self) -> pa.Table:
        """Return the answers of this machine's searches: one row for each change, in the order of the searches.

        A search without a change, or one that has not ended, has one row.
        """
        about = self._about("answers")
        with self._view() as view:
            found = () if view is None else searches(view)
        return rows_table(ANSWERS, self._study, answer_rows(found), about)

    def charts(self) -> Mapping[str, ShownChart]:
        """Return the charts of `perftrail report` by their names, the one that answers the study's question first."""
        with self._view() as view:
            try:
                drawn = () if view is None else make_report(view, self.results).charts
            except NoAnswer:
                drawn = ()
        return {chart.name: ShownChart(chart) for chart in drawn}

    def chart(self, name: str | None = None) -> ShownChart:
        """Return one chart by its name, or the one that answers the study's question.

        Raises `UsageError` for an unknown name, `NoAnswer` without samples.
        """
        every = self.charts()
        if not every:
            raise NoAnswer(NOTHING_MEASURED)
        if name is None:
            return next(iter(every.values()))
        if name not in every:
            raise UsageError(f"no chart {quoted(name)}{suggestion(name, every)}")
        return every[name]

    def __repr__(self) -> str:
        return f"<study {self.title!r}, {self.file}>"

    @property
    def _database(self) -> str:
        return results_database(self._study, self._store)

    def _columns(self, view: View, known: MeasuredCells, metrics: Sequence[str] | None) -> SampleColumns:
        """Return the samples: from the results database, or from imported files."""
        if self._measured:
            found = sample_columns(self._database, view.machine.id, metrics=metrics)
            return columns_of(()) if found is None else found
        stored = view.store.outcomes(dict.fromkeys(known.keys), view.machine.id)
        return columns_of((each for outcomes in stored.values() for each in outcomes), metrics=metrics)

    @property
    def _measured(self) -> bool:
        """Return whether the study has its own results instead of imported files."""
        return self._study.searched_source.kind != "samples"

    @contextmanager
    def _view(self) -> Iterator[View | None]:
        """Open the study for reading; `None` without results. Creates nothing."""
        if self._measured and not on_server(self._database) and not Path(self._database).exists():
            yield None
            return
        with open_view(self._study, store=self._store) as view:
            yield view

    def _about(self, name: str) -> dict[str, str]:
        return {"table": name, "study": self.title, "perftrail": __version__}

    def _refuse_unknown(self, metrics: Sequence[str] | None) -> None:
        """Raise `UsageError` for a name that is not a metric of the study."""
        if isinstance(metrics, str):
            raise UsageError(f"metrics={metrics!r}: not a list of names; write [{metrics!r}] for one")
        known = [
            *(name for each in self._study.benchmarks.values() for name in (*each.metrics, *each.measured)),
            *self._study.derived,
        ]
        for name in metrics or ():
            if name not in known:
                raise UsageError(f"no metric {quoted(name)}{suggestion(name, known)}")
