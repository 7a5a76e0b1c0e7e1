"""What `--metric` or `find.metric` names in a study: one figure, with every parameter fixed.

What the metric `works` names: everything that must come off for a revision to count as working.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from perftrail.model.benchmark import Point, every_point
from perftrail.model.expression import (
    Expression,
    ExpressionError,
    Reference,
    Tokens,
    parse,
    placed,
    references,
    written_value,
)
from perftrail.model.wording import listed, quoted, suggestion

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from perftrail.model.benchmark import Benchmark, Value
    from perftrail.model.metrics import Better
    from perftrail.model.study import Study


class TargetError(ValueError):
    """A metric is not in the study, or leaves open what is meant; the text lists the choices.

    `unknown` tells the one from the other.
    """

    def __init__(self, message: str, *, unknown: bool = True) -> None:
        super().__init__(message)
        self.unknown = unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricReference:
    """What ``NAME``, ``BENCHMARK.NAME``, either with ``[parameter=value]``, says."""

    name: str
    benchmark: str | None = None
    fixed: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One figure of one benchmark in one variant.

    The references of `expression` fix every parameter; `points` are theirs, each once: one reading needs
    an invocation at each. `open_point` is what tells this target from others of the same metric: the
    parameters that a derived metric does not fix itself, or all of a plain one. `text` is as it was asked
    for, `name` says the same with its benchmark and every parameter that could be another.
    """

    text: str
    name: str
    benchmark: str
    variant: str
    expression: Expression
    points: tuple[Point, ...]
    open_point: Point
    better: Better
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Figure:
    """A metric of one benchmark as an expression in which parameters may still be open."""

    name: str
    benchmark: str
    expression: Expression
    better: Better
    unit: str


def parse_metric(text: str) -> MetricReference:
    """Read what `--metric` names. Raises `TargetError`.

    >>> parse_metric("mt.real[threads=2]")
    MetricReference(name='real', benchmark='mt', fixed={'threads': 2})
    """
    found = re.fullmatch(
        r"\s*(?:([A-Za-z0-9_][A-Za-z0-9_.+-]*)\.)?([A-Za-z_][A-Za-z0-9_]*)\s*(\[.*)?", text, re.DOTALL
    )
    if found is None:
        raise TargetError(
            f"{quoted(text)} names no metric; write NAME, BENCHMARK.NAME or NAME[parameter=value]"
        )
    try:
        tokens = Tokens(found[3] or "")
        point = tokens.bracket()
        tokens.expect_end()
    except ExpressionError as error:
        raise TargetError(f"{quoted(text)}: {error}") from error
    return MetricReference(name=found[2], benchmark=found[1], fixed=point.as_dict())


def resolve(study: Study, text: str, variant: str | None = None) -> Target:
    """Find the one figure that a text names, in a variant or the only one there is.

    Raises `TargetError` when there is none or more than one; it says how to name each.
    """
    wanted = parse_metric(text)
    figure = _only_figure(study, wanted)
    chosen = only_variant(study, variant)
    found = _targets(study, figure, chosen, fixed=_known_values(study, figure, wanted), text=text)
    if len(found) == 1:
        return found[0]
    if found:
        raise TargetError(
            f"{quoted(text)} leaves parameters open; write {listed(target.name for target in found)}",
            unknown=False,
        )
    left_out = f"benchmark.{figure.benchmark}.exclude leaves it out"
    raise TargetError(f"{quoted(text)} is not measured in variant {chosen}: {left_out}")


def derived_targets(study: Study, name: str, variant: str) -> tuple[Target, ...]:
    """Give a derived metric at every combination of the parameters that it leaves open."""
    return _targets(study, _derived(study, name), variant, fixed={}, text=name)


def targets(study: Study, benchmark: str, name: str, variant: str) -> tuple[Target, ...]:
    """Give a metric of a benchmark at every point where it is measured, a derived one where it leaves some open."""
    return _targets(study, _figure(study, benchmark, name), variant, fixed={}, text=name)


def claimed_figure(study: Study, text: str) -> MetricReference:
    """Find the one metric, with its benchmark, that ``NAME`` or ``BENCHMARK.NAME`` says. Raises `TargetError`."""
    wanted = parse_metric(text)
    if wanted.fixed:
        raise TargetError(f"{quoted(text)} fixes parameters; a claim says them in at")
    figure = _only_figure(study, wanted)
    return MetricReference(name=figure.name, benchmark=figure.benchmark)


