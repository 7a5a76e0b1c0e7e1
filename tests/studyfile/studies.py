"""Studies for tests: a valid one that uses every table, and functions that insert errors."""

from __future__ import annotations

from pathlib import Path

from perftrail import studyfile
from perftrail.errors import StudyError
from perftrail.model.study import Study

GOOD = (Path(__file__).parent / "good.toml").read_text(encoding="utf-8")
"""The example of the design's section 3, its location one that exists."""

SMALL = """\
[source]
kind = "directory"
location = "."

[benchmark.it]
command = "true"
"""
"""The smallest valid study."""


def write(directory: Path, text: str | bytes) -> Path:
    """Write a study file, and what it refers to, into a directory."""
    (directory / "repository").mkdir(exist_ok=True)
    file = directory / "perftrail.toml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def read(directory: Path, text: str | bytes) -> Study:
    """Write a study file and load it."""
    return studyfile.load(str(write(directory, text)))


def complaints(directory: Path, text: str | bytes) -> list[str]:
    """Write an invalid study file and return its error messages, without the directory."""
    try:
        read(directory, text)
    except StudyError as error:
        return str(error).replace(f"{directory}/", "").splitlines()
    return []


def spoiled(old: str, new: str, *, text: str = GOOD) -> str:
    """Return a study with one text replaced."""
    assert text.count(old) == 1, f"{old!r} is there {text.count(old)} times"
    return text.replace(old, new)


def without_table(name: str, *, text: str = GOOD) -> str:
    """Return a study without a table and its subtables."""
    kept, within = [], False
    for line in text.splitlines(keepends=True):
        if line.startswith("["):
            header = line.partition("#")[0].strip(" []\n")
            within = header == name or header.startswith(f"{name}.")
        if not within:
            kept.append(line)
    return "".join(kept)
