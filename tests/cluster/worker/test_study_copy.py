"""The directory of a study on a worker's machine, and its list of missing files."""

from __future__ import annotations

import io
import shutil
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from perftrail.builds import packing
from perftrail.builds.packing import MOST_TRANSFER_BYTES, pack, unpack, unpack_logs
from perftrail.cluster.fleet import TOKEN, token_of, write_marker
from perftrail.cluster.study_copy import STUDY, StudyCopy, pack_study, study_digest
from perftrail.cluster.values import PackedFiles, RemoteStudy
from perftrail.errors import ClusterError
from perftrail.model.source import Source
from tests.measure.fake_session import a_study

pytestmark = pytest.mark.skipif(not hasattr(tarfile, "tar_filter"), reason="needs Python 3.11.4")


def site(home: Path, source: Source, *, token: str = "one") -> RemoteStudy:
    home.mkdir(exist_ok=True)
    (home / "perftrail.toml").write_text("")
    results = home / ".perftrail"
    results.mkdir(exist_ok=True)
    (results / "sign").write_text("one")
    study = a_study(file=str(home / "perftrail.toml"), directory=str(home), source=source)
    return RemoteStudy(
        study=study, root=str(results), token=token, marker="sign", digest=study_digest(home), version="1"
    )


def test_a_worker_that_can_read_the_commands_directory_works_there(tmp_path: Path) -> None:
    remote_study = site(tmp_path / "study", Source(kind="git", location="https://example.org/x"))
    study_copy = StudyCopy(remote_study, tmp_path / "worker", apart=False)
    assert (study_copy.shared, study_copy.root, study_copy.study) == (
        True,
        Path(remote_study.root),
        remote_study.study,
    )
    assert study_copy.missing_files(()) is None


@pytest.mark.parametrize(("token", "apart"), [("another", False), ("one", True)])
def test_other_workers_have_a_separate_directory(tmp_path: Path, token: str, apart: bool) -> None:
    remote_study = site(tmp_path / "study", Source(kind="git", location="https://example.org/x"), token=token)
    study_copy = StudyCopy(remote_study, tmp_path / "worker", apart=apart)
    assert study_copy.root.is_relative_to(tmp_path / "worker")
    lacks = study_copy.missing_files(())
    assert lacks is not None
    assert lacks.names == (STUDY,)


def test_files_next_to_a_study_arrive_and_its_results_stay(tmp_path: Path) -> None:
    home = tmp_path / "study"
    remote_study = site(home, Source(kind="directory", location=str(home / "source")))
    (home / "source").mkdir()
    (home / "source" / "main.c").write_text("int main;")
    study_copy = StudyCopy(remote_study, tmp_path / "worker", apart=True)
    assert study_copy.missing_files([PackedFiles(name=STUDY, packed=pack_study(home))]) is None
    there = Path(study_copy.study.directory)
    assert (there / "source" / "main.c").read_text() == "int main;"
    assert study_copy.study.source.location == str(there / "source")
    assert not (there / ".perftrail").exists()


def test_a_source_that_is_not_there_is_refused_with_the_remedy(tmp_path: Path) -> None:
    remote_study = site(tmp_path / "study", Source(kind="git", location=str(tmp_path / "gone")))
    study_copy = StudyCopy(remote_study, tmp_path / "worker", apart=True)
    with pytest.raises(ClusterError, match=r"gone.*does not exist on this machine; use an address"):
        _ = study_copy.study


def test_a_study_that_changed_is_another_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("one")
    before = study_digest(tmp_path)
    (tmp_path / ".perftrail").mkdir()
    (tmp_path / ".perftrail" / "results.db").write_text("results are not looked at")
    assert study_digest(tmp_path) == before
    (tmp_path / "file").write_text("three")
    assert study_digest(tmp_path) != before


def test_more_than_may_travel_is_refused_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "large").write_bytes(bytes(range(256)) * 100)
    assert MOST_TRANSFER_BYTES == 64 << 20
    monkeypatch.setattr("perftrail.builds.packing.MOST_TRANSFER_BYTES", 100)
    with pytest.raises(ClusterError, match=r"the file: its packed size exceeds.*--store"):
        pack(tmp_path, ["large"], what="the file")


def test_links_and_modes_arrive_as_they_were_and_what_is_named_is_left_out(tmp_path: Path) -> None:
    home, there = tmp_path / "home", tmp_path / "there"
    (home / "inside" / ".git").mkdir(parents=True)
    (home / "inside" / "program").write_text("#!/bin/sh\n")
    (home / "inside" / "program").chmod(0o755)
    (home / "inside" / "link").symlink_to("program")
    unpack(pack(home, ["inside", "missing"], what="it", exclude=(".git",)), there)
    assert (there / "inside" / "link").readlink() == Path("program")
    assert (there / "inside" / "program").stat().st_mode & 0o111
    assert not (there / "inside" / ".git").exists()


