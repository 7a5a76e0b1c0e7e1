"""What a build can read about its revision, as docs/how-to/git.md describes: with real git, in clean and used trees."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from perftrail.model.build import Recipe
from perftrail.model.subject import Revision
from tests.builds.subject_builder import PROJECT, Project, recipe

NAMES_ITSELF = "(test -d .git && git describe --tags || echo an archive) > name"
A_DIRECTORY = 'ln -sfn "$(git rev-parse --absolute-git-dir)" .git'


def name_of(project: Project, revision: Revision, how: Recipe) -> str:
    return (Path(project.build(revision, how).directory) / "name").read_text().strip()


def two(project: Project) -> tuple[Revision, Revision]:
    first = project.commit()
    project.repository.tag("v1", first.id)
    return first, project.commit({**PROJECT, "README": "two\n"})


def test_a_build_that_wants_a_directory_can_be_given_one(project: Project) -> None:
    first, second = two(project)
    plain = recipe(NAMES_ITSELF, outputs=("name",))
    assert name_of(project, first, plain) == name_of(project, second, plain) == "an archive"
    with_names = recipe(A_DIRECTORY, NAMES_ITSELF, outputs=("name",))
    for how in (with_names, replace(with_names, incremental=True)):
        assert name_of(project, first, how) == "v1"
        assert name_of(project, second, how).startswith("v1-1-g")


def test_a_revisions_name_can_be_excluded_from_a_build(project: Project) -> None:
    first, second = two(project)
    how = recipe("(git describe --tags || echo unknown) > name", outputs=("name",))
    assert project.build(first, how).artefact != project.build(second, how).artefact
    without = replace(how, env={"GIT_DIR": "/nonexistent"})
    assert project.build(first, without).artefact == project.build(second, without).artefact


def test_a_recipe_that_names_the_revision_makes_each_one_by_itself(project: Project) -> None:
    first = project.commit()
    project.commit({**PROJECT, "README": "two\n"})
    reverted = project.commit()
    how = replace(recipe('echo "$NAME" > name', outputs=("name",)), env={"NAME": "0+g{revision}"})
    assert name_of(project, first, how) == f"0+g{first.id}"
    assert name_of(project, reverted, how) == f"0+g{reverted.id}"
