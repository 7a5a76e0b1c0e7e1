"""Run builds and benchmarks in a sandbox of bubblewrap: what they can read, write and use."""

from __future__ import annotations

import shutil

from perftrail.errors import SandboxError
from perftrail.process.sandbox.contained import Contained
from perftrail.process.sandbox.view import PrivateDirectories, View, refuse_whole_home, remove_left_over_rooms

_NAME = "bwrap"


def find_program() -> str:
    """Return the path of bubblewrap. Raises `SandboxError` if it is not installed."""
    path = shutil.which(_NAME)
    if path is None:
        raise SandboxError(
            "sandbox — bubblewrap (bwrap) is not installed\n"
            "install the package bubblewrap, or go without for a history that you trust (--no-sandbox)"
        )
    return path


def bubblewrap(view: View, room: PrivateDirectories) -> tuple[str, ...]:
    """Return the words before a program's own that start it in a sandbox with this view. Raises `SandboxError`.

    The program is the first process inside, and all others end with it.
    """
    return (find_program(), *view.arguments(room), "--")


def refusal(said: str) -> SandboxError:
    """Return the error of a sandbox that could not be created, with a remedy; `said` is bubblewrap's output."""
    known = next((remedy for words, remedy in _REMEDIES if any(word in said for word in words)), _ANY_REMEDY)
    last = said.strip().splitlines()[-1] if said.strip() else "bubblewrap said nothing"
    return SandboxError(
        f"sandbox — cannot be made here: {last}\n{known}; nothing was built or run without it"
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
        "this container hides parts of /proc, so no other /proc can be made: start the container with its system "
        "paths unmasked, or run perftrail outside of it",
    ),
)
_ANY_REMEDY = "try the words of `perftrail doctor`, or --no-sandbox for a history that you trust"


__all__ = [
    "Contained",
    "Room",
    "View",
    "bubblewrap",
    "find_program",
    "refusal",
    "refuse_whole_home",
    "remove_left_over_rooms",
]
