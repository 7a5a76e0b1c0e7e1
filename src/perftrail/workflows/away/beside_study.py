"""What lies beside a study file, which builds and benchmarks may use: named cheaply, and packed to travel."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.builds.packing import pack
from perftrail.model.build import content_key

if TYPE_CHECKING:
    from collections.abc import Iterator

LEFT_OUT = (".perftrail", ".git", "__pycache__")
"""Results, a repository's own files, and what Python makes anew."""


def study_digest(directory: Path) -> str:
    """Name what lies beside a study file by names, sizes and times: equal names, nothing was changed."""
    return content_key(sorted(_told(directory)))


def pack_study(directory: Path) -> bytes:
    """Pack what lies beside a study file. Raises `ClusterError` where that is more than may travel."""
    names = sorted(each.name for each in directory.iterdir() if each.name not in LEFT_OUT)
    return pack(directory, names, what="what lies beside the study file", but=LEFT_OUT)


def _told(directory: Path) -> Iterator[list[str | int]]:
    for here, inside, names in os.walk(directory):
        inside[:] = [name for name in inside if name not in LEFT_OUT]
        for name in names:
            path = Path(here, name)
            state = path.lstat()
            yield [str(path.relative_to(directory)), state.st_size, state.st_mtime_ns]
