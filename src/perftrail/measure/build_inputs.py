"""What the builds of a study depend on: recipes, benchmark builds and runnables, from the study alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from perftrail.builds.artefact import content_of_files
from perftrail.builds.named_files import named_files
from perftrail.builds.repairs import repairs_key
from perftrail.model.benchmark import Point
from perftrail.model.build import Built, Failure, Prepared, content_key
from perftrail.model.measurement import Origin, Runnable
from perftrail.model.placeholders import fill, sources_named
from perftrail.model.plan import (
    benchmark_steps,
    command_line,
    named_sources,
    recipe_of,
    run_environment,
    texts_with_files,
)
from perftrail.model.runnable_key import RunnableKeys, runnable_key
from perftrail.model.source import MAIN
from perftrail.model.subject import Revision
from perftrail.ports import Source

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftrail.builds.toolchain import Toolchain
    from perftrail.measure.opened_inputs import OpenedInputs
    from perftrail.measure.sources import Eras
    from perftrail.model.build import Recipe
    from perftrail.model.plan import Cell
    from perftrail.model.recipe import Era
    from perftrail.model.source import Pins
    from perftrail.model.study import Study
    from perftrail.model.subject import Subject
    from perftrail.ports import Builder


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkBuild:
    """The inputs of a benchmark build, with the machine's placeholders still open."""

    steps: tuple[str, ...]
    env: Mapping[str, str]
    files: tuple[str, ...]
    sources: Mapping[str, Revision]

    def key(self, builder: Builder, built: Built) -> str:
        """Return the key of the benchmark build on a built subject."""
        return builder.benchmark_build_key(
            built, steps=self.steps, env=self.env, files=self.files, sources=self.sources
        )

    def prepare(self, builder: Builder, built: Built, *, timeout_seconds: float) -> Prepared | Failure:
        """Run the benchmark build on a built subject, for at most this time."""
        return builder.prepare(
            built,
            steps=self.steps,
            env=self.env,
            files=self.files,
            sources=self.sources,
            timeout_seconds=timeout_seconds,
        )


ANY_REVISION = Revision(id="{revision}")
"""Stands for every revision in an origin, which covers the study and not the revision."""


def programs_of(study: Study, cell: Cell, tools: Toolchain) -> Sequence[str]:
    """Return the identities of the programs that the lines and variables of a cell's benchmark name."""
    values = {name: str(value) for name, value in cell.point.as_dict().items()}
    path = fill(run_environment(study, cell).get("PATH", ""), {"study": study.directory})
    texts = [fill(text, values) for text in texts_with_files(study, cell)]
    return tools.programs(texts, path=path)


