"""Mistakes of a study file that show only when its history is read: on which line their keys stand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import Mistake
from perftrail.studyfile.complaints import key_path, line_of
from perftrail.studyfile.positions import key_lines
from perftrail.studyfile.reading import shown_name

if TYPE_CHECKING:
    from perftrail.studyfile.positions import KeyPath


def mistake(file: str, path: KeyPath, message: str) -> Mistake:
    """Say that the value at a path of a file that was read already is wrong."""
    try:
        lines = key_lines(Path(file).read_text("utf-8-sig"))
    except (OSError, UnicodeDecodeError):
        lines = {}
    return Mistake(
        file=shown_name(Path(file)), line=line_of(path, lines), key=key_path(path), message=message
    )
