"""Files whose content is in Git LFS: inserted where available, otherwise refused with a message."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from perftrail.errors import CheckoutFailed
from tests.needs import needs
from tests.sources.contents import put
from tests.sources.git.opening import Open
from tests.sources.repositories import Repository

CONTENT = b"large\0content\n" * 1000
DIGEST = hashlib.sha256(CONTENT).hexdigest()
POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{DIGEST}\nsize {len(CONTENT)}\n"
FILES = {".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n", "data/a.bin": POINTER, "c": POINTER}


@pytest.fixture
def without_lfs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "programs").mkdir()
    git = shutil.which("git")
    assert git is not None
    (tmp_path / "programs" / "git").symlink_to(git)
    monkeypatch.setenv("PATH", str(tmp_path / "programs"))


def keep(repository: Repository, content: bytes) -> None:
    path = repository.path / ".git" / "lfs" / "objects" / DIGEST[:2] / DIGEST[2:4] / DIGEST
    path.parent.mkdir(parents=True)
    path.write_bytes(content)


def test_contents_in_the_users_clone_take_the_place_of_their_pointers(
    opened: Open, repository: Repository, tmp_path: Path, without_lfs: None
) -> None:
    repository.commit({**FILES, "small.bin": "no pointer", "link.bin": "link:data/a.bin"})
    keep(repository, CONTENT)
    source = opened()
    tree = put(source, source.history()[0], tmp_path / "tree")
    assert (tree / "data" / "a.bin").read_bytes() == CONTENT
    assert (tree / "data" / "a.bin").stat().st_mode & 0o777 == (tree / "c").stat().st_mode & 0o777
    assert (tree / "c").read_text() == POINTER
    assert (tree / "small.bin").read_text() == "no pointer"
    assert (tree / "link.bin").readlink() == Path("data/a.bin")
    status = subprocess.run(["git", "status", "--short"], cwd=tree, capture_output=True, check=True)
    assert status.stdout == b""


def test_a_content_that_is_not_here_is_a_failed_checkout_with_the_remedy(
    opened: Open, repository: Repository, tmp_path: Path, without_lfs: None
) -> None:
    repository.commit({**FILES, "data/b.bin": POINTER})
    source = opened()
    with pytest.raises(
        CheckoutFailed, match=r'"data/a\.bin" and 1 more.*git-lfs is not installed.*fetch --all'
    ):
        put(source, source.history()[0], tmp_path / "tree")
    assert not (tmp_path / "tree").exists()


def test_a_content_that_is_another_is_refused(
    opened: Open, repository: Repository, tmp_path: Path, without_lfs: None
) -> None:
    repository.commit(FILES)
    keep(repository, b"something else")
    source = opened()
    with pytest.raises(CheckoutFailed, match="does not have the checksum"):
        put(source, source.history()[0], tmp_path / "tree")
    assert not (tmp_path / "tree").exists()


def test_missing_contents_of_excluded_files_are_no_error(
    opened: Open, repository: Repository, tmp_path: Path, without_lfs: None
) -> None:
    repository.commit(FILES)
    source = opened(sparse=("!data",))
    assert (put(source, source.history()[0], tmp_path / "tree") / "c").exists()


@needs("git-lfs")
def test_git_lfs_fetches_contents_from_the_origin(
    opened: Open, repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit(FILES)
    keep(repository, CONTENT)
    clone = tmp_path / "clone"
    origin = f"file://{repository.path}"
    environment = {**os.environ, "GIT_LFS_SKIP_SMUDGE": "1"}
    subprocess.run(["git", "clone", "--quiet", origin, str(clone)], env=environment, check=True)
    for number, location in enumerate((clone, origin)):
        source = opened(location, cache=f"cache{number}")
        shutil.rmtree(clone / ".git" / "lfs", ignore_errors=True)
        tree = put(source, source.history()[0], tmp_path / f"tree{number}")
        assert (tree / "data" / "a.bin").read_bytes() == CONTENT
