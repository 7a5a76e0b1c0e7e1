"""Functions with which the tests of sources read histories and trees."""

from __future__ import annotations

import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from perftrail.model.subject import Revision
from perftrail.ports import Source


class Committing(Protocol):
    """A repository of any kind that a test fills."""

    def commit(
        self,
        files: Mapping[str, str],
        *,
        subject: str = ...,
        parents: Sequence[str] | None = ...,
        branch: str = ...,
    ) -> str: ...


def ids(revisions: tuple[Revision, ...]) -> list[str]:
    return [revision.id for revision in revisions]


def line(repository: Committing, count: int) -> list[str]:
    return [repository.commit({"a": f"{number}"}, subject=f"change {number}") for number in range(count)]


def named(found: Any, commits: dict[str, str]) -> str:
    names = {id_: name for name, id_ in commits.items()}
    return "".join(names[each.id if isinstance(each, Revision) else each] for each in found)


def put(source: Source, revision: Revision, directory: Path) -> Path:
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
