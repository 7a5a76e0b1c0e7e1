"""Trees of git revisions: worktrees, links, contents, kills."""

from __future__ import annotations

import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from perftrail.errors import CheckoutFailed
from perftrail.file_tree import exclusive_lock
from perftrail.model.source import Source as SourceTable
from perftrail.process.launcher import Launcher
from perftrail.sources.git import GitSource
from tests.sources.contents import line
from tests.sources.git.opening import Open
from tests.sources.repositories import Repository


def test_a_worktree_is_a_git_checkout_in_which_describe_works(
    opened: Open, repository: Repository, tmp_path: Path
) -> None:
    commits = line(repository, 3)
    repository.tag("v1", commits[0])
    source = opened()
    source.materialise(source.history()[2], str(tmp_path / "tree"), str(tmp_path / "log"))
    output = subprocess.run(
        ["git", "describe", "--tags"], cwd=tmp_path / "tree", check=True, capture_output=True, text=True
    )
    assert output.stdout.startswith("v1-2-g")
    assert "worktree add" in (tmp_path / "log").read_text()


def test_links_stay_links(opened: Open, repository: Repository, tmp_path: Path) -> None:
    repository.commit({"outside": "link:/etc/passwd", "inside": "link:f", "f": "text"})
    source = opened()
    source.materialise(source.history()[0], str(tmp_path / "tree"), str(tmp_path / "log"))
    assert (tmp_path / "tree" / "outside").readlink() == Path("/etc/passwd")
    assert (tmp_path / "tree" / "inside").read_text() == "text"


def test_equal_trees_have_equal_contents(opened: Open, repository: Repository) -> None:
    for text in ("1", "2", "1"):
        repository.commit({"a": text})
    source = opened()
    one, two, three = map(source.content, source.history())
    assert one == three != two
    assert opened().content(source.history()[1]) == two


def test_a_worktree_of_a_killed_checkout_is_made_again(
    opened: Open, repository: Repository, tmp_path: Path
) -> None:
    line(repository, 2)
    source, tree = opened(), tmp_path / "tree"
    source.materialise(source.history()[0], str(tree), str(tmp_path / "log"))
    (mirror,) = (tmp_path / "cache").glob("git/*/mirror.git")
    (mirror / "worktrees" / "tree" / "locked").write_text("initializing")
    tree.rename(tmp_path / "other_machines")
    source.materialise(source.history()[1], str(tree), str(tmp_path / "log"))
    assert (tree / "a").read_text() == "1"
    tree.rename(tmp_path / "gone")
    again = opened()
    again.materialise(again.history()[0], str(tree), str(tmp_path / "log"))
    assert [path.name for path in (mirror / "worktrees").iterdir()] == ["tree"]


def test_a_worktree_killed_before_it_had_a_commit_keeps_nothing_new_from_being_fetched(
    opened: Open, repository: Repository, tmp_path: Path
) -> None:
    line(repository, 1)
    source, tree = opened(), tmp_path / "tree"
    source.materialise(source.history()[0], str(tree), str(tmp_path / "log"))
    (mirror,) = (tmp_path / "cache").glob("git/*/mirror.git")
    known = mirror / "worktrees" / "tree"
    (known / "HEAD").write_text(f"{'0' * 40}\n")  # as git begins it
    (known / "locked").write_text("initializing")
    repository.commit({"a": "new"})
    again = opened()
    again.materialise(again.history()[1], str(tmp_path / "other"), str(tmp_path / "log"))
    assert (tmp_path / "other" / "a").read_text() == "new"


def test_checkouts_side_by_side(opened: Open, repository: Repository, tmp_path: Path) -> None:
    line(repository, 8)
    history = opened().history()

    def check_out(number: int) -> str:
        with Launcher() as own:
            source = GitSource(
                SourceTable(kind="git", location=str(repository.path)),
                cache=str(tmp_path / "cache"),
                starter=own,
            )
            directory = tmp_path / str(number) / "tree"
            source.materialise(history[number], str(directory), str(tmp_path / f"log{number}"))
            return (directory / "a").read_text()

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(check_out, range(8))) == [str(number) for number in range(8)]


def test_a_worktree_that_another_process_is_creating_is_waited_for(
    opened: Open, repository: Repository, tmp_path: Path
) -> None:
    line(repository, 1)
    source = opened()
    [only] = source.history()
    source.materialise(only, str(tmp_path / "first"), str(tmp_path / "log"))  # tidies what was left behind
    (mirror,) = (tmp_path / "cache").glob("git/*/mirror.git")
    half = mirror / "worktrees" / "half"
    with ThreadPoolExecutor(1) as pool:
        with exclusive_lock(mirror.parent / "add.lock"):
            half.mkdir()
            (half / "commondir").touch()  # git reads it of every worktree, and fails
            done = pool.submit(source.materialise, only, str(tmp_path / "tree"), str(tmp_path / "log"))
            with pytest.raises(TimeoutError):
                done.result(0.5)
            shutil.rmtree(half)
        done.result()
    assert (tmp_path / "tree" / "a").read_text() == "0"


def test_a_failed_checkout_quotes_git(opened: Open, repository: Repository, tmp_path: Path) -> None:
    commit = repository.commit({"a": "a"})
    source = opened()
    history = source.history()
    blob = repository.git("rev-parse", f"{commit}:a")
    (mirror,) = (tmp_path / "cache").glob("git/*/mirror.git")
    (mirror / "objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(CheckoutFailed, match=r"git cannot check it out: (error|fatal): unable to read"):
        source.materialise(history[0], str(tmp_path / "tree"), str(tmp_path / "log"))
    assert not (tmp_path / "tree").exists()
