"""How the tests of Fossil look at histories and trees."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from perftrail.model.subject import Revision
from perftrail.sources.fossil import FossilSource
from tests.sources.fossil_repositories import FossilRepository

Open = Callable[..., FossilSource]
"""Opens the test's repository, or another location; everything else as keys of the study's source."""


def ids(revisions: tuple[Revision, ...]) -> list[str]:
    return [revision.id for revision in revisions]


def line(repository: FossilRepository, count: int) -> list[str]:
    return [repository.commit({"a": f"{number}"}, subject=f"change {number}") for number in range(count)]


def named(found: Any, made: dict[str, str]) -> str:
    names = {id_: name for name, id_ in made.items()}
    return "".join(names[each.id if isinstance(each, Revision) else each] for each in found)


def put(source: FossilSource, revision: Revision, directory: Path) -> Path:
    source.materialise(revision, str(directory), str(directory.with_suffix(".log")))
    return directory


def files_below(directory: Path) -> dict[str, str]:
    """Every file and link, with its mode or where it leads, and its content."""
    return {
        str(path.relative_to(directory)): (
            f"-> {path.readlink()}"
            if path.is_symlink()
            else f"{stat.S_IMODE(path.stat().st_mode) & 0o100:o} {path.read_bytes()!r}"
        )
        for path in directory.rglob("*")
        if path.is_symlink() or path.is_file()
    }
