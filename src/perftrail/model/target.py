"""Targets: the metrics that `--metric` or `find.metric` names, with every parameter fixed.

The target `works` lists the benchmarks and points that must succeed for a revision to count as working.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING

from perftrail.model.benchmark import Point, every_point
from perftrail.model.expression import (
    Expression,
    ExpressionError,
    Reference,
    Tokens,
    parse,
    references,
    replace_references,
    written_value,
)
from perftrail.model.metrics import AMOUNTS, COUNTED, MEASURED, Metric
from perftrail.model.wording import listed, quoted, suggestion

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from perftrail.model.benchmark import Benchmark, Value
    from perftrail.model.metrics import Better, MetricScale
    from perftrail.model.study import Study


class TargetError(ValueError):
    """A metric is missing from the study, or its name is ambiguous; the message lists the choices.

    `unknown` distinguishes the two.
    """

    def __init__(self, message: str, *, unknown: bool = True) -> None:
        super().__init__(message)
        self.unknown = unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricReference:
    """Parsed ``NAME`` or ``BENCHMARK.NAME``, either with ``[parameter=value]``."""

    name: str
    benchmark: str | None = None
    fixed: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One metric of one benchmark in one variant, with every parameter fixed.

    The references of `expression` fix every parameter. `points` are their points, each once: one sample needs
    an invocation at each. `open_point` separates this target from others of the same metric: the parameters
    that a derived metric does not fix, or all of a measured one. `text` is the user's notation, `name` the full
    one with benchmark and every parameter that has several values. `scale` is how its values are compared, `None` if
    they choose it. `works`: its value is 1 if no invocation of a sample failed, else 0. `limit`: an invocation that
    exceeds this time counts as this value, which is then a lower bound; `None` if it has no value. `benchmarks` are
    those of the points if they differ, one for each point.
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
    scale: MetricScale | None = None
    works: bool = False
    limit: float | None = None
    benchmarks: tuple[str, ...] = ()

    @property
    def benchmark_points(self) -> tuple[tuple[str, Point], ...]:
        """The benchmark and the point of each invocation of a sample."""
        benchmarks = self.benchmarks or (self.benchmark,) * len(self.points)
        return tuple(zip(benchmarks, self.points, strict=True))

    @property
    def is_amount(self) -> bool:
        """Whether neither other processes nor layouts change its values: an amount of memory, or a count."""
        return self.unit == "B" or all(each.name in AMOUNTS for each in references(self.expression))


@dataclass(frozen=True, slots=True, kw_only=True)
class _OpenMetric:
    """A metric of one benchmark as an expression with open parameters."""

    name: str
    benchmark: str
    expression: Expression
    better: Better
    unit: str
    scale: MetricScale | None


def parse_metric(text: str) -> MetricReference:
    """Parse the value of `--metric`. Raises `TargetError`.

    >>> parse_metric("mt.real[threads=2]")
    MetricReference(name='real', benchmark='mt', fixed={'threads': 2})
    """
    found = re.fullmatch(
        r"\s*(?:([^\s.](?:.*[^\s.])?)\.)?([A-Za-z_][A-Za-z0-9_]*)\s*(\[[^\[]*)?", text, re.DOTALL
    )
    if found is None:
        raise TargetError(
            f"{quoted(text)} is not a valid metric; write NAME, BENCHMARK.NAME or NAME[parameter=value]"
        )
    try:
        tokens = Tokens(found[3] or "")
        point = tokens.bracket()
        tokens.expect_end()
    except ExpressionError as error:
        raise TargetError(f"{quoted(text)}: {error}") from error
    return MetricReference(name=found[2], benchmark=found[1], fixed=point.as_dict())


def resolve(study: Study, text: str, variant: str | None = None) -> Target:
    """Return the only target that a text names, in a variant or in the only variant.

    Raises `TargetError` if there is none or more than one; the message names each.
    """
    wanted = parse_metric(text)
    metric = _only_metric(study, wanted)
    chosen = only_variant(study, variant)
    found = _targets(study, metric, chosen, fixed=_known_values(study, metric, wanted), text=text)
    if len(found) == 1:
        return found[0]
    if found:
        raise TargetError(
            f"{quoted(text)} leaves parameters open; write {listed(target.name for target in found)}",
            unknown=False,
        )
    excluded = f"benchmark.{metric.benchmark}.exclude excludes it"
    raise TargetError(f"{quoted(text)} is not measured in variant {chosen}: {excluded}")


def resolve_points(
    study: Study, text: str, variant: str | None = None, *, most: int | None = None
) -> tuple[Target, ...]:
    """Return the targets that a text names: one for each value of the parameters that it leaves open.

    ``[parameter=*]`` leaves a parameter open, too. Each of several targets has its full name as its text. With `most`,
    the others are left out. Raises `TargetError` if there is none.
    """
    wanted = parse_metric(_without_stars(text))
    metric = _only_metric(study, wanted)
    chosen = only_variant(study, variant)
    fixed = _known_values(study, metric, wanted)
    found = _targets(study, metric, chosen, fixed=fixed, text=text, most=most)
    if len(found) < 2:
        return (resolve(study, _without_stars(text), variant),)
    return tuple(replace(target, text=target.name) for target in found)


def _without_stars(text: str) -> str:
    """Return a metric without parameters whose value is ``*``.

    >>> _without_stars("wall[size=*]"), _without_stars("wall[size=*, threads=2]"), _without_stars("rate")
    ('wall', 'wall[threads=2]', 'rate')
    """
    name, bracket, rest = text.partition("[")
    if not bracket or "*" not in rest or not rest.rstrip().endswith("]"):
        return text
    kept = [each.strip() for each in rest.rstrip()[:-1].split(",")]
    kept = [each for each in kept if each.partition("=")[2].strip() != "*"]
    return f"{name}[{', '.join(kept)}]" if kept else name


def derived_targets(study: Study, name: str, variant: str) -> tuple[Target, ...]:
    """Return a derived metric at every combination of its open parameters."""
    return _targets(study, _derived(study, name), variant, fixed={}, text=name)


def targets(study: Study, benchmark: str, name: str, variant: str) -> tuple[Target, ...]:
    """Return a metric of a benchmark at every point where it is measured."""
    return _targets(study, _open_metric(study, benchmark, name), variant, fixed={}, text=name)


def claimed_metric(study: Study, text: str) -> MetricReference:
    """Return the only metric, with its benchmark, that a claim names. Raises `TargetError`."""
    wanted = parse_metric(text)
    if wanted.fixed:
        raise TargetError(f"{quoted(text)} fixes parameters; write them in the claim's key at")
    metric = _only_metric(study, wanted)
    return MetricReference(name=metric.name, benchmark=metric.benchmark)


def metric_names(study: Study, benchmark: str) -> tuple[str, ...]:
    """Return every metric of a benchmark: declared, derived and measured."""
    derived = (name for name, each in study.derived.items() if each.benchmark == benchmark)
    return (*study.benchmarks[benchmark].metrics, *derived, *study.benchmarks[benchmark].measured)


def shown_metrics(study: Study, benchmark: str) -> tuple[str, ...]:
    """Return the metrics of a benchmark that tables show unless the user selects others.

    These are its declared metrics and those that `[find]` names; without any, its first measured one, wall time.
    """
    known = study.benchmarks[benchmark]
    declared = [name for name, metric in known.metrics.items() if not metric.same]
    searched = [parse_metric(text) for text in study.find.metric]
    named = [
        each.name for each in searched if each.benchmark in (None, benchmark) and each.name in known.measured
    ]
    return tuple(dict.fromkeys([*declared, *named])) or known.leading


def known_value(benchmark: Benchmark, name: str, value: Value) -> Value:
    """Return the declared value for a user's value; `2` and `"2"` are equal.

    Raises `TargetError` for an unknown parameter or value.
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


