"""The mirror of a git repository: its content, its updates, and refused repositories."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from perftrail.errors import SourceError
from perftrail.model.source import Label
from tests.sources.contents import ids, line
from tests.sources.git.opening import Open
from tests.sources.repositories import Repository


def test_the_users_repository_stays_unchanged(opened: Open, repository: Repository, tmp_path: Path) -> None:
    line(repository, 3)
    (repository.path / "uncommitted").write_text("mine")
    before = repository.snapshot()
    source = opened(label=Label(file="a", pattern="(.)"))
    history = source.history()
    source.within("main~1..")
    source.materialise(history[0], str(tmp_path / "tree"), str(tmp_path / "log"))
    assert repository.snapshot() == before


def test_nothing_that_a_repository_sets_is_run(opened: Open, repository: Repository, tmp_path: Path) -> None:
    line(repository, 2)
    pwned = tmp_path / "pwned"
    script = repository.path / "evil"
    script.write_text(f"#!/bin/sh\ntouch {pwned}\n")
    script.chmod(0o755)
    hooks = repository.path / ".git" / "hooks"
    for hook in ("post-checkout", "reference-transaction", "post-index-change", "fsmonitor-watchman"):
        (hooks / hook).write_text(script.read_text())
        (hooks / hook).chmod(0o755)
    for setting in (
        "core.fsmonitor",
        "core.pager",
        "core.sshCommand",
        "uploadpack.packObjectsHook",
        "core.editor",
    ):
        repository.git("config", setting, str(script))
    source = opened()
    source.materialise(source.history()[0], str(tmp_path / "tree"), str(tmp_path / "log"))
    assert not pwned.exists()


def test_new_commits_and_moved_branches_are_seen_next_time(opened: Open, repository: Repository) -> None:
    first = line(repository, 2)
    assert ids(opened().history()) == first
    repository.git("update-ref", "refs/heads/topic", first[0])
    rewritten = repository.commit({"a": "rewritten"}, parents=[first[0]])
    repository.git("update-ref", "-d", "refs/heads/topic")
    repository.git("update-ref", "refs/heads/topic/deeper", first[0])
    assert ids(opened().history()) == [first[0], rewritten]


def test_a_commit_that_no_ref_names_can_be_had(opened: Open, repository: Repository, tmp_path: Path) -> None:
    commits = line(repository, 2)
    opened().history()
    lost = repository.commit({"a": "lost"}, branch="gone")
    lost = repository.commit({"a": "lost"}, branch="gone", parents=[commits[1]])
    repository.git("update-ref", "-d", "refs/heads/gone")
    source = opened()
    history = source.history(f"main..{lost[:12]}")
    assert ids(history) == [commits[1], lost]
    source.materialise(history[-1], str(tmp_path / "tree"), str(tmp_path / "log"))
    assert (tmp_path / "tree" / "a").read_text() == "lost"


def test_head_is_what_the_user_has_checked_out(opened: Open, repository: Repository) -> None:
    commits = line(repository, 3)
    opened().history()
    repository.git("checkout", "--quiet", "--detach", commits[1])
    assert ids(opened().history()) == commits[:2]


def test_a_directory_inside_the_repository_and_a_linked_worktree_are_it(
    opened: Open, repository: Repository, tmp_path: Path
) -> None:
    commits = line(repository, 2)
    (repository.path / "study").mkdir()
    assert ids(opened(repository.path / "study").history()) == commits
    repository.git("worktree", "add", "--quiet", "--detach", str(tmp_path / "linked"), commits[0])
    assert ids(opened(tmp_path / "linked").history()) == commits[:1]


def test_a_bare_repository_will_do(opened: Open, repository: Repository, tmp_path: Path) -> None:
    commits = line(repository, 2)
    repository.git("clone", "--quiet", "--bare", str(repository.path), str(tmp_path / "bare.git"))
    assert ids(opened(tmp_path / "bare.git").history()) == commits


def test_an_address_is_cloned_once_and_fetched_when_something_is_missing(
    opened: Open, repository: Repository, tmp_path: Path
) -> None:
    commits = line(repository, 3)
    address = f"file://{repository.path}"
    assert ids(opened(address).history()) == commits
    more = repository.commit({"a": "more"})
    repository.tag("v2", more)
    assert ids(opened(address).history()) == commits
    source = opened(address, range="main~1..v2")
    history = source.history()
    assert ids(history)[-1] == more
    source.materialise(history[-1], str(tmp_path / "tree"), str(tmp_path / "log"))
    assert (tmp_path / "tree" / "a").read_text() == "more"


def test_studies_of_one_address_share_one_clone_and_survive_its_removal(
    opened: Open, repository: Repository, tmp_path: Path, user_cache: Path
) -> None:
    commits = line(repository, 3)
    address = f"file://{repository.path}"
    assert [ids(opened(address, cache=study).history()) for study in ("one", "two")] == [commits, commits]
    one, two = (object_files(tmp_path / study) for study in ("one", "two"))
    assert one == two
    assert one
    later = repository.commit({"a": "later"})
    assert ids(opened(address, cache="two", range=f"main~1..{later}").history()) == [commits[-1], later]
    shutil.rmtree(user_cache / "git")
    assert ids(opened(address, cache="one").history()) == commits
    assert ids(opened(address, cache="three").history()) == [*commits, later]


def test_without_a_cache_of_the_user_a_study_clones_an_address_itself(
    opened: Open, repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = line(repository, 3)
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert ids(opened(f"file://{repository.path}").history()) == commits


def object_files(study: Path) -> set[int]:
    """The inodes of the files of a mirror's objects: equal ones are one file on the disk."""
    inside = study.glob("git/*/mirror.git/objects/**/*")
    return {path.stat().st_ino for path in inside if path.is_file()}


