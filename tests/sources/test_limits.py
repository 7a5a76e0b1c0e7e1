"""Limits on the time and space of reading a repository, an archive or the output of a tool."""

from __future__ import annotations

import io
import tarfile
import time
import zipfile
from pathlib import Path

import pytest

from perftrail.errors import CheckoutFailed, SourceError
from perftrail.process.launcher import Launcher
from perftrail.sources import client, unpacking
from perftrail.sources.client import Client, ToolResult, client_environment
from perftrail.sources.packages import pypi
from perftrail.sources.packages.debian import is_debian_version
from perftrail.sources.packages.pypi import why_pip_failed
from tests.sources.archives import serving, tar_of, zip_of


@pytest.mark.parametrize("seconds", [client.QUICK_SECONDS, client.LONG_SECONDS])
def test_a_tool_that_prints_without_end_is_stopped(
    launcher: Launcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    monkeypatch.setattr(client, "LARGEST_OUTPUT_BYTES", 1 << 20)
    monkeypatch.setattr(client, "LARGEST_FILE_BYTES", 4 << 20)
    began = time.monotonic()
    tool = Client(starter=launcher, environment=client_environment(without=()))
    result = tool.run(["sh", "-c", "yes xxxxxxxx"], directory=tmp_path, timeout_seconds=seconds)
    assert result.failed
    assert result.over_limit
    assert not result.output
    assert "sh yes xxxxxxxx was stopped: it wrote more than" in result.why
    assert "smaller range" in result.why
    assert time.monotonic() - began < 60.0


def test_an_archive_with_too_many_entries_is_refused_before_its_list_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacking, "MOST_ENTRIES", 10)
    read = 0
    from_buffer = unpacking._Member.frombuf.__func__  # type: ignore[attr-defined] # a class method has it

    def counting(cls: type, buf: bytes, encoding: str, errors: str) -> tarfile.TarInfo:
        nonlocal read
        read += 1
        return from_buffer(cls, buf, encoding, errors)  # type: ignore[no-any-return] # as the original

    monkeypatch.setattr(unpacking._Member, "frombuf", classmethod(counting))
    (tmp_path / "a.tar").write_bytes(tar_of({f"{number}": "x" for number in range(200)}))
    with pytest.raises(CheckoutFailed, match=r"contains more than 10 entries; .* Leave this release out"):
        unpacking.unpack(tmp_path / "a.tar", tmp_path / "tree")
    assert read < 20


def test_a_zip_with_too_large_a_list_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacking, "LARGEST_DIRECTORY_BYTES", 1000)
    (tmp_path / "a.zip").write_bytes(zip_of({f"{number}": "x" for number in range(200)}))
    with pytest.raises(CheckoutFailed, match="list of entries has more than 1000 bytes"):
        unpacking.unpack(tmp_path / "a.zip", tmp_path / "tree")


def test_a_long_target_of_a_link_in_a_zip_is_not_read(tmp_path: Path) -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        link = zipfile.ZipInfo("p/l")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, b"x" * (8 << 20), zipfile.ZIP_DEFLATED)
    (tmp_path / "a.zip").write_bytes(content.getvalue())
    with pytest.raises(CheckoutFailed, match="target of 4096 bytes or more"):
        unpacking.unpack(tmp_path / "a.zip", tmp_path / "tree")


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME])
def test_a_long_header_of_a_tar_is_not_read(tmp_path: Path, kind: bytes) -> None:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        header = tarfile.TarInfo("header")
        header.type = kind
        header.size = 4 << 20
        archive.addfile(header, io.BytesIO(bytes(4 << 20)))
    (tmp_path / "a.tar.gz").write_bytes(content.getvalue())
    with pytest.raises(CheckoutFailed, match="header of the archive has more than 1048576 bytes"):
        unpacking.unpack(tmp_path / "a.tar.gz", tmp_path / "tree")


@pytest.mark.parametrize(
    "output", ["\n" * 200_000, "a" * 200_000 + "\n", "a." * 100_000 + "\n", " " * 200_000 + "\n"]
)
def test_pips_output_is_searched_in_linear_time(output: str) -> None:
    result = ToolResult(output=(output + "x.BuildError: no cc\n").encode(), errors="", ended="exit code 1")
    began = time.process_time()
    assert why_pip_failed(result) == "x.BuildError: no cc"
    assert time.process_time() - began < 2.0


def test_versions_are_read_in_linear_time() -> None:
    began = time.process_time()
    assert not is_debian_version("1" + "-" * 200_000 + "!")
    assert time.process_time() - began < 1.0


def test_a_large_page_of_an_index_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pypi, "LARGEST_PAGE_BYTES", 10_000)
    files = {"large": b"x" * 20_000, "small": b"fits"}
    with serving(files, []) as address, pypi._session({}) as session:
        with pytest.raises(SourceError, match="page has more than 10000 bytes"):
            session.get(f"{address}/large")
        assert session.get(f"{address}/small").text == "fits"
