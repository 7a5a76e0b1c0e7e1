"""Which studies are served, and under which names."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail import studyfile
from perftrail.errors import UsageError
from perftrail.web.desk import Desk
from perftrail.workflows.reporting.words import slug

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

DEEPEST = 3
"""Studies lie so far below the directory that is named, at most."""

MOST = 200


def find_studies(named: str | None) -> tuple[str, ...]:
    """Give the files of a study, or of every study below a directory. Raises `UsageError` where there is none."""
    if named is None:
        found = studyfile.find_upwards(os.getcwd())  # noqa: PTH109 - a path as text, as the study file gives them
        if found is None:
            raise UsageError("no perftrail.toml here or above; name a study, or a directory of studies")
        return (found,)
    path = Path(named)
    if path.is_file():
        return (str(path),)
    if (path / studyfile.FILE_NAME).is_file():
        return (str(path / studyfile.FILE_NAME),)
    found_below = sorted(_below(path, DEEPEST))
    if not found_below:
        raise UsageError(f"{named}: no {studyfile.FILE_NAME} there, nor in what lies below it; name a study")
    if len(found_below) > MOST:
        raise UsageError(
            f"{named}: {len(found_below)} studies lie there, {MOST} are shown at most; name one with fewer"
        )
    return tuple(str(file) for file in found_below)


def _below(directory: Path, depth: int) -> Iterator[Path]:
    """Look for studies below a directory, but in no hidden one, nor below a study, whose results are its own."""
    if depth == 0 or not directory.is_dir():
        return
    for each in directory.iterdir():
        if each.is_dir() and not each.is_symlink() and not each.name.startswith("."):
            if (each / studyfile.FILE_NAME).is_file():
                yield each / studyfile.FILE_NAME
            else:
                yield from _below(each, depth - 1)


@contextmanager
def desks(files: Sequence[str], *, store: str | None) -> Iterator[Mapping[str, Desk]]:
    """Give each study its place, by a name that is fit for an address; what they are read by ends on leaving."""
    found: dict[str, Desk] = {}
    readers = ThreadPoolExecutor(1, thread_name_prefix="snapshots")
    readers.submit(import_module, "ruptures")  # takes seconds, which are no part of the first snapshot
    try:
        for file in files:
            name = slug(Path(file).resolve().parent.name, found)
            found[name] = Desk(name, file, store=store, readers=readers)
        yield found
    finally:
        readers.shutdown(wait=False, cancel_futures=True)
        for each in found.values():
            each.close()
