"""Submodules in a git checkout: at their commits, from perftrail's mirrors, and safe against hostile ones."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from perftrail.errors import CheckoutFailed, SourceError
from perftrail.sources.git.checkout import submodule_address
from tests.sources.contents import put
from tests.sources.git.opening import Open
from tests.sources.repositories import Repository

ELSEWHERE = "https://host.invalid/a/app.git"


def described(**addresses: str) -> str:
    return "".join(
        f'[submodule "{name}"]\n\tpath = {name}\n\turl = {url}\n' for name, url in addresses.items()
    )


@pytest.fixture
def library(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "library")


@pytest.fixture
def with_library(repository: Repository, library: Repository) -> list[str]:
    """The library's three commits; each of the first two is named by one commit of the repository."""
    commits = [library.commit({"lib.c": f"version {number}"}) for number in range(3)]
    for commit in commits[:2]:
        repository.commit({"a": "1", ".gitmodules": described(lib="../library"), "lib": f"commit:{commit}"})
    return commits


def test_each_revision_has_its_submodules_at_the_commit_that_it_names(
    opened: Open, with_library: list[str], library: Repository, tmp_path: Path
) -> None:
    source = opened()
    history = source.history()
    before = library.snapshot()
    for number, revision in enumerate(history):
        tree = put(source, revision, tmp_path / f"tree{number}")
        assert (tree / "lib" / "lib.c").read_text() == f"version {number}"
        assert (tree / "a").read_text() == "1"
        status = subprocess.run(["git", "status", "--short"], cwd=tree, capture_output=True, check=True)
        assert status.stdout == b""
    assert library.snapshot() == before
    assert len({source.content(revision) for revision in history}) == 2


def test_a_submodules_new_commits_are_fetched(
    opened: Open, with_library: list[str], library: Repository, repository: Repository, tmp_path: Path
) -> None:
    source = opened()
    put(source, source.history()[0], tmp_path / "before")
    new = library.commit({"lib.c": "new"})
    repository.commit({".gitmodules": described(lib="../library"), "lib": f"commit:{new}"})
    source = opened()
    tree = put(source, source.history()[-1], tmp_path / "tree")
    assert (tree / "lib" / "lib.c").read_text() == "new"


def test_submodules_of_submodules_come_too(
    opened: Open, repository: Repository, library: Repository, tmp_path: Path
) -> None:
    deep = Repository(tmp_path / "deep")
    inner = deep.commit({"deep.c": "deep"})
    outer = library.commit({".gitmodules": described(deep="../deep"), "deep": f"commit:{inner}"})
    repository.commit({".gitmodules": described(lib="./../library"), "lib": f"commit:{outer}"})
    source = opened()
    tree = put(source, source.history()[0], tmp_path / "tree")
    assert (tree / "lib" / "deep" / "deep.c").read_text() == "deep"


def test_an_endless_repository_is_refused(opened: Open, repository: Repository, tmp_path: Path) -> None:
    commit = repository.commit({"a": "a"})
    for number in range(22):
        commit = repository.commit(
            {"a": f"{number}", ".gitmodules": described(s="./"), "s": f"commit:{commit}"}
        )
    source = opened()
    with pytest.raises(CheckoutFailed, match="more than 20 nested submodules"):
        put(source, source.history()[-1], tmp_path / "tree")
    assert not (tmp_path / "tree").exists()


def test_the_users_own_clone_of_a_submodule_serves_when_its_address_does_not(
    opened: Open, repository: Repository, library: Repository, tmp_path: Path
) -> None:
    deep = Repository(tmp_path / "deep")
    inner = deep.commit({"deep.c": "1"})
    commit = library.commit({"lib.c": "1", ".gitmodules": described(d="../deep"), "d": f"commit:{inner}"})
    repository.commit({".gitmodules": described(lib="https://host.invalid/lib"), "lib": f"commit:{commit}"})
    (repository.path / "lib").mkdir()
    own = repository.path / ".git" / "modules" / "lib"
    repository.git("clone", "--quiet", "--bare", str(library.path), str(own))
    repository.git("clone", "--quiet", "--bare", str(deep.path), str(own / "modules" / "d"))
    repository.git("--git-dir", str(own), "update-ref", "--no-deref", "HEAD", commit)
    repository.git("--git-dir", str(own), "update-ref", "refs/remotes/origin/main", commit)
    repository.git("--git-dir", str(own), "update-ref", "-d", "refs/heads/main")
    repository.git("--git-dir", str(own), "config", "core.bare", "false")
    repository.git("config", "--file", str(own / "config"), "core.worktree", "../../../lib")
    source = opened()
    tree = put(source, source.history()[0], tmp_path / "tree")
    assert (tree / "lib" / "lib.c").read_text() == "1"
    assert (tree / "lib" / "d" / "deep.c").read_text() == "1"


def test_a_missing_submodule_is_a_failed_checkout_with_the_remedy(
    opened: Open, with_library: list[str], library: Repository, tmp_path: Path
) -> None:
    shutil.rmtree(library.path)
    source = opened()
    with pytest.raises(CheckoutFailed, match=r'submodule "lib": .*no such directory.*sparse = \["!lib"\]'):
        put(source, source.history()[0], tmp_path / "tree")
    assert not (tmp_path / "tree").exists()


def test_a_commit_that_the_submodule_lacks_is_reported(
    opened: Open, repository: Repository, library: Repository, tmp_path: Path
) -> None:
    library.commit({"lib.c": "1"})
    repository.commit({".gitmodules": described(lib="../library"), "lib": f"commit:{'7' * 40}"})
    source = opened()
    with pytest.raises(CheckoutFailed, match=f'no revision "{"7" * 40}"'):
        put(source, source.history()[0], tmp_path / "tree")


