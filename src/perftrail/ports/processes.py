"""How processes are started, kept apart and watched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from perftrail.model.measurement import Busy, Conditions
    from perftrail.model.process import Command, Ran
    from perftrail.model.study import Phase


class Starter(Protocol):
    """Starts one process at a time and accounts for it and all its descendants."""

    def run(self, command: Command) -> Ran:
        """Start, wait for and account for one process; nothing it started is left behind.

        Raises `LauncherError` when the launcher itself fails, `KeyboardInterrupt` after killing the tree.
        """
        ...


class Enclosing(Protocol):
    """Decides where what is built or run is kept: on this machine like anything else, or in a sandbox."""

    def around(self, phase: Phase, writable: Sequence[str]) -> AbstractContextManager[Starter]:
        """Give a starter whose processes may change these directories, which are there and stay there.

        Raises `SandboxError` where that cannot be had.
        """
        ...

    def sees(self, phase: Phase) -> Sequence[object]:
        """Say for a content key what of it may change what comes out; nothing where nothing is kept from it."""
        ...


class Watcher(Protocol):
    """Watches what else the machine does. Its looks must be cheap: two stand around each invocation."""

    def begin(self) -> None:
        """Look, just before an invocation starts."""
        ...

    def end(self, own_cpu_seconds: float) -> Conditions:
        """Look, just after an invocation ended that used this CPU time; comes after `begin`, once."""
        ...

    def recent(self) -> float | None:
        """Give the CPUs that others used in the last half second, `None` when not watched that long.

        Called again within 0.1 s, it comes to know.
        """
        ...

    def busiest(self) -> tuple[Busy, ...]:
        """Name the foreign processes that use most CPU time, the worst first; may take a moment."""
        ...
