"""A study in Python: its tables and charts, computed when they are requested.

`ShownFigure` is a chart in a notebook: interactive if possible, else a still image.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail._version import __version__
from perftrail.charts.frame import themed
from perftrail.errors import NOTHING_MEASURED, NoAnswer, UsageError
from perftrail.model.wording import quoted, suggestion
from perftrail.notebook.samples import samples_table, standing
from perftrail.notebook.tables import (
    ANSWERS,
    CHANGES,
    COMPARISONS,
    ESTIMATES,
    SAMPLES,
    answer_rows,
    change_rows,
    comparison_rows,
    estimate_rows,
    rows_table,
)
from perftrail.opening import open_view, results_database, results_directory
from perftrail.present.report.gathered import gather
from perftrail.present.report.report import make_report
from perftrail.present.report.side_by_side import compare_subjects
from perftrail.results.changes import history_changes
from perftrail.results.rows import rows
from perftrail.results.show import searches
from perftrail.store import on_server
from perftrail.store.columns import columns_of, sample_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    import pyarrow as pa  # type: ignore[import-untyped]  # it has no types of its own

    from perftrail.charts.frame import Figure, Spec
    from perftrail.measure.session import View
    from perftrail.model.search_record import Json
    from perftrail.model.study import Study
    from perftrail.notebook.samples import Standing
    from perftrail.store.columns import SampleColumns


VEGA_LITE = "application/vnd.vegalite.v5+json"
"""Media type that notebooks can draw: the specifications are valid in Vega-Lite 5 and 6, and look the same in both."""

SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
SVG = "image/svg+xml"
TEXT = "text/plain"


@dataclass(frozen=True, slots=True, repr=False)
class ShownFigure:
    """A chart of a study. As the last value of a notebook's cell, it is drawn.

    Titles and captions may contain hostile text, for example names of revisions.
    """

    figure: Figure

    @property
    def name(self) -> str:
        """The chart's name, which is valid as a file name."""
        return self.figure.name

    @property
    def title(self) -> str:
        """What the chart shows."""
        return self.figure.title

    @property
    def caption(self) -> str:
        """What its marks mean."""
        return self.figure.caption

    @property
    def spec(self) -> Spec:
        """The complete Vega-Lite specification with its data; `altair.Chart.from_dict` accepts it."""
        return {"$schema": SCHEMA, **self._titled().spec}

    def svg(self) -> str:
        """The chart as SVG, on white."""
        from perftrail.present.page_images import svg  # noqa: PLC0415 - what draws it takes 40 MB

        return svg(self._titled())

    def _titled(self) -> Figure:
        """The chart with the text around it in a report."""
        words: Spec = {"title": {"text": self.title, "anchor": "start"}, "description": self.caption}
        return replace(self.figure, spec=themed({**self.figure.spec, **words}, "light"))

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

    Every table and chart shows the present state. Nothing stays open in between, so a running measurement is not
    disturbed, and nothing needs to be closed. The samples are those of `perftrail show`; without samples, tables
    are empty.

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
        """The directory of its results; only builds and logs if the store is on a server."""
        return results_directory(self._study, self._store)

    def samples(self, metrics: Sequence[str] | None = None) -> pa.Table:
        """Return every sample: one row for each value of each invocation, without warm-ups.

        `metrics` selects by name, by default all measured metrics. Rows are in the order of the history, then by
        benchmark, point, invocation and metric. Derived metrics have estimates, but no samples of their own. Raises
        `UsageError` for an unknown metric.
        """
        self._refuse_unknown(metrics)
        about = self._about("samples")
        with self._view() as view:
            if view is None:
                return rows_table(SAMPLES, self._study, [], about)
            about["machine"] = view.machine.id
            known = standing(view)
            return samples_table(
                self._study, known, self._columns(view, known, metrics), machine=view.machine.id, about=about
            )

    def estimates(self, metrics: Sequence[str] | None = None) -> pa.Table:
        """Return each metric of each subject at each point: the median, its interval, and what limits it.

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
            beside = () if view is None else compare_subjects(gather(view, self.results))
        return rows_table(COMPARISONS, self._study, comparison_rows(beside), about)

    def answers(self) -> pa.Table:
        """Return what the searches of this machine found: one row for each change, in the order of the searches.

        A search without a change, or one that has not ended, has one row.
        """
        about = self._about("answers")
        with self._view() as view:
            found = () if view is None else searches(view)
        return rows_table(ANSWERS, self._study, answer_rows(found), about)

    def figures(self) -> Mapping[str, ShownFigure]:
        """Return the charts of `perftrail report` by their names, the one that answers the study's question first."""
        with self._view() as view:
            try:
                drawn = () if view is None else make_report(view, self.results).figures
            except NoAnswer:
                drawn = ()
        return {figure.name: ShownFigure(figure) for figure in drawn}

    def figure(self, name: str | None = None) -> ShownFigure:
        """Return one chart by its name, or the one that answers the study's question.

        Raises `UsageError` for an unknown name, `NoAnswer` without samples.
        """
        every = self.figures()
        if not every:
            raise NoAnswer(NOTHING_MEASURED)
        if name is None:
            return next(iter(every.values()))
        if name not in every:
            raise UsageError(f"no figure {quoted(name)}{suggestion(name, every)}")
        return every[name]

    def __repr__(self) -> str:
        return f"<study {self.title!r}, {self.file}>"

    @property
    def _database(self) -> str:
        return results_database(self._study, self._store)

    def _columns(self, view: View, known: Standing, metrics: Sequence[str] | None) -> SampleColumns:
        """Return the samples: from the results database, or from imported files."""
        if self._measured:
            found = sample_columns(self._database, view.machine.id, metrics=metrics)
            return columns_of(()) if found is None else found
        held = view.store.outcomes(dict.fromkeys(known.keys), view.machine.id)
        return columns_of((each for outcomes in held.values() for each in outcomes), metrics=metrics)

    @property
    def _measured(self) -> bool:
        """Return whether the study has its own results instead of imported files."""
        return self._study.walked.kind != "samples"

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
            raise UsageError(f"metrics={metrics!r}: give several names, [{metrics!r}] for one")
        known = [
            *(name for each in self._study.benchmarks.values() for name in (*each.metrics, *each.measured)),
            *self._study.derived,
        ]
        for name in metrics or ():
            if name not in known:
                raise UsageError(f"no metric {quoted(name)}{suggestion(name, known)}")
