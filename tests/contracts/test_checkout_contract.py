"""Contract of sources about checkouts: exactly the files of a revision in a new directory."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from perftrail.errors import CheckoutFailed
from perftrail.model.subject import Revision
from tests.contracts.sources import CACHE, WITHOUT_HISTORY, Case, cases
from tests.sources.contents import files_below

every_source = cases()
with_history = cases(without=WITHOUT_HISTORY)


def files_except(directory: Path, *, exceptions: tuple[str, ...]) -> dict[str, str]:
    """Return the files below a directory by name, except those that perftrail may write."""
    return {
        name: content for name, content in files_below(directory).items() if not name.startswith(exceptions)
    }


@dataclass(frozen=True)
class CheckedOut:
    """The last revision in a new directory of a new directory, and the files of its source before and after."""

    directory: Path
    log: Path
    before: dict[str, str]
    after: dict[str, str]


@pytest.fixture(scope="module")
def checked_out(case: Case, tmp_path_factory: pytest.TempPathFactory) -> CheckedOut:
    place = tmp_path_factory.mktemp("checkout")
    directory, log = place / "not" / "there" / "yet", place / "log"
    log.write_text("before\n")
    before = files_except(case.directory, exceptions=(f"{CACHE}/",))
    case.source.materialise(case.source.history()[-1], str(directory), str(log))
    return CheckedOut(directory, log, before, files_except(case.directory, exceptions=(f"{CACHE}/",)))


@every_source
def test_materialise_writes_the_whole_tree_to_a_new_directory(case: Case, checked_out: CheckedOut) -> None:
    assert (checked_out.directory / case.file).read_text() == case.texts[-1]
    log = checked_out.log.read_text()
    assert log.startswith("before\n")
    assert str(checked_out.directory) in log


@every_source
def test_a_checkout_writes_exactly_the_files_of_the_revision_and_nothing_elsewhere(
    case: Case, checked_out: CheckedOut
) -> None:
    assert checked_out.after == checked_out.before
    place = checked_out.log.parent
    assert {path.name for path in place.iterdir()} == {"not", "log"}
    assert [path.name for path in (place / "not").iterdir()] == ["there"]
    assert [path.name for path in (place / "not" / "there").iterdir()] == ["yet"]
    files = files_below(checked_out.directory)
    assert case.file in files
    assert {name for name in files if not name.startswith(case.extra_files)} <= {case.file}


@with_history
def test_materialise_works_again_after_the_directory_was_moved(
    case: Case, checked_out: CheckedOut, tmp_path: Path
) -> None:
    checked_out.directory.rename(tmp_path / "tree-of-the-last")
    try:
        case.source.materialise(case.source.history()[0], str(checked_out.directory), str(tmp_path / "log"))
        assert (checked_out.directory / case.file).read_text() == case.texts[0]
    finally:
        shutil.rmtree(checked_out.directory)
        (tmp_path / "tree-of-the-last").rename(checked_out.directory)


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
