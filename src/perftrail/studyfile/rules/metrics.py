"""Rules for metrics, `[derived]`, `[find]` and `[claims]`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from perftrail.model.expression import ExpressionError, parse, references
from perftrail.model.metrics import COUNTED, OWN_METRICS
from perftrail.model.study import read_band
from perftrail.model.target import (
    TargetError,
    claimed_metric,
    derived_targets,
    known_value,
    names_works,
    parse_metric,
    resolve_goal,
    resolve_points,
)
from perftrail.model.wording import listed, quoted, suggestion
from perftrail.studyfile.rules.builds import names_readable
from perftrail.studyfile.rules.texts import inside_wrong, pattern_wrong

if TYPE_CHECKING:
    from perftrail.model.benchmark import Benchmark
    from perftrail.model.expression import Expression, Reference
    from perftrail.model.metrics import Metric
    from perftrail.model.study import Claim, Study
    from perftrail.studyfile.key_lines import KeyPath
    from perftrail.studyfile.problems import Problems


def check_metrics(study: Study, problems: Problems) -> None:
    """Report metrics that cannot be read from an output."""
    for name, benchmark in study.benchmarks.items():
        _check_counters(benchmark, ("benchmark", name), problems)
        for key, metric in benchmark.metrics.items():
            path = ("benchmark", name, "metrics", key)
            if key in OWN_METRICS:
                problems.add(path, f"{quoted(key)} is measured already; choose another name")
            _check_metric_table(metric, path, problems)


def _check_metric_table(metric: Metric, path: KeyPath, problems: Problems) -> None:
    if metric.reads is None:
        if not metric.pattern:
            needed = "needs a pattern, or reads, which names the format that the benchmark prints"
            problems.add(path, needed, about=(*path, "reads"))
        elif wrong := pattern_wrong(metric.pattern):
            problems.add((*path, "pattern"), wrong)
        if metric.item:
            problems.add((*path, "item"), "needs reads, which names the format that the benchmark prints")
    elif metric.pattern:
        problems.add((*path, "pattern"), "a metric has a pattern or reads, not both")


def _check_counters(benchmark: Benchmark, path: KeyPath, problems: Problems) -> None:
    counter = benchmark.counted_alone
    if counter is None:
        return
    why = f"a benchmark that counts {counter} measures nothing else; write another benchmark for"
    others = [other for other in benchmark.counters if other != counter]
    if others:
        problems.add((*path, "counters"), f"{why} {listed(others, 'and')}")
    if benchmark.metrics:
        problems.add((*path, "metrics"), f"{why} {listed(map(quoted, benchmark.metrics), 'and')}")


def check_derived(study: Study, problems: Problems) -> None:
    """Report derived metrics that cannot be computed."""
    declared = {metric: name for name, each in study.benchmarks.items() for metric in each.metrics}
    for name, derived in study.derived.items():
        path = ("derived", name)
        if name in OWN_METRICS:
            problems.add(path, f"{quoted(name)} is measured already; choose another name")
        if name in declared:
            wrong = f"{quoted(name)} is a metric of benchmark {declared[name]} already; choose another name"
            problems.add(path, wrong)
        expression = _read_expression(derived.value, (*path, "value"), problems)
        if _check_benchmark(study, derived.benchmark, path, problems) and expression is not None:
            _check_value(study, name, expression, problems)


def check_find(study: Study, problems: Problems) -> None:
    """Report a missing or ambiguous metric or variant of a search.

    With several variants, the command line may choose one.
    """
    find, variants = study.find, tuple(study.variants)
    if find.variant is not None and find.variant in study.variants:
        variants = (find.variant,)
    elif find.variant is not None:
        unknown = f"no variant {quoted(find.variant)}{suggestion(find.variant, study.variants)}"
        problems.add(("find", "variant"), unknown, about=("variants", find.variant))
    if find.threshold is not None and find.threshold >= 1.0 and not _has_differences(study):
        problems.add(
            ("find", "threshold"),
            'must be below 1, as 0.05 or "5%"; a threshold in a unit needs a metric with scale = "difference"',
        )
    for index, path in enumerate(find.suspect):
        if wrong := inside_wrong(path, of="the revision's root"):
            problems.add(("find", "suspect"), wrong, item=index)
    if not find.metric or not names_readable(study, problems):
        return
    study = _without_wrong_exclusions(study, problems)
    for index, text in enumerate(find.metric):
        if _is_decidable(study, text, problems):
            _check_metric(study, text, variants, problems, item=index)
    if len(find.metric) > 1 and problems.is_correct(("find", "metric")):
        working = [text for text in find.metric if names_works(study, text)]
        if working:
            problems.add(
                ("find", "metric"), f"{quoted(working[0])} needs its own search; name no other metric"
            )


def _has_differences(study: Study) -> bool:
    declared = [metric.scale for each in study.benchmarks.values() for metric in each.metrics.values()]
    return "difference" in (*declared, *(each.scale for each in study.derived.values()))


def _without_wrong_exclusions(study: Study, problems: Problems) -> Study:
    """Return the study without exclusions that have a mistake: a missing point would follow from it."""
    benchmarks = {
        name: each if problems.clean(("benchmark", name, "exclude")) else replace(each, exclude=())
        for name, each in study.benchmarks.items()
    }
    return replace(study, benchmarks=benchmarks)


def _is_decidable(study: Study, text: str, problems: Problems) -> bool:
    """Return whether the study is right about the metric that a text names: it was read, and has no mistake itself."""
    try:
        name = parse_metric(text).name
    except TargetError:
        return True
    if name in study.derived:
        return problems.clean(("derived", name))
    declared = [metric for each in study.benchmarks.values() for metric in each.metrics]
    taken = {*OWN_METRICS, *declared}
    if name not in taken and (taken.intersection(study.derived) or set(OWN_METRICS).intersection(declared)):
        return False  # one of these needs another name, perhaps this one
    is_counted = any(name in metrics for metrics in COUNTED.values())
    return all(
        problems.readable(("benchmark", each, "metrics", name))
        and problems.is_correct(("benchmark", each, "parameters"))
        and not (is_counted and not problems.readable(("benchmark", each, "counters")))
        for each in study.benchmarks
    )


def _check_metric(
    study: Study, text: str, variants: tuple[str, ...], problems: Problems, *, item: int
) -> None:
    errors: list[TargetError] = []
    for variant in variants:
        try:
            if names_works(study, text):
                resolve_goal(study, (text,), variant)
            else:
                resolve_points(study, text, variant, most=2)  # one may mean that parameters are missing
        except TargetError as error:
            errors.append(error)
    ambiguous = [error for error in errors if not error.unknown]
    if ambiguous or (errors and len(errors) == len(variants)):
        # Report the message with the most choices.
        problems.add(
            ("find", "metric"), max((str(error) for error in ambiguous or errors), key=len), item=item
        )


def _check_benchmark(study: Study, benchmark: str, path: KeyPath, problems: Problems) -> bool:
    """Return whether a derived metric's benchmark exists, so that its value can be checked."""
    if benchmark in study.benchmarks:
        return True
    at = (*path, "benchmark")
    if not problems.is_correct(("benchmark",)):
        return False
    if not benchmark:
        problems.add(at, f"missing; choose a benchmark: {listed(study.benchmarks)}", about=at)
    else:
        wrong = f"no benchmark {quoted(benchmark)}{suggestion(benchmark, study.benchmarks)}"
        problems.add(at, wrong, about=("benchmark", benchmark))
    return False


