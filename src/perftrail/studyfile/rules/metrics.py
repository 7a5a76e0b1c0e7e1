"""Rules for metrics, `[derived]` and what `[find]` names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.model.expression import ExpressionError, parse, references
from perftrail.model.metrics import OWN_METRICS
from perftrail.model.target import (
    TargetError,
    asks_whether_it_works,
    derived_targets,
    known_value,
    resolve_goal,
)
from perftrail.model.wording import listed, quoted, suggestion
from perftrail.studyfile.rules.texts import inside_wrong, pattern_wrong

if TYPE_CHECKING:
    from perftrail.model.benchmark import Benchmark
    from perftrail.model.expression import Reference
    from perftrail.model.metrics import Metric
    from perftrail.model.study import Study
    from perftrail.studyfile.complaints import Complaints
    from perftrail.studyfile.positions import KeyPath


def check_metrics(study: Study, complaints: Complaints) -> None:
    """Complain about metrics that cannot be read from an output."""
    for name, benchmark in study.benchmarks.items():
        _check_counters(benchmark, ("benchmark", name), complaints)
        for metric, how in benchmark.metrics.items():
            path = ("benchmark", name, "metrics", metric)
            if metric in OWN_METRICS:
                complaints.add(path, f"{quoted(metric)} is measured already; choose another name")
            _check_how(how, path, complaints)


def _check_how(metric: Metric, path: KeyPath, complaints: Complaints) -> None:
    if metric.reads is None:
        if not metric.pattern:
            complaints.add(
                path, "needs a pattern, or reads, which names the format that the benchmark prints"
            )
        elif wrong := pattern_wrong(metric.pattern):
            complaints.add((*path, "pattern"), wrong)
        if metric.item:
            complaints.add((*path, "item"), "needs reads, which names the format that the benchmark prints")
    elif metric.pattern:
        complaints.add((*path, "pattern"), "a metric has a pattern or reads, not both")


def _check_counters(benchmark: Benchmark, path: KeyPath, complaints: Complaints) -> None:
    if "instructions" not in benchmark.counters:
        return
    why = "a benchmark that counts instructions measures nothing else; write another benchmark for"
    if len(benchmark.counters) > 1:
        complaints.add((*path, "counters"), f"{why} locks")
    if benchmark.metrics:
        complaints.add((*path, "metrics"), f"{why} {listed(map(quoted, benchmark.metrics), 'and')}")


def check_derived(study: Study, complaints: Complaints) -> None:
    """Complain about derived metrics that cannot be computed."""
    declared = {metric: name for name, each in study.benchmarks.items() for metric in each.metrics}
    for name, derived in study.derived.items():
        path = ("derived", name)
        if name in OWN_METRICS:
            complaints.add(path, f"{quoted(name)} is measured already; choose another name")
        if name in declared:
            wrong = f"{quoted(name)} is a metric of benchmark {declared[name]} already; choose another name"
            complaints.add(path, wrong)
        if _check_benchmark(study, derived.benchmark, path, complaints):
            _check_value(study, name, complaints)


def check_find(study: Study, complaints: Complaints) -> None:
    """Complain about a metric or variant to search for that is not there, or that could be several.

    Which of several variants is meant may be left to the command line.
    """
    find = study.find
    if find.variant is not None and find.variant not in study.variants:
        unknown = f"no variant {quoted(find.variant)}{suggestion(find.variant, study.variants)}"
        complaints.add(("find", "variant"), unknown, about=("variants", find.variant))
        return
    for path in find.suspect:
        if wrong := inside_wrong(path, of="the revision's root"):
            complaints.add(("find", "suspect"), wrong)
    if not find.metric or not complaints.clean(("benchmark",), ("derived",), ("variants",)):
        return
    variants = (find.variant,) if find.variant is not None else tuple(study.variants)
    for text in find.metric:
        _check_metric(study, text, variants, complaints)
    if len(find.metric) > 1 and complaints.trusts(("find", "metric")):
        working = [text for text in find.metric if asks_whether_it_works(study, text)]
        if working:
            complaints.add(("find", "metric"), f"{quoted(working[0])} is another search; ask for it alone")


def _check_metric(study: Study, text: str, variants: tuple[str, ...], complaints: Complaints) -> None:
    errors: list[TargetError] = []
    for variant in variants:
        try:
            resolve_goal(study, (text,), variant)
        except TargetError as error:
            errors.append(error)
    ambiguous = [error for error in errors if not error.unknown]
    if ambiguous or len(errors) == len(variants):
        # of what the variants say, the one with the most choices
        complaints.add(("find", "metric"), max((str(error) for error in ambiguous or errors), key=len))


def _check_benchmark(study: Study, benchmark: str, path: KeyPath, complaints: Complaints) -> bool:
    """Whether a derived metric's benchmark is there, so that its value can be checked."""
    if benchmark in study.benchmarks:
        return True
    at = (*path, "benchmark")
    if not complaints.trusts(("benchmark",)):
        return False
    if not benchmark:
        complaints.add(at, f"missing; say which benchmark: {listed(study.benchmarks)}", about=at)
    else:
        wrong = f"no benchmark {quoted(benchmark)}{suggestion(benchmark, study.benchmarks)}"
        complaints.add(at, wrong, about=("benchmark", benchmark))
    return False


def _check_value(study: Study, name: str, complaints: Complaints) -> None:
    derived, path = study.derived[name], ("derived", name, "value")
    try:
        expression = parse(derived.value)
    except ExpressionError as error:
        complaints.add(path, f"{quoted(derived.value)}, character {error.position + 1}: {error}")
        return
    used = references(expression)
    if not used:
        complaints.add(path, f"{quoted(derived.value)} uses no metric")
    for reference in used:
        _check_reference(study, derived.benchmark, reference, path, complaints)
    trusted = complaints.trusts(path) and complaints.clean(("benchmark",), ("variants",))
    if trusted and not any(derived_targets(study, name, variant) for variant in study.variants):
        wrong = f"needs points that benchmark.{derived.benchmark}.exclude leaves out in every variant"
        complaints.add(path, wrong)


def _check_reference(
    study: Study, name: str, reference: Reference, path: KeyPath, complaints: Complaints
) -> None:
    benchmark = study.benchmarks[name]
    known = (*benchmark.metrics, *benchmark.measured)
    if reference.name in study.derived and reference.name not in known:
        complaints.add(path, f"{quoted(reference.name)} is derived itself; write what it is computed from")
    elif reference.name not in known:
        wrong = f"no metric {quoted(reference.name)} in benchmark {name}{suggestion(reference.name, known)}"
        complaints.add(path, wrong, about=("benchmark", name, "metrics", reference.name))
    for parameter, value in reference.point.values:
        try:
            known_value(benchmark, parameter, value)
        except TargetError as error:
            complaints.add(path, f"{reference}: {error}", about=("benchmark", name, "parameters", parameter))
