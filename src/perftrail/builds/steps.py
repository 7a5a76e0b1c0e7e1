"""Run the shell lines of a recipe one by one."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from signal import SIGKILL
from typing import TYPE_CHECKING

from perftrail.builds.build_log import log_excerpt, read_ends
from perftrail.model.build import KILLED_FOR_MEMORY
from perftrail.model.process import Command, Exited, Signalled, TimedOut, describe_end
from perftrail.model.sandbox import with_refusals

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from perftrail.builds.build_log import Log
    from perftrail.ports import Starter


FULL_DISK = "No space left on device"

MOST_OUTPUT_BYTES = 64 << 20
"""Output limit of one line, so that an endless build cannot fill the disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellSteps:
    """Shell lines, each run as ``sh -eu -c`` after the words of `prefix`, in one directory and within one timeout."""

    lines: Sequence[str]
    directory: Path
    environment: Mapping[str, str]
    timeout_seconds: float
    prefix: tuple[str, ...] = ()

    def with_prefix(self, *words: str) -> ShellSteps:
        """Return the same lines after other words."""
        return replace(self, prefix=words)

    def run(self, starter: Starter, log: Log) -> str:
        """Run the lines until one fails; return the lines that explain the failure, or an empty text."""
        end = time.monotonic() + self.timeout_seconds
        for line in self.lines:
            left = end - time.monotonic()
            if left <= 0:
                late = describe_end(TimedOut(), timeout_seconds=self.timeout_seconds)
                log.note(f"[not started: {late}]")
                return late
            failure = self._run_line(starter, log, line, left)
            if failure:
                return failure
        return ""

    def _run_line(self, starter: Starter, log: Log, line: str, seconds: float) -> str:
        log.note(f"$ {line}")
        output = log.path.with_suffix(".now")
        began = time.monotonic()
        ran = starter.run(
            Command(
                arguments=(*self.prefix, "/bin/sh", "-eu", "-c", line),
                environment=self.environment,
                directory=str(self.directory),
                stdout=str(output),
                stderr=str(output),
                output_cap_bytes=MOST_OUTPUT_BYTES,
                timeout_seconds=seconds,
                tree_memory="off",
            )
        )
        ended = describe_end(ran.ended, timeout_seconds=self.timeout_seconds)
        log.append(output)
        if ran.refused:
            log.note(f"[{with_refusals('', ran.refused)}]")
        log.note(f"[{ended or 'done'}, {time.monotonic() - began:.2f} s]")
        text = read_ends(output)
        is_full = _is_full(log.path.parent)
        output.unlink(missing_ok=True)
        if not ended:
            return ""
        excerpt = "" if isinstance(ran.ended, TimedOut) else log_excerpt(text)
        reason = excerpt or f"{ended}: {line}"
        killed = ran.ended in (Signalled(signal=SIGKILL), Exited(code=128 + SIGKILL)) or "Killed" in reason
        if ran.memory_kills and killed:
            reason = f"{reason}\n{KILLED_FOR_MEMORY}"
        if is_full and FULL_DISK not in reason:  # there was no space for the program's own words
            reason = f"{reason}\n{FULL_DISK}"
        return with_refusals(reason, ran.refused)


def _is_full(directory: Path) -> bool:
    """Return whether users can write nothing more to the file system of a directory."""
    return os.statvfs(directory).f_bavail == 0