def _read_expression(value: str, path: KeyPath, problems: Problems) -> Expression | None:
    """Return a derived metric's expression; `None` if it has a mistake of the syntax, which is reported."""
    try:
        return parse(value)
    except ExpressionError as error:
        problems.add(path, f"{quoted(value)}, character {error.position + 1}: {error}")
        return None


def _check_value(study: Study, name: str, expression: Expression, problems: Problems) -> None:
    derived, path = study.derived[name], ("derived", name, "value")
    used = references(expression)
    if not used:
        problems.add(path, f"{quoted(derived.value)} uses no metric")
    for reference in used:
        _check_reference(study, derived.benchmark, reference, path, problems)
    if not problems.is_correct(path) or not names_readable(study, problems):
        return
    study = _without_wrong_exclusions(study, problems)
    if not any(derived_targets(study, name, variant) for variant in study.variants):
        wrong = f"needs points that benchmark.{derived.benchmark}.exclude leaves out in every variant"
        problems.add(path, wrong)


def _check_reference(
    study: Study, name: str, reference: Reference, path: KeyPath, problems: Problems
) -> None:
    benchmark = study.benchmarks[name]
    known = (*benchmark.metrics, *benchmark.measured)
    if reference.name in study.derived and reference.name not in known:
        problems.add(path, f"{quoted(reference.name)} is derived itself; write what it is computed from")
    elif reference.name not in known:
        wrong = f"no metric {quoted(reference.name)} in benchmark {name}{suggestion(reference.name, known)}"
        problems.add(path, wrong, about=("benchmark", name, "metrics", reference.name))
    for parameter, value in reference.point.values:
        try:
            known_value(benchmark, parameter, value)
        except TargetError as error:
            problems.add(path, f"{reference}: {error}", about=("benchmark", name, "parameters", parameter))


