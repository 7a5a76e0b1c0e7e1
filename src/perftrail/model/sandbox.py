"""The sandbox of a study: what builds and runs may access, and messages of programs about refused operations."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from perftrail.model.field import Key
from perftrail.model.notation import format_size
from perftrail.model.wording import REFUSED

Network = Literal["none", "build", "run", "both"]
"""Phases with network access."""

Phase = Literal["build", "run"]
"""Phase in a sandbox: building or measuring."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """What builds and runs may access in a sandbox.

    Without `always`, the sandbox is only used if the command line requests it.
    """

    always: Annotated[
        bool, Key("Always build and run in a sandbox, like --sandbox; --no-sandbox overrides it once.")
    ] = False
    network: Annotated[Network, Key("Network access: none, only the build, only the run, or both.")] = "none"
    readable: Annotated[
        tuple[str, ...],
        Key("Readable paths in the home directory, /run or /tmp: ~/PATH or /PATH."),
    ] = ()
    why: Annotated[str, Key("Why the sandbox is opened; required with network or readable.")] = ""
    memory_bytes: Annotated[
        int | None,
        Key(
            "Memory limit of a build line or an invocation, all its processes together. Default: four "
            "fifths of the machine's memory, if control groups can limit it.",
            name="memory",
            form="size",
            least=1 << 24,
        ),
    ] = None
    processes: Annotated[
        int, Key("Largest number of processes and threads of a build line or an invocation.", least=8)
    ] = 4096
    disk_bytes: Annotated[
        int,
        Key(
            "Disk limit of a build line or an invocation.",
            name="disk",
            form="size",
            least=1 << 20,
        ),
    ] = 16 << 30

    def has_network(self, phase: Phase) -> bool:
        """Return whether this phase has network access."""
        return self.network in {phase, "both"}

    def visible_settings(self, phase: Phase) -> list[object]:
        """Return the settings that can affect the result, for a content key. A limit only decides about success."""
        return ["sandbox", self.has_network(phase), sorted(self.readable)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _RefusalPattern:
    """A pattern of messages about refused operations, and the name of the operation."""

    message: re.Pattern[str]
    refused: str


def _refusal_pattern(message: str, refused: str) -> _RefusalPattern:
    return _RefusalPattern(message=re.compile(message, re.IGNORECASE), refused=refused)


_NETWORK = _refusal_pattern(
    r"network is unreachable|could not resolve|temporary failure in name resolution|name or service not known"
    r"|no route to host|connection refused|getaddrinfo|failed to establish a new connection",
    "the network",
)
_WRITING = _refusal_pattern(
    r"read-only file system|EROFS|OSError: \[Errno 30\]", "writing anywhere but in its own directories"
)
_DISK = _refusal_pattern(
    r"file size limit exceeded|file too large|EFBIG", "more than {disk} on disk (sandbox.disk)"
)
_FORKS = _refusal_pattern(
    r"fork[^\n]*(resource temporarily unavailable|cannot|failed)|cannot fork|can't fork|unable to fork"
    r"|BlockingIOError: \[Errno 11\]",
    "more than {processes} processes (sandbox.processes)",
)


def refused_by(sandbox: Sandbox, phase: Phase, output: str) -> tuple[str, ...]:
    """Return the operations that the sandbox probably refused, from the output of a failed program.

    A program may print such messages for other reasons, so they only supplement its own message.

    >>> refused_by(Sandbox(), "build", "curl: (6) Could not resolve host: example.org")
    ('the network (sandbox.network = "none")',)
    """
    limits: Mapping[str, str] = {
        "disk": format_size(sandbox.disk_bytes),
        "processes": str(sandbox.processes),
    }
    found = [
        each.refused.format(**limits) for each in (_WRITING, _DISK, _FORKS) if each.message.search(output)
    ]
    if not sandbox.has_network(phase) and _NETWORK.message.search(output):
        found.insert(0, f'{_NETWORK.refused} (sandbox.network = "{sandbox.network}")')
    return tuple(found)


def with_refusals(message: str, refused: Sequence[str]) -> str:
    """Add the refused operations to the message of a failure.

    >>> with_refusals("exit code 2", ["the network"])
    'exit code 2 (the sandbox refused the network)'
    """
    if not refused:
        return message
    reason = f"{REFUSED} {'; '.join(refused)}"
    return f"{message} ({reason})" if message else reason
