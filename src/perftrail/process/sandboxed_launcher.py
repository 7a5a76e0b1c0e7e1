"""Start a launcher inside a sandbox, with open descriptors for everything that it needs from outside.

Inside, the launcher can neither find nor open its cgroups, the files of outputs, or its client. The programs that it
starts get none of this: they see its processes, but cannot inspect them.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import LauncherError
from perftrail.model.process import Ran, Signalled, TimedOut

if TYPE_CHECKING:
    from perftrail.model.process import Command, Ended
    from perftrail.process.protocol import Capabilities

_CONTROLLERS = ("+memory", "+pids")
_NUMBERS = itertools.count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class LauncherSandbox:
    """How to start a launcher inside a sandbox.

    `prefix` starts a program as process 1 of a new namespace. Outputs go below `outputs`, which need not be
    visible inside. `exchange` is a directory with the same name inside, for files that a program writes for
    perftrail. `outside` are the capabilities of a launcher outside: the inner launcher's cgroups are created next to
    its own. `inherited` are descriptors that `prefix` needs.
    """

    prefix: tuple[str, ...]
    outputs: str
    exchange: str
    outside: Capabilities
    inherited: tuple[int, ...] = ()


class LauncherResources:
    """Descriptors and cgroups of one launcher; they are open here until `close`."""

    def __init__(self, sandbox: LauncherSandbox) -> None:
        self._outputs = os.path.abspath(sandbox.outputs)  # noqa: PTH100 - as the protocol writes paths
        self._name = f"perftrail-sandbox-{os.getpid()}-{next(_NUMBERS)}"
        self._cgroups = _create_cgroups(sandbox.outside, self._name)
        self._own_lifeline = -1
        self._descriptors: list[int] = []
        try:
            lifeline, self._own_lifeline = os.pipe()
            self._descriptors.append(lifeline)
            for directory in (self._outputs, *map(str, self._cgroups)):
                self._descriptors.append(os.open(directory, os.O_RDONLY | os.O_DIRECTORY))
        except OSError as error:
            self.close()
            raise LauncherError(f"sandbox — {error.filename}: cannot be opened: {error.strerror}") from error

    @property
    def descriptors(self) -> tuple[int, ...]:
        """Descriptors that the launcher inherits."""
        return tuple(self._descriptors)

    def arguments(self) -> tuple[str, ...]:
        """Return the arguments of the launcher."""
        lifeline, _, *cgroups = self._descriptors
        return (f"client={lifeline}", f"name={self._name}", *(f"cgroup={number}" for number in cgroups))

    def inside(self, command: Command) -> Command:
        """Return a command with the paths of its outputs as the inner launcher can open them."""
        return replace(command, stdout=self._output(command.stdout), stderr=self._output(command.stderr))

    def seen_outside(self, capabilities: Capabilities, started: int) -> Capabilities:
        """Return a launcher's capabilities with the process ids and paths that are valid outside.

        `started` is the process that starts the launcher: the guard is its child, the server is the guard's child.
        """
        guard = _only_child(started)
        return replace(
            capabilities,
            pid=guard or started,
            server_pid=_only_child(guard) or started,
            cgroup_paths=tuple(str(home / self._name) for home in self._cgroups),
        )

    def hang_up(self) -> None:
        """Let the inner guard kill everything, also if the server cannot."""
        if self._own_lifeline >= 0:
            os.close(self._own_lifeline)
            self._own_lifeline = -1

    def close(self) -> None:
        """Close all descriptors and remove the cgroups."""
        self.hang_up()
        for descriptor in self._descriptors:
            os.close(descriptor)
        self._descriptors = []
        for home in self._cgroups:
            with contextlib.suppress(OSError):  # it still contains a cgroup, which was reported before
                home.rmdir()

    def _output(self, path: str | None) -> str | None:
        if path is None:
            return None
        full = os.path.abspath(path)  # noqa: PTH100 - no link is followed: the path is ours
        if not full.startswith(f"{self._outputs}/"):
            return path
        return f"/proc/self/fd/{self._descriptors[1]}/{os.path.relpath(full, self._outputs)}"


def launcher_killed(command: Command, *, began: float) -> Ran:
    """Return how a program ended that killed or stopped the launcher of its sandbox.

    `began` is the time of its start, in seconds of CLOCK_MONOTONIC. All of its processes have ended with the sandbox.
    """
    now = time.monotonic()
    late = command.timeout_seconds is not None and now - began >= command.timeout_seconds
    ended: Ended = TimedOut() if late else Signalled(signal=int(signal.SIGKILL))
    return replace(
        Ran.uncounted(ended, began=began, now=now),
        refused=("killing or stopping perftrail's launcher: all processes of the sandbox ended with it",),
    )


def _create_cgroups(outside: Capabilities, name: str) -> tuple[Path, ...]:
    """Create a cgroup in each hierarchy, in which the inner launcher will create one for each job; return them.

    Processes of the sandbox cannot write to the directories of the system's cgroups: only root with a capability can,
    and no process of the sandbox has that capability.
    """
    parents = [Path(path).parent for path in outside.cgroup_paths]
    if (pids := _pids_directory()) is not None:
        parents.append(pids)
    created = []
    for parent in dict.fromkeys(parents):
        home = parent / name
        try:
            home.mkdir()
        except OSError:
            continue
        for controller in _CONTROLLERS:
            with contextlib.suppress(OSError):  # cgroup 1, or a controller that is not delegated
                (home / "cgroup.subtree_control").write_text(controller)
        created.append(home)
    return tuple(created)


def _pids_directory() -> Path | None:
    """Return this process's directory in cgroup 1's hierarchy for processes; `None` if there is none."""
    try:
        groups = Path("/proc/self/cgroup").read_text().splitlines()
        mounts = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    except OSError:
        return None
    own = [path for _, names, path in (line.split(":", 2) for line in groups) if "pids" in names.split(",")]
    for words in mounts:
        kind = words.index("-") + 1
        if own and words[kind] == "cgroup" and "pids" in words[kind + 2].split(","):
            inside = own[0].removeprefix(words[3].rstrip("/")).strip("/")
            return Path(words[4], inside)
    return None


def _only_child(pid: int) -> int:
    """Return the only child of a process; 0 if the kernel does not list children."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return 0
    return int(children[0]) if children else 0