_GROWTH = ("metric", "variant", "along")
NEEDED = {"ratio": ("metric", "variant", "against"), "exponent": _GROWTH, "reaches": _GROWTH}
"""Required keys of a claim, by the key that states its condition."""


def check_claims(study: Study, problems: Problems) -> None:
    """Report claims that cannot be judged."""
    for name, claim in study.claims.items():
        path: KeyPath = ("claims", name)
        ways = [way for way in (*NEEDED, "cannot") if getattr(claim, way)]
        if len(ways) != 1:
            problems.add(path, f"needs one of {listed((*NEEDED, 'cannot'))}, and only one")
            continue
        (way,) = ways
        if way != "cannot":
            _check_judged(study, claim, way, path, problems)


def _check_judged(study: Study, claim: Claim, way: str, path: KeyPath, problems: Problems) -> None:
    try:
        read_band(getattr(claim, way))
    except ValueError as error:
        problems.add((*path, way), f"{quoted(getattr(claim, way))} {error}")
    lacking = [key for key in NEEDED[way] if not getattr(claim, key)]
    if lacking:
        problems.add(path, f"is judged by {way} and needs {listed(lacking, 'and')}, too")
        return
    for key in ("variant", "against"):
        named = getattr(claim, key)
        if named and named not in study.variants and problems.readable(("variants",), depth=1):
            problems.add((*path, key), f"no variant {quoted(named)}{suggestion(named, study.variants)}")
    if names_readable(study, problems) and _is_decidable(study, claim.metric, problems):
        _check_points(_without_wrong_exclusions(study, problems), claim, way, path, problems)


def _check_points(study: Study, claim: Claim, way: str, path: KeyPath, problems: Problems) -> None:
    try:
        metric = claimed_metric(study, claim.metric)
    except TargetError as error:
        problems.add((*path, "metric"), str(error))
        return
    if way == "reaches" and metric.name in study.derived:
        wrong = f"{quoted(metric.name)} is derived; reaches needs a measured metric"
        problems.add((*path, "metric"), wrong)
    assert metric.benchmark is not None
    benchmark = study.benchmarks[metric.benchmark]
    if claim.along and claim.along not in benchmark.parameters:
        wrong = f"no parameter {quoted(claim.along)}{suggestion(claim.along, benchmark.parameters)}"
        problems.add((*path, "along"), wrong)
    for parameter, values in claim.at.items():
        for value in values:
            try:
                known_value(benchmark, parameter, value)
            except TargetError as error:
                problems.add((*path, "at", parameter), str(error))
