"""What a study asks to be measured, and in which order."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.model.build import Recipe, content_key
from perftrail.model.placeholders import fill_some
from perftrail.model.subject import Revision, Subject

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftrail.model.benchmark import Benchmark
    from perftrail.model.build import Prepared
    from perftrail.model.parameters import Point
    from perftrail.model.policies import Order
    from perftrail.model.recipe import Era
    from perftrail.model.study import Study


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A subject at one point of one benchmark: the smallest thing that is measured."""

    subject: Subject
    benchmark: str
    point: Point

    def __str__(self) -> str:
        point = f" {self.point}" if self.point.values else ""
        return f"{self.subject} {self.benchmark}{point}"


def subjects(study: Study, revisions: Sequence[Revision]) -> tuple[Subject, ...]:
    """Every revision in every variant, revision by revision."""
    return tuple(
        Subject(revision=revision, variant=name) for revision in revisions for name in study.variants
    )


def cells(study: Study, subject: Subject) -> tuple[Cell, ...]:
    """Everything that is measured of one subject."""
    return tuple(
        Cell(subject=subject, benchmark=name, point=point)
        for name, benchmark in study.benchmarks.items()
        for point in benchmark.points(subject.variant)
    )


def recipe(study: Study, variant: str, eras: Sequence[Era]) -> Recipe:
    """The recipe of a variant at a revision that lies in these eras; later eras win, the variant last."""
    build = study.build
    directory, steps, outputs, timeout = build.directory, build.steps, build.outputs, build.timeout_seconds
    env = dict(build.env)
    for era in eras:
        directory = directory if era.directory is None else era.directory
        steps = steps if era.steps is None else era.steps
        outputs = outputs if era.outputs is None else era.outputs
        timeout = timeout if era.timeout_seconds is None else era.timeout_seconds
        env.update(era.env)
    chosen = study.variants[variant]
    if chosen.rebuild:
        steps = steps if chosen.build.steps is None else chosen.build.steps
        env.update(chosen.build.env)
    return Recipe(directory=directory, steps=steps, env=env, timeout_seconds=timeout, outputs=outputs)


def run_environment(study: Study, cell: Cell) -> dict[str, str]:
    """The environment that a study adds for a cell, placeholders unfilled; the variant's wins."""
    return {**study.benchmarks[cell.benchmark].env, **study.variants[cell.subject.variant].run.env}


def mentioning(study: Study, cell: Cell) -> tuple[str, ...]:
    """Every text of a study in which what a cell runs, or what that uses, may be named."""
    benchmark = study.benchmarks[cell.benchmark]
    prefix = study.variants[cell.subject.variant].run.prefix
    return (benchmark.command, benchmark.stdin or "", *prefix, *run_environment(study, cell).values())


def runnable_key(study: Study, cell: Cell, prepared: Prepared) -> str:
    """Name everything that can matter to what a cell's invocation gives, and nothing else.

    The subject's artefact counts only when the command or its environment mentions ``{build}``: what is
    linked into the benchmark is named by the benchmark's own artefact already.
    """
    benchmark = study.benchmarks[cell.benchmark]
    environment = run_environment(study, cell)
    mentioned = " ".join(mentioning(study, cell))
    return content_key(
        prepared.built.artefact if "{build}" in mentioned else "",
        prepared.artefact,
        cell.subject.revision.id if "{revision}" in mentioned else "",
        benchmark.command,
        benchmark.shell,
        benchmark.stdin,
        list(study.variants[cell.subject.variant].run.prefix),
        environment,
        cell.point.as_dict(),
        benchmark.timeout_seconds,
        benchmark.memory_limit_bytes,
        _metrics_content(benchmark),
    )


def _metrics_content(benchmark: Benchmark) -> Mapping[str, list[str]]:
    content = {name: [metric.pattern, metric.pick] for name, metric in benchmark.metrics.items()}
    return {**content, "counters": sorted(benchmark.counters)} if benchmark.counters else content


def ordered(runnables: Sequence[str], number: int, *, order: Order, seed: int) -> tuple[str, ...]:
    """Put the runnables of one round into order.

    ``interleaved``: forward and backward in turn (ABBA), so that linear drift hits all alike; ``random``:
    a permutation of its own for each round; ``sequential``: as they come.

    >>> [ordered(["a", "b"], number, order="interleaved", seed=1) for number in (0, 1)]
    [('a', 'b'), ('b', 'a')]
    """
    if order == "interleaved":
        return tuple(runnables) if number % 2 == 0 else tuple(reversed(runnables))
    if order == "random":
        return tuple(sorted(runnables, key=lambda key: content_key(seed, number, key)))
    return tuple(runnables)


def larger(cell: Cell, than: Cell) -> bool:
    """Whether a cell asks for more than another of the same subject and benchmark: an axis further up.

    Every number at least as large, one larger, every text the same.
    """
    if (cell.subject, cell.benchmark) != (than.subject, than.benchmark) or cell.point == than.point:
        return False
    return all(
        value >= other
        if isinstance(value, int | float) and isinstance(other, int | float)
        else value == other
        for (_, value), (_, other) in zip(cell.point.values, than.point.values, strict=True)
    )


def benchmark_steps(study: Study, cell: Cell) -> tuple[str, ...]:
    """A benchmark's own build lines with revision and parameters filled in, shell-quoted."""
    filled = {name: str(value) for name, value in cell.point.as_dict().items()}
    filled["revision"] = cell.subject.revision.id
    return tuple(fill_some(step, filled, shlex.quote) for step in study.benchmarks[cell.benchmark].build)
