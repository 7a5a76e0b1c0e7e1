"""What subjects and cells are made of and known by: recipes with their eras, links, runnables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.model.measurement import Runnable
from perftrail.model.placeholders import sources_named, study_files
from perftrail.model.plan import benchmark_steps, mentioning, named_sources, recipe, runnable_key
from perftrail.model.source import MAIN
from perftrail.workflows.linking import Link

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftrail.model.build import Built, Prepared, Recipe
    from perftrail.model.plan import Cell
    from perftrail.model.source import Pins
    from perftrail.model.study import Study
    from perftrail.model.subject import Revision, Subject
    from perftrail.ports import Source
    from perftrail.workflows.eras import Eras


class Makings:
    """Says of each subject and cell of a study what goes into it; makes nothing and asks no store."""

    def __init__(self, study: Study, eras: Eras, pins: Pins, others: Mapping[str, Source]) -> None:
        self._study = study
        self._eras = eras
        self._pins = pins
        self._others = others
        self._recipes: dict[tuple[object, ...], tuple[Recipe, tuple[str, ...]]] = {}

    def recipe(self, subject: Subject) -> Recipe:
        """The recipe that makes a subject, its eras and its variant considered."""
        eras = self._eras.of(self._pins.revision(MAIN, subject.revision))
        name = (subject.variant, *map(id, eras))
        if name not in self._recipes:
            found = recipe(self._study, subject.variant, eras)
            self._recipes[name] = (found, named_sources(found))
        how, named = self._recipes[name]
        return replace(how, sources=self._used(subject, named)) if named else how

    def own(self, subject: Subject) -> Subject:
        """Give a subject as it is built: with the revision of the study's own source, or of its folder."""
        folder = self._study.variants[subject.variant].directory
        if folder is not None:
            return replace(subject, revision=self._pins.folders[folder])
        return replace(subject, revision=self._pins.revision(MAIN, subject.revision))

    def _used(self, subject: Subject, names: Sequence[str]) -> Mapping[str, Revision]:
        return {name: self._pins.revision(name, subject.revision) for name in names}

    def link(self, cell: Cell, *, layout: int = 0) -> Link:
        """What a benchmark's own build takes in a cell, for a layout with the lines that relink it."""
        steps, env = benchmark_steps(self._study, cell, layout=layout), self.recipe(cell.subject).env
        named = sources_named((*steps, *env.values(), *mentioning(self._study, cell)))
        return Link(
            steps=steps,
            env=env,
            sources=self._used(cell.subject, named),
            files=tuple(
                str(Path(self._study.directory, name))
                for name in study_files(mentioning(self._study, cell), cell.point.as_dict())
            ),
        )

    def _beside(self, cell: Cell, built: Built, link: str) -> Mapping[str, str]:
        """Name what is in each other source's tree that a cell runs: its content, or what was built in it.

        `link` is the key of the benchmark's build. Where nothing says which files are made, the whole of what
        went into the build stands for them.
        """
        how, lines = self.recipe(cell.subject), self.link(cell)
        linked = sources_named((*lines.steps, *lines.env.values()))
        contents: dict[str, str] = {}
        for name in sources_named(mentioning(self._study, cell)):
            if name in how.sources:
                told = any(name in sources_named([output]) for output in how.outputs)
                contents[name] = built.artefact if told else built.key
            elif name in linked:
                contents[name] = link
            else:
                contents[name] = self._others[name].content(lines.sources[name])
        return contents

    def runnable(self, cell: Cell, prepared: Prepared, link: str) -> Runnable:
        """Name what a cell starts; `link` is the key of the benchmark's build."""
        return Runnable(
            key=runnable_key(self._study, cell, prepared, beside=self._beside(cell, prepared.built, link)),
            revision=cell.subject.revision.id,
            variant=cell.subject.variant,
            benchmark=cell.benchmark,
            point=cell.point,
            artefact=prepared.artefact,
        )
