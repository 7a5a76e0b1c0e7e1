"""Read stored metrics: each metric of each subject at each point, with its interval.

`interval_json` returns an estimate with its interval as plain data, the same for every JSON output.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Annotated, TypedDict

from perftrail.model.benchmark import Value
from perftrail.model.expression import ExpressionError, evaluate, references
from perftrail.model.measurement import Samples
from perftrail.model.noisy_samples import FlaggedSample, select_samples
from perftrail.model.target import derived_targets, shown_metrics
from perftrail.results.measured import MeasuredHere
from perftrail.stats.estimate import estimate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from perftrail.measure.session import View
    from perftrail.model.benchmark import Benchmark, Point
    from perftrail.model.expression import Reference
    from perftrail.model.metrics import Better, MeasuredMetric, Metric
    from perftrail.model.plan import Cell
    from perftrail.model.study import Study
    from perftrail.model.subject import Subject
    from perftrail.model.target import Target
    from perftrail.stats.estimate import Estimate


class ValueWithIntervalJson(TypedDict):
    """An estimate and the ends of its interval; null: unbounded."""

    value: float
    low: float | None
    high: float | None


class RowEstimateJson(ValueWithIntervalJson):
    """A median with its interval, in the metric's unit."""

    confidence: float
    method: str


class RowJson(TypedDict):
    """One metric of one subject at one point."""

    revision: str
    label: str
    variant: str
    benchmark: str
    point: dict[str, Value]
    metric: str
    unit: str
    count: Annotated[int, "number of samples"]
    failures: Annotated[int, "number of failed invocations"]
    flags: list[str]
    noise: str
    outdated: Annotated[str, "why the study would measure it again; empty: it would not"]
    estimate: RowEstimateJson | None


def interval_json(value: float, low: float, high: float) -> ValueWithIntervalJson:
    """Return an estimate and the ends of its interval.

    >>> interval_json(1.0, 0.9, 1.1)
    {'value': 1.0, 'low': 0.9, 'high': 1.1}
    """
    return {"value": value, "low": low, "high": high}


def better_of(study: Study, row: Row) -> Better:
    """Return the direction in which a row's metric is better."""
    benchmark = study.benchmarks[row.benchmark]
    declared = study.derived.get(row.metric) or benchmark.metrics.get(row.metric)
    metric = declared or benchmark.measured.get(row.metric)
    return "lower" if metric is None else metric.better


NOTHING = Samples()


@dataclass(kw_only=True, unsafe_hash=True)
class Row:
    """One metric of one subject at one point: its values, or none and the number of failures.

    Do not modify a row. It is not frozen only because frozen instances take longer to create, and a report has
    hundreds of thousands.

    `noise` is the number of noisy samples, and whether they were discarded; else it is empty. The estimate uses
    `values`. `runnables` are the keys of their runnables: rows with the same keys share their samples. `stages` are
    those at which invocations failed. `outdated` is the reason why the present study would measure the cell again;
    else it is empty.
    """

    subject: Subject
    benchmark: str
    point: Point
    metric: str
    unit: str
    failures: int
    flags: tuple[str, ...] = ()
    noise: str = ""
    values: tuple[float, ...] = ()
    runnables: frozenset[str] = frozenset()
    stages: frozenset[str] = frozenset()
    outdated: str = ""

    @cached_property
    def estimate(self) -> Estimate | None:
        """Median of the values with its interval, `None` without values; computed only when it is read."""
        return estimate(self.values) if self.values else None

    def as_json(self) -> RowJson:
        """Return the row as `show --json` prints it."""
        found = self.estimate
        return {
            "revision": self.subject.revision.id,
            "label": self.subject.revision.label,
            "variant": self.subject.variant,
            "benchmark": self.benchmark,
            "point": dict(self.point.values),
            "metric": self.metric,
            "unit": self.unit,
            "count": found.count if found else 0,
            "failures": self.failures,
            "flags": list(self.flags),
            "noise": self.noise,
            "outdated": self.outdated,
            "estimate": None
            if found is None
            else {
                **interval_json(found.value, found.low, found.high),
                "confidence": found.confidence,
                "method": "median, order statistics",
            },
        }


