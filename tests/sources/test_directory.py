"""The directory source: one revision, named by the content of the files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from perftrail.errors import CheckoutFailed, SourceError
from perftrail.model.source import Label
from perftrail.model.source import Source as SourceTable
from perftrail.sources.directory import DirectorySource


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "src").mkdir(parents=True)
    (root / "src" / "a.c").write_text("int a;")
    (root / "run").write_text("#!/bin/sh\n")
    (root / "run").chmod(0o755)
    return root


def opened(root: Path, label: Label | None = None) -> DirectorySource:
    return DirectorySource(SourceTable(kind="directory", location=str(root), label=label))


def test_an_edit_makes_another_revision(root: Path) -> None:
    before = opened(root).history()
    (root / "src" / "a.c").write_text("int b;")
    assert opened(root).history() != before


def test_files_of_version_control_and_perftrail_do_not_count(root: Path) -> None:
    before = opened(root).history()
    for name in (".git", ".perftrail"):
        (root / name).mkdir()
        (root / name / "file").write_text("x")
    assert opened(root).history() == before


def test_a_copy_keeps_programs_links_and_empty_directories(root: Path, tmp_path: Path) -> None:
    (root / "outside").symlink_to("/etc/passwd")
    (root / "loop").symlink_to(".")
    (root / "empty").mkdir()
    os.mkfifo(root / "pipe")
    source = opened(root)
    source.materialise(source.history()[0], str(tmp_path / "copy"), str(tmp_path / "log"))
    copy = tmp_path / "copy"
    assert sorted(path.name for path in copy.iterdir()) == ["empty", "loop", "outside", "run", "src"]
    assert (copy / "outside").is_symlink()
    assert (copy / "loop").readlink() == Path()
    assert os.access(copy / "run", os.X_OK)


def test_files_that_changed_meanwhile_are_not_passed_off_as_the_revision(root: Path, tmp_path: Path) -> None:
    source = opened(root)
    revision = source.history()[0]
    (root / "new").write_text("new")
    with pytest.raises(CheckoutFailed, match="changed since"):
        source.materialise(revision, str(tmp_path / "copy"), str(tmp_path / "log"))
    assert not (tmp_path / "copy").exists()


def test_a_label_is_read_from_its_file(root: Path) -> None:
    assert opened(root, Label(file="src/a.c", pattern=r"int (\w)")).history()[0].label == "a"
    assert opened(root, Label(file="gone", pattern="(.)")).history()[0].label == ""


def test_a_range_is_refused_and_a_missing_directory_is_reported(root: Path) -> None:
    with pytest.raises(SourceError, match="one revision"):
        opened(root).history("a..b")
    with pytest.raises(SourceError, match="one revision"):
        opened(root).within("..b")
    with pytest.raises(SourceError, match="no such directory"):
        opened(root / "gone").history()


def test_only_the_folders_that_are_used_belong_to_it(root: Path, tmp_path: Path) -> None:
    (root / "other").mkdir()
    (root / "other" / "b").write_text("b")

    def source() -> DirectorySource:
        return DirectorySource(SourceTable(kind="directory", location=str(root)), folders=("src",))

    before = source().history()
    (root / "other" / "b").write_text("c")
    assert source().history() == before
    source().materialise(before[0], str(tmp_path / "copy"), str(tmp_path / "log"))
    assert [path.name for path in (tmp_path / "copy").iterdir()] == ["src"]
    (root / "src" / "a.c").write_text("int c;")
    assert source().history() != before