def metric_names(study: Study, benchmark: str) -> tuple[str, ...]:
    """Name everything that can be asked of a benchmark: its metrics, its derived ones, the measured."""
    derived = (name for name, each in study.derived.items() if each.benchmark == benchmark)
    return (*study.benchmarks[benchmark].metrics, *derived, *study.benchmarks[benchmark].measured)


def known_value(benchmark: Benchmark, name: str, value: Value) -> Value:
    """Give the value that a study declares for what somebody wrote, `2` and `"2"` being alike.

    Raises `TargetError` for a parameter or a value that the benchmark has not.
    """
    values = benchmark.parameters.get(name)
    if values is None:
        hint = suggestion(name, benchmark.parameters) or "; the benchmark has none"
        raise TargetError(f'no parameter "{name}"{hint}')
    for known in values:
        if known == value or str(known) == str(value):
            return known
    choices = listed(written_value(known) for known in values)
    raise TargetError(f"{name}={written_value(value)} is not among the benchmark's values; choose {choices}")


def _only_figure(study: Study, wanted: MetricReference) -> _Figure:
    names = study.benchmarks if wanted.benchmark is None else (wanted.benchmark,)
    for name in names:
        if name not in study.benchmarks:
            raise TargetError(f"no benchmark {quoted(name)}{suggestion(name, study.benchmarks)}")
    found = [name for name in names if wanted.name in metric_names(study, name)]
    if not found:
        known = dict.fromkeys(metric for name in names for metric in metric_names(study, name))
        raise TargetError(f"no metric {quoted(wanted.name)}{suggestion(wanted.name, known)}")
    if len(found) > 1:
        choices = listed(f"{name}.{wanted.name}" for name in found)
        raise TargetError(f"several benchmarks have {quoted(wanted.name)}; write {choices}", unknown=False)
    return _figure(study, found[0], wanted.name)


def _figure(study: Study, benchmark: str, name: str) -> _Figure:
    if name in study.derived:
        return _derived(study, name)
    own = study.benchmarks[benchmark]
    declared = own.metrics.get(name) or own.measured[name]
    return _Figure(
        name=name,
        benchmark=benchmark,
        expression=Reference(name),
        better=declared.better,
        unit=declared.unit,
    )


def _derived(study: Study, name: str) -> _Figure:
    derived = study.derived[name]
    try:
        expression = parse(derived.value)
    except ExpressionError as error:
        raise TargetError(f"derived.{name}.value: {error}") from error
    return _Figure(
        name=name,
        benchmark=derived.benchmark,
        expression=expression,
        better=derived.better,
        unit=derived.unit,
    )


def only_variant(study: Study, variant: str | None) -> str:
    """Give the variant that is named, or the only one there is. Raises `TargetError`."""
    if variant is None:
        if len(study.variants) > 1:
            raise TargetError(
                f"the study has several variants; say which: {listed(study.variants)}", unknown=False
            )
        return next(iter(study.variants))
    if variant not in study.variants:
        raise TargetError(f"no variant {quoted(variant)}{suggestion(variant, study.variants)}")
    return variant


def _known_values(study: Study, figure: _Figure, wanted: MetricReference) -> dict[str, Value]:
    benchmark = study.benchmarks[figure.benchmark]
    fixed = {name: known_value(benchmark, name, value) for name, value in wanted.fixed.items()}
    for name in fixed:
        if name not in _open_names(benchmark, figure.expression):
            raise TargetError(f"{figure.name} fixes {name} itself, in derived.{figure.name}.value")
    return fixed


def _open_names(benchmark: Benchmark, expression: Expression) -> tuple[str, ...]:
    """Name the parameters that at least one reference of an expression does not fix."""
    fixed = [set(reference.point.names) for reference in references(expression)]
    return tuple(name for name in benchmark.parameters if any(name not in names for names in fixed))


def _targets(
    study: Study, figure: _Figure, variant: str, *, fixed: Mapping[str, Value], text: str
) -> tuple[Target, ...]:
    """Give a figure at each way to set its open parameters for which every point it needs is run."""
    benchmark = study.benchmarks[figure.benchmark]
    names = _open_names(benchmark, figure.expression)
    axes = {name: (fixed[name],) if name in fixed else benchmark.parameters[name] for name in names}
    measured = set(benchmark.points(variant))
    found = (
        _target(benchmark, figure, variant, open_point=open_point, text=text)
        for open_point in every_point(axes)
    )
    return tuple(target for target in found if measured.issuperset(target.points))


