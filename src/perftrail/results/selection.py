"""Select cells of a plan with `--only` or `--metric`, and the targets of a comparison."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from perftrail.errors import UsageError
from perftrail.model.target import (
    TargetError,
    known_value,
    metric_names,
    names_works,
    parse_metric,
    targets,
    works_targets,
)
from perftrail.model.wording import quoted, suggestion

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from perftrail.model.benchmark import Point
    from perftrail.model.plan import Cell
    from perftrail.model.study import Study
    from perftrail.model.subject import Revision
    from perftrail.model.target import MetricReference, Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Cells that match one of the patterns of every name: `revision`, `variant`, `benchmark` or a parameter.

    If there are `places`, a cell must also be at one of them: a variant, a benchmark and a point.
    """

    rules: tuple[tuple[str, str], ...] = ()
    places: frozenset[tuple[str, str, Point]] = frozenset()

    def includes(self, cell: Cell) -> bool:
        """Whether the selection includes a cell. A parameter that a benchmark lacks does not exclude it."""
        if self.places and (cell.subject.variant, cell.benchmark, cell.point) not in self.places:
            return False
        return all(
            any(_matches(cell, name, pattern) for other, pattern in self.rules if other == name)
            for name in {name for name, _ in self.rules}
        )

    def includes_revision(self, revision: Revision) -> bool:
        """Whether the rules about revisions include one; no other rule depends on the revision."""
        patterns = [pattern for name, pattern in self.rules if name == "revision"]
        return not patterns or any(_matches_revision(revision, pattern) for pattern in patterns)

    @property
    def has_every_point(self) -> bool:
        """Whether it includes every variant, benchmark and point."""
        return not self.places and all(name == "revision" for name, _ in self.rules)

    def at(self, targets: Iterable[Target]) -> Selection:
        """Return the part of the selection at the points of these targets; all of it without a target."""
        places = frozenset((each.variant, each.benchmark, point) for each in targets for point in each.points)
        return replace(self, places=places)


def select(study: Study, texts: Sequence[str]) -> Selection:
    """Parse ``NAME=PATTERN`` or ``NAME=PATTERN,PATTERN`` rules.

    Raises `UsageError` for a name that the study lacks, and for a pattern of a variant, a benchmark or a parameter that
    matches nothing.
    """
    values: dict[str, dict[str, None]] = {
        "revision": {},
        "variant": dict.fromkeys(study.variants),
        "benchmark": dict.fromkeys(study.benchmarks),
    }
    for benchmark in study.benchmarks.values():
        for parameter, own in benchmark.parameters.items():
            values.setdefault(parameter, {}).update(dict.fromkeys(map(str, own)))
    names = values.keys()
    rules = []
    for text in texts:
        name, equals, pattern = text.partition("=")
        if not equals or name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            hint = f"; did you mean {near[0]}=…?" if near else f"; choose from {', '.join(sorted(names))}"
            mistake = f"no parameter {quoted(name)}" if equals else "write NAME=PATTERN"
            raise UsageError(f"--only {text}: {mistake}{hint}")
        if name != "revision":
            _check_pattern(text, name, pattern, tuple(values[name]))
        rules.append((name, pattern))
    return Selection(rules=tuple(rules))


def _check_pattern(text: str, name: str, pattern: str, values: Sequence[str]) -> None:
    """Raise `UsageError` if neither the whole pattern nor one of several matches any value."""
    if not any(fnmatchcase(value, each) for value in values for each in (pattern, *pattern.split(","))):
        raise UsageError(f"--only {text}: no {name} {quoted(pattern)}{suggestion(pattern, values)}")


def _matches(cell: Cell, name: str, pattern: str) -> bool:
    """Whether a rule includes a cell, with its whole pattern (a label may contain commas) or one of several."""
    if name == "revision":
        return _matches_revision(cell.subject.revision, pattern)
    return any(_matches_one(cell, name, each) for each in (pattern, *pattern.split(",")))


def _matches_revision(revision: Revision, pattern: str) -> bool:
    return any(
        revision.id.startswith(each)
        or any(fnmatchcase(text, each) for text in (revision.id, revision.label) if text)
        for each in (pattern, *pattern.split(","))
    )


