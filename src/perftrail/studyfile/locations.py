"""Where a source lies: a path of this machine, or an address."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perftrail.model.source import Source

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://|(?:[^/@\s]+@)?[^/:\s]+:(?!:)")


def is_address(location: str) -> bool:
    """Whether a location is not a path: ``https://…``, ``ssh://…`` or ``git@host:path``.

    >>> [is_address(text) for text in ("https://x.org/y", "git@host:y", "../y", "./a:b", "/a")]
    [True, True, False, False, False]
    """
    return _ADDRESS.match(location) is not None


def local_path(source: Source, directory: Path) -> Path | None:
    """Give the absolute path of a local source, `None` of one that is elsewhere."""
    location = source.location
    if source.kind == "release" and not source.archives:
        return None
    if source.kind not in ("directory", "samples"):
        if location.startswith("file://"):
            return Path(location.removeprefix("file://"))
        if is_address(location):
            return None
    with_home = location if not location.startswith("~") else str(Path(location).expanduser())
    # normpath, for a symbolic link in what is above must not be followed behind the author's back
    return Path(os.path.normpath(directory / with_home))


def absolute_location(source: Source, directory: Path) -> str:
    """Give a location that does not depend on where it is read from."""
    if source.location.startswith("file://"):
        return source.location
    path = local_path(source, directory)
    return source.location if path is None else str(path)
