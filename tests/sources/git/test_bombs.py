"""Small repositories with enormous trees."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from perftrail.errors import CheckoutFailed, PerftrailError
from perftrail.model.source import Source as SourceTable
from perftrail.process.launcher import Launcher
from perftrail.sources import client
from perftrail.sources.git import checkout, command
from perftrail.sources.git.patch import GitPatches
from tests.sources.git.opening import Open
from tests.sources.repositories import Repository


def bomb(repository: Repository, *, depth: int = 10, width: int = 10) -> str:
    """Commit a tree of `depth` levels, each with `width` times the same directory."""
    first = repository.commit({"a": "1"})
    blob = repository.git("hash-object", "-w", "--stdin", stdin=b"boom")
    kind, id_ = "100644 blob", blob
    for _ in range(depth):
        lines = "".join(f"{kind} {id_}\td{number}\n" for number in range(width))
        kind, id_ = "040000 tree", repository.git("mktree", stdin=lines.encode())
    commit = repository.git("commit-tree", id_, "-p", first, "-m", "bomb")
    repository.git("update-ref", "refs/heads/main", commit)
    return commit


@pytest.mark.parametrize("sparse", [(), ("d1/**",)])
def test_a_tree_with_exponentially_many_entries_is_not_written(
    opened: Open, repository: Repository, tmp_path: Path, sparse: tuple[str, ...]
) -> None:
    bomb(repository)
    source = opened(sparse=sparse)
    began = time.monotonic()
    history = source.history()
    with pytest.raises(CheckoutFailed, match=r"more than 1000000 files and directories.*source\.range"):
        source.materialise(history[-1], str(tmp_path / "tree"), str(tmp_path / "log"))
    assert not (tmp_path / "tree").exists()
    assert time.monotonic() - began < 60.0


def test_comparisons_with_such_a_tree_are_stopped(
    opened: Open, repository: Repository, launcher: Launcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "LARGEST_OUTPUT_BYTES", 2 << 20)
    monkeypatch.setattr(client, "LARGEST_MEMORY_BYTES", 128 << 20)
    bomb(repository)
    source = opened(sparse=("d1/**",))
    history = source.history()
    patches = GitPatches(
        SourceTable(kind="git", location=str(repository.path)),
        cache=str(tmp_path / "cache"),
        starter=launcher,
    )
    with pytest.raises(PerftrailError, match=r"[Oo]ut of memory|malloc failed|was stopped"):
        source.touched(history)
    with pytest.raises(PerftrailError, match=r"[Oo]ut of memory|malloc failed|was stopped"):
        source.content(history[-1])
    with pytest.raises(CheckoutFailed, match="files and directories"):
        patches.cherry_pick(history[0], onto=history[1], workplace=str(tmp_path / "work"))


def test_files_that_together_fill_the_disk_are_not_written(
    opened: Open, repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command.TreeLimit, "__init__", lambda self: _set(self, entries=1000, bytes=10_000))
    repository.commit({f"{number}": "0" * 1000 for number in range(20)})
    source = opened()
    with pytest.raises(CheckoutFailed, match="its files have more than"):
        source.materialise(source.history()[0], str(tmp_path / "tree"), str(tmp_path / "log"))


def _set(limit: command.TreeLimit, *, entries: int, bytes: int) -> None:
    limit.entries, limit.bytes = entries, bytes


def test_submodules_without_end_are_refused(
    opened: Open, repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkout, "MOST_SUBMODULES", 5)
    inner = Repository(tmp_path / "inner")
    commit = inner.commit({"a": "1"})
    described = "".join(
        f'[submodule "s{number}"]\n\tpath = s{number}\n\turl = {inner.path}\n' for number in range(8)
    )
    links = {f"s{number}": f"commit:{commit}" for number in range(8)}
    repository.commit({".gitmodules": described, **links})
    source = opened()
    with pytest.raises(CheckoutFailed, match="more than 5 submodules"):
        source.materialise(source.history()[0], str(tmp_path / "tree"), str(tmp_path / "log"))
