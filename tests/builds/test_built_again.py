"""A build of an earlier session, whose files outside of its tree are unknown, is built once more before an answer."""

from __future__ import annotations

import socket
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from perftrail.builds import builder as builders
from perftrail.builds import named_files
from perftrail.builds.artefact import read_finished, write_finished
from perftrail.builds.builder import LocalBuilder
from perftrail.errors import ChangedEnvironment
from perftrail.model.build import Built
from perftrail.model.subject import Subject
from tests.builds.subject_builder import Project, recipe
from tests.needs import needs

FIRST, SECOND = "2026-11-01 boot-1", "2026-11-02 boot-2"


class Outside:
    """A project that copies a file from outside of its tree and of the study, and counts its builds."""

    def __init__(self, project: Project, *, more: str = "true") -> None:
        directory = project.root.with_name(f"{project.root.name}-outside")
        directory.mkdir()
        self.file, self.starts = directory / "table", directory / "starts"
        self.file.write_text("1\n")
        self.project = project
        self.revision = project.commit(
            {"copy.sh": f"echo >> {self.starts}; cp {self.file} program; {more}\n"}
        )
        self.recipe = recipe("sh copy.sh", outputs=("program",))

    @property
    def count(self) -> int:
        """Number of builds since the last call."""
        number = len(self.starts.read_text()) if self.starts.exists() else 0
        self.starts.unlink(missing_ok=True)
        return number

    def build(self, builder: LocalBuilder) -> Built:
        built = builder.build(Subject(revision=self.revision, variant="plain"), self.recipe)
        assert isinstance(built, Built), built
        return built

    def confirm(self, builder: LocalBuilder) -> None:
        builder.confirm([(Subject(revision=self.revision, variant="plain"), self.recipe)])


@pytest.fixture(autouse=True)
def _not_observed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(named_files, "temporary_directories", tuple)
    monkeypatch.setattr(builders, "observer", lambda: None)
    monkeypatch.setattr(builders, "recorder_path", lambda: None)


def session(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(builders, "present_session", lambda: name)


def test_a_build_of_this_session_is_not_built_again(project: Project) -> None:
    outside = Outside(project)
    builder = project.builder()
    outside.build(builder)
    outside.confirm(builder)
    assert outside.count == 1


def test_equal_outputs_are_reused_and_compared_once_in_each_session(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = Outside(project)
    session(monkeypatch, FIRST)
    first = outside.build(project.builder())
    assert outside.count == 1
    session(monkeypatch, SECOND)
    builder = project.builder()
    for _ in range(2):
        outside.confirm(builder)
    assert outside.count == 1
    (message,) = builder.messages()
    assert message.endswith(" of 2026-11-01 once more: it has equal outputs")
    again = outside.build(project.builder())
    assert (again.key, again.artefact, again.reused) == (first.key, first.artefact, True)
    assert (Path(first.directory) / "program").read_text() == "1\n"


@pytest.mark.parametrize("outputs", [("program",), ()])
def test_other_outputs_mean_another_environment(
    project: Project, monkeypatch: pytest.MonkeyPatch, outputs: tuple[str, ...]
) -> None:
    outside = Outside(project)
    outside.recipe = replace(outside.recipe, outputs=outputs)
    session(monkeypatch, FIRST)
    first = outside.build(project.builder())
    outside.file.write_text("2\n")
    session(monkeypatch, SECOND)
    builder = project.builder()
    with pytest.raises(ChangedEnvironment, match="environment of builds changed since 2026-11-01"):
        outside.confirm(builder)
    second = outside.build(builder)
    assert (second.key != first.key, second.artefact != first.artefact) == (True, True)
    assert (Path(second.directory) / "program").read_text() == "2\n"
    assert outside.build(project.builder()).key == second.key
    outside.confirm(project.builder())
    assert outside.count == 4, "the first one, two for the comparison, and the new one"


def test_a_build_with_other_outputs_each_time_says_nothing_about_the_environment(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = Outside(project, more="date +%N >> program")
    session(monkeypatch, FIRST)
    first = outside.build(project.builder())
    session(monkeypatch, SECOND)
    builder = project.builder()
    outside.confirm(builder)
    assert "it has other outputs each time" in builder.messages()[0]
    assert outside.build(project.builder()).artefact == first.artefact


def test_a_build_that_fails_now_stays_and_is_reported(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = Outside(project)
    session(monkeypatch, FIRST)
    first = outside.build(project.builder())
    outside.file.unlink()
    session(monkeypatch, SECOND)
    builder = project.builder()
    outside.confirm(builder)
    assert "it fails now: " in builder.messages()[0]
    assert outside.build(project.builder()).reused
    assert (Path(first.directory) / "program").read_text() == "1\n"


@needs("strace")
def test_an_observed_build_is_not_built_again(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    outside = Outside(project)
    built = outside.build(project.builder())
    marker = Path(built.directory).parent / "built.json"
    finished = read_finished(marker)
    assert finished is not None
    write_finished(marker, replace(finished, session=FIRST))
    assert outside.count
    outside.confirm(project.builder())
    assert outside.count == 0


@needs("strace")
def test_a_build_that_asks_another_process_is_reported_and_built_again(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    outside = Outside(project, more=f"{sys.executable} -IS {project.root}/asks.py")
    with socket.create_server(("127.0.0.1", 0)) as server:
        (project.root / "asks.py").write_text(
            f"import socket; socket.create_connection(('127.0.0.1', {server.getsockname()[1]}))\n"
        )
        session(monkeypatch, FIRST)
        builder = project.builder()
        outside.build(builder)
        (message,) = builder.messages()
        assert "does not know each file that the build uses: the build asks another process at 127" in message
        session(monkeypatch, SECOND)
        assert outside.count
        outside.confirm(project.builder())
        assert outside.count == 1