def _only_metric(study: Study, wanted: MetricReference) -> _OpenMetric:
    names = tuple(study.benchmarks) if wanted.benchmark is None else (wanted.benchmark,)
    for name in names:
        if name not in study.benchmarks:
            raise TargetError(f"no benchmark {quoted(name)}{suggestion(name, study.benchmarks)}")
    found = [name for name in names if wanted.name in metric_names(study, name)]
    if not found:
        known = dict.fromkeys(metric for name in names for metric in metric_names(study, name))
        counter = next((each for each, metrics in COUNTED.items() if wanted.name in metrics), None)
        if counter is not None:
            where = names[0] if len(names) == 1 else "NAME"
            hint = f'; add counters = ["{counter}"] to [benchmark.{where}]'
        else:
            hint = suggestion(wanted.name, known) + _replaced_by_counts(study, names, wanted.name)
        raise TargetError(f"no metric {quoted(wanted.name)}{hint}")
    if len(found) > 1:
        choices = listed(f"{name}.{wanted.name}" for name in found)
        raise TargetError(f"several benchmarks have {quoted(wanted.name)}; write {choices}", unknown=False)
    return _open_metric(study, found[0], wanted.name)


def _replaced_by_counts(study: Study, names: tuple[str, ...], metric: str) -> str:
    """Return that a counter replaces a metric that benchmarks have without it; empty if none does."""
    for name in names:
        counter = study.benchmarks[name].counted_alone
        if counter is not None and metric in MEASURED:
            return (
                f'; counters = ["{counter}"] of [benchmark.{name}] replaces wall, CPU time and memory: to measure '
                "both, add a second benchmark with the same command"
            )
    return ""


