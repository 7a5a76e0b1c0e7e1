"""Count the instructions of a command: with the processor's counters, else with Valgrind.

`InstructionCounter` removes what makes two counts of one binary differ: hash seeds, address randomisation, and the size
of the data above the stack.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from perftrail.errors import NoAnswer
from perftrail.file_tree import emptied
from perftrail.model.measurement import PADDING
from perftrail.model.process import Command, Ran

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from perftrail.ports import Starter

Method = Literal["perf_event", "valgrind"]

SLOWDOWN: Mapping[Method, float] = {"perf_event": 1.0, "valgrind": 20.0}
START_SECONDS: Mapping[Method, float] = {"perf_event": 0.0, "valgrind": 0.3}
"""Typical cost of a count, relative to the plain invocation and beyond it."""

DETERMINISTIC = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
"""Settings that make programs of known languages deterministic; a study may override them."""

_PAGE_BYTES = 4096
_HARDWARE = "instructions_user"
_COUNT = re.compile(r"I\s+refs:\s+([0-9,]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """The result of one counted invocation: `instructions` is `None` if there was no count."""

    ran: Ran
    instructions: float | None
    method: Method


class InstructionCounter:
    """Counts the instructions of a command and of every process it starts."""

    def __init__(self, starter: Starter, directory: Path) -> None:
        self._starter = starter
        self._directory = directory
        self._method: Method | None = None

    @property
    def method(self) -> Method:
        """How this machine counts; raises `NoAnswer` if no counter works on it."""
        if self._method is None:
            self._method = "perf_event" if self._has_hardware_counters() else "valgrind"
        if self._method == "valgrind":
            _valgrind(self._directory)
        return self._method

    def count(self, command: Command) -> Counted:
        """Start a command once and return its count; raises `NoAnswer` if no counter works on this machine.

        With Valgrind, a process that forks without executing another program inherits its parent's count.
        A killed process has no count.
        """
        command = replace(command, environment={**DETERMINISTIC, **command.environment}, aslr=False)
        if self.method == "perf_event":
            ran = self._starter.run(replace(_fill_pages(command), counters=True))
            return Counted(ran=ran, instructions=ran.counters.get(_HARDWARE), method="perf_event")
        counts = emptied(self._directory)
        arguments = (*_valgrind(counts), *command.arguments)
        ran = self._starter.run(_fill_pages(replace(command, arguments=arguments)))
        return Counted(ran=ran, instructions=_summed(counts), method="valgrind")

    def _has_hardware_counters(self) -> bool:
        probe = Command(arguments=("/bin/true",), environment={}, directory="/", counters=True)
        return self._starter.run(probe).counters.get(_HARDWARE, 0.0) > 0.0


def _valgrind(counts: Path) -> tuple[str, ...]:
    """Return Valgrind's words: Cachegrind without caches, its fastest counting tool (`benchmarks.counting`)."""
    path = shutil.which("valgrind")
    if path is None:
        raise NoAnswer(
            "counters: perftrail cannot count instructions: it cannot access the processor's counters, and "
            "Valgrind is not installed; install valgrind, or allow access to the counters (perf_event_paranoid)"
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
    """Return the sum of the counts that processes left; `None` if no process left one."""
    found = [
        match
        for file in sorted(counts.iterdir())
        if file.is_file()
        and not file.is_symlink()
        and (match := _COUNT.search(file.read_text(errors="replace")))
    ]
    return float(sum(int(match[1].replace(",", "")) for match in found)) if found else None


def _fill_pages(command: Command) -> Command:
    """Pad arguments and environment to a whole number of pages, whatever paths they contain."""
    return _padded(command, -_size(_padded(command, 0)) % _PAGE_BYTES)


def _padded(command: Command, bytes_more: int) -> Command:
    """Return a command with a variable that adds this number of bytes to its environment."""
    return replace(command, environment={**command.environment, PADDING: "x" * bytes_more})


def _size(command: Command) -> int:
    texts = (*command.arguments, *(f"{name}={value}" for name, value in command.environment.items()))
    return sum(len(text.encode(errors="surrogateescape")) + 1 for text in texts)
