"""Export the samples of a study, or a part of them, with their descriptions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.errors import NOTHING_MEASURED, NoAnswer, UsageError
from perftrail.model.exchange import Exported, Value
from perftrail.model.measurement import Measurement
from perftrail.model.noisy_samples import FlaggedSample, select_samples
from perftrail.model.target import shown_metrics
from perftrail.model.wording import quoted, suggestion
from perftrail.results.measured import MeasuredHere
from perftrail.results.samples import MACHINE, UNKNOWN
from perftrail.results.selection import select
from perftrail.stats.estimate import estimate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from perftrail.measure.session import View
    from perftrail.model.benchmark import Benchmark
    from perftrail.model.measurement import Outcome
    from perftrail.model.metrics import MeasuredMetric, Metric
    from perftrail.model.plan import Cell
    from perftrail.model.study import Study


def exported(view: View, *, only: Sequence[str] = (), metrics: Sequence[str] = ()) -> tuple[Exported, ...]:
    """Return the samples of a study in the order of its history, without warm-ups.

    `only` selects cells as for `run`, `metrics` selects by name; without it, all measured metrics are
    exported. Raises `UsageError` for an invalid rule or an unknown metric, `NoAnswer` if nothing is selected.
    """
    selection = select(view.study, only)
    check_metrics(metrics, view.study)
    cells = [(cell, key) for cell, key in MeasuredHere(view).cells if selection.includes(cell)]
    samples = tuple(_exported_cells(view, cells, metrics))
    if not samples:
        raise NoAnswer(
            "no sample matches --only and --metric; print all samples with: perftrail show"
            if only or metrics
            else NOTHING_MEASURED
        )
    return samples


def check_metrics(metrics: Sequence[str], study: Study, *, others: Iterable[str] = ()) -> None:
    """Raise `UsageError` for a metric that no benchmark of a study has, and that is not one of the `others`."""
    names = (name for each in study.benchmarks.values() for name in (*each.metrics, *each.measured))
    known = dict.fromkeys((*names, *others))
    for name in metrics:
        if name not in known:
            raise UsageError(f"--metric {name}: no metric {quoted(name)}{suggestion(name, known)}")


def with_shown_metrics(samples: Sequence[Exported], view: View) -> tuple[Exported, ...]:
    """Return the samples of metrics that tables show."""
    return tuple(each for each in samples if each.metric in shown_metrics(view.study, each.benchmark))


CELLS_AT_ONCE = 1000
"""Number of cells whose outcomes are in memory at a time: they need far more of it than their values."""


def _exported_cells(
    view: View, cells: Sequence[tuple[Cell, str]], metrics: Sequence[str]
) -> Iterator[Exported]:
    for start in range(0, len(cells), CELLS_AT_ONCE):
        part = cells[start : start + CELLS_AT_ONCE]
        outcomes = view.store.outcomes(tuple({key for _, key in part}), view.machine.id)
        for cell, key in part:
            yield from _exported_cell(view, cell, outcomes.get(key, ()), metrics)


def _exported_cell(
    view: View, cell: Cell, outcomes: Sequence[Outcome], metrics: Sequence[str]
) -> Iterator[Exported]:
    benchmark = view.study.benchmarks[cell.benchmark]
    samples = [each for each in outcomes if isinstance(each, Measurement) and each.key.phase == "sample"]
    for name, described in _metrics(benchmark).items():
        values = tuple(
            Value(
                value=each.values[name],
                invocation=each.key.ordinal,
                started=each.started,
                flags=each.flags,
            )
            for each in samples
            if name in each.values
        )
        if values and (not metrics or name in metrics):
            flagged = [FlaggedSample(value=each.value, flags=each.flags) for each in values]
            estimated = estimate(select_samples(flagged, least=view.study.measure.invocations.least).values)
            yield Exported(
                subject=cell.subject,
                benchmark=cell.benchmark,
                point=cell.point,
                metric=name,
                unit=described.unit,
                better=described.better,
                machine=_machine(view),
                values=values,
                median=estimated.value,
                low=estimated.low,
                high=estimated.high,
            )


def _machine(view: View) -> str:
    """Return the measuring machine. Imported samples have one only if their files name the same machine."""
    name = view.machine.facts.get(MACHINE, view.machine.id)
    return "" if name == UNKNOWN or "," in name else name


def _metrics(benchmark: Benchmark) -> Mapping[str, Metric | MeasuredMetric]:
    return {
        **benchmark.metrics,
        **{name: each for name, each in benchmark.measured.items() if name not in benchmark.metrics},
    }