def test_a_shallow_clone_is_refused_with_its_remedy(
    opened: Open, repository: Repository, tmp_path: Path
) -> None:
    line(repository, 3)
    repository.git("clone", "--quiet", "--depth=1", f"file://{repository.path}", str(tmp_path / "shallow"))
    with pytest.raises(SourceError, match="git fetch --unshallow"):
        opened(tmp_path / "shallow").history()


@pytest.mark.parametrize(
    ("variable", "expected"), [("GITHUB_ACTIONS", "fetch-depth: 0"), ("GITLAB_CI", 'GIT_DEPTH to "0"')]
)
def test_in_a_job_a_shallow_clone_is_refused_with_the_job_s_own_remedy(
    opened: Open,
    repository: Repository,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    expected: str,
) -> None:
    for name in ("GITHUB_ACTIONS", "GITLAB_CI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, "true")
    line(repository, 3)
    repository.git("clone", "--quiet", "--depth=1", f"file://{repository.path}", str(tmp_path / "shallow"))
    with pytest.raises(SourceError, match=expected):
        opened(tmp_path / "shallow").history()


def test_a_directory_without_a_repository_is_reported(
    opened: Open, repository: Repository, tmp_path: Path
) -> None:
    (tmp_path / "plain").mkdir()
    with pytest.raises(SourceError, match="is not a git repository"):
        opened(tmp_path / "plain").history()
    with pytest.raises(SourceError, match="no such directory"):
        opened(tmp_path / "nothing").history()
    with pytest.raises(SourceError, match="has no commit yet"):
        opened().history()


def test_a_clone_killed_half_way_is_made_again(opened: Open, repository: Repository, tmp_path: Path) -> None:
    commits = line(repository, 2)
    opened().history()
    (mirror,) = (tmp_path / "cache").glob("git/*/mirror.git")
    for half in mirror.iterdir():
        if half.name != "HEAD":
            half.rename(tmp_path / half.name)
    mirror.rename(mirror.with_name("making.git"))
    assert ids(opened().history()) == commits