def _matches_one(cell: Cell, name: str, pattern: str) -> bool:
    if name == "variant":
        return fnmatchcase(cell.subject.variant, pattern)
    if name == "benchmark":
        return fnmatchcase(cell.benchmark, pattern)
    point = cell.point.as_dict()
    return name not in point or fnmatchcase(str(point[name]), pattern)


TIMES = ("wall", "cpu")
"""Metrics of a benchmark that declares none: CPU time is less noisy, and wall time includes waiting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The wanted metrics: of benchmarks that match a pattern, by metric name; empty selects all."""

    benchmarks: tuple[str, ...] = ()
    metrics: tuple[MetricReference, ...] = ()

    def of(self, study: Study, benchmark: str, variant: str) -> tuple[Target, ...]:
        """Return the wanted targets of a benchmark in a variant at every point.

        Without metric names, these are the benchmark's declared metrics, or else its times, and derived
        metrics.
        """
        if self.benchmarks and not any(fnmatchcase(benchmark, pattern) for pattern in self.benchmarks):
            return ()
        if not self.metrics:
            leading = leading_metrics(study, benchmark)
            undeclared = [name for name in TIMES if name in study.benchmarks[benchmark].measured]
            names = dict.fromkeys((*leading, *(undeclared if TIMES[0] in leading else ())))
            return tuple(target for name in names for target in targets(study, benchmark, name, variant))
        found = {
            target.name: target
            for wanted in self.metrics
            if wanted.benchmark in (None, benchmark)
            for target in _named(study, benchmark, wanted.name, variant)
            if _fits(study, wanted, target)
        }
        return tuple(found.values())


def _named(study: Study, benchmark: str, metric: str, variant: str) -> tuple[Target, ...]:
    if metric in metric_names(study, benchmark):
        return targets(study, benchmark, metric, variant)
    return works_targets(study, benchmark, variant) if names_works(study, metric) else ()


def leading_metrics(study: Study, benchmark: str) -> tuple[str, ...]:
    """Return the metrics derived from a benchmark, and those that it declares, or else its time."""
    derived = [name for name, each in study.derived.items() if each.benchmark == benchmark]
    return (*derived, *study.benchmarks[benchmark].leading)


def choose(study: Study, *, benchmarks: tuple[str, ...], metrics: tuple[str, ...]) -> Choice:
    """Parse the command line's selection. Raises `UsageError` for names that the study lacks."""
    for pattern in benchmarks:
        if not any(fnmatchcase(name, pattern) for name in study.benchmarks):
            raise UsageError(
                f"--benchmark {pattern}: the study has no such benchmark{suggestion(pattern, study.benchmarks)}"
            )
    wanted = []
    for text in metrics:
        try:
            wanted.append(parse_metric(text))
        except TargetError as error:
            raise UsageError(f"--metric {text}: {error}") from error
    choice = Choice(benchmarks=benchmarks, metrics=tuple(wanted))
    for text, each in zip(metrics, wanted, strict=True):
        alone = Choice(benchmarks=benchmarks, metrics=(each,))
        if not any(alone.of(study, name, variant) for name in study.benchmarks for variant in study.variants):
            known = dict.fromkeys(name for one in study.benchmarks for name in metric_names(study, one))
            raise UsageError(
                f"--metric {text}: no benchmark has {quoted(each.name)} there{suggestion(each.name, known)}"
            )
    return choice


def metric_targets(study: Study, metrics: tuple[str, ...]) -> tuple[Target, ...]:
    """Return the targets that `--metric` names, in all variants. Raises `UsageError` for names that the study lacks."""
    if not metrics:
        return ()
    choice = choose(study, benchmarks=(), metrics=metrics)
    return tuple(
        target
        for benchmark in study.benchmarks
        for variant in study.variants
        for target in choice.of(study, benchmark, variant)
    )


def _fits(study: Study, wanted: MetricReference, target: Target) -> bool:
    """Whether a target is at the parameters that were named."""
    there = target.open_point.as_dict()
    try:
        fixed = {
            name: known_value(study.benchmarks[target.benchmark], name, value)
            for name, value in wanted.fixed.items()
        }
    except TargetError as error:
        if wanted.benchmark is None and len(study.benchmarks) > 1:
            return False  # another benchmark may have it
        raise UsageError(f"--metric {wanted.name}: {error}") from error
    return all(there.get(name) == value for name, value in fixed.items())