def test_submodules_are_left_out_when_the_study_says_so(
    opened: Open, with_library: list[str], library: Repository, tmp_path: Path
) -> None:
    shutil.rmtree(library.path)
    for name, requested in (("none", {"submodules": False}), ("one", {"sparse": ("!lib",)})):
        source = opened(**requested)
        tree = put(source, source.history()[0], tmp_path / name)
        assert (tree / "a").read_text() == "1"
        assert not (tree / "lib" / "lib.c").exists()
        assert source.content(source.history()[0]) != opened().content(source.history()[0])


def test_a_submodule_without_an_address_stays_empty(
    opened: Open, repository: Repository, tmp_path: Path
) -> None:
    repository.commit({"a": "a", ".gitmodules": "", "lib": f"commit:{'7' * 40}"})
    repository.commit({"a": "b", "lib": f"commit:{'7' * 40}"})
    source = opened()
    for number, revision in enumerate(source.history()):
        tree = put(source, revision, tmp_path / f"tree{number}")
        assert list((tree / "lib").iterdir()) == []


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("ext::sh -c 'touch pwned'", "is not allowed for git"),
        ("-u./payload", "an option"),
        ("--upload-pack=touch pwned", "an option"),
        ("ssh://-oProxyCommand=touch pwned/x", "an option"),
        ("git@-oProxyCommand=touch:x", "an option"),
        ("fd::3", "is not allowed for git"),
        ("plain/path", "is not allowed for git"),
        ("ftp://host.invalid/x", "is not allowed for git"),
        ("../../../../../../../../../../../..", "leads out"),
        ("./a/../../../../../../../../../../../../x", "leads out"),
        ("$(touch pwned)", "is not allowed for git"),
    ],
)
def test_a_hostile_address_is_refused_and_starts_nothing(
    opened: Open, repository: Repository, tmp_path: Path, address: str, why: str
) -> None:
    repository.commit({".gitmodules": described(lib=f'"{address}"'), "lib": f"commit:{'7' * 40}"})
    source = opened()
    with pytest.raises(CheckoutFailed, match=f'submodule "lib": its address .*{why}'):
        put(source, source.history()[0], tmp_path / "tree")
    assert not list(tmp_path.rglob("pwned"))


@pytest.mark.parametrize("address", ["file:///etc", "/etc/secret"])
def test_a_remote_repository_gets_no_files_of_this_machine(
    opened: Open, repository: Repository, tmp_path: Path, address: str
) -> None:
    repository.commit({".gitmodules": described(lib=address), "lib": f"commit:{'7' * 40}"})
    repository.git("config", "remote.origin.url", ELSEWHERE)
    source = opened()
    with pytest.raises(CheckoutFailed, match="a path on this machine, but the repository is remote"):
        put(source, source.history()[0], tmp_path / "tree")


@pytest.mark.parametrize("name", ["../../hooks", "/etc", "..", "lib\n[core]"])
def test_a_hostile_name_leads_nowhere(
    opened: Open, repository: Repository, library: Repository, tmp_path: Path, name: str
) -> None:
    commit = library.commit({"lib.c": "1"})
    text = f'[submodule "{name}"]\n\tpath = lib\n\turl = ../library\n'
    repository.commit({".gitmodules": text, "lib": f"commit:{commit}"})
    source = opened()
    if "\n" in name:
        with pytest.raises(CheckoutFailed, match=r"\.gitmodules of .* cannot be read"):
            put(source, source.history()[0], tmp_path / "tree")
    else:
        tree = put(source, source.history()[0], tmp_path / "tree")
        assert (tree / "lib" / "lib.c").read_text() == "1"


def test_a_path_through_a_link_does_not_leave_the_tree(
    opened: Open, repository: Repository, library: Repository, tmp_path: Path
) -> None:
    commit = library.commit({"lib.c": "1"})
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "lib").mkdir()
    text = '[submodule "lib"]\n\tpath = out/lib\n\turl = ../library\n[submodule "x"]\n\tpath = ../outside\n'
    repository.commit({".gitmodules": text, "out": f"link:{tmp_path / 'outside'}", "lib": f"commit:{commit}"})
    source = opened()
    put(source, source.history()[0], tmp_path / "tree")
    assert list((tmp_path / "outside" / "lib").iterdir()) == []


@pytest.mark.parametrize(
    ("written", "parent", "address"),
    [
        ("../lib.git", ELSEWHERE, "https://host.invalid/a/lib.git"),
        ("../../b/lib", ELSEWHERE, "https://host.invalid/b/lib"),
        ("./lib", ELSEWHERE + "/", ELSEWHERE + "/lib"),
        ("../lib", "git@host.invalid:a/app", "git@host.invalid:a/lib"),
        ("../lib", "git@host.invalid:/a/app", "git@host.invalid:/a/lib"),
        ("../lib", "/home/me/app", "/home/me/lib"),
        ("../lib", "file:///home/me/app", "file:///home/me/lib"),
        ("ssh://git@host.invalid:22/x", "/home/me/app", "ssh://git@host.invalid:22/x"),
        ("git@host.invalid:x/y", ELSEWHERE, "git@host.invalid:x/y"),
        ("/srv/lib", "/home/me/app", "/srv/lib"),
    ],
)
def test_addresses_are_resolved_as_git_does(written: str, parent: str, address: str) -> None:
    assert submodule_address(written, parent=parent) == address


def test_an_address_that_climbs_above_its_host_is_refused() -> None:
    with pytest.raises(SourceError, match="leads out of"):
        submodule_address("../../../x", parent=ELSEWHERE)
