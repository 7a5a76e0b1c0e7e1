"""Where the commands of a trial are started: as they are, or in a sandbox with one directory to write to."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.file_claim import claimed_directory, remove_left_over
from perftrail.workflows.containment import Sandboxes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perftrail.model.process import Command, Ran
    from perftrail.model.study import Sandbox
    from perftrail.model.trial import Trial
    from perftrail.ports import Starter
    from perftrail.process.launcher import Launcher

_BELOW = Path("/var/tmp")  # noqa: S108 - the directory is made by mkdtemp; what programs write is no business of memory
_HOME = "perftrail-measure-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A trial as it can be started, by whom, and the processes that do so: their work is not foreign."""

    trial: Trial
    starter: Starter
    servers: Callable[[], tuple[int, ...]]


@contextmanager
def surrounded(trial: Trial, launcher: Launcher) -> Iterator[Started]:
    """Give what a trial asks to be started in. Raises `SandboxError` when it asks for what cannot be had.

    In a sandbox `$TMPDIR` names the one directory that can be changed and stays for all starts; it goes with the
    sandbox. What else can be written to, /tmp and the home directory, is empty at each start.
    """

    def outside() -> tuple[int, ...]:
        return (launcher.start().server_pid,)

    sandbox = trial.surroundings.sandbox
    if sandbox is None:
        yield Started(trial=trial, starter=launcher, servers=outside)
        return
    with claimed_directory(_HOME, below=_BELOW) as claimed:
        home = claimed.resolve()
        scratch = home / "scratch"
        scratch.mkdir()
        sandboxes = Sandboxes(
            _showing_input(sandbox, trial),
            study_directory=trial.surroundings.directory,
            results=home,
            outside=launcher.start(),
        )
        sandboxes.prepare()
        with sandboxes.around("run", [str(scratch)]) as starter:
            yield Started(
                trial=_within(trial, scratch),
                starter=_Handing(starter, home / "logs" / "output"),
                servers=lambda: (*outside(), *sandboxes.servers()),
            )


def remove_left_over_homes() -> None:
    """Remove the directories of sandboxes whose perftrail was killed."""
    remove_left_over(_HOME, below=_BELOW)


def _showing_input(sandbox: Sandbox, trial: Trial) -> Sandbox:
    """Let the file be read that commands read from, wherever it lies."""
    stdin = trial.surroundings.stdin
    own = () if stdin is None else (os.path.realpath(stdin),)
    return replace(sandbox, readable=(*sandbox.readable, *own))


def _within(trial: Trial, scratch: Path) -> Trial:
    around = trial.surroundings
    environment = {**around.environment, "TMPDIR": str(scratch)}
    return replace(trial, surroundings=replace(around, environment=environment))


class _Handing:
    """Implements `ports.Starter`: output that was asked for goes where nothing in a sandbox can open it."""

    def __init__(self, starter: Starter, kept: Path) -> None:
        self._starter = starter
        self._kept = kept

    def run(self, command: Command) -> Ran:
        """Start a process, and hand on what it printed when it has ended."""
        if command.stdout is None:
            return self._starter.run(command)
        ran = self._starter.run(replace(command, stdout=str(self._kept), stderr=str(self._kept)))
        with self._kept.open("rb") as printed, Path(command.stdout).open("wb") as wanted:
            shutil.copyfileobj(printed, wanted)
        return ran
