"""Kill perftrail with SIGKILL at each of its system calls, then repeat the command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from campaign import Result
from campaign.interruptions import interrupt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from campaign.command_line import Call

NAMES = (
    "write",
    "pwrite64",
    "fsync",
    "fdatasync",
    "syncfs",
    "ftruncate",
    "rename",
    "renameat",
    "link",
    "symlink",
    "unlink",
    "unlinkat",
    "rmdir",
    "mkdir",
    "mkdirat",
    "openat",
    "clone",
    "clone3",
    "vfork",
    "sendmsg",
    "sendto",
)
"""Calls that change files, start processes or start an invocation: between any two of them, nothing changes."""


def run(seconds: float, seed: int, *, only: Sequence[str] = ()) -> Result:
    """Kill commands at their calls for a time, `only` of some operations; see `campaign.interruptions`."""
    return interrupt(NAMES, _kill, seconds=seconds, seed=seed, is_wanted=_changes, only=only)


def _changes(call: Call) -> bool:
    """Whether a call changes anything: opening a file to read it does not."""
    return call.name != "openat" or "O_CREAT" in call.text or "O_TRUNC" in call.text


def _kill(call: Call) -> str:
    return f"inject={call.name}:signal=KILL:when={call.number}"