def _open_metric(study: Study, benchmark: str, name: str) -> _OpenMetric:
    if name in study.derived:
        return _derived(study, name)
    own = study.benchmarks[benchmark]
    declared = own.metrics.get(name) or own.measured[name]
    return _OpenMetric(
        name=name,
        benchmark=benchmark,
        expression=Reference(name),
        better=declared.better,
        unit=declared.unit,
        scale=declared.scale if isinstance(declared, Metric) else None,
    )


def _derived(study: Study, name: str) -> _OpenMetric:
    derived = study.derived[name]
    try:
        expression = parse(derived.value)
    except ExpressionError as error:
        raise TargetError(f"derived.{name}.value: {error}") from error
    return _OpenMetric(
        name=name,
        benchmark=derived.benchmark,
        expression=expression,
        better=derived.better,
        unit=derived.unit,
        scale=derived.scale,
    )


def only_variant(study: Study, variant: str | None) -> str:
    """Return the named variant, or the only one. Raises `TargetError`."""
    if variant is None:
        if len(study.variants) > 1:
            raise TargetError(
                f"the study has several variants; choose one: {listed(study.variants)}", unknown=False
            )
        return next(iter(study.variants))
    if variant not in study.variants:
        raise TargetError(f"no variant {quoted(variant)}{suggestion(variant, study.variants)}")
    return variant


def _known_values(study: Study, metric: _OpenMetric, wanted: MetricReference) -> dict[str, Value]:
    benchmark = study.benchmarks[metric.benchmark]
    fixed = {name: known_value(benchmark, name, value) for name, value in wanted.fixed.items()}
    for name in fixed:
        if name not in _open_names(benchmark, metric.expression):
            raise TargetError(f"{metric.name} fixes {name} itself, in derived.{metric.name}.value")
    return fixed


def _open_names(benchmark: Benchmark, expression: Expression) -> tuple[str, ...]:
    """Return the parameters that at least one reference of an expression does not fix."""
    fixed = [set(reference.point.names) for reference in references(expression)]
    return tuple(name for name in benchmark.parameters if any(name not in names for names in fixed))


def _targets(
    study: Study,
    metric: _OpenMetric,
    variant: str,
    *,
    fixed: Mapping[str, Value],
    text: str,
    most: int | None = None,
) -> tuple[Target, ...]:
    """Return a metric at the first `most` combinations of its open parameters for which every needed point is run."""
    benchmark = study.benchmarks[metric.benchmark]
    names = _open_names(benchmark, metric.expression)
    axes = {name: (fixed[name],) if name in fixed else benchmark.parameters[name] for name in names}
    measured = set(benchmark.points(variant))
    found = (
        _target(benchmark, metric, variant, open_point=open_point, text=text)
        for open_point in every_point(axes)
    )
    return tuple(islice((target for target in found if measured.issuperset(target.points)), most))


def _target(
    benchmark: Benchmark, metric: _OpenMetric, variant: str, *, open_point: Point, text: str
) -> Target:
    outer = open_point.as_dict()

    def with_all_parameters(reference: Reference) -> Reference:
        own = {name: known_value(benchmark, name, value) for name, value in reference.point.values}
        values = tuple((name, own.get(name, outer.get(name))) for name in benchmark.parameters)
        return Reference(reference.name, _fixed_point(values), reference.position)

    expression = replace_references(metric.expression, with_all_parameters)
    return Target(
        text=text,
        name=f"{metric.benchmark}.{Reference(metric.name, _varying(benchmark, open_point))}",
        benchmark=metric.benchmark,
        variant=variant,
        expression=expression,
        points=tuple(dict.fromkeys(reference.point for reference in references(expression))),
        open_point=open_point,
        better=metric.better,
        unit=metric.unit,
        scale=metric.scale,
        limit=benchmark.timeout_seconds if _is_time(metric) else None,
    )


def _is_time(metric: _OpenMetric) -> bool:
    """Whether a time-out is a value of a metric of at least the limit: it waits for the end of the program."""
    named = isinstance(metric.expression, Reference) and metric.expression.name != "cpu"
    return named and (metric.unit, metric.better) == ("s", "lower") and metric.name not in SHARES_OF_TIME


SHARES_OF_TIME = ("user", "system", "lock_wait", "condition_wait", "barrier_wait")
"""Times that a program which hangs need not use."""


def _varying(benchmark: Benchmark, point: Point) -> Point:
    """Return a point without the parameters that have one value."""
    return point.without([name for name, values in benchmark.parameters.items() if len(values) == 1])


def _fixed_point(values: Iterable[tuple[str, Value | None]]) -> Point:
    return Point(tuple((name, value) for name, value in values if value is not None))


