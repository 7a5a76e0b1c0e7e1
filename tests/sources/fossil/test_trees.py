"""Trees on disk: the same files as from Fossil itself, and no others."""

from __future__ import annotations

import hashlib
import os
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from perftrail.errors import CheckoutFailed
from perftrail.model.source import Source as SourceTable
from perftrail.model.subject import Revision
from perftrail.process.launcher import Launcher
from perftrail.sources.fossil import FossilSource
from tests.sources.contents import files_below, ids, line, put
from tests.sources.fossil.opening import Open
from tests.sources.fossil_repositories import FossilRepository, fossil, needs_fossil

pytestmark = needs_fossil


@pytest.mark.skipif(not hasattr(tarfile, "tar_filter"), reason="needs Python 3.11.4")
def test_a_tree_is_what_fossil_itself_would_give(
    opened: Open, repository: FossilRepository, tmp_path: Path
) -> None:
    repository.commit(
        {
            "empty": "",
            "bin/run": "program:#!/bin/sh\n",
            "link": "link:bin/run",
            "outside": "link:/etc/passwd",
            "same": "text",
            "deep/er/same": "text",
            "with space and 'quote'": "\x00\x01binary\r\n",
            ".fossil-settings/manifest": "on\n",
        },
        subject="everything",
        tags=["v1"],
    )
    source = opened()
    tree = put(source, source.history()[0], tmp_path / "tree")
    fossil(
        "tarball",
        "v1",
        str(tmp_path / "t.tgz"),
        "--name",
        "its",
        "-R",
        str(repository.path),
        directory=tmp_path,
    )
    with tarfile.open(tmp_path / "t.tgz") as archive:
        archive.extractall(tmp_path, filter="fully_trusted")
    assert files_below(tree) == files_below(tmp_path / "its")
    assert (tree / "manifest.uuid").read_text() == f"{source.history()[0].id}\n"
    assert len({os.lstat(path).st_mtime_ns for path in tree.rglob("*")}) == 1
    assert str(tree) in (tmp_path / "tree.log").read_text()


def test_files_that_fossil_adds_to_a_tree_follow_no_link(
    opened: Open, repository: FossilRepository, tmp_path: Path
) -> None:
    repository.commit(
        {"manifest": f"link:{tmp_path}/pwned", "manifest.uuid": "mine", ".fossil-settings/manifest": "on"}
    )
    source = opened()
    tree = put(source, source.history()[0], tmp_path / "tree")
    assert (tree / "manifest.uuid").read_text() == "mine"
    assert not (tmp_path / "pwned").exists()


def test_no_file_is_written_through_a_link(
    opened: Open, repository: FossilRepository, tmp_path: Path
) -> None:
    repository.commit({"l": "link:..", "l/pwned": "x"})
    source = opened()
    with pytest.raises(CheckoutFailed):
        put(source, source.history()[0], tmp_path / "tree")
    assert not list(tmp_path.rglob("pwned"))


def test_nothing_of_another_revision_is_left_in_a_tree(
    opened: Open, repository: FossilRepository, tmp_path: Path
) -> None:
    repository.commit({"a": "1", "gone": "1", "was/file": "1"})
    repository.commit({"a": "2", "new": "1", "was": "1"})
    source = opened()
    before, after = source.history()
    assert set(files_below(put(source, before, tmp_path / "one"))) == {"a", "gone", "was/file"}
    assert set(files_below(put(source, after, tmp_path / "two"))) == {"a", "new", "was"}


def test_equal_trees_have_equal_contents(opened: Open, repository: FossilRepository) -> None:
    for text in ("1", "2", "1", "program:1", "link:1"):
        repository.commit({"a": text})
    repository.commit({"b": "1"})
    source = opened()
    contents = list(map(source.content, source.history()))
    assert contents[0] == contents[2]
    assert len(set(contents)) == 5
    again = opened(cache="second")
    assert again.content(Revision(id=source.history()[1].id)) == contents[1]


def test_a_check_in_that_is_written_into_its_tree_makes_it_another(
    opened: Open, repository: FossilRepository
) -> None:
    for setting in ("off", "off", "u", "u"):
        repository.commit({"a": "1", ".fossil-settings/manifest": setting})
    source = opened()
    one, other, third, fourth = map(source.content, source.history())
    assert one == other
    assert third != fourth


