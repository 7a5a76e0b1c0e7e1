"""How a command is started to count its instructions: by the processor, else by Valgrind.

Either way everything that would make two counts of one binary differ is kept from it: hash seed, address
randomisation, and the size of what lies above its stack.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from perftrail.errors import NoAnswer
from perftrail.file_tree import empty_directory
from perftrail.model.measurement import PADDING
from perftrail.model.process import Command

if TYPE_CHECKING:
    from perftrail.model.process import Ran
    from perftrail.ports import Starter

Method = Literal["perf_event", "valgrind"]

FIXED = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
"""What makes programs of known languages repeat themselves; a study may set it otherwise."""

KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TZ")
"""All that a counted program sees of the environment that perftrail was started in."""

_ROOM = 4096
_HARDWARE = "instructions_user"
_COUNT = re.compile(r"I\s+refs:\s+([0-9,]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What one counted start gave: `instructions` is None where it left no count."""

    ran: Ran
    instructions: float | None
    method: Method


class InstructionCounter:
    """Counts the instructions of a command and of every process it starts."""

    def __init__(self, starter: Starter, directory: Path) -> None:
        self._starter = starter
        self._directory = directory
        self._method: Method | None = None

    def count(self, command: Command) -> Counted:
        """Start a command once and give its count; raises `NoAnswer` where nothing here can count.

        A process that forks without executing another program takes its parent's count so far with it, when
        Valgrind counts. One that is killed leaves none.
        """
        quiet = replace(command, environment={**FIXED, **command.environment}, aslr=False)
        if self._chosen() == "perf_event":
            ran = self._starter.run(replace(_filled(quiet), counters=True))
            return Counted(ran=ran, instructions=ran.counters.get(_HARDWARE), method="perf_event")
        counts = self._empty_directory()
        ran = self._starter.run(_filled(replace(quiet, arguments=(*_valgrind(counts), *quiet.arguments))))
        return Counted(ran=ran, instructions=_summed(counts), method="valgrind")

    def _chosen(self) -> Method:
        if self._method is None:
            self._method = "perf_event" if self._has_hardware() else "valgrind"
        return self._method

    def _has_hardware(self) -> bool:
        trial = Command(arguments=("/bin/true",), environment={}, directory="/", counters=True)
        return self._starter.run(trial).counters.get(_HARDWARE, 0.0) > 0.0

    def _empty_directory(self) -> Path:
        self._directory.mkdir(parents=True, exist_ok=True)
        empty_directory(self._directory)
        return self._directory


def _valgrind(counts: Path) -> tuple[str, ...]:
    """Cachegrind without its caches: of Valgrind's tools that count, the fastest (`benchmarks.counting`)."""
    path = shutil.which("valgrind")
    if path is None:
        raise NoAnswer(
            "counters: instructions cannot be counted here: the processor's counters are closed to us and "
            "Valgrind is not installed; install valgrind, or open the counters (perf_event_paranoid)"
        )
    return (
        path,
        "--tool=cachegrind",
        "--cache-sim=no",
        "--cachegrind-out-file=/dev/null",
        "--trace-children=yes",
        f"--log-file={counts}/%p",
        "--",
    )


def _summed(counts: Path) -> float | None:
    """Add up what each process left; None when one that was started left nothing."""
    found = [
        match
        for file in sorted(counts.iterdir())
        if file.is_file()
        and not file.is_symlink()
        and (match := _COUNT.search(file.read_text(errors="replace")))
    ]
    return float(sum(int(match[1].replace(",", "")) for match in found)) if found else None


def _filled(command: Command) -> Command:
    """Fill arguments and environment up to a whole number of pages, whatever paths are in them."""
    return _padded(command, -_size(_padded(command, 0)) % _ROOM)


def _padded(command: Command, bytes_more: int) -> Command:
    """Give a command with a variable in its environment that takes so much room."""
    return replace(command, environment={**command.environment, PADDING: "x" * bytes_more})


def _size(command: Command) -> int:
    texts = (*command.arguments, *(f"{name}={value}" for name, value in command.environment.items()))
    return sum(len(text.encode(errors="surrogateescape")) + 1 for text in texts)