WORKS = "works"
"""The metric that searches where a program began to fail. A metric of this name in the study takes precedence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Working:
    """The benchmarks and points that must build, run and give values for a revision to count as working."""

    text: str
    name: str
    variant: str
    benchmark_points: tuple[tuple[str, Point], ...]
    unit: str = ""
    better: Better = "higher"
    scale: MetricScale = "rate"

    @property
    def benchmark(self) -> str:
        """The benchmarks that must succeed, by name."""
        return ", ".join(dict.fromkeys(name for name, _ in self.benchmark_points))

    def as_target(self) -> Target:
        """Return the metric that is 1 for a sample in which everything works."""
        benchmarks, points = zip(*self.benchmark_points, strict=True)
        return Target(
            text=self.text,
            name=self.name,
            benchmark=benchmarks[0],
            variant=self.variant,
            expression=Reference(WORKS),
            points=points,
            open_point=points[0],
            better=self.better,
            unit=self.unit,
            scale=self.scale,
            works=True,
            benchmarks=benchmarks,
        )


Goal = tuple[Target, ...] | Working
"""Subject of a search: metrics, or whether a program works."""


def resolve_goal(study: Study, texts: Sequence[str], variant: str | None = None) -> Goal:
    """Return the goal that texts name: `works`, or metrics; all metrics without a text. Raises `TargetError`.

    A metric with open parameters means all its points.
    """
    if not texts:
        return every_target(study, variant)
    working = [text for text in texts if names_works(study, text)]
    if working and len(texts) > 1:
        raise TargetError(f"{quoted(working[0])} needs its own search; name no other metric", unknown=False)
    if working:
        return resolve_working(study, working[0], variant)
    named = (target for text in texts for target in resolve_points(study, text, variant))
    return tuple({target.name: target for target in named}.values())


def names_works(study: Study, text: str) -> bool:
    """Return whether a text means `works`, and no metric of the study has that name."""
    return parse_metric(text).name == WORKS and not any(
        WORKS in metric_names(study, name) for name in study.benchmarks
    )


def resolve_working(study: Study, text: str, variant: str | None = None) -> Working:
    """Return the goal of ``works`` or ``BENCHMARK.works``, either with ``[parameter=value]``. Raises `TargetError`.

    An open parameter stands for all its values, a missing benchmark for all benchmarks.
    """
    wanted = parse_metric(text)
    if wanted.benchmark is not None and wanted.benchmark not in study.benchmarks:
        raise TargetError(
            f"no benchmark {quoted(wanted.benchmark)}{suggestion(wanted.benchmark, study.benchmarks)}"
        )
    names = study.benchmarks if wanted.benchmark is None else (wanted.benchmark,)
    chosen = only_variant(study, variant)
    benchmark_points: list[tuple[str, Point]] = []
    for name in names:
        benchmark = study.benchmarks[name]
        fixed = {key: known_value(benchmark, key, value) for key, value in wanted.fixed.items()}
        points = benchmark.points(chosen)
        benchmark_points += ((name, point) for point in points if fixed.items() <= point.as_dict().items())
    if not benchmark_points:
        raise TargetError(f"{quoted(text)}: variant {chosen} runs no benchmark at these points")
    name = (
        text.strip()
        if len(study.benchmarks) > 1 or wanted.benchmark
        else f"{benchmark_points[0][0]}.{text.strip()}"
    )
    return Working(text=text, name=name, variant=chosen, benchmark_points=tuple(benchmark_points))


def works_targets(study: Study, benchmark: str, variant: str) -> tuple[Target, ...]:
    """Return the targets that are 1 where an invocation works, at every point of a benchmark."""
    own = study.benchmarks[benchmark]
    metric = _OpenMetric(
        name=WORKS, benchmark=benchmark, expression=Reference(WORKS), better="higher", unit="", scale="rate"
    )
    return tuple(
        replace(_target(own, metric, variant, open_point=point, text=WORKS), works=True)
        for point in own.points(variant)
    )


def every_target(study: Study, variant: str | None = None) -> tuple[Target, ...]:
    """Return every metric of a study that is worth searching, in one variant or in all.

    These are the declared and the derived metrics of each benchmark at each point, and its time and memory.
    """
    if variant is not None:
        only_variant(study, variant)
    variants = study.variants if variant is None else (variant,)
    return tuple(
        replace(target, text=target.name)
        for chosen in variants
        for benchmark in study.benchmarks
        for name in _searched_metrics(study, benchmark)
        for target in targets(study, benchmark, name, chosen)
    )


def _searched_metrics(study: Study, benchmark: str) -> Iterator[str]:
    measured = study.benchmarks[benchmark].measured
    yield from study.benchmarks[benchmark].metrics
    yield from (name for name, each in study.derived.items() if each.benchmark == benchmark)
    yield from (
        name
        for name in ("wall", "peak_memory", "allocations", "heap_peak", "instructions")
        if name in measured
    )
