"""The working tree, and what is staged, as revisions: every file that git sees; nothing is written there."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from perftrail.errors import SourceError
from perftrail.model.source import STAGED, WORKING_TREE
from tests.sources.contents import put
from tests.sources.git.opening import Open
from tests.sources.git.test_submodules import described
from tests.sources.repositories import Repository

if TYPE_CHECKING:
    from perftrail.model.subject import Revision
    from perftrail.sources.git import GitSource


@pytest.fixture
def checkout(repository: Repository) -> Path:
    """A check-out with two files, of which one is ignored, and a directory."""
    repository.commit({"a.c": "1\n", "dir/b.c": "2\n", ".gitignore": "*.o\n", "old": "old\n"})
    repository.git("reset", "--hard", "--quiet")
    return repository.path


def revision(source: GitSource, name: str = WORKING_TREE) -> Revision:
    (found,) = source.history(f"{name}..{name}")
    return found


def files(tree: Path) -> dict[str, str]:
    return {
        str(path.relative_to(tree)): path.read_text()
        for path in sorted(tree.rglob("*"))
        if path.is_file() and ".git" not in path.relative_to(tree).parts
    }


def test_it_has_tracked_and_new_files_but_no_ignored_or_removed_ones(
    opened: Open, repository: Repository, checkout: Path, tmp_path: Path
) -> None:
    (checkout / "a.c").write_text("changed\n")
    (checkout / "new dir").mkdir()
    (checkout / "new dir" / "ä.c").write_text("new\n")
    (checkout / "a.o").write_text("ignored\n")
    (checkout / "old").unlink()
    before = repository.snapshot()
    found = revision(opened())
    assert (found.label, found.summary) == (
        "working tree (3 files changed)",
        "a.c, new dir/ä.c and old",
    )
    assert found.parents == (repository.git("rev-parse", "HEAD"),)
    assert files(put(opened(), found, tmp_path / "tree")) == {
        ".gitignore": "*.o\n",
        "a.c": "changed\n",
        "dir/b.c": "2\n",
        "new dir/ä.c": "new\n",
    }
    assert repository.snapshot() == before


def test_equal_trees_are_one_revision_and_different_ones_are_not(opened: Open, checkout: Path) -> None:
    (checkout / "a.c").write_text("changed\n")
    first = revision(opened())
    os.utime(checkout / "a.c", (1, 1))
    assert revision(opened(cache="other")) == first
    (checkout / "a.c").write_text("changEd\n")
    assert revision(opened()).id != first.id


def test_an_unchanged_tree_is_the_checked_out_commit(
    opened: Open, repository: Repository, checkout: Path
) -> None:
    (checkout / "a.o").write_text("ignored\n")
    os.utime(checkout / "a.c", (1, 1))
    assert revision(opened()).id == repository.git("rev-parse", "HEAD")


def test_what_is_staged_is_another_revision(
    opened: Open, repository: Repository, checkout: Path, tmp_path: Path
) -> None:
    (checkout / "a.c").write_text("staged\n")
    repository.git("add", "a.c")
    (checkout / "a.c").write_text("not staged\n")
    (checkout / "new.c").write_text("not staged\n")
    before = repository.snapshot()
    source = opened()
    staged, everything = revision(source, STAGED), revision(source)
    assert (staged.label, everything.label) == ("staged (1 file changed)", "working tree (2 files changed)")
    assert files(put(source, staged, tmp_path / "staged"))["a.c"] == "staged\n"
    assert "new.c" not in files(tmp_path / "staged")
    assert files(put(source, everything, tmp_path / "tree"))["a.c"] == "not staged\n"
    assert repository.snapshot() == before


def test_it_ends_a_range(opened: Open, repository: Repository, checkout: Path) -> None:
    first = repository.git("rev-parse", "HEAD")
    (checkout / "a.c").write_text("changed\n")
    source = opened(range=f"{first}...")
    history = source.history()
    assert [each.id for each in history][:-1] == [first]
    assert history[-1] == revision(source)
    assert source.touched(history)[-1] == ("a.c",)


def test_files_that_only_the_users_settings_ignore_are_ignored(
    opened: Open, repository: Repository, checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    (tmp_path / ".gitconfig").write_text("[core]\n\texcludesFile = ~/ignored\n")
    (tmp_path / "ignored").write_text("*.swp\n")
    (repository.path / ".git" / "info").mkdir(exist_ok=True)
    (repository.path / ".git" / "info" / "exclude").write_text("notes\n")
    for name in ("a.swp", "notes", "seen"):
        (checkout / name).write_text("")
    assert revision(opened()).summary == "seen"


def test_pipes_and_other_repositories_in_it_are_left_out(
    opened: Open, repository: Repository, checkout: Path, tmp_path: Path
) -> None:
    os.mkfifo(checkout / "pipe")
    Repository(checkout / "inner").commit({"x": ""})
    (checkout / "link").symlink_to("a.c")
    found = revision(opened())
    assert found.summary == "link"
    assert put(opened(), found, tmp_path / "tree").joinpath("link").readlink() == Path("a.c")


def test_a_linked_worktree_has_its_own_files(
    opened: Open, repository: Repository, checkout: Path, tmp_path: Path
) -> None:
    repository.git("worktree", "add", "--quiet", str(tmp_path / "linked"))
    (tmp_path / "linked" / "a.c").write_text("linked\n")
    found = revision(opened(tmp_path / "linked"))
    assert found.summary == "a.c"
    assert files(put(opened(tmp_path / "linked"), found, tmp_path / "tree"))["a.c"] == "linked\n"


def test_a_submodule_is_at_the_commit_that_is_checked_out_in_it(
    opened: Open, repository: Repository, tmp_path: Path
) -> None:
    library = Repository(tmp_path / "library")
    commits = [library.commit({"lib.c": f"version {number}\n"}) for number in range(2)]
    repository.commit({".gitmodules": described(lib="../library"), "lib": f"commit:{commits[0]}"})
    repository.git("reset", "--hard", "--quiet")
    subprocess.run(["git", "clone", "-q", library.path, repository.path / "lib"], check=True)
    found = revision(opened())
    assert found.summary == "lib"
    assert files(put(opened(), found, tmp_path / "tree"))["lib/lib.c"] == "version 1\n"


def test_files_of_git_lfs_keep_their_content(opened: Open, repository: Repository, tmp_path: Path) -> None:
    repository.commit({".gitattributes": "*.bin filter=lfs -text\n", "a": ""})
    repository.git("reset", "--hard", "--quiet")
    (repository.path / "large.bin").write_text("content\n")
    found = revision(opened())
    assert files(put(opened(), found, tmp_path / "tree"))["large.bin"] == "content\n"


def test_a_sparse_check_out_and_a_split_index_have_all_tracked_files(
    opened: Open, repository: Repository, checkout: Path, tmp_path: Path
) -> None:
    repository.git("sparse-checkout", "set", "--no-cone", "/a.c")
    repository.git("update-index", "--split-index")
    (checkout / "a.c").write_text("changed\n")
    assert not (checkout / "dir").exists()
    found = revision(opened())
    assert found.summary == "a.c"
    assert files(put(opened(), found, tmp_path / "tree"))["dir/b.c"] == "2\n"


def test_a_file_that_is_only_announced_is_not_staged(
    opened: Open, repository: Repository, checkout: Path
) -> None:
    (checkout / "new.c").write_text("new\n")
    repository.git("add", "--intent-to-add", "new.c")
    assert revision(opened(), STAGED).id == repository.git("rev-parse", "HEAD")
    assert revision(opened()).summary == "new.c"


def test_conflicts_are_part_of_the_working_tree_but_not_staged(
    opened: Open, repository: Repository, checkout: Path, tmp_path: Path
) -> None:
    repository.git("checkout", "--quiet", "-b", "other")
    for branch, text in (("other", "one\n"), ("main", "two\n")):
        repository.git("checkout", "--quiet", branch)
        (checkout / "a.c").write_text(text)
        (checkout / branch).mkdir()
        (checkout / branch / "x").write_text("")
        repository.git("add", "--all")
        repository.git("commit", "--quiet", "--message", branch)
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", *identity, "-C", checkout, "merge", "other"], check=False, capture_output=True)
    found = revision(opened())
    assert found.summary == "a.c and other/x"
    assert "<<<<<<<" in files(put(opened(), found, tmp_path / "tree"))["a.c"]
    with pytest.raises(SourceError, match="unresolved conflicts"):
        revision(opened(), STAGED)


@pytest.mark.parametrize("name", [WORKING_TREE, STAGED])
def test_only_a_check_out_on_this_machine_has_one(
    opened: Open, repository: Repository, checkout: Path, tmp_path: Path, name: str
) -> None:
    with pytest.raises(SourceError, match="only of a repository on this machine"):
        revision(opened(f"file://{repository.path}"), name)
    bare = tmp_path / "bare.git"
    subprocess.run(["git", "clone", "-q", "--bare", repository.path, bare], check=True)
    with pytest.raises(SourceError, match="has no working tree"):
        revision(opened(bare), name)


def test_without_a_commit_there_is_nothing_to_compare_with(opened: Open, repository: Repository) -> None:
    (repository.path / "a").write_text("")
    with pytest.raises(SourceError, match="has no commit yet"):
        revision(opened())
