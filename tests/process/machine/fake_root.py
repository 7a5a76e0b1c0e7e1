"""Directories that look like the root of a machine, and clocks that a test turns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.process.machine.counters import Clocks

if TYPE_CHECKING:
    from pathlib import Path


def put(root: Path, files: dict[str, str]) -> Path:
    """Write files below a root; the same inode when there is one already, as the kernel's files are."""
    for name, content in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    return root


def stat(*, cpus: int = 2, idle: float = 0.0, waiting: float = 0.0, stolen: float = 0.0) -> str:
    """/proc/stat of a machine whose CPUs have been idle and robbed for so many seconds in all."""
    first = f"cpu  0 0 0 {idle * 100:.0f} {waiting * 100:.0f} 0 0 {stolen * 100:.0f} 0 0\n"
    return first + "".join(f"cpu{number} 0 0 0 0 0 0 0 0 0 0\n" for number in range(cpus)) + "intr 0\n"


@dataclass
class Hands:
    """Clocks with hands to move: seconds since boot, seconds asleep of them, our own CPU seconds."""

    at: float = 100.0
    asleep: float = 0.0
    own: float = 0.0

    def clocks(self) -> Clocks:
        """The clocks with these hands."""
        return Clocks(
            monotonic=lambda: self.at, since_boot=lambda: self.at + self.asleep, own_cpu=lambda: self.own
        )