def rows(
    view: View,
    *,
    metrics: Sequence[str] | None = None,
    optional: Sequence[str] = (),
    measured: MeasuredHere | None = None,
) -> tuple[Row, ...]:
    """Return every metric of every cell that was measured here, in the order of history.

    `metrics` selects by name; default: `shown_metrics` of each benchmark. Metrics
    in `optional` have rows only if they have values or failures. `measured` contains the samples that were
    already read.
    """
    known = MeasuredHere(view) if measured is None else measured
    plain = _Plain(view, known, metrics, optional)
    return (*plain.rows(known.cells), *_derived_rows(view, known, metrics))


def rows_by_benchmark(
    view: View, measured: MeasuredHere, metrics: Sequence[str], optional: Sequence[str]
) -> Iterator[Sequence[Row]]:
    """Yield the rows that `rows` returns, benchmark by benchmark and on demand; derived metrics come last."""
    plain = _Plain(view, measured, metrics, optional)
    for name in view.study.benchmarks:
        yield tuple(plain.rows(measured.of(name)))
    yield tuple(_derived_rows(view, measured, metrics))


def in_order(measured: MeasuredHere, parts: Sequence[Sequence[Row]]) -> tuple[Row, ...]:
    """Sort the output of `rows_by_benchmark` into the order of `rows`."""
    *plain, derived = parts
    indexes = {id(cell.subject): index for index, (cell, _) in enumerate(measured.cells)}
    return (*sorted(chain.from_iterable(plain), key=lambda row: indexes[id(row.subject)]), *derived)


class _Plain:
    """Rows of metrics that are not derived. Their samples are read in few queries."""

    def __init__(
        self, view: View, measured: MeasuredHere, metrics: Sequence[str] | None, optional: Sequence[str]
    ) -> None:
        benchmarks = view.study.benchmarks
        self._least = view.study.measure.invocations.least
        self._chosen = {
            name: units_of(each, metrics or shown_metrics(view.study, name))
            for name, each in benchmarks.items()
        }
        self._wanted = {
            name: {**self._chosen[name], **units_of(each, optional)} for name, each in benchmarks.items()
        }
        self._samples_of = measured.all_samples(self._wanted)
        self._outdated = measured.outdated

    def rows(self, cells: Iterable[tuple[Cell, str]]) -> Iterator[Row]:
        """Yield the rows of cells in their order."""
        for cell, key in cells:
            samples = self._samples_of.get(key)
            if samples is None:
                continue
            stages, runnables = frozenset(samples.failures), frozenset((key,))
            for name, unit in self._wanted[cell.benchmark].items():
                if name not in samples.values and not stages and name not in self._chosen[cell.benchmark]:
                    continue
                values, noise = tuple(samples.values.get(name, {}).values()), ""
                if values and samples.flags:
                    selected = select_samples(list(flagged(samples, name).values()), least=self._least)
                    values, noise = selected.values, selected.note
                yield Row(
                    subject=cell.subject,
                    benchmark=cell.benchmark,
                    point=cell.point,
                    metric=name,
                    unit=unit,
                    failures=len(samples.failures),
                    flags=_flags(samples, name),
                    noise=noise,
                    values=values,
                    runnables=runnables,
                    stages=stages,
                    outdated=self._outdated.get(cell, "") if self._outdated else "",
                )


def _flags(samples: Samples, metric: str) -> tuple[str, ...]:
    """Return the flags of the samples that have a value of a metric; of all samples if none has."""
    if not samples.flags:
        return ()
    with_value = samples.values.get(metric) or samples.flags
    return tuple(sorted({flag for at, marks in samples.flags.items() if at in with_value for flag in marks}))


def units_of(benchmark: Benchmark, metrics: Sequence[str]) -> dict[str, str]:
    """Return the unit of each of the metrics that a benchmark has."""
    known: dict[str, Metric | MeasuredMetric] = {**benchmark.measured, **benchmark.metrics}
    return {name: known[name].unit for name in metrics if name in known}


def flagged(samples: Samples, metric: str) -> dict[int, FlaggedSample]:
    """Return the values of a metric by ordinal, with their samples' flags."""
    values = samples.values.get(metric, {})
    return {at: FlaggedSample(value=value, flags=samples.flags.get(at, ())) for at, value in values.items()}