def _target(benchmark: Benchmark, figure: _Figure, variant: str, *, open_point: Point, text: str) -> Target:
    outer = open_point.as_dict()

    def place(reference: Reference) -> Reference:
        own = {name: known_value(benchmark, name, value) for name, value in reference.point.values}
        values = tuple((name, own.get(name, outer.get(name))) for name in benchmark.parameters)
        return Reference(reference.name, _whole(values), reference.position)

    expression = placed(figure.expression, place)
    return Target(
        text=text,
        name=f"{figure.benchmark}.{Reference(figure.name, _telling(benchmark, open_point))}",
        benchmark=figure.benchmark,
        variant=variant,
        expression=expression,
        points=tuple(dict.fromkeys(reference.point for reference in references(expression))),
        open_point=open_point,
        better=figure.better,
        unit=figure.unit,
    )


def _telling(benchmark: Benchmark, point: Point) -> Point:
    """Give the part of a point that tells it from others: parameters with one value do not."""
    return point.without([name for name, values in benchmark.parameters.items() if len(values) == 1])


def _whole(values: Iterable[tuple[str, Value | None]]) -> Point:
    return Point(tuple((name, value) for name, value in values if value is not None))


WORKS = "works"
"""The metric that asks where a program began to fail; one of this name in the study goes before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Working:
    """The benchmarks, each at some points, that a revision in a variant must build, run and be read of."""

    text: str
    name: str
    variant: str
    places: tuple[tuple[str, Point], ...]
    unit: str = ""
    better: Better = "higher"

    @property
    def benchmark(self) -> str:
        """The benchmarks that must come off, by name."""
        return ", ".join(dict.fromkeys(name for name, _ in self.places))


Goal = tuple[Target, ...] | Working
"""What a search can be about: figures, or whether it works at all."""


def resolve_goal(study: Study, texts: Sequence[str], variant: str | None = None) -> Goal:
    """Find what texts name: `works`, or figures, all of the study's without any text. Raises `TargetError`."""
    if not texts:
        return every_target(study, variant)
    working = [text for text in texts if asks_whether_it_works(study, text)]
    if working and len(texts) > 1:
        raise TargetError(f"{quoted(working[0])} is another search; ask for it alone", unknown=False)
    if working:
        return resolve_working(study, working[0], variant)
    return tuple(
        {target.name: target for target in (resolve(study, text, variant) for text in texts)}.values()
    )


def asks_whether_it_works(study: Study, text: str) -> bool:
    """Whether a metric's text means `works`, and no metric that the study calls so."""
    return parse_metric(text).name == WORKS and not any(
        WORKS in metric_names(study, name) for name in study.benchmarks
    )


def resolve_working(study: Study, text: str, variant: str | None = None) -> Working:
    """Find what ``works``, ``BENCHMARK.works``, either with ``[parameter=value]``, names. Raises `TargetError`.

    A parameter that is left open stands for all its values, a benchmark that is left out for all of them.
    """
    wanted = parse_metric(text)
    if wanted.benchmark is not None and wanted.benchmark not in study.benchmarks:
        raise TargetError(
            f"no benchmark {quoted(wanted.benchmark)}{suggestion(wanted.benchmark, study.benchmarks)}"
        )
    names = study.benchmarks if wanted.benchmark is None else (wanted.benchmark,)
    chosen = only_variant(study, variant)
    places: list[tuple[str, Point]] = []
    for name in names:
        benchmark = study.benchmarks[name]
        fixed = {key: known_value(benchmark, key, value) for key, value in wanted.fixed.items()}
        points = benchmark.points(chosen)
        places += ((name, point) for point in points if fixed.items() <= point.as_dict().items())
    if not places:
        raise TargetError(f"{quoted(text)}: nothing is run there in variant {chosen}")
    name = text.strip() if len(study.benchmarks) > 1 or wanted.benchmark else f"{places[0][0]}.{text.strip()}"
    return Working(text=text, name=name, variant=chosen, places=tuple(places))


def every_target(study: Study, variant: str | None = None) -> tuple[Target, ...]:
    """Give everything of a study that is worth following: in one variant, or in all of them.

    Of each benchmark at each point: what is declared, what is derived, and of what is measured of any
    program its time and its memory.
    """
    if variant is not None:
        only_variant(study, variant)
    variants = study.variants if variant is None else (variant,)
    return tuple(
        replace(target, text=target.name)
        for chosen in variants
        for benchmark in study.benchmarks
        for name in _worth_following(study, benchmark)
        for target in targets(study, benchmark, name, chosen)
    )


def _worth_following(study: Study, benchmark: str) -> Iterator[str]:
    measured = study.benchmarks[benchmark].measured
    yield from study.benchmarks[benchmark].metrics
    yield from (name for name, each in study.derived.items() if each.benchmark == benchmark)
    yield from (name for name in ("wall", "peak_memory", "instructions") if name in measured)
