"""Reads a study file: its text, its values, its meaning, and everything that is wrong with any of them."""

from __future__ import annotations

import os
import re
import tomllib
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Never

from perftrail.errors import Mistake, StudyError
from perftrail.model.study import PLAIN, Study, Variant
from perftrail.studyfile.complaints import Complaints
from perftrail.studyfile.locations import absolute_location
from perftrail.studyfile.positions import key_lines
from perftrail.studyfile.rules import check
from perftrail.studyfile.structure import Misfit, structure

if TYPE_CHECKING:
    from perftrail.studyfile.document import Document

FILE_NAME = "perftrail.toml"
"""What a study file is called, unless it is named on the command line."""

LARGEST_FILE_BYTES = 1 << 20
_MOST_ROUNDS = 50


def load(path: str) -> Study:
    """Read a study from its file, or from the directory that holds one.

    Raises `StudyError` with every mistake there is, whatever the file holds.
    """
    asked = os.fspath(path)
    file = os.path.join(asked, FILE_NAME) if os.path.isdir(asked) else asked
    shown = _shown(file)
    text = _text(file, shown)
    data = _data(text, shown)
    complaints = Complaints(shown, key_lines(text))
    document = _document(data, complaints)
    if document is not None:
        study = _study(document, os.path.abspath(file))
        check(document, study, complaints)
        if not complaints.mistakes:
            return study
    raise StudyError(complaints.mistakes)


def find_upwards(start: str) -> str | None:
    """Find the nearest study file in a directory or above it; `None` when there is none."""
    directory = os.path.abspath(start)
    while True:
        file = os.path.join(directory, FILE_NAME)
        if os.path.isfile(file):
            return file
        above = os.path.dirname(directory)
        if above == directory:
            return None
        directory = above


def _shown(file: str) -> str:
    """Name the file as it was named, or from the current directory when that is shorter."""
    try:
        relative = os.path.relpath(file)
    except (OSError, ValueError):
        return file
    return file if relative.startswith(os.pardir) else relative


def _refuse(file: str, message: str, *, line: int = 1, key: str = "file") -> Never:
    raise StudyError([Mistake(file=file, line=line, key=key, message=message)])


def _text(file: str, shown: str) -> str:
    try:
        with open(file, "rb") as opened:
            content = opened.read(LARGEST_FILE_BYTES + 1)
    except FileNotFoundError:
        _refuse(shown, 'there is no such file; "perftrail init" writes one')
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        _refuse(shown, f"cannot be read: {reason.lower()}")
    if len(content) > LARGEST_FILE_BYTES:
        _refuse(shown, "is larger than a study file can be (1 MiB); is it another file?")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        byte = content[error.start]
        _refuse(shown, f"is not UTF-8 text: byte 0x{byte:02x}; save it as UTF-8", line=line)


def _data(text: str, shown: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError:
        _refuse(shown, "is nested too deeply", key="syntax")
    except ValueError as error:
        message = str(error)
        found = re.search(r" \(at (?:line (\d+), column (\d+)|end of document)\)$", message)
        if found is None:
            _refuse(shown, message, key="syntax")
        plain = message[: found.start()]
        if found[1] is None:
            _refuse(shown, f"{plain}, at the end of the file", line=_last_line(text), key="syntax")
        _refuse(shown, f"{plain}, at column {found[2]}", line=int(found[1]), key="syntax")


def _last_line(text: str) -> int:
    return max(1, len(text.splitlines()))


def _document(data: dict[str, Any], complaints: Complaints) -> Document | None:
    """Give the document as far as it can be read: what does not fit is complained about and replaced."""
    for _ in range(_MOST_ROUNDS):
        result = structure(data)
        if not isinstance(result, tuple):
            return result
        meant = {(*misfit.path[:-1], misfit.meant) for misfit in result if misfit.meant is not None}
        for misfit in result:
            if misfit.path not in meant:
                complaints.add_unreadable(misfit.path, misfit.message)
            _repair(data, misfit)
        for path in meant:
            complaints.distrust(path)
    return None


def _repair(data: dict[str, Any], misfit: Misfit) -> None:
    within: Any = data  # Any: tables and lists of whatever somebody wrote
    for part in misfit.path[:-1]:
        if isinstance(within, dict) and part not in within:
            return
        within = within[part]
    if misfit.stand_in is not None:
        within[misfit.path[-1]] = misfit.stand_in
    else:
        within.pop(misfit.path[-1], None)


def _study(document: Document, file: str) -> Study:
    directory = os.path.dirname(file)
    benchmarks = document.benchmark
    only = next(iter(benchmarks)) if len(benchmarks) == 1 else ""
    return Study(
        title=document.study.title or os.path.basename(directory),
        file=file,
        directory=directory,
        source=replace(document.source, location=absolute_location(document.source, directory)),
        build=document.build,
        variants=dict(document.variants) or {PLAIN: Variant()},
        benchmarks=benchmarks,
        derived={
            name: replace(derived, benchmark=derived.benchmark or only)
            for name, derived in document.derived.items()
        },
        measure=document.measure,
        find=document.find,
    )
