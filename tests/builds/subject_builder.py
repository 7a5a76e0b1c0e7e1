"""A small C project in a git repository and a builder for it, for the builder's tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from perftrail.builds.builder import LocalBuilder
from perftrail.model.build import Built, Failure, Recipe
from perftrail.model.source import Source as SourceTable
from perftrail.model.subject import Revision, Subject
from perftrail.ports import Source
from perftrail.process.launcher import Launcher
from perftrail.sources.git import GitSource
from tests.sources.repositories import Repository

PROGRAM = '#include <stdio.h>\nint main(void) { printf("%d\\n", 7); return 0; }\n'
MAKEFILE = "CFLAGS = -g -O1\nall: program\nprogram: program.c\n\t$(CC) $(CFLAGS) -o $@ $<\n"
PROJECT: Mapping[str, str] = {"program.c": PROGRAM, "Makefile": MAKEFILE, "README": "one\n"}


@dataclass
class Project:
    """A repository, with the arguments of a builder for it."""

    root: Path
    launcher: Launcher
    repository: Repository = field(init=False)

    def __post_init__(self) -> None:
        self.repository = Repository(self.root / "repository")

    def commit(self, files: Mapping[str, str] = PROJECT) -> Revision:
        return Revision(id=self.repository.commit(files))

    def builder(self, *, launcher: Launcher | None = None, source: Source | None = None) -> LocalBuilder:
        starter = launcher or self.launcher
        table = SourceTable(kind="git", location=str(self.repository.path))
        return LocalBuilder(
            source or GitSource(table, cache=str(self.root / "cache"), starter=starter),
            starter,
            builds=str(self.builds),
            logs=str(self.root / "logs"),
            study_directory=str(self.root),
            cpus=2,
        )

    @property
    def builds(self) -> Path:
        return self.root / "builds"

    def try_build(self, revision: Revision, recipe: Recipe, variant: str = "plain") -> Built | Failure:
        return self.builder().build(Subject(revision=revision, variant=variant), recipe)

    def build(self, revision: Revision, recipe: Recipe) -> Built:
        outcome = self.try_build(revision, recipe)
        assert isinstance(outcome, Built), outcome
        return outcome

    def failed(self, revision: Revision, recipe: Recipe) -> Failure:
        outcome = self.try_build(revision, recipe)
        assert isinstance(outcome, Failure), outcome
        return outcome


def recipe(
    *steps: str,
    outputs: tuple[str, ...] = (),
    env: Mapping[str, str] | None = None,
    directory: str = ".",
    timeout_seconds: float = 60.0,
) -> Recipe:
    return Recipe(
        directory=directory, steps=steps, env=env or {}, outputs=outputs, timeout_seconds=timeout_seconds
    )
