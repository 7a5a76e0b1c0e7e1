"""Which files a study of samples means, and what is in them."""

from __future__ import annotations

import contextlib
import glob
import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import SourceError, StudyError, UsageError
from perftrail.formats import FORMATS, read_file, recognise
from perftrail.model.wording import listed, quoted, suggestion
from perftrail.studyfile import mistake
from perftrail.workflows.importing.arranging import SampleFile

if TYPE_CHECKING:
    from perftrail.model.study import Study

MOST_FILES = 100_000
HEAD_BYTES = 1 << 16
"""So much of a file tells whether it is a result file."""

_PACKED = b"\x1f\x8b"


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What a study's files hold, and the names of those that are no result files of a known tool."""

    files: tuple[SampleFile, ...]
    left_out: tuple[str, ...]


def read_samples(study: Study) -> Read:
    """Read every file of a study of samples.

    Without a format in the study, what is no result file is left out: those of some tools lie among others. Raises
    `SourceError` for files that cannot be read, `StudyError` for a format that is not known.
    """
    asked = study.walked
    if wrong := format_wrong(asked.format):
        raise StudyError([mistake(study.file, ("source", "format"), wrong)])
    found = sample_files(asked.location)
    named = {path: _shown(path, Path(study.directory)) for path in found}
    results = [path for path in found if asked.format is not None or is_result(path)]
    if not results:
        known = f"; known are {listed(FORMATS)}" if found else ""
        what = "none of these files is a result of a known tool" if found else "no such file"
        raise SourceError(
            f"{asked.location}: {what}; source.location says which files hold the samples{known}"
        )
    return Read(
        files=tuple(sample_file(path, asked.format, name=named[path]) for path in results),
        left_out=tuple(named[path] for path in found if path not in results),
    )


def format_wrong(format: str | None) -> str | None:
    """Say what is wrong with the name of a format; `None` of a good one, and of none."""
    if format is None or format in FORMATS:
        return None
    return f"no format {quoted(format)}{suggestion(format, FORMATS)}; they are {listed(FORMATS)}"


def sample_files(location: str) -> list[Path]:
    """Give the files that a location means, by their names; numbers in names in their order, 9 before 10."""
    found = [path for name in glob.glob(location, recursive=True) if (path := Path(name)).is_file()]  # noqa: PTH207 - the whole path is a pattern
    if len(found) > MOST_FILES:
        raise SourceError(f"{location}: are {len(found)} files; at most {MOST_FILES} can be read at once")
    return sorted(found, key=lambda path: _natural(str(path)))


def is_result(path: Path) -> bool:
    """Whether a file is a result file of a known tool, as it begins."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError as error:
        raise SourceError(f"{path}: cannot be read: {(error.strerror or str(error)).lower()}") from error
    if head.startswith(_PACKED):
        with contextlib.suppress(zlib.error):  # what cannot be unpacked is no result
            head = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(head, HEAD_BYTES)
    return recognise(head, path.name.removesuffix(".gz")) is not None


def sample_file(path: Path, format: str | None, *, name: str) -> SampleFile:
    """Read one file in a format, or in the one that it is recognised to have. Raises `FormatError`."""
    read = read_file(path, name=name, format=format)
    return SampleFile(name=name, format=read.format, series=read.series)


def refuse_unknown(format: str | None) -> None:
    """Raise `UsageError` for a format that is not known."""
    if wrong := format_wrong(format):
        raise UsageError(f"--format {format}: {wrong}")


def _natural(text: str) -> list[tuple[int, str]]:
    parts = re.split(r"(\d{1,18})", text)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def _shown(path: Path, root: Path) -> str:
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
