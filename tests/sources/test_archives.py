"""The table of archives: order, checksums, downloads, and hostile archives."""

from __future__ import annotations

import hashlib
import os
import stat
import struct
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from perftrail.errors import CheckoutFailed, SourceError
from perftrail.model.source import Archive
from perftrail.model.source import Source as SourceTable
from perftrail.model.subject import Revision
from perftrail.sources import unpacking
from perftrail.sources.archives import ArchiveSource
from tests.sources.archives import serving, special, tar_of, zip_of

Put = Callable[..., Path]
"""Unpacks one archive, given its bytes, and gives the directory."""


def source_of(directory: Path | str, archives: dict[str, str], cache: Path, **sums: str) -> ArchiveSource:
    table = tuple(
        Archive(version=version, file=file, sha256=sums.get(version, ""))
        for version, file in archives.items()
    )
    return ArchiveSource(
        SourceTable(kind="release", location=str(directory), archives=table), cache=str(cache)
    )


@pytest.fixture
def put(tmp_path: Path) -> Put:
    def unpack_it(content: bytes, name: str = "a.tar.gz", **sums: str) -> Path:
        (tmp_path / name).write_bytes(content)
        source = source_of(tmp_path, {"one": name}, tmp_path / "cache", **sums)
        tree = tmp_path / "tree"
        source.materialise(source.history()[0], str(tree), str(tmp_path / "log"))
        return tree

    return unpack_it


def names(directory: Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*"))


def test_versions_are_in_the_order_of_the_table(tmp_path: Path) -> None:
    source = source_of(tmp_path, {"r10": "a", "r9": "b", "2.0-final": "c"}, tmp_path)
    assert [each.id for each in source.history()] == ["r10", "r9", "2.0-final"]
    assert [each.id for each in source.history("r9..2.0-final")] == ["r9", "2.0-final"]
    with pytest.raises(SourceError, match='no version "r1"; did you mean "r10"'):
        source.history("r1..r9")


@pytest.mark.parametrize("compression", ["", "gz", "bz2", "xz"])
def test_tar_archives_are_unpacked_without_what_wraps_them(put: Put, compression: str) -> None:
    tree = put(tar_of({"p-1/a": "1", "p-1/d/b": "2"}, compression=compression), name="any")
    assert names(tree) == ["a", "d", "d/b"]


def test_zip_archives_keep_programs_and_links(put: Put) -> None:
    content = zip_of({"p/run": "#!/bin/sh", "p/l": "run"}, modes={"p/run": 0o100755, "p/l": 0o120777})
    tree = put(content)
    assert tree.joinpath("run").stat().st_mode & stat.S_IXUSR
    assert tree.joinpath("l").readlink() == Path("run")


def test_files_side_by_side_are_unpacked_unchanged(put: Put) -> None:
    assert names(put(tar_of({"a": "1", "d/b": "2"}))) == ["a", "d", "d/b"]


def test_a_single_file_is_no_wrapper(put: Put) -> None:
    assert names(put(tar_of({"only": "1"}))) == ["only"]


def test_links_inside_are_kept_and_hard_links_have_their_targets_content(put: Put) -> None:
    extra = [special("p/d/up", tarfile.SYMTYPE, "../a"), special("p/same", tarfile.LNKTYPE, "p/a")]
    tree = put(tar_of({"p/a": "1", "p/d/b": "2"}, extra=extra))
    assert (tree / "d" / "up").read_text() == (tree / "same").read_text() == "1"


def test_all_files_have_one_date(put: Put) -> None:
    tree = put(tar_of({f"p/{number}": "1" for number in range(5)}))
    assert len({path.stat().st_mtime_ns for path in tree.iterdir()}) == 1


def test_modes_that_would_be_dangerous_are_not_taken(put: Put) -> None:
    tree = put(tar_of({"p/a": "1", "p/b": "1"}, mode=0o6777))
    assert stat.S_IMODE((tree / "a").stat().st_mode) == 0o755


HOSTILE = {
    "an absolute name": tar_of({"/tmp/perftrail-pwned": "x", "a": "1"}),
    "a name that climbs": tar_of({"p/../../pwned": "x"}),
    "a link to an absolute place": tar_of({"a": "1"}, extra=[special("l", tarfile.SYMTYPE, "/etc/passwd")]),
    "a link that climbs": tar_of({"a": "1"}, extra=[special("d/l", tarfile.SYMTYPE, "../../x")]),
    "links that climb together": tar_of(
        {"a": "1", "d/b": "1"},
        extra=[special("d/l", tarfile.SYMTYPE, ".."), special("e", tarfile.SYMTYPE, "d/l/..")],
    ),
    "a link that leads into itself": tar_of({"a": "1"}, extra=[special("l", tarfile.SYMTYPE, "l")]),
    "a file through a link": tar_of({"l/x": "1", "a": "1"}, extra=[special("l", tarfile.SYMTYPE, "..")]),
    "a file through a link before it": tar_of(
        {"l/x": "1", "a": "1"}, before=[special("l", tarfile.SYMTYPE, "..")]
    ),
    "a hard link that climbs": tar_of({"a": "1"}, extra=[special("l", tarfile.LNKTYPE, "../../etc/passwd")]),
    "a hard link to an absolute place": tar_of(
        {"a": "1"}, extra=[special("l", tarfile.LNKTYPE, "/etc/passwd")]
    ),
    "a hard link to nothing": tar_of({"a": "1"}, extra=[special("l", tarfile.LNKTYPE, "b")]),
    "a device": tar_of({"a": "1"}, extra=[special("null", tarfile.CHRTYPE)]),
    "a pipe": tar_of({"a": "1"}, extra=[special("p", tarfile.FIFOTYPE)]),
    "a file that is a directory": tar_of({"a": "1", "a/b": "2"}),
    "a zip that climbs": zip_of({"../pwned": "x", "a": "1"}),
    "a zip with an absolute name": zip_of({"/tmp/perftrail-pwned": "x"}),
    "a zip with a link that climbs": zip_of({"a": "1", "l": "../../x"}, modes={"l": 0o120777}),
    "a zip with an entry without a name": zip_of({"a": "1", "": "x", "../x": "1"}),
    "a zip with a device": zip_of({"a": "1", "d": ""}, modes={"d": 0o020644}),
    "a tar that ends too early": tar_of({f"{n}": os.urandom(999).hex() for n in range(9)})[:4000],
    "a zip that ends too early": zip_of({f"{n}": os.urandom(999).hex() for n in range(9)})[:4000],
    "a zip whose file is larger than it states": zip_of({"a": "x" * 54_321}).replace(
        struct.pack("<I", 54_321), struct.pack("<I", 12)
    ),
    "what is no archive": b"<html>404</html>",
    "nothing": b"",
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE.keys())
def test_an_archive_that_means_harm_leaves_nothing(put: Put, tmp_path: Path, content: bytes) -> None:
    with pytest.raises(CheckoutFailed):
        put(content)
    assert names(tmp_path) == ["a.tar.gz", "log"]
    assert not Path("/tmp/perftrail-pwned").exists()
    assert len((tmp_path / "log").read_text().splitlines()) >= 2


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE])
def test_nothing_is_planted_through_a_link(put: Put, tmp_path: Path, kind: bytes) -> None:
    home = tmp_path / "home"
    home.mkdir()
    planted = special("a/planted", kind, "b" if kind == tarfile.LNKTYPE else "x")
    with pytest.raises(CheckoutFailed, match="behind a link"):
        put(tar_of({"b": "1"}, before=[special("a", tarfile.SYMTYPE, "../home"), planted]))
    assert not list(home.iterdir())
    assert not (tmp_path / "tree").exists()


