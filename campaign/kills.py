"""Kill perftrail with SIGKILL at each of its system calls, then repeat the command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from campaign import Result
from campaign.interruptions import interrupt

if TYPE_CHECKING:
    from campaign.command_line import Call

NAMES = (
    "write",
    "pwrite64",
    "fsync",
    "fdatasync",
    "ftruncate",
    "rename",
    "unlink",
    "mkdir",
    "openat",
    "clone3",
    "vfork",
    "sendmsg",
    "recvmsg",
)


def run(seconds: float, seed: int) -> Result:
    """Kill commands at random calls for a time; see `campaign.interruptions`."""
    return interrupt(NAMES, _kill, seconds=seconds, seed=seed, may_print=False)


def _kill(call: Call) -> str:
    return f"inject={call.name}:signal=KILL:when={call.number}"
