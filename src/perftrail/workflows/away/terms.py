"""On which terms a worker works."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from perftrail.model.measurement import Machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """As which machine it works, so many builds at once, with its own files below this directory.

    `apart`: also where it sees a command's own directory, it keeps to this one. `version` is its perftrail's.
    """

    machine: Machine
    builds: int
    directory: Path
    apart: bool
    version: str