def test_files_that_no_build_reads_make_no_other_content(opened: Open, repository: FossilRepository) -> None:
    first = {"a.c": "1", "README.md": "1", "docs/deep/b": "1", "src/c.md": "1"}
    repository.commit(first)
    repository.commit({**first, "README.md": "2", "docs/deep/b": "2", "docs/o'new": "1"})
    repository.commit({**first, "src/c.md": "2"})
    repository.commit({**first, "a.c": "2"})
    source = opened()
    without = ("docs/**", "*.md")
    one, other, below, code = (source.content_without(each, without) for each in source.history())
    assert one == other
    assert len({one, below, code}) == 3
    contents = list(map(source.content, source.history()))
    assert len(set(contents)) == 4
    assert [source.content_without(each, ()) for each in source.history()] == contents


def test_a_check_in_that_is_written_into_a_file_that_no_build_reads_makes_no_other_content(
    opened: Open, repository: FossilRepository
) -> None:
    for note in ("1", "2"):
        repository.commit({"a": "1", "note": note, ".fossil-settings/manifest": "u"})
    source = opened()
    one, other = source.history()
    assert source.content_without(one, ("note",)) != source.content_without(other, ("note",))
    without = ("note", "manifest.uuid")
    assert source.content_without(one, without) == source.content_without(other, without)


def test_an_artifact_that_was_never_received_is_a_revision_that_cannot_be_had(
    opened: Open, repository: FossilRepository, tmp_path: Path
) -> None:
    repository.commit({"a": "1", "lost file": "lost"})
    repository.commit({"a": "2"})
    repository.lose("lost")
    source = opened()
    first, second = source.history()
    with pytest.raises(CheckoutFailed, match='lacks "lost file"'):
        put(source, first, tmp_path / "one")
    assert not (tmp_path / "one").exists()
    assert "lost file" in (tmp_path / "one.log").read_text()
    assert source.content(first) != source.content(second)
    put(source, second, tmp_path / "two")


def test_an_artifact_that_is_not_what_its_name_promises_is_refused(
    opened: Open, repository: FossilRepository, tmp_path: Path
) -> None:
    repository.commit({"a file": "as it was"})
    name = hashlib.sha3_256(b"as it was").hexdigest()
    spoil = f"UPDATE blob SET content = compress('otherwise') WHERE uuid = '{name}'"
    fossil("sql", "-R", str(repository.make()), spoil, directory=tmp_path)
    source = opened(repository.path)
    with pytest.raises(CheckoutFailed, match='"a file" does not have the checksum'):
        put(source, source.history()[0], tmp_path / "tree")


def test_nothing_is_planted_through_a_link(
    opened: Open, repository: FossilRepository, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    repository.commit({"a": f"link:{home}", "a/planted": "link:x", "b": "1"})
    source = opened()
    with pytest.raises(CheckoutFailed, match='in the way of "a/planted"'):
        put(source, source.history()[0], tmp_path / "tree")
    assert not list(home.iterdir())
    assert not (tmp_path / "tree").exists()


def test_places_may_be_relative(
    opened: Open,
    repository: FossilRepository,
    tmp_path: Path,
    launcher: Launcher,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    commits = line(repository, 2)
    monkeypatch.chdir(tmp_path)
    table = SourceTable(kind="fossil", location=str(repository.make()))
    source = FossilSource(table, cache="near", starter=launcher)
    assert ids(source.history()) == commits
    source.materialise(source.history()[1], "tree", "log")
    assert (tmp_path / "tree" / "a").read_text() == "1"


def test_check_outs_side_by_side(opened: Open, repository: FossilRepository, tmp_path: Path) -> None:
    line(repository, 6)
    history = opened().history()

    def check_out(number: int) -> str:
        with Launcher() as own:
            table = SourceTable(kind="fossil", location=str(repository.path))
            source = FossilSource(table, cache=str(tmp_path / "fresh"), starter=own)
            return (put(source, history[number], tmp_path / f"tree{number}") / "a").read_text()

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(check_out, range(6))) == [str(number) for number in range(6)]
