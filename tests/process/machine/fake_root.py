"""Directories with the files of a machine's root, and clocks that a test sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.process.machine.counters import Clocks

if TYPE_CHECKING:
    from pathlib import Path


def write_files(root: Path, files: dict[str, str]) -> Path:
    """Write files below a root. An existing file keeps its inode, like the files of the kernel."""
    for name, content in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    return root


def stat(*, cpus: int = 2, idle: float = 0.0, waiting: float = 0.0, stolen: float = 0.0) -> str:
    """/proc/stat of a machine with so many seconds of idle, waiting and stolen CPU time in total."""
    first = f"cpu  0 0 0 {idle * 100:.0f} {waiting * 100:.0f} 0 0 {stolen * 100:.0f} 0 0\n"
    return first + "".join(f"cpu{number} 0 0 0 0 0 0 0 0 0 0\n" for number in range(cpus)) + "intr 0\n"


@dataclass
class ManualClock:
    """Clocks that a test sets: seconds awake since boot, seconds suspended, CPU seconds of this process."""

    at: float = 100.0
    asleep: float = 0.0
    own: float = 0.0

    def clocks(self) -> Clocks:
        """The clocks with these values."""
        return Clocks(
            monotonic=lambda: self.at, since_boot=lambda: self.at + self.asleep, own_cpu=lambda: self.own
        )
