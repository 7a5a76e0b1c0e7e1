"""Performance of a program along its history.

In Python and in notebooks, `open` returns a study's samples, estimates, answers and charts.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from perftrail._version import __version__

if TYPE_CHECKING:
    from perftrail.notebook import OpenedStudy


__all__ = ["__version__", "open"]


def open(path: str | os.PathLike[str] = ".", *, store: str | os.PathLike[str] | None = None) -> OpenedStudy:
    """Open a study for reading, by its directory or file; builds and measures nothing.

    `store` is the location of its results, by default ``.perftrail`` in its directory. Needs PyArrow: ``pip install
    'perftrail[notebook]'``. Raises `UsageError` without it, and `StudyError` with every mistake of the study file,
    each with its line.
    """
    # What reads and draws takes a second to import; `import perftrail` alone stays quick.
    from perftrail import studyfile  # noqa: PLC0415
    from perftrail.errors import UsageError  # noqa: PLC0415

    study = studyfile.load(os.fspath(path), to_read=True)
    try:
        from perftrail.notebook import OpenedStudy  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name != "pyarrow":
            raise
        raise UsageError("perftrail.open needs PyArrow: pip install 'perftrail[notebook]'") from error
    return OpenedStudy(study, store=None if store is None else os.fspath(store))
