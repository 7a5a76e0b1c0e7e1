"""Run builds and benchmarks in a sandbox of bubblewrap: what they can read, write and use."""

from __future__ import annotations

import shutil

from perftrail.errors import SandboxError
from perftrail.process.sandbox.contained import SandboxedStarter
from perftrail.process.sandbox.view import (
    PrivateDirectories,
    View,
    refuse_whole_home,
    remove_left_over_directories,
)

_NAME = "bwrap"


def find_program() -> str:
    """Return the path of bubblewrap. Raises `SandboxError` if it is not installed."""
    path = shutil.which(_NAME)
    if path is None:
        raise SandboxError(
            "sandbox — bubblewrap (bwrap) is not installed\n"
            "install the package bubblewrap, or use --no-sandbox for a history that you trust"
        )
    return path


def bubblewrap(view: View, private: PrivateDirectories) -> tuple[str, ...]:
    """Return the words before a program's own that start it in a sandbox with this view. Raises `SandboxError`.

    The program is the first process inside, and all others end with it.
    """
    return (find_program(), *view.arguments(private), "--")


def sandbox_error(output: str) -> SandboxError:
    """Return the error of a sandbox that could not be created, with a remedy; `output` is bubblewrap's output."""
    known = next(
        (remedy for words, remedy in _REMEDIES if any(word in output for word in words)), _ANY_REMEDY
    )
    last = output.strip().splitlines()[-1] if output.strip() else "bubblewrap printed nothing"
    return SandboxError(
        f"sandbox — cannot be created here: {last}\n{known}; nothing was built or run without it"
    )


_REMEDIES = (
    (
        ("new namespace", "uid map", "creating new namespace", "No permissions", "RTM_NEWADDR"),
        "this machine does not allow this user to create user namespaces. Allow them: "
        "sysctl user.max_user_namespaces=15000, on Debian kernel.unprivileged_userns_clone=1, on Ubuntu an "
        "AppArmor profile for bwrap (or kernel.apparmor_restrict_unprivileged_userns=0); in a container, run it "
        "with these namespaces allowed",
    ),
    (
        ("mount proc", "/newroot/proc"),
        "this container hides parts of /proc, so the sandbox cannot mount its own /proc: start the container with "
        "unmasked system paths, or run perftrail outside of it",
    ),
)
_ANY_REMEDY = "see `perftrail doctor`, or use --no-sandbox for a history that you trust"


__all__ = [
    "PrivateDirectories",
    "SandboxedStarter",
    "View",
    "bubblewrap",
    "find_program",
    "refuse_whole_home",
    "remove_left_over_directories",
    "sandbox_error",
]