def test_an_archive_that_unpacks_to_too_much_is_refused(
    put: Put, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacking, "LARGEST_TREE_BYTES", 1 << 20)
    with pytest.raises(CheckoutFailed, match="unpacks to more"):
        put(tar_of({"a": "0" * (1 << 19), "b": "0" * (1 << 20)}))
    assert not (tmp_path / "tree").exists()


def test_a_checksum_is_compared_before_anything_is_unpacked(put: Put, tmp_path: Path) -> None:
    content = tar_of({"a": "1"})
    right = hashlib.sha256(content).hexdigest()
    with pytest.raises(CheckoutFailed, match=f"wrong checksum for one: its SHA-256 is {right}"):
        put(content, one="0" * 64)
    assert names(put(content, one=right.upper())) == ["a"]


def test_an_archive_that_is_gone_is_one_revision_that_cannot_be_had(tmp_path: Path) -> None:
    (tmp_path / "there").write_bytes(tar_of({"a": "1"}))
    source = source_of(tmp_path, {"1": "gone", "2": "there"}, tmp_path / "cache")
    gone, there = source.history()
    assert source.content(gone) != source.content(there)
    with pytest.raises(CheckoutFailed, match="no such archive"):
        source.materialise(gone, str(tmp_path / "tree"), str(tmp_path / "log"))
    source.materialise(there, str(tmp_path / "tree"), str(tmp_path / "log"))


def test_content_follows_the_archive(tmp_path: Path) -> None:
    archives = {"1": "a", "2": "b", "3": "c"}
    for name, text in (("a", "x"), ("b", "x"), ("c", "y")):
        (tmp_path / name).write_bytes(tar_of({"f": text}))
    one, two, three = map(
        source_of(tmp_path, archives, tmp_path).content, (Revision(id=version) for version in "123")
    )
    assert one == two != three


def test_a_download_is_checked_and_made_once(tmp_path: Path) -> None:
    content, requests = tar_of({"a": "1"}), list[str]()
    digest = hashlib.sha256(content).hexdigest()
    with serving({"dist/x-1.tgz": content, "dist/x-2.tgz": b"other"}, requests) as address:
        for number in range(2):
            source = source_of(
                f"{address}/dist",
                {"1": "x-1.tgz", "2": "x-2.tgz", "3": f"{address}/dist/x-3.tgz"},
                tmp_path,
                **dict.fromkeys("123", digest),
            )
            source.materialise(source.history()[0], str(tmp_path / f"tree{number}"), str(tmp_path / "log"))
        assert requests == ["/dist/x-1.tgz"]
        for version, words in (
            ("2", "wrong checksum"),
            ("3", "cannot be downloaded: .*404"),
        ):
            fresh = source_of(
                f"{address}/dist", {version: f"x-{version}.tgz"}, tmp_path / "fresh", **{version: digest}
            )
            with pytest.raises(CheckoutFailed, match=words):
                fresh.materialise(Revision(id=version), str(tmp_path / "none"), str(tmp_path / "log"))
    assert not list((tmp_path / "fresh" / "archives").iterdir())


def test_an_address_where_nobody_answers_is_a_recorded_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perftrail.sources.archives._RETRIES", 0)
    source = source_of("http://127.0.0.1:9", {"1": "x.tgz"}, tmp_path, **{"1": "0" * 64})
    with pytest.raises(CheckoutFailed, match="cannot be downloaded"):
        source.materialise(source.history()[0], str(tmp_path / "tree"), str(tmp_path / "log"))
