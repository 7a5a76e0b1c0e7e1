"""What a sandbox lets builds and runs do: whether it is used, what it is opened for and why, its limits."""

# The annotations are read when the program runs (cattrs, the schema), so their names are imported for real.

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from perftrail.model.key import Key
from perftrail.model.units import format_size

Network = Literal["none", "build", "run", "both"]
"""Who may reach the network."""

Phase = Literal["build", "run"]
"""What goes on in a sandbox: making something usable, or measuring it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """What builds and runs may see and use when they are kept in a sandbox.

    Without `always` it is used where the command line asks for it.
    """

    always: Annotated[
        bool, Key("Build and run in a sandbox always, as --sandbox does; --no-sandbox says otherwise once.")
    ] = False
    network: Annotated[
        Network, Key("Who reaches the network: none, only the build, only the run, or both.")
    ] = "none"
    readable: Annotated[
        tuple[str, ...],
        Key("What of the home directory, or of /run or /tmp, can be read nevertheless: ~/PATH or /PATH."),
    ] = ()
    why: Annotated[str, Key("Why the sandbox is opened; required with network or readable.")] = ""
    memory_bytes: Annotated[
        int | None,
        Key(
            "The memory that a build line or an invocation may use, all its processes together; without it four "
            "fifths of the machine's, where control groups can limit it.",
            name="memory",
            form="size",
            least=1 << 24,
        ),
    ] = None
    processes: Annotated[
        int, Key("How many processes and threads a build line or an invocation may have.", least=8)
    ] = 4096
    disk_bytes: Annotated[
        int,
        Key(
            "How much a build line or an invocation may write to disk.",
            name="disk",
            form="size",
            least=1 << 20,
        ),
    ] = 16 << 30

    def has_network(self, phase: Phase) -> bool:
        """Whether what goes on in this phase reaches the network."""
        return self.network in {phase, "both"}

    def sees(self, phase: Phase) -> list[object]:
        """What of it may change what comes out, for a content key; a limit only decides whether it ends."""
        return ["sandbox", self.has_network(phase), sorted(self.readable)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sign:
    """Words by which programs say that something was refused, and what that was."""

    words: re.Pattern[str]
    refused: str


def _sign(words: str, refused: str) -> _Sign:
    return _Sign(words=re.compile(words, re.IGNORECASE), refused=refused)


_NETWORK = _sign(
    r"network is unreachable|could not resolve|temporary failure in name resolution|name or service not known"
    r"|no route to host|connection refused|getaddrinfo|failed to establish a new connection",
    "the network",
)
_WRITING = _sign(
    r"read-only file system|EROFS|OSError: \[Errno 30\]", "writing anywhere but in its own directories"
)
_ROOM = _sign(r"file size limit exceeded|file too large|EFBIG", "more than {disk} on disk (sandbox.disk)")
_FORKS = _sign(
    r"fork[^\n]*(resource temporarily unavailable|cannot|failed)|cannot fork|can't fork|unable to fork"
    r"|BlockingIOError: \[Errno 11\]",
    "more than {processes} processes (sandbox.processes)",
)


def refused_by(sandbox: Sandbox, phase: Phase, said: str) -> tuple[str, ...]:
    """Guess from what a failed program said what the sandbox refused it.

    A program may say such words for other reasons: they are told beside what it said, not instead.

    >>> refused_by(Sandbox(), "build", "curl: (6) Could not resolve host: example.org")
    ('the network (sandbox.network = "none")',)
    """
    limits: Mapping[str, str] = {
        "disk": format_size(sandbox.disk_bytes),
        "processes": str(sandbox.processes),
    }
    found = [sign.refused.format(**limits) for sign in (_WRITING, _ROOM, _FORKS) if sign.words.search(said)]
    if not sandbox.has_network(phase) and _NETWORK.words.search(said):
        found.insert(0, f'{_NETWORK.refused} (sandbox.network = "{sandbox.network}")')
    return tuple(found)


def with_refusals(message: str, refused: Sequence[str]) -> str:
    """Add to why something failed what the sandbox refused it.

    >>> with_refusals("exit code 2", ["the network"])
    'exit code 2 (the sandbox refused the network)'
    """
    if not refused:
        return message
    said = f"the sandbox refused {'; '.join(refused)}"
    return f"{message} ({said})" if message else said
