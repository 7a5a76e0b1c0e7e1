"""A study that is looked at from Python: its tables and figures, as they are when they are asked for.

A figure as a notebook shows it: interactive where it can be, a still image elsewhere.
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
"""What notebooks know to draw: the specifications are valid in Vega-Lite 5 and 6 alike, and drawn alike."""

SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
SVG = "image/svg+xml"
TEXT = "text/plain"


@dataclass(frozen=True, slots=True, repr=False)
class ShownFigure:
    """A figure of a study. As the last value of a notebook's cell it is drawn.

    Titles and captions may hold hostile text, such as names of revisions.
    """

    figure: Figure

    @property
    def name(self) -> str:
        """The figure's name, which is fit for a file."""
        return self.figure.name

    @property
    def title(self) -> str:
        """What the figure shows."""
        return self.figure.title

    @property
    def caption(self) -> str:
        """What its marks mean."""
        return self.figure.caption

    @property
    def spec(self) -> Spec:
        """The Vega-Lite specification with its data, complete: `altair.Chart.from_dict` takes it too."""
        return {"$schema": SCHEMA, **self._titled().spec}

    def svg(self) -> str:
        """The figure as SVG, on white."""
        from perftrail.present.page_images import svg  # noqa: PLC0415 - what draws it takes 40 MB

        return svg(self._titled())

    def _titled(self) -> Figure:
        """The figure with what a report says around it."""
        words: Spec = {"title": {"text": self.title, "anchor": "start"}, "description": self.caption}
        return replace(self.figure, spec=themed({**self.figure.spec, **words}, "light"))

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, Json]:
        """Give what a notebook may show, in its own order of preference; only what is asked for is made."""
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
    """A study and its results, to be read: `perftrail.open` gives one.

    Every table and figure is of the moment in which it is asked for. Nothing is held open in between, so a
    measurement that runs meanwhile is not disturbed, and nothing is to be closed. What was measured is what the
    study's file means on this machine, as `perftrail show` has it; before anything was, tables are empty.

    Each method raises `StoreError` where the results cannot be read, and `SourceError` where the study's history
    cannot.
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
        """The directory that holds its results, once there are any; its builds and logs, where a server has those."""
        return results_directory(self._study, self._store)

    def samples(self, metrics: Sequence[str] | None = None) -> pa.Table:
        """Give every sample: one row for each value of each invocation, warm-ups left out.

        `metrics` chooses by name; all that were measured, unless given. Rows come in the order of the history, then
        by benchmark, point, invocation and metric. Derived metrics have estimates, but no samples of their own.
        Raises `UsageError` for a metric that no benchmark has.
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
        """Give each metric of each subject at each point: the median, its interval, and what limits it.

        `metrics` chooses by name; the declared ones, or ``wall``, and the derived ones, unless given. Rows come in
        the order of the history, then by benchmark and point, derived metrics last. Raises `UsageError` for a metric
        that no benchmark has.
        """
        self._refuse_unknown(metrics)
        about = self._about("estimates")
        with self._view() as view:
            found = () if view is None else rows(view, metrics=metrics)
            history = () if view is None else view.source.history()
        return rows_table(ESTIMATES, self._study, estimate_rows(self._study, history, found), about)

    def changes(self, metrics: Sequence[str] | None = None) -> pa.Table:
        """Give the revisions at which a metric changed along the history.

        `metrics` chooses as in `estimates`.
        """
        self._refuse_unknown(metrics)
        about = self._about("changes")
        with self._view() as view:
            history = () if view is None else view.source.history()
            found = () if view is None else history_changes(history, rows(view, metrics=metrics)).points
        return rows_table(CHANGES, self._study, change_rows(self._study, history, found), about)

    def comparisons(self) -> pa.Table:
        """Give each subject against the first, over invocations that ran in turns.

        Variants are compared with the first one at the newest revision measured; revisions with the oldest one, where
        there is one variant. What a search measured was not measured in turns: after one, only variants are compared.
        """
        about = self._about("comparisons")
        with self._view() as view:
            beside = () if view is None else compare_subjects(gather(view, self.results))
        return rows_table(COMPARISONS, self._study, comparison_rows(beside), about)

    def answers(self) -> pa.Table:
        """Give what the searches of this machine found: one row for each change, in the order they were begun.

        A search that found none, or has not ended, has one row.
        """
        about = self._about("answers")
        with self._view() as view:
            found = () if view is None else searches(view)
        return rows_table(ANSWERS, self._study, answer_rows(found), about)

    def figures(self) -> Mapping[str, ShownFigure]:
        """Give the figures of `perftrail report` by their names, the one that answers the study's question first."""
        with self._view() as view:
            try:
                drawn = () if view is None else make_report(view, self.results).figures
            except NoAnswer:
                drawn = ()
        return {figure.name: ShownFigure(figure) for figure in drawn}

    def figure(self, name: str | None = None) -> ShownFigure:
        """Give one figure by its name, or the one that answers the study's question.

        Raises `UsageError` where there is none of that name, `NoAnswer` where nothing was measured yet.
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
        """Read the samples: straight from the file of results, or what was read of files that others wrote."""
        if self._measured:
            found = sample_columns(self._database, view.machine.id, metrics=metrics)
            return columns_of(()) if found is None else found
        held = view.store.outcomes(dict.fromkeys(known.keys), view.machine.id)
        return columns_of((each for outcomes in held.values() for each in outcomes), metrics=metrics)

    @property
    def _measured(self) -> bool:
        """Whether the study has results of its own, not files that others wrote."""
        return self._study.walked.kind != "samples"

    @contextmanager
    def _view(self) -> Iterator[View | None]:
        """Open the study to look at it; `None` where nothing was measured yet, and nothing is made then."""
        if self._measured and not on_server(self._database) and not Path(self._database).exists():
            yield None
            return
        with open_view(self._study, store=self._store) as view:
            yield view

    def _about(self, name: str) -> dict[str, str]:
        return {"table": name, "study": self.title, "perftrail": __version__}

    def _refuse_unknown(self, metrics: Sequence[str] | None) -> None:
        """Raise `UsageError` for a name that is no metric of the study."""
        if isinstance(metrics, str):
            raise UsageError(f"metrics={metrics!r}: give several names, [{metrics!r}] for one")
        known = [
            *(name for each in self._study.benchmarks.values() for name in (*each.metrics, *each.measured)),
            *self._study.derived,
        ]
        for name in metrics or ():
            if name not in known:
                raise UsageError(f"no metric {quoted(name)}{suggestion(name, known)}")
