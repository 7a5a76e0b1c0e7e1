"""Commands of the test programs, and marks by which their processes are found."""

from __future__ import annotations

import contextlib
import os
import signal
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perftrail.model.process import Command

if TYPE_CHECKING:
    from collections.abc import Callable

PROMISED_SECONDS = 2.0
"""Seconds within which all processes of a killed perftrail must end."""


@dataclass
class Trial:
    """One test's commands, all of whose processes carry a mark in their environment."""

    targets: Path
    directory: Path
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)

    def command(self, program: str, *arguments: object, **more: Any) -> Command:
        path = program if "/" in program else str(self.targets / program)
        environment = {"PERFTRAIL_TRIAL": self.mark, **more.pop("environment", {})}
        return Command(
            arguments=(path, *(str(argument) for argument in arguments)),
            environment=environment,
            directory=str(self.directory),
            **more,
        )

    def shell(self, script: str, **more: Any) -> Command:
        return self.command("/bin/sh", "-c", script, **more)

    def living(self) -> list[int]:
        """Every process that carries the mark; zombies have no environment left."""
        found = []
        for process in Path("/proc").iterdir():
            if process.name.isdigit() and int(process.name) != os.getpid():
                with contextlib.suppress(OSError):
                    if self.mark.encode() in (process / "environ").read_bytes():
                        found.append(int(process.name))
        return found

    def clean(self) -> None:
        for pid in self.living():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def eventually(condition: Callable[[], bool], seconds: float = 30.0) -> bool:
    """Poll a condition until it is true or the time is over."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return condition()
        time.sleep(0.005)
    return True


def cgroups_of(pid: int) -> list[Path]:
    """Every cgroup that the launcher with this pid has made and not removed."""
    return [
        Path(top) / name
        for top, names, _ in os.walk("/sys/fs/cgroup")
        for name in names
        if name == f"perftrail-{pid}"
    ]


def is_alive(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"