def test_a_copy_of_the_results_is_recognised(tmp_path: Path) -> None:
    remote_study = site(tmp_path / "study", Source(kind="git", location="https://example.org/x"))
    root, copy = Path(remote_study.root), tmp_path / "another machine"
    token = token_of(root)
    write_marker(root, token)
    shutil.copytree(root, copy)
    sign = write_marker(root, token)
    here, there = (
        StudyCopy(
            replace(remote_study, root=str(each), token=token, marker=sign), tmp_path / "worker", apart=False
        )
        for each in (root, copy)
    )
    assert (here.shared, there.shared) == (True, False)
    assert [each.name for each in root.glob("cluster.sign.*")] == [sign], "that of the command before is gone"


def test_a_directory_keeps_what_it_is_known_by_and_an_empty_name_is_none(tmp_path: Path) -> None:
    (tmp_path / TOKEN).touch()
    first = token_of(tmp_path)
    assert len(first) == 32
    assert token_of(tmp_path) == first


@pytest.mark.parametrize("name", ["results.db", "logs/../results.db", "/results.db", "../results.db"])
def test_a_received_log_is_among_the_logs(tmp_path: Path, name: str) -> None:
    (tmp_path / "root").mkdir()
    results = tmp_path / "root" / "results.db"
    for path in (results, tmp_path / "results.db"):
        path.write_text("measured")
    with pytest.raises(ClusterError, match=r"results\.db: a worker sent this as a log"):
        unpack_logs(archive(tarfile.TarInfo(name)), tmp_path / "root", below="logs")
    assert [path.read_text() for path in (results, tmp_path / "results.db")] == ["measured"] * 2


def test_a_received_log_cannot_be_written_elsewhere(tmp_path: Path) -> None:
    link = tarfile.TarInfo("logs/run.out")
    link.type, link.linkname = tarfile.SYMTYPE, "../results.db"
    with pytest.raises(ClusterError, match=r"logs/run\.out: a worker sent this as a log"):
        unpack_logs(archive(link), tmp_path, below="logs")


def test_unexpected_or_outside_paths_of_an_archive_are_refused(tmp_path: Path) -> None:
    for packed in (archive(tarfile.TarInfo("../outside")), b"nonsense", archive(tarfile.TarInfo("x"))[:20]):
        with pytest.raises(ClusterError, match="cannot be unpacked"):
            unpack(packed, tmp_path / "inside")
    assert not (tmp_path / "outside").exists()


def test_an_archive_that_unpacks_to_more_than_the_limit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "MOST_UNPACKED_BYTES", 3 << 20)
    bomb = archive(zeros("one", 2 << 20), zeros("two", 2 << 20))
    assert len(bomb) < 10_000
    with pytest.raises(ClusterError, match=r"unpacked size exceeds 3\.00 MiB, the limit .*; use --store"):
        unpack(bomb, tmp_path / "there")
    assert [each.name for each in (tmp_path / "there").iterdir()] == ["one"]
    unpack(archive(zeros("one", 2 << 20)), tmp_path / "smaller")


def test_an_archive_with_too_many_files_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "MOST_UNPACKED_FILES", 3)
    unpack(archive(*(tarfile.TarInfo(f"{number}") for number in range(3))), tmp_path / "three")
    with pytest.raises(ClusterError, match=r"has more than 3 files, the limit .*; use --store"):
        unpack(archive(*(tarfile.TarInfo(f"{number}") for number in range(4))), tmp_path / "four")


def test_headers_of_an_archive_do_not_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ClusterError, match=r"one of its headers is larger than 1\.00 MiB"):
        unpack(archive(tarfile.TarInfo("x" * (2 << 20))), tmp_path)
    monkeypatch.setattr(packing, "MOST_UNPACKED_BYTES", 1 << 20)
    monkeypatch.setattr(packing, "MOST_UNPACKED_FILES", 10)
    with_comments = [tarfile.TarInfo(f"{number}") for number in range(4)]
    for each in with_comments:
        each.pax_headers = {"comment": "x" * (1 << 19)}
    with pytest.raises(ClusterError, match=r"unpacked size exceeds 1\.00 MiB"):
        unpack(archive(*with_comments), tmp_path)


def test_a_machine_sends_nothing_that_another_would_not_unpack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "MOST_UNPACKED_BYTES", 3 << 20)
    (tmp_path / "large").write_bytes(bytes(4 << 20))
    with pytest.raises(ClusterError, match=r"build 1: its unpacked size exceeds 3\.00 MiB, .*; use --store"):
        pack(tmp_path, ["large"], what="build 1")


def zeros(name: str, size: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size = size
    return member


def archive(*members: tarfile.TarInfo) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for each in members:
            tar.addfile(each, io.BytesIO(bytes(each.size)) if each.size else None)
    return packed.getvalue()
