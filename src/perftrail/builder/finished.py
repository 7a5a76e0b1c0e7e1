"""Tells a finished build from one that was killed half-way: a marker that appears whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """What is remembered of a finished build: what came out, how long it took, where its log is."""

    artefact: str
    seconds: float
    log: str


def read_finished(marker: Path) -> Finished | None:
    """Give what a marker says, `None` when there is none or it says nothing that we understand."""
    try:
        facts = json.loads(marker.read_bytes())
        return Finished(
            artefact=str(facts["artefact"]), seconds=float(facts["seconds"]), log=str(facts["log"])
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_finished(marker: Path, finished: Finished) -> None:
    """Mark a build as finished: durable, and seen by others whole or not at all."""
    ours = marker.with_suffix(".new")
    with ours.open("w", encoding="utf-8") as file:
        json.dump(asdict(finished), file)
        file.flush()
        os.fsync(file.fileno())
    ours.replace(marker)
    directory = os.open(marker.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def remove_tree(directory: Path) -> None:
    """Remove a directory with all that is in it, also what a build made read-only."""
    if directory.is_symlink() or directory.is_file():
        directory.unlink()
    if not directory.is_dir():
        return
    for name, _, _ in os.walk(directory):
        Path(name).chmod(0o700)
    shutil.rmtree(directory)