def by_round(view: View, measured: MeasuredHere, row: Row) -> dict[int, FlaggedSample]:
    """Return the values that a row's estimate selects from, by ordinal, with their flags."""
    return {at: value for at, (_, value) in _with_blocks(view, measured, row).items()}


def by_block(view: View, measured: MeasuredHere, row: Row) -> dict[tuple[str, ...], FlaggedSample]:
    """Return the values that are in a block, in the order of measurement, by their samples' blocks.

    Values of two subjects in the same blocks were measured directly one after another. Samples of a search, of
    another run, and of versions without blocks are in no common block.
    """
    return {blocks: value for blocks, value in _with_blocks(view, measured, row).values() if all(blocks)}


def _with_blocks(
    view: View, measured: MeasuredHere, row: Row
) -> dict[int, tuple[tuple[str, ...], FlaggedSample]]:
    """Return each value of a row by ordinal, with the blocks of its samples; an empty name means no block."""
    if row.metric in view.study.derived:
        targets = derived_targets(view.study, row.metric, row.subject.variant)
        target = next(each for each in targets if each.open_point == row.point)
        values, samples_by_point = (
            _evaluated(measured, row.subject, target),
            _samples_of(measured, row.subject, target),
        )
        return {
            at: (tuple(each.blocks.get(at, "") for each in samples_by_point.values()), value)
            for at, value in values.items()
        }
    samples = measured.samples(row.benchmark, (row.metric,))
    return {
        at: ((samples[key].blocks.get(at, ""),), value)
        for key in row.runnables
        if key in samples
        for at, value in sorted(flagged(samples[key], row.metric).items())
    }


def _derived_rows(view: View, measured: MeasuredHere, metrics: Sequence[str] | None) -> Iterator[Row]:
    wanted = [name for name in view.study.derived if metrics is None or name in metrics]
    if not wanted:
        return
    for name in wanted:
        for subject, keys in measured.by_subject.items():
            for target in derived_targets(view.study, name, subject.variant):
                values = list(_evaluated(measured, subject, target).values())
                selected = select_samples(values, least=view.study.measure.invocations.least)
                if selected.values:
                    yield Row(
                        subject=subject,
                        benchmark=target.benchmark,
                        point=target.open_point,
                        metric=name,
                        unit=target.unit,
                        failures=0,
                        noise=selected.note,
                        values=selected.values,
                        runnables=frozenset(
                            keys.get((target.benchmark, point), "") for point in target.points
                        ),
                        outdated=_outdated(measured, subject, target),
                    )


def _outdated(measured: MeasuredHere, subject: Subject, target: Target) -> str:
    """Return why the first outdated cell of a target would be measured again."""
    used = (Cell(subject=subject, benchmark=target.benchmark, point=point) for point in target.points)
    return (
        next(filter(None, (measured.outdated.get(cell, "") for cell in used)), "")
        if measured.outdated
        else ""
    )


def _evaluated(measured: MeasuredHere, subject: Subject, target: Target) -> dict[int, FlaggedSample]:
    """Evaluate a target for each ordinal that every point has; a flag of any point applies to the value."""
    samples_by_point = _samples_of(measured, subject, target)
    rounds = [{at for values in each.values.values() for at in values} for each in samples_by_point.values()]
    found: dict[int, FlaggedSample] = {}
    for at in sorted(set.intersection(*rounds)):

        def lookup(reference: Reference, at: int = at) -> float:
            return samples_by_point[reference.point].values[reference.name][at]

        marks = dict.fromkeys(flag for each in samples_by_point.values() for flag in each.flags.get(at, ()))
        try:
            found[at] = FlaggedSample(value=evaluate(target.expression, lookup), flags=tuple(marks))
        except (ExpressionError, KeyError):
            continue
    return found


def _samples_of(measured: MeasuredHere, subject: Subject, target: Target) -> dict[Point, Samples]:
    """Return the samples that a target is evaluated from, by point."""
    used = {reference.name for reference in references(target.expression)}
    samples, keys = measured.samples(target.benchmark, used), measured.by_subject[subject]
    return {point: samples.get(keys.get((target.benchmark, point), ""), NOTHING) for point in target.points}
