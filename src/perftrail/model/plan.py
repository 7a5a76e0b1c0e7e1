"""Measurement plan of a study: cells, recipes, content keys and order."""

from __future__ import annotations

import posixpath
import shlex
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from perftrail.model.build import Recipe, Repairs, content_key
from perftrail.model.fixture import fixture_texts
from perftrail.model.placeholders import LAYOUT, fill_some, insert_texts, names, sources_named
from perftrail.model.subject import Revision, Subject

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.model.benchmark import Point
    from perftrail.model.recipe import Build, Era, VariantBuild
    from perftrail.model.study import Order, Study


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A subject at one point of one benchmark: the smallest unit of measurement."""

    subject: Subject
    benchmark: str
    point: Point

    def __str__(self) -> str:
        point = f" {self.point}" if self.point.values else ""
        return f"{self.subject} {self.benchmark}{point}"


def subjects(study: Study, revisions: Sequence[Revision]) -> tuple[Subject, ...]:
    """Return every revision in every variant, revision by revision."""
    return tuple(
        Subject(revision=revision, variant=name) for revision in revisions for name in study.variants
    )


def cells(study: Study, subject: Subject) -> tuple[Cell, ...]:
    """Return every cell of one subject."""
    return tuple(
        Cell(subject=subject, benchmark=name, point=point)
        for name, benchmark in study.benchmarks.items()
        for point in benchmark.points(subject.variant)
    )


def recipe_of(study: Study, variant: str, eras: Sequence[Era]) -> Recipe:
    """Return the recipe of a variant at a revision in these eras; later eras win, the variant last.

    Variables and repairs accumulate; for equal names or paths, the later one wins.
    """
    build = study.build
    directory, steps, outputs, timeout = build.directory, build.steps, build.outputs, build.timeout_seconds
    relink = build.relink
    env = dict(build.env)
    for era in eras:
        directory = directory if era.directory is None else era.directory
        steps = steps if era.steps is None else era.steps
        outputs = outputs if era.outputs is None else era.outputs
        timeout = timeout if era.timeout_seconds is None else era.timeout_seconds
        relink = relink if era.relink is None else era.relink
        env.update(era.env)
    chosen = study.variants[variant]
    if chosen.rebuild:
        own = chosen.build
        directory = directory if own.directory is None else own.directory
        steps = steps if own.steps is None else own.steps
        outputs = outputs if own.outputs is None else own.outputs
        relink = relink if own.relink is None else own.relink
        env.update(own.env)
    return Recipe(
        directory=directory,
        steps=steps,
        env=env,
        timeout_seconds=timeout,
        outputs=outputs,
        repairs=_repairs((build, *eras, *([chosen.build] if chosen.rebuild else []))),
        root=chosen.directory or "",
        incremental=build.incremental and bool(outputs),
        unaffected_by=build.unaffected_by,
        relink=relink,
        pin=build.pin,
    )


def _repairs(parts: Sequence[Build | Era | VariantBuild]) -> Repairs:
    """Combine repairs: the later file wins a path; each patch applies once, at its first position."""
    overlay = {posixpath.normpath(path): file for part in parts for file, path in part.overlay.items()}
    patches = (posixpath.normpath(file) for part in parts for file in part.patch)
    return Repairs(overlay=overlay, patches=tuple(dict.fromkeys(patches)))


def named_sources(recipe: Recipe) -> tuple[str, ...]:
    """Return the other sources whose trees a recipe mentions."""
    return sources_named((*recipe.steps, *recipe.relink, *recipe.env.values(), *recipe.outputs))


def command_line(study: Study, cell: Cell) -> str:
    """Return the command of a cell's benchmark with the variant's parts; other placeholders stay."""
    return with_parts(study, cell, study.benchmarks[cell.benchmark].command_at(cell.point))


def with_parts(study: Study, cell: Cell, text: str) -> str:
    """Insert a variant's parts unchanged, so that their placeholders stay open."""
    return insert_texts(text, study.variants[cell.subject.variant].run.parts)


def run_environment(study: Study, cell: Cell) -> dict[str, str]:
    """Return a cell's environment variables with open placeholders; the variant's override others."""
    return {**study.benchmarks[cell.benchmark].env, **study.variants[cell.subject.variant].run.env}


def texts_with_files(study: Study, cell: Cell) -> tuple[str, ...]:
    """Return every text of a study that may mention a cell's files."""
    benchmark = study.benchmarks[cell.benchmark]
    prefix = study.variants[cell.subject.variant].run.prefix
    return (
        command_line(study, cell),
        benchmark.stdin or "",
        *prefix,
        *run_environment(study, cell).values(),
        *(with_parts(study, cell, text) for text in fixture_texts(study, benchmark)),
    )


def same_everywhere(study: Study, benchmark: str, variant: str) -> str:
    """Return why a benchmark runs the same program at every revision; empty if it uses the build or the revision."""
    if study.benchmarks[benchmark].directory is not None:
        return ""
    subject = Subject(revision=Revision(id=""), variant=variant)
    texts = [
        text
        for point in islice(study.benchmarks[benchmark].each_point(variant), 1)
        for text in texts_with_files(study, Cell(subject=subject, benchmark=benchmark, point=point))
    ]
    named = {name for text in texts for name in names(text)}
    if not texts or named & {"build", "out", "revision"} or sources_named(texts):
        return ""
    program = texts[0].split(maxsplit=1)[0]
    name = program.removeprefix("./")
    is_output = any(name in output.split("/") for output in study.build.outputs)
    meant = f"; did you mean {{build}}/{name}?" if program.startswith("./") or is_output else ""
    return (
        f"{texts[0]} names neither {{build}} nor {{out}}, so every revision would run the same program{meant}"
    )


def ordered(runnables: Sequence[str], number: int, *, order: Order, seed: int) -> tuple[str, ...]:
    """Return the runnables of one round in their order.

    ``interleaved``: forward and backward alternately, so that linear drift affects all alike. ``random``:
    another permutation in each round. ``sequential``: unchanged.

    >>> [ordered(["a", "b"], number, order="interleaved", seed=1) for number in (0, 1)]
    [('a', 'b'), ('b', 'a')]
    """
    if order == "interleaved":
        return tuple(runnables) if number % 2 == 0 else tuple(reversed(runnables))
    if order == "random":
        return tuple(sorted(runnables, key=lambda key: content_key(seed, number, key)))
    return tuple(runnables)


def larger(cell: Cell, than: Cell) -> bool:
    """Return whether a cell exceeds another of the same subject and benchmark along its axes."""
    same_kind = (cell.subject, cell.benchmark) == (than.subject, than.benchmark)
    return same_kind and cell.point.exceeds(than.point)


def benchmark_steps(study: Study, cell: Cell, *, layout: int = 0) -> tuple[str, ...]:
    """Return a benchmark's build lines with revision and parameters filled in, shell-quoted.

    For a layout above 0, its relink lines follow.
    """
    filled = {name: str(value) for name, value in cell.point.as_dict().items()}
    filled["revision"] = cell.subject.revision.id
    benchmark = study.benchmarks[cell.benchmark]
    steps = benchmark.build
    if layout:
        filled[LAYOUT] = str(layout)
        steps = (*steps, *benchmark.relink)
    lines = (with_parts(study, cell, step) for step in steps)
    return tuple(fill_some(step, filled, shlex.quote) for step in lines)
