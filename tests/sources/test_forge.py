"""The page of a commit on the web, from the address of a remote."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from perftrail.model.source import Source
from perftrail.model.subject import Revision
from perftrail.sources.forge import commit_addresses, git_address

ID = "3f9c2ab41d" * 4


def commit_address(source: Source, revision: str) -> str:
    return commit_addresses(source, (Revision(id=revision),)).get("3f9c2ab41d", "")


@pytest.mark.parametrize(
    ("remote", "page"),
    [
        ("https://github.com/curl/curl", f"https://github.com/curl/curl/commit/{ID}"),
        ("https://ann:secret@github.com/curl/curl.git/", f"https://github.com/curl/curl/commit/{ID}"),
        ("ssh://git@codeberg.org:2222/a/b.git", f"https://codeberg.org/a/b/commit/{ID}"),
        ("git@gitlab.com:group/part/name.git", f"https://gitlab.com/group/part/name/-/commit/{ID}"),
        ("https://gitlab.gnome.org/GNOME/glib.git", f"https://gitlab.gnome.org/GNOME/glib/-/commit/{ID}"),
        ("git@bitbucket.org:a/b.git", f"https://bitbucket.org/a/b/commits/{ID}"),
        ("https://git.sr.ht/~ann/b", f"https://git.sr.ht/~ann/b/commit/{ID}"),
        ("https://go.googlesource.com/go", f"https://go.googlesource.com/go/+/{ID}"),
        (
            "git://git.kernel.org/pub/scm/git/git.git",
            f"https://git.kernel.org/pub/scm/git/git.git/commit/?id={ID}",
        ),
    ],
)
def test_a_remote_has_the_page_of_its_forge(remote: str, page: str) -> None:
    assert git_address(remote, ID) == page


@pytest.mark.parametrize(
    "remote",
    [
        "",
        "/srv/git/b.git",
        "https://example.org/a/b.git",
        "javascript:alert(1)//github.com/a/b",
        'https://github.com/a/"onclick="x',
        "https://github.com/a/../../b",
        "https://github.com.evil.example/a/b",
        "-oProxyCommand=x@github.com:a/b",
    ],
)
def test_an_unknown_or_hostile_remote_has_none(remote: str) -> None:
    assert git_address(remote, ID) == ""


def test_a_local_repository_has_the_forge_of_its_origin(tmp_path: Path) -> None:
    source = Source(kind="git", location=str(tmp_path))
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    assert commit_address(source, ID) == ""
    add = ["git", "-C", str(tmp_path), "remote", "add"]
    subprocess.run([*add, "mirror", "https://gitlab.com/x/y"], check=True)
    subprocess.run([*add, "origin", "git@github.com:curl/curl.git"], check=True)
    assert commit_address(source, ID) == f"https://github.com/curl/curl/commit/{ID}"


def test_only_git_and_fossil_have_commits() -> None:
    fossil = Source(kind="fossil", location="https://core.tcl-lang.org/tcl")
    assert commit_address(fossil, ID) == f"https://core.tcl-lang.org/tcl/info/{ID}"
    assert commit_address(Source(kind="fossil", location="/srv/tcl.fossil"), ID) == ""
    assert commit_address(Source(kind="release", location="https://github.com/a/b"), ID) == ""
