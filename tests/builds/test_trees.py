"""The trees of other sources next to a build: whose content counts where, and who may change them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from perftrail.builds.builder import LocalBuilder
from perftrail.model.build import Built, Failure, Prepared, Recipe
from perftrail.model.source import Source as SourceTable
from perftrail.model.subject import Revision, Subject
from perftrail.sources.directory import DirectorySource
from perftrail.sources.git import GitSource
from tests.builds.subject_builder import Project, recipe
from tests.sources.repositories import Repository


class WithApplication:
    """A builder of the project with an application's history and a folder next to it."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.application = Repository(project.root / "app")
        (project.root / "folder").mkdir()
        (project.root / "folder" / "only").write_text("here")

    def commit(self, text: str) -> Revision:
        return Revision(id=self.application.commit({"app": text}))

    @property
    def folder(self) -> DirectorySource:
        return DirectorySource(SourceTable(kind="directory", location=str(self.project.root / "folder")))

    @property
    def builder(self) -> LocalBuilder:
        root, starter = self.project.root, self.project.launcher
        main, app = (
            GitSource(SourceTable(kind="git", location=str(path)), cache=str(root / "cache"), starter=starter)
            for path in (self.project.repository.path, self.application.path)
        )
        return LocalBuilder(
            main,
            starter,
            builds=str(self.project.builds),
            logs=str(root / "logs"),
            study_directory=str(root),
            cpus=2,
            others={"app": app},
            folders={"folder": self.folder},
        )

    def build(self, subject: Subject, how: Recipe) -> Built:
        outcome = self.builder.build(subject, how)
        assert isinstance(outcome, Built), outcome
        return outcome

    def prepared(self, built: Built, *steps: str, app: Revision) -> Prepared | Failure:
        return self.builder.prepare(
            built, steps=steps, env={}, files=(), timeout_seconds=60.0, sources={"app": app}
        )


@pytest.fixture
def with_application(project: Project) -> WithApplication:
    return WithApplication(project)


@pytest.fixture
def subject(project: Project) -> Subject:
    return Subject(revision=project.commit(), variant="plain")


def with_app(how: Recipe, app: Revision) -> Recipe:
    return replace(how, sources={"app": app})


def test_only_a_recipe_that_names_another_source_depends_on_it(
    with_application: WithApplication, subject: Subject
) -> None:
    one, two, same = with_application.commit("1"), with_application.commit("2"), with_application.commit("1")
    how = recipe("cp {source.app}/app got")
    keys = [with_application.builder.key(subject, with_app(how, app)) for app in (one, two, same)]
    assert keys[0] != keys[1]
    assert keys[0] == keys[2]
    assert with_application.builder.key(subject, recipe("true")) == with_application.project.builder().key(
        subject, recipe("true")
    )


def test_a_build_finds_the_tree_and_may_change_its_own_copy(
    with_application: WithApplication, subject: Subject
) -> None:
    app = with_application.commit("1")
    how = recipe("cp {source.app}/app got; echo more >> {source.app}/app")
    first = with_application.build(subject, with_app(how, app))
    second = with_application.build(subject, with_app(replace(how, env={"OTHER": "x"}), app))
    assert [(Path(built.directory) / "got").read_text() for built in (first, second)] == ["1", "1"]


def test_outputs_may_be_made_in_another_tree(with_application: WithApplication, subject: Subject) -> None:
    how = recipe("cp {source.app}/app {source.app}/made", outputs=("{source.app}/made",))
    texts = ("1", "1 # again", "1")
    built = [with_application.build(subject, with_app(how, with_application.commit(text))) for text in texts]
    assert built[0].artefact != built[1].artefact
    cut = recipe("cut -c1 {source.app}/app > {source.app}/made", outputs=("{source.app}/made",))
    alike = [
        with_application.build(subject, with_app(cut, with_application.commit(text))) for text in texts[:2]
    ]
    assert alike[0].key != alike[1].key
    assert alike[0].artefact == alike[1].artefact


def test_a_benchmark_has_trees_of_its_own_and_leaves_the_build_alone(
    with_application: WithApplication, subject: Subject
) -> None:
    built = with_application.build(subject, recipe("true"))
    outs = []
    for text in ("1", "2"):
        prepared = with_application.prepared(
            built, "cp {source.app}/app {out}/got", app=with_application.commit(text)
        )
        assert isinstance(prepared, Prepared), prepared
        outs.append((Path(prepared.out) / "got").read_text())
        named: Mapping[str, str] = with_application.builder.command_placeholders(prepared)
        assert (Path(named["source.app"]) / "app").read_text() == text
    assert outs == ["1", "2"]
    assert len(list(with_application.project.builds.glob("*/built.json"))) == 1


def test_a_benchmark_uses_the_tree_that_the_build_was_made_in(
    with_application: WithApplication, subject: Subject
) -> None:
    app = with_application.commit("1")
    built = with_application.build(subject, with_app(recipe("echo built > {source.app}/made"), app))
    prepared = with_application.prepared(built, "cp {source.app}/made {out}/", app=app)
    assert isinstance(prepared, Prepared), prepared
    assert (Path(prepared.out) / "made").read_text() == "built\n"


def test_a_missing_revision_fails_at_checkout(with_application: WithApplication) -> None:
    folder, project = with_application.folder, with_application.project
    subject = Subject(revision=folder.history()[0], variant="plain")
    builder = LocalBuilder(
        folder,
        project.launcher,
        builds=str(project.builds),
        logs=str(project.root / "logs"),
        study_directory=str(project.root),
        cpus=2,
        others={"app": folder},
    )
    # files that are not those that were listed are never passed off as the revision
    failed = builder.build(subject, with_app(recipe("true"), Revision(id="0")))
    assert isinstance(failed, Failure)
    assert failed.stage == "checkout"
    built = builder.build(subject, recipe("true"))
    assert isinstance(built, Built)
    unlinked = builder.prepare(
        built, steps=(), env={}, files=(), timeout_seconds=60.0, sources={"app": Revision(id="0")}
    )
    assert isinstance(unlinked, Failure)
    assert unlinked.stage == "checkout"


def test_a_variant_that_is_a_folder_has_nothing_else_in_its_tree(with_application: WithApplication) -> None:
    subject = Subject(revision=with_application.folder.history()[0], variant="folder")
    built = with_application.build(subject, replace(recipe("true"), root="folder"))
    assert [file.name for file in Path(built.directory).iterdir()] == ["only"]
