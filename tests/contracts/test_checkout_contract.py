"""Contract of sources about checkouts: exactly the files of a revision in a new directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from perftrail.errors import CheckoutFailed
from perftrail.model.subject import Revision
from tests.contracts.sources import WITHOUT_HISTORY, Case, cases
from tests.sources.contents import files_below

every_source = cases()
with_history = cases(without=WITHOUT_HISTORY)


def files_except(directory: Path, *, exceptions: tuple[str, ...]) -> dict[str, str]:
    """Return the files below a directory by name, except those that perftrail may write."""
    return {
        name: content for name, content in files_below(directory).items() if not name.startswith(exceptions)
    }


@every_source
def test_materialise_writes_the_whole_tree_to_a_new_directory(case: Case, tmp_path: Path) -> None:
    revision = case.source.history()[-1]
    directory, log = tmp_path / "not" / "there" / "yet", tmp_path / "log"
    log.write_text("before\n")
    case.source.materialise(revision, str(directory), str(log))
    assert (directory / case.file).read_text() == case.texts[-1]
    assert log.read_text().startswith("before\n")
    assert str(directory) in log.read_text()


@with_history
def test_materialise_works_again_after_the_directory_was_moved(case: Case, tmp_path: Path) -> None:
    history = case.source.history()
    directory, log = tmp_path / "tree", str(tmp_path / "log")
    case.source.materialise(history[0], str(directory), log)
    directory.rename(tmp_path / "tree-of-the-first")
    case.source.materialise(history[-1], str(directory), log)
    assert (directory / case.file).read_text() == case.texts[-1]


@every_source
def test_a_checkout_writes_exactly_the_files_of_the_revision_and_nothing_elsewhere(
    case: Case, tmp_path: Path
) -> None:
    revision = case.source.history()[-1]
    before = files_except(tmp_path, exceptions=("cache/", "trees/", "log"))
    case.source.materialise(revision, str(tmp_path / "trees" / "one"), str(tmp_path / "log"))
    assert files_except(tmp_path, exceptions=("cache/", "trees/", "log")) == before
    assert [path.name for path in (tmp_path / "trees").iterdir()] == ["one"]
    files = files_below(tmp_path / "trees" / "one")
    assert case.file in files
    assert {name for name in files if not name.startswith(case.extra_files)} <= {case.file}


@every_source
def test_an_existing_directory_is_unchanged(case: Case, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("mine")
    with pytest.raises(CheckoutFailed):
        case.source.materialise(case.source.history()[0], str(tmp_path / "full"), str(tmp_path / "log"))
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["mine"]


@every_source
def test_an_unavailable_revision_leaves_no_files(case: Case, tmp_path: Path) -> None:
    missing = Revision(id="7" * 40)
    with pytest.raises(CheckoutFailed):
        case.source.materialise(missing, str(tmp_path / "none"), str(tmp_path / "log"))
    assert not (tmp_path / "none").exists()
