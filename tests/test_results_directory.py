"""Only results directories of this user are used: not a repository's, a copy, or one with links."""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from perftrail import results_directory
from perftrail.errors import StoreError
from perftrail.results_directory import (
    DATABASE,
    DIRECTORIES,
    IDENTITY,
    RESULTS,
    accept,
    claiming,
    create,
    is_ours,
    target_of,
    verify,
)
from tests.cli.calling import called


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty state directory of the user."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """A function after which this process knows no more than another one."""

    def forget() -> None:
        for name in ("_ours", "_checked"):
            monkeypatch.setattr(results_directory, name, set())
        monkeypatch.setattr(results_directory, "_expected", [])
        results_directory._tracked.cache_clear()

    forget()
    return forget


def with_results(directory: Path) -> Path:
    """A results directory that nobody remembers, as a clone or an archive contains it."""
    (directory / "logs").mkdir(parents=True)
    (directory / DATABASE).write_bytes(b"")
    return directory


def refused(directory: Path) -> str:
    with pytest.raises(StoreError) as raised:
        verify(directory)
    return str(raised.value)


def test_a_directory_that_perftrail_created_is_recognised_later(
    tmp_path: Path, later: Callable[[], None]
) -> None:
    results = tmp_path / "study" / RESULTS
    assert verify(results) == results
    create(results)
    (results / DATABASE).touch()
    later()
    assert verify(results) == results
    assert (results / ".gitignore").read_text() == "*\n"
    results.parent.rename(tmp_path / "moved")
    later()
    verify(tmp_path / "moved" / RESULTS)


def test_a_directory_of_unknown_origin_is_refused_until_it_is_accepted(
    tmp_path: Path, later: Callable[[], None]
) -> None:
    results = with_results(tmp_path / "a study" / RESULTS)
    message = refused(results)
    assert "perftrail did not create this results directory for you on this machine" in message
    command = re.search(r"perftrail (store accept '[^']*')", message)
    assert command is not None
    assert command[1] == f"store accept '{results}'"
    accept(results)
    later()
    verify(results)


def test_two_users_accept_one_directory_and_both_use_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, later: Callable[[], None]
) -> None:
    create(tmp_path / RESULTS)
    (tmp_path / RESULTS / DATABASE).touch()
    shutil.copytree(tmp_path / RESULTS, tmp_path / "copy")
    for user in ("state", "other"):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / user))
        accept(tmp_path / RESULTS)
        accept(tmp_path / "copy")
    for user in ("state", "other"):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / user))
        later()
        verify(tmp_path / RESULTS)
        verify(tmp_path / "copy")


@pytest.mark.parametrize("named", [True, False])
def test_only_a_directory_without_a_name_must_be_writable_to_be_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, later: Callable[[], None], *, named: bool
) -> None:
    create(tmp_path / RESULTS)
    (tmp_path / RESULTS / DATABASE).touch()
    if not named:
        (tmp_path / RESULTS / IDENTITY).write_text("unnamed")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
    later()

    def refuse(*_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(results_directory, "_write", refuse)
    if named:
        accept(tmp_path / RESULTS)
        verify(tmp_path / RESULTS)
    else:
        with pytest.raises(StoreError, match=r"cannot be accepted: Read-only file system$"):
            accept(tmp_path / RESULTS)


def test_a_copy_is_another_directory_even_if_it_contains_the_name(
    tmp_path: Path, later: Callable[[], None]
) -> None:
    create(tmp_path / RESULTS)
    (tmp_path / RESULTS / DATABASE).touch()
    shutil.copytree(tmp_path / RESULTS, tmp_path / "clone" / RESULTS)
    later()
    assert (tmp_path / "clone" / RESULTS / IDENTITY).read_text() == (
        tmp_path / RESULTS / IDENTITY
    ).read_text()
    assert "did not create" in refused(tmp_path / "clone" / RESULTS)


def test_a_new_directory_with_the_inode_of_a_removed_one_is_refused(
    tmp_path: Path, state: Path, later: Callable[[], None]
) -> None:
    results = tmp_path / RESULTS
    create(results)
    shutil.rmtree(results)
    with_results(results)
    [record] = (state / "perftrail" / "results").iterdir()
    record.write_text(f"{os.getuid()} {results.stat().st_ino}\n")
    later()
    assert "did not create" in refused(results)


@pytest.mark.parametrize("empty", [True, False])
def test_a_missing_directory_stays_missing_and_is_remembered_when_a_block_created_it(
    tmp_path: Path, later: Callable[[], None], *, empty: bool
) -> None:
    results = verify(tmp_path / RESULTS)
    with claiming(results):
        pass
    assert not results.exists()
    if empty:
        results.mkdir()
    with claiming(results):
        (results / "sources").mkdir(parents=True)  # as the source's mirror does
        verify(results)
    later()
    verify(results)


def test_a_directory_that_appears_in_a_long_lived_process_is_refused(
    tmp_path: Path, later: Callable[[], None]
) -> None:
    results = verify(tmp_path / RESULTS)
    with claiming(results):
        pass
    with_results(results)
    assert "did not create" in refused(results)
    create(results)
    assert "did not create" in refused(results)
    shutil.rmtree(results)
    with claiming(results):
        with_results(results)  # with samples, which no such block writes
        assert "did not create" in refused(results)
    assert "did not create" in refused(results)


@pytest.mark.parametrize("left", [(), (".gitignore",), (IDENTITY,), (f"{IDENTITY}.0123",)])
def test_a_directory_whose_creation_was_interrupted_is_used(
    tmp_path: Path, left: tuple[str, ...], later: Callable[[], None]
) -> None:
    results = tmp_path / RESULTS
    results.mkdir()
    for name in left:
        (results / name).touch()
    create(verify(results))
    (results / DATABASE).touch()
    later()
    verify(results)


@pytest.mark.parametrize("name", [*sorted(DIRECTORIES), DATABASE, f"{DATABASE}.lock", "watch.json", "other"])
def test_links_and_pipes_are_refused_also_in_an_own_directory(
    tmp_path: Path, name: str, later: Callable[[], None]
) -> None:
    results, outside = tmp_path / "study" / RESULTS, tmp_path / "outside"
    outside.mkdir()
    create(results)
    (results / DATABASE).touch()
    (results / name).unlink(missing_ok=True)
    (results / name).symlink_to(outside)
    later()
    assert f"{results / name}: is a symbolic link, which perftrail does not create there" in refused(results)
    with pytest.raises(StoreError, match="is a symbolic link"):
        accept(results)
    (results / name).unlink()
    os.mkfifo(results / name)
    assert f"{results / name}: is a named pipe" in refused(results)
    (results / name).unlink()
    if name in DIRECTORIES:
        (results / name).touch()
        assert f"{results / name}: is a file" in refused(results)


def test_a_link_to_a_build_is_refused_and_links_of_programs_are_not(
    tmp_path: Path, later: Callable[[], None]
) -> None:
    results = tmp_path / RESULTS
    create(results)
    for name in ("scratch", "paths", "builds/key"):
        (results / name).mkdir(parents=True)
        (results / name / "link").symlink_to("/")
    later()
    verify(results)
    (results / "builds" / "other").symlink_to(tmp_path)
    later()
    assert f"{results}/builds/other: is a symbolic link" in refused(results)


@pytest.mark.parametrize(
    ("kind", "words"), [("link", "a symbolic link"), ("pipe", "a named pipe"), ("file", "a file")]
)
def test_the_directory_itself_is_a_directory(tmp_path: Path, kind: str, words: str) -> None:
    results = tmp_path / RESULTS
    match kind:
        case "link":
            create(tmp_path / "mine")
            results.symlink_to(tmp_path / "mine")
        case "pipe":
            os.mkfifo(results)
        case _:
            results.touch()
    assert f"{results}: is {words}, not a results directory" in refused(results)
    with pytest.raises(StoreError, match="not a results directory"):
        accept(results)


def test_a_directory_that_git_tracks_is_refused(tmp_path: Path, later: Callable[[], None]) -> None:
    results = tmp_path / "study" / RESULTS
    subprocess.run(["git", "init", "-q", "--template=", tmp_path], check=True)
    create(results)
    (results / DATABASE).touch()
    later()
    verify(results)
    subprocess.run(["git", "-C", tmp_path, "add", "-f", results / DATABASE], check=True)
    later()
    assert f"git tracks {RESULTS}/{DATABASE}" in refused(results)
    with pytest.raises(StoreError, match="git tracks"):
        accept(results)


def test_git_finds_tracked_files_of_another_users_repository_and_of_a_work_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, later: Callable[[], None]
) -> None:
    repository = tmp_path / "repository"
    git = ("git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-C", repository)
    subprocess.run(["git", "init", "-q", "--template=", repository], check=True)
    with_results(repository / "study" / RESULTS)
    subprocess.run([*git, "add", "-f", f"study/{RESULTS}"], check=True)
    subprocess.run([*git, "commit", "-qm", "Forge results"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", tmp_path / "tree"], check=True)
    (tmp_path / "link").symlink_to(repository / "study")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").write_text(
        f'#!/bin/sh\nGIT_TEST_ASSUME_DIFFERENT_OWNER=1 exec {shutil.which("git")} "$@"\n'
    )
    (tmp_path / "bin" / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    for directory in (repository / "study", tmp_path / "tree" / "study", tmp_path / "link"):
        later()
        with pytest.raises(StoreError, match="git tracks"):
            accept(directory / RESULTS)


@pytest.mark.parametrize("failure", ["repository", "program", "time"])
def test_a_failure_of_git_only_prevents_the_acceptance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, later: Callable[[], None], failure: str
) -> None:
    results = with_results(tmp_path / "mine" / RESULTS)
    accept(results)
    match failure:
        case "repository":
            (tmp_path / "mine" / ".git").write_text("gitdir: missing\n")
            words = "fatal: not a git repository: "
        case "program":
            (tmp_path / "mine" / ".git").mkdir()
            monkeypatch.setenv("PATH", str(tmp_path))
            words = "git cannot be started: No such file or directory"
        case _:
            (tmp_path / "mine" / ".git").mkdir()
            monkeypatch.setattr(results_directory, "GIT_SECONDS", 0.0)
            words = "git did not end within 0 s"
    later()
    verify(results)
    with pytest.raises(
        StoreError, match=f"cannot be accepted, because its tracked files are unknown: {words}"
    ):
        accept(results)


def test_without_a_writable_state_the_first_process_works_and_the_next_one_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, later: Callable[[], None]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file" / "state"))
    results = tmp_path / RESULTS
    create(verify(results))
    (results / DATABASE).touch()
    verify(results)
    later()
    assert "cannot remember" in (message := refused(results))
    assert "set XDG_STATE_HOME to a directory that lasts" in message
    with pytest.raises(StoreError, match=r"cannot be accepted: .*/file/state/perftrail is not writable"):
        accept(results)


def test_without_a_home_directory_the_state_is_a_temporary_directory_of_this_user_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, later: Callable[[], None]
) -> None:
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "missing"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    create(tmp_path / RESULTS)
    later()
    assert is_ours(tmp_path / RESULTS)
    [state] = tmp_path.glob("perftrail-state-*")
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    state.chmod(0o777)
    assert not is_ours(tmp_path / RESULTS)
    state.rename(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").chmod(0o700)
    state.symlink_to("elsewhere")
    assert not is_ours(tmp_path / RESULTS)
    assert not (tmp_path / "missing").exists()


def test_a_foreign_record_or_name_proves_nothing(
    tmp_path: Path, state: Path, later: Callable[[], None]
) -> None:
    results = tmp_path / RESULTS
    create(results)
    (results / DATABASE).touch()
    later()
    assert is_ours(results)
    [record] = (state / "perftrail" / "results").iterdir()
    record.write_text("1\n")
    assert not is_ours(results)
    (results / IDENTITY).write_text("../../../etc/passwd")
    assert not is_ours(results)
    (results / IDENTITY).unlink()
    os.mkfifo(results / IDENTITY)
    assert not is_ours(results)


STUDY = """\
[source]
kind = "directory"
location = "."

