"""Let each of perftrail's system calls fail as a full disk, a broken disk or a limit would, then repeat the command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from campaign import Result
from campaign.interruptions import interrupt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from campaign.command_line import Call

ERRORS = {
    "write": ("ENOSPC", "EIO", "EDQUOT"),
    "pwrite64": ("ENOSPC", "EIO", "EDQUOT"),
    "fsync": ("EIO", "ENOSPC"),
    "fdatasync": ("EIO", "ENOSPC"),
    "syncfs": ("EIO", "ENOSPC"),
    "ftruncate": ("EIO",),
    "rename": ("ENOSPC", "EIO"),
    "renameat": ("ENOSPC", "EIO"),
    "link": ("ENOSPC",),
    "symlink": ("ENOSPC", "EDQUOT"),
    "unlink": ("EIO",),
    "unlinkat": ("EIO",),
    "rmdir": ("EIO",),
    "mkdir": ("ENOSPC", "EDQUOT"),
    "mkdirat": ("ENOSPC", "EDQUOT"),
    "openat": ("EMFILE", "ENOSPC", "EIO"),
    "pread64": ("EIO",),
}
"""The errors of each call, one after the other."""


def run(seconds: float, seed: int, *, only: Sequence[str] = ()) -> Result:
    """Let random calls fail for a time, `only` of some operations; see `campaign.interruptions`."""
    return interrupt(tuple(ERRORS), _fail, seconds=seconds, seed=seed, only=only)


def _fail(call: Call) -> str:
    errors = ERRORS[call.name]
    return f"inject={call.name}:error={errors[call.number % len(errors)]}:when={call.number}"
