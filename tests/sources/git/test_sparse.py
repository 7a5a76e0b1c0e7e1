"""Only some files of a git revision: the checkout, its content, and which clones are allowed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from perftrail.errors import CheckoutFailed, SourceError
from tests.sources.contents import files_below, ids, line, put
from tests.sources.git.opening import Open
from tests.sources.repositories import Repository

FILES = {
    "top.c": "1",
    "src/a.c": "1",
    "src/deep/b.c": "1",
    "docs/big": "1",
    "docs/**": "1",
    "-x": "1",
    ":(exclude)": "1",
    "caf\u00e9 \u2028": "1",
}


@pytest.mark.parametrize(
    ("sparse", "there"),
    [
        (("src",), {"src/a.c", "src/deep/b.c"}),
        (("src/",), {"src/a.c", "src/deep/b.c"}),
        (("src/**",), {"src/a.c", "src/deep/b.c"}),
        (("src/*",), {"src/a.c"}),
        (("**/*.c",), {"top.c", "src/a.c", "src/deep/b.c"}),
        (("*.c",), {"top.c"}),
        (("src", "!src/deep"), {"src/a.c"}),
        (("./-x", ":(exclude)"), {"-x", ":(exclude)"}),
        (("caf*",), {"caf\u00e9 \u2028"}),
        (("!src", "!docs", "!caf*"), {"top.c", "-x", ":(exclude)"}),
    ],
)
def test_only_the_named_files_are_there(
    opened: Open, repository: Repository, tmp_path: Path, sparse: tuple[str, ...], there: set[str]
) -> None:
    repository.commit(FILES)
    source = opened(sparse=sparse)
    tree = put(source, source.history()[0], tmp_path / "tree")
    assert set(files_below(tree)) - {".git"} == there
    status = subprocess.run(["git", "status", "--short"], cwd=tree, capture_output=True, check=True)
    assert status.stdout == b""


def test_excluded_files_do_not_count_as_content(opened: Open, repository: Repository) -> None:
    commits = [repository.commit({"src/a": text, "docs": note}) for text, note in ("11", "12", "22", "11")]
    one, two, three, four = (opened(sparse=("src",)).content(each) for each in opened().history())
    assert one == two == four != three
    assert len(commits) == len(set(commits))
    assert opened(sparse=("src",)).content(opened().history()[0]) != opened().content(opened().history()[0])


def test_names_that_are_not_text_are_distinguished_in_a_content(opened: Open, repository: Repository) -> None:
    blob = repository.git("hash-object", "-w", "--stdin", stdin=b"1")
    for name in (b"\xe9", b"\xe8"):
        tree = repository.git("mktree", "-z", stdin=b"100644 blob " + blob.encode() + b"\t" + name + b"\0")
        commit = repository.git("commit-tree", tree, "-m", "x")
        repository.git("update-ref", f"refs/heads/b{name[0]}", commit)
    source = opened(sparse=("*",))
    contents = {source.content(source.history(f"{each}..{each}")[0]) for each in ("b233", "b232")}
    assert len(contents) == 2


def test_a_revision_with_none_of_the_files_is_a_failed_checkout(
    opened: Open, repository: Repository, tmp_path: Path
) -> None:
    line(repository, 1)
    source = opened(sparse=("src",))
    with pytest.raises(CheckoutFailed, match=r"has none of \['src'\]"):
        put(source, source.history()[0], tmp_path / "tree")
    assert not (tmp_path / "tree").exists()


def test_files_outside_a_sparse_clone_are_checked_out(
    opened: Open, repository: Repository, tmp_path: Path
) -> None:
    repository.commit({"src/a": "1", "docs/b": "1"})
    clone = tmp_path / "clone"
    repository.git("clone", "--quiet", "--no-checkout", str(repository.path), str(clone))
    subprocess.run(["git", "sparse-checkout", "set", "src"], cwd=clone, check=True)
    subprocess.run(["git", "checkout", "--quiet", "main"], cwd=clone, check=True)
    assert not (clone / "docs").exists()
    source = opened(clone)
    assert (put(source, source.history()[0], tmp_path / "tree") / "docs" / "b").read_text() == "1"


def test_a_partial_clone_is_refused_with_what_it_was_cloned_from(
    opened: Open, repository: Repository, tmp_path: Path
) -> None:
    commits = line(repository, 3)
    repository.git("config", "uploadpack.allowFilter", "true")
    origin = f"file://{repository.path}"
    repository.git("clone", "--quiet", "--filter=blob:none", "--no-checkout", origin, str(tmp_path / "part"))
    with pytest.raises(SourceError, match=f'a partial clone.*location = "{origin}"'):
        opened(tmp_path / "part").history()
    assert ids(opened(origin).history()) == commits


def test_an_address_that_is_shallow_itself_is_refused(
    opened: Open, repository: Repository, tmp_path: Path
) -> None:
    line(repository, 3)
    repository.git("clone", "--quiet", "--depth=1", f"file://{repository.path}", str(tmp_path / "shallow"))
    with pytest.raises(SourceError, match="is shallow and lacks"):
        opened(f"file://{tmp_path / 'shallow'}").history()
    assert not list((tmp_path / "cache").glob("git/*/*.git"))