[build]
steps = ["true"]
outputs = ["perftrail.toml"]

[benchmark.work]
command = "true"
"""


@pytest.mark.parametrize(
    "words",
    [
        ("show",),
        ("run",),
        ("report",),
        ("check", "--try", "1"),
        ("show", "--store", "results"),
        ("store", "stats", "--store", "results"),
        ("store", "copy", "results", "new"),
        ("store", "copy", "new", "results"),
    ],
)
def test_commands_refuse_the_results_of_a_clone_and_change_nothing_outside(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    home, clone = tmp_path / "home", tmp_path / "clone"
    home.mkdir()
    (home / "precious").write_text("precious")
    clone.mkdir()
    (clone / "perftrail.toml").write_text(STUDY)
    for results in (clone / RESULTS, clone / "results"):
        with_results(results)
        for name in DIRECTORIES - {"logs"}:
            (results / name).symlink_to(home)
        (results / f"{DATABASE}.lock").symlink_to(home / "precious")
    done = called(*words, cwd=clone)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "perftrail did not create this results directory" in done.stderr
    assert [each.name for each in home.iterdir()] == ["precious"]
    assert (home / "precious").read_text() == "precious"


def test_accept_names_the_results_of_the_study_and_a_missing_one(tmp_path: Path) -> None:
    study = tmp_path / "study"
    study.mkdir()
    (study / "perftrail.toml").write_text(STUDY)
    none = called("store", "accept", study)
    assert none.returncode == 0, none.stderr
    assert "there are no results yet, so nothing was accepted" in none.stdout
    with_results(study / RESULTS)
    for named in (study, study / "perftrail.toml", study / RESULTS):
        done = called("store", "accept", named)
        assert done.returncode == 0, done.stderr
        assert f"{study / RESULTS}: accepted" in done.stdout
    assert "no samples yet" in called("show", study).stderr


@pytest.mark.parametrize("named", ["perf.toml", "perftrail.toml", "."])
def test_accept_leaves_the_sources_of_a_study_without_results(tmp_path: Path, named: str) -> None:
    study = tmp_path / "study"
    study.mkdir()
    (study / ("perf.toml" if named == "perf.toml" else "perftrail.toml")).write_text(STUDY)
    (study / "link").symlink_to("source.c")
    done = called("store", "accept", named, cwd=study)
    assert done.returncode == 0, done.stderr
    assert f"{study / RESULTS}: there are no results yet, so nothing was accepted" in done.stdout
    assert not (study / IDENTITY).exists()


def test_a_named_link_leads_to_the_users_results_or_is_refused(
    tmp_path: Path, later: Callable[[], None]
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("precious")
    create(tmp_path / "mine")
    (tmp_path / "mine" / DATABASE).touch()
    later()
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    assert target_of(tmp_path / "link") == tmp_path / "mine"
    assert target_of(tmp_path / "new") == tmp_path / "new"
    for target in (outside, outside / "precious", outside / "new"):
        (tmp_path / "link").unlink()
        (tmp_path / "link").symlink_to(target)
        done = called("store", "copy", tmp_path / "mine", tmp_path / "link")
        assert "is a symbolic link, but not to your results" in done.stderr
    assert [each.name for each in outside.iterdir()] == ["precious"]


def test_a_study_file_that_leads_to_another_file_does_not_show_it(tmp_path: Path) -> None:
    (tmp_path / "study").mkdir()
    (tmp_path / "key").write_text("-----BEGIN SECRET-----\nb3a1secret\n")
    (tmp_path / "study" / "perftrail.toml").symlink_to(tmp_path / "key")
    done = called("check", tmp_path / "study")
    assert done.returncode == 2
    assert "is a symbolic link, and its target is not valid TOML" in done.stderr
    assert "secret" not in done.stderr.lower()
    (tmp_path / "study" / "perftrail.toml").unlink()
    os.mkfifo(tmp_path / "study" / "perftrail.toml")
    assert "it is not a regular file" in called("check", tmp_path / "study").stderr
