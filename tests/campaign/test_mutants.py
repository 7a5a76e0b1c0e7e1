"""Each campaign finds planted defects."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from campaign import outside_root, sandbox_escapes
from campaign.sandbox_programs import PROGRAMS
from perftrail.builds import repairs
from perftrail.file_tree import NewTree
from perftrail.process.sandbox import view
from perftrail.sources import unpacking
from tests.process.sandbox.sandboxes import needs_sandbox

SEED = 1
CHANGED = "changed outside the root"


def losses_of(kind: str, monkeypatch: pytest.MonkeyPatch, *, seconds: float = 5.0) -> Sequence[str]:
    """Run the campaign with one kind of source."""
    monkeypatch.setattr(outside_root, "_FAST", {kind: outside_root._FAST[kind]})
    monkeypatch.setattr(outside_root, "_SLOW", {})
    return outside_root.run(seconds, SEED).losses


@contextmanager
def write_by_path(tree: NewTree, parts: Sequence[str], *, program: bool) -> Iterator[IO[bytes]]:
    """Write an entry as a naive unpacker does: the kernel follows every link of its path."""
    path = Path(tree._root, *parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        yield file


@pytest.mark.slow("processor")
def test_files_of_an_archive_that_are_written_through_links_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(NewTree, "file", write_by_path)
    monkeypatch.setattr(NewTree, "remove", lambda tree, parts: None)
    # The other defences against the same entry: the order, and the check before anything is written.
    monkeypatch.setattr(unpacking, "_refuse_entries_behind_links", lambda entries: None)
    monkeypatch.setattr(unpacking, "_ORDER", unpacking._ORDER[::-1])
    assert any(CHANGED in loss for loss in losses_of("tar", monkeypatch))


@pytest.mark.slow("processor")
def test_an_overlay_that_follows_a_link_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def copy_naively(file: Path, tree: Path, path: str) -> str:
        try:
            shutil.copyfile(file, tree / path)
        except OSError as error:
            return str(error)
        return ""

    monkeypatch.setattr(repairs, "_copy_overlay", copy_naively)
    # A hostile link is where the file is copied to in few trials, and a busy machine has few in five seconds.
    found = (losses_of("repairs", monkeypatch, seconds=seconds) for seconds in (5.0, 60.0))
    assert any(CHANGED in loss for losses in found for loss in losses)


@pytest.mark.slow("processor")
def test_an_archive_that_is_read_without_a_limit_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "_counted", list)
    assert any("is the limit" in loss for loss in losses_of("tar bomb", monkeypatch))


@needs_sandbox
@pytest.mark.slow("processor")
def test_a_sandbox_that_shows_the_home_directory_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view, "_own_homes", lambda: ())
    monkeypatch.setattr(view, "_TEMPORARY", ())
    words = view.View._words

    def without_private_directories(self: view.View, private: view.PrivateDirectories) -> Iterator[str]:
        given = list(words(self, private))
        for at in [at for at, word in enumerate(given) if word == "/var/tmp" and given[at - 2] == "--bind"]:
            given[at - 1] = "/var/tmp"
        return iter(given)

    monkeypatch.setattr(view.View, "_words", without_private_directories)
    program = "home and secrets"
    monkeypatch.setattr(sandbox_escapes, "PROGRAMS", {program: PROGRAMS[program]})
    assert any("ESCAPED: read" in loss for loss in sandbox_escapes.run(3.0, SEED).losses)
