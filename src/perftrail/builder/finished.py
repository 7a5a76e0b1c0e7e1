"""Tells a finished build from one that was killed half-way: a marker that appears whole or not at all."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.model.build import Built

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """What is remembered of a finished build: what came out, how long it took, where its log is.

    `bytes` is the room that it takes, 0 when that was not asked.
    """

    artefact: str
    seconds: float
    log: str
    bytes: float = 0.0


def read_finished(marker: Path) -> Finished | None:
    """Give what a marker says, `None` when there is none or it says nothing that we understand."""
    try:
        facts = json.loads(marker.read_bytes())
        return Finished(
            artefact=str(facts["artefact"]),
            seconds=float(facts["seconds"]),
            log=str(facts["log"]),
            bytes=float(facts.get("bytes", 0.0)),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def write_finished(marker: Path, finished: Finished) -> None:
    """Mark a build as finished: durable, and seen by others whole or not at all."""
    write_durably(marker, asdict(finished))


def write_durably(path: Path, facts: Mapping[str, object]) -> None:
    """Write facts as JSON so that they are seen whole or not at all, and outlive a power cut."""
    ours = path.with_suffix(".new")
    with ours.open("w", encoding="utf-8") as file:
        json.dump(facts, file)
        file.flush()
        os.fsync(file.fileno())
    ours.replace(path)
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make what was renamed or removed in a directory outlive a power cut."""
    directory = os.open(path, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def built_of(key: str, finished: Finished, directory: str, *, reused: bool, layout: int = 0) -> Built:
    """Give what a finished build is for whoever uses it."""
    return Built(
        key=key,
        artefact=finished.artefact,
        directory=directory,
        seconds=finished.seconds,
        log=finished.log,
        reused=reused,
        layout=layout,
    )