class BuildInputs:
    """Returns the inputs of each subject and cell of a study; builds nothing.

    `tools` are the programs of this machine; without them, nothing is built here. `opened` are the files that
    benchmarks open by themselves.
    """

    def __init__(
        self,
        study: Study,
        eras: Eras,
        pins: Pins,
        others: Mapping[str, Source],
        tools: Toolchain | None = None,
        opened: OpenedInputs | None = None,
    ) -> None:
        self._study = study
        self._tools = tools
        self._opened = opened
        self.eras = eras
        self._pins = pins
        self._others = others
        self._recipes: dict[tuple[object, ...], tuple[Recipe, tuple[str, ...]]] = {}
        self._origins: dict[tuple[object, ...], Origin] = {}
        self._steps: dict[tuple[object, ...], tuple[tuple[str, ...], tuple[str, ...]]] = {}
        self._without: dict[tuple[str, frozenset[str]], BuildInputs] = {}
        self._files: dict[tuple[tuple[str, ...], str], tuple[str, ...]] = {}

    @property
    def is_here(self) -> bool:
        """Whether the samples are those of this machine."""
        return self._tools is not None

    def recipe(self, subject: Subject) -> Recipe:
        """Return the recipe of a subject, with its eras and its variant applied."""
        recipe, named = self._plain_recipe(subject)
        return replace(recipe, sources=self._revisions_of(subject, named)) if named else recipe

    def eras_of(self, subject: Subject) -> Sequence[Era]:
        """Return the eras of a subject, in the order of the study file."""
        return self.eras.of(self._pins.revision(MAIN, subject.revision))

    def _plain_recipe(self, subject: Subject) -> tuple[Recipe, tuple[str, ...]]:
        """Return the recipe without its other sources, and their names; the same object for equal eras."""
        eras = self.eras_of(subject)
        name = (subject.variant, *map(id, eras))
        if name not in self._recipes:
            found = recipe_of(self._study, subject.variant, eras)
            self._recipes[name] = (found, named_sources(found))
        return self._recipes[name]

    def built_subject(self, subject: Subject) -> Subject:
        """Return a subject as it is built: with the revision of the study's own source, or of its folder."""
        folder = self._study.variants[subject.variant].directory
        if folder is not None:
            return replace(subject, revision=self._pins.folders[folder])
        return replace(subject, revision=self._pins.revision(MAIN, subject.revision))

    def _revisions_of(self, subject: Subject, names: Sequence[str]) -> Mapping[str, Revision]:
        return {name: self._pins.revision(name, subject.revision) for name in names}

    def recipe_key(self, recipe: Recipe) -> str:
        """Return the content key of a recipe: its lines, variables, files and the sandbox; no revision, no tool.

        Empty if a file that it names is missing, because its content is then unknown.
        """
        study = Path(self._study.directory)
        texts = (*recipe.steps, *recipe.env.values())
        named = self._named_files(texts, Point())
        files = (*named, *recipe.repairs.overlay.values(), *recipe.repairs.patches)
        if not all((study / file).exists() for file in files):
            return ""
        sandbox = self._study.sandbox
        return content_key(
            recipe.directory,
            recipe.root,
            list(recipe.steps),
            dict(recipe.env),
            list(recipe.outputs),
            recipe.incremental,
            content_of_files(named, below=study),
            list(repairs_key(recipe.repairs, study)),
            {name: revision.id for name, revision in recipe.sources.items()},
            sandbox.visible_settings("build") if sandbox.always else [],
        )

    def origin(self, cell: Cell) -> Origin:
        """Return how a cell is built and started; without a recipe if a file that it uses is missing."""
        plain, _ = self._plain_recipe(cell.subject)
        alike = (id(plain), cell.subject.variant, cell.benchmark, cell.point)
        if alike not in self._steps:
            any_revision = replace(cell, subject=replace(cell.subject, revision=ANY_REVISION))
            steps = benchmark_steps(self._study, any_revision)
            named = sources_named((*steps, *plain.env.values(), *texts_with_files(self._study, cell)))
            self._steps[alike] = steps, named
        steps, named = self._steps[alike]
        sources = {name: revision.id for name, revision in self._revisions_of(cell.subject, named).items()}
        recipe = self.recipe(cell.subject)
        others = tuple(revision.id for revision in recipe.sources.values())
        name = (*alike, *others, *sources.values())
        if name not in self._origins:
            self._origins[name] = self._origin(cell, recipe, steps, sources)
        return self._origins[name]

    def origin_without(self, cell: Cell, metrics: frozenset[str]) -> Origin:
        """Return the origin that a cell would have if its benchmark did not declare some metrics."""
        return self.without(cell, metrics).origin(cell)

    def without(self, cell: Cell, metrics: frozenset[str]) -> BuildInputs:
        """Return the inputs of the study without some metrics of a cell's benchmark."""
        name = (cell.benchmark, metrics)
        if name not in self._without:
            benchmark = self._study.benchmarks[cell.benchmark]
            fewer = {name: metric for name, metric in benchmark.metrics.items() if name not in metrics}
            benchmarks = {**self._study.benchmarks, cell.benchmark: replace(benchmark, metrics=fewer)}
            study = replace(self._study, benchmarks=benchmarks)
            self._without[name] = BuildInputs(
                study, self.eras, self._pins, self._others, self._tools, self._opened
            )
        return self._without[name]

    def _origin(self, cell: Cell, recipe: Recipe, steps: Sequence[str], sources: Mapping[str, str]) -> Origin:
        study = Path(self._study.directory)
        texts = texts_with_files(self._study, cell)
        files = (*self._named_files(tuple(steps), cell.point), *self._named_files(texts, cell.point))
        build = self.recipe_key(recipe)
        lines = (*recipe.steps, *recipe.env.values(), *steps)
        tools = self._tools.fingerprint(lines) if self._tools else ()
        complete = build and all((study / file).exists() for file in files)
        content = (
            build,
            list(steps),
            sources,
            content_of_files(files, below=study),
            RunnableKeys(self._study, cell).content,
        )
        return Origin(
            recipe=content_key(*content) if complete else "",
            lines=(*recipe.steps, *steps, command_line(self._study, cell)),
            tools=tuple(dict.fromkeys((*tools, *self._programs(cell)))),
        )

    def _programs(self, cell: Cell) -> Sequence[str]:
        """Return the identities of the programs that the lines and variables of a cell's benchmark name."""
        return () if self._tools is None else programs_of(self._study, cell, self._tools)

    def benchmark_build(self, cell: Cell, *, layout: int = 0) -> BenchmarkBuild:
        """Return the inputs of a cell's benchmark build, with the recipe's relink lines for a layout."""
        steps, env = benchmark_steps(self._study, cell, layout=layout), self.recipe(cell.subject).env
        texts, study = texts_with_files(self._study, cell), Path(self._study.directory)
        named = sources_named((*steps, *env.values(), *texts))
        return BenchmarkBuild(
            steps=steps,
            env=env,
            sources=self._revisions_of(cell.subject, named),
            files=tuple(str(study / name) for name in self._named_files(texts, cell.point)),
        )

    def _named_files(self, texts: tuple[str, ...], point: Point) -> tuple[str, ...]:
        """Return the files that texts name at a point; search the same texts once."""
        key = texts, repr(point)  # the values 1 and 1.0 are equal, but their names of files differ
        if key not in self._files:
            self._files[key] = named_files(texts, point.as_dict(), below=Path(self._study.directory))
        return self._files[key]

    def _other_contents(self, cell: Cell, built: Built, benchmark_build_key: str) -> Mapping[str, str]:
        """Return the content keys of the other sources' trees that a cell runs, or of their builds.

        If nothing names the built files, the key of all build inputs represents them.
        """
        recipe, lines = self.recipe(cell.subject), self.benchmark_build(cell)
        sources_of_benchmark = sources_named((*lines.steps, *lines.env.values()))
        contents: dict[str, str] = {}
        for name in sources_named(texts_with_files(self._study, cell)):
            if name in recipe.sources:
                result = any(name in sources_named([output]) for output in recipe.outputs)
                contents[name] = built.artefact if result else built.key
            elif name in sources_of_benchmark:
                contents[name] = benchmark_build_key
            else:
                contents[name] = self._others[name].content(lines.sources[name])
        return contents

    def runnable(self, cell: Cell, prepared: Prepared, benchmark_build_key: str) -> Runnable:
        """Return what a cell starts."""
        unchanged = runnable_key(
            self._study,
            cell,
            prepared,
            other_contents=self._other_contents(cell, prepared.built, benchmark_build_key),
            programs=self._programs(cell),
        )
        return Runnable(
            key=unchanged if self._opened is None else self._opened.key(cell, unchanged),
            revision=cell.subject.revision.id,
            variant=cell.subject.variant,
            benchmark=cell.benchmark,
            point=cell.point,
            artefact=prepared.artefact,
            origin=self.origin(cell),
        )


NO_OTHERS: Mapping[str, Source] = MappingProxyType({})
