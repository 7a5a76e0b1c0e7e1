"""Files that builds open by themselves: a change of their content is another build, which is restored with them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from perftrail.builds import named_files
from perftrail.builds.artefact import content_of_opened
from perftrail.builds.opened_files import ObservedBuilds, present_state
from perftrail.model.build import Built, Prepared
from perftrail.model.subject import Subject
from tests.builds.subject_builder import Project, recipe
from tests.needs import needs


class Observations(dict[str, Mapping[str, str]]):
    """Observed contents by state, as a store has them."""

    def observe(self, study: Path, *names: str) -> None:
        """Observe that a benchmark with the key ``k`` opens these files in the present state."""
        state = present_state("k", self.get, study=study)
        self[state.key] = {name: content_of_opened(study / name) for name in names}


def test_nothing_changed_before_the_first_observation_and_directly_after_it(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    observations = Observations()
    assert present_state("k", observations.get, study=tmp_path).changes == ()
    observations.observe(tmp_path, "a")
    state = present_state("k", observations.get, study=tmp_path)
    assert (state.observed, state.changes, state.files) == (True, (), ("a",))


def test_each_state_has_its_own_key_and_a_restored_one_has_its_key_again(tmp_path: Path) -> None:
    observations = Observations()
    for name in ("a", "b"):
        (tmp_path / name).write_text("1")
    observations.observe(tmp_path, "a")
    (tmp_path / "a").write_text("2")
    second = present_state("k", observations.get, study=tmp_path)
    assert (second.observed, second.changed, len(second.changes)) == (False, ("a",), 1)
    # In the second state, the benchmark opens another file.
    observations.observe(tmp_path, "a", "b")
    assert present_state("k", observations.get, study=tmp_path).changes == second.changes
    (tmp_path / "b").write_text("2")
    third = present_state("k", observations.get, study=tmp_path)
    assert (third.changes[:1], third.changed, len(third.changes)) == (second.changes, ("b",), 2)
    (tmp_path / "a").write_text("1")
    assert present_state("k", observations.get, study=tmp_path).changes == ()


def test_a_file_that_is_removed_is_a_change(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    observations = Observations()
    observations.observe(tmp_path, "a")
    (tmp_path / "a").unlink()
    assert present_state("k", observations.get, study=tmp_path).changed == ("a",)


def test_the_first_of_several_parallel_builds_is_the_observed_one(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    content = content_of_opened(tmp_path / "a")
    first, second = (ObservedBuilds(tmp_path / "observed", study=tmp_path) for _ in range(2))
    assert not first.of("k").observed
    assert not second.of("k").observed
    first.add("k", {"a": content})
    second.add("k", {})
    assert second.of("k").files == ("a",)


@pytest.mark.parametrize("damage", ["", "[]", '{"opened": []}', "{}"])
def test_a_damaged_observation_of_builds_counts_as_missing(tmp_path: Path, damage: str) -> None:
    (tmp_path / "a").write_text("1")
    ObservedBuilds(tmp_path / "observed", study=tmp_path).add("k", {"a": "another content"})
    assert ObservedBuilds(tmp_path / "observed", study=tmp_path).of("k").changed == ("a",)
    (tmp_path / "observed" / "k.json").write_text(damage)
    assert ObservedBuilds(tmp_path / "observed", study=tmp_path).of("k").observed is False


def test_an_observation_without_all_files_is_not_complete(tmp_path: Path) -> None:
    builds = ObservedBuilds(tmp_path / "observed", study=tmp_path)
    assert not builds.is_complete("k")
    builds.add("k", {}, incomplete="the build asks another process")
    assert (builds.of("k").observed, builds.is_complete("k")) == (True, False)
    builds.add("other", {})
    assert builds.is_complete("other")


def test_another_environment_is_another_state_of_builds_for_every_process(tmp_path: Path) -> None:
    first, second = (ObservedBuilds(tmp_path / "observed", study=tmp_path) for _ in range(2))
    second.add("k", {})
    assert first.of("k").changes == second.of("k").changes == ()
    first.add_environment("k", "outputs")
    assert first.of("k").changes == second.of("k").changes == ("outputs",)
    assert not second.is_complete("k")


@pytest.fixture
def outside(project: Project, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A header outside of the tree and of the study, which the program of a project prints."""
    monkeypatch.setattr(named_files, "temporary_directories", tuple)
    header = project.root.with_name(f"{project.root.name}-outside") / "number.h"
    header.parent.mkdir()
    header.write_text("#define NUMBER 1\n")
    return header


def files(header: Path) -> dict[str, str]:
    program = (
        '#include <stdio.h>\n#include "number.h"\nint main(void) { return printf("%d\\n", NUMBER) < 0; }\n'
    )
    return {
        "program.c": program,
        "Makefile": f"program: program.c\n\tcc -I{header.parent} -o $@ $<\n",
    }


@needs("strace")
def test_a_changed_header_outside_of_the_tree_is_another_build(project: Project, outside: Path) -> None:
    revision = project.commit(files(outside))
    make = recipe("make program", outputs=("program",))
    first = project.build(revision, make)
    outside.write_text("#define NUMBER 2\n")
    second = project.build(revision, make)
    assert (second.key != first.key, second.artefact != first.artefact) == (True, True)
    outside.write_text("#define NUMBER 1\n")
    restored = project.build(revision, make)
    assert (restored.key, restored.reused) == (first.key, True)


@needs("strace")
def test_a_changed_header_of_a_benchmark_build_is_another_benchmark_build(
    project: Project, outside: Path
) -> None:
    built = project.build(project.commit(), recipe("make", outputs=("program",)))
    (project.root / "main.c").write_text(files(outside)["program.c"])
    steps = (f"cc -I{outside.parent} -o {{out}}/main {{study}}/main.c",)

    def prepare() -> str:
        done = project.builder().prepare(built, steps=steps, env={}, files=(), timeout_seconds=60.0)
        assert isinstance(done, Prepared), done
        return done.artefact

    first = prepare()
    outside.write_text("#define NUMBER 2\n")
    second = prepare()
    outside.write_text("#define NUMBER 1\n")
    assert (second != first, prepare()) == (True, first)


UNTRACED = "grep -q 'TracerPid:[[:space:]]*0' /proc/$$/status"
"""A line that fails under strace."""


@needs("strace")
def test_a_build_that_fails_only_under_strace_is_repeated_without_it(project: Project) -> None:
    builder = project.builder()
    outcome = builder.build(
        Subject(revision=project.commit(), variant="plain"),
        recipe("test ! -e program", "make", UNTRACED, outputs=("program",)),
    )
    assert isinstance(outcome, Built), outcome
    assert not (project.builds / "observed").exists()


@needs("strace")
def test_a_new_header_that_is_found_first_is_another_build_and_settings_are_not(
    project: Project, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = outside.with_name("home")
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    first = outside.with_name("first")
    first.mkdir()
    lines = files(outside)
    make = lines["Makefile"].replace("cc", f"cat {home}/.settings 2>/dev/null; cc -I{first}")
    revision = project.commit({**lines, "Makefile": make})
    make_program = recipe("make program", outputs=("program",))
    before = project.build(revision, make_program)
    (home / ".settings").write_text("1\n")
    assert project.build(revision, make_program).key == before.key
    (first / "number.h").write_text("#define NUMBER 2\n")
    after = project.build(revision, make_program)
    assert (after.key != before.key, after.artefact != before.artefact) == (True, True)
