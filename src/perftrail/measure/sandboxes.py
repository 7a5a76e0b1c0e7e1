"""Where builds and runs are kept: the launchers in sandboxes, put together from the edges.

Where the commands of a trial are started: as they are, or in a sandbox with one directory to write to.

Removes what killed perftrails left on this machine outside of any study's results.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import LauncherError, SandboxError
from perftrail.file_tree import claimed_directory, remove_left_over, remove_tree
from perftrail.file_tree import remove_left_over as remove_claimed
from perftrail.process.enclosure import Enclosure
from perftrail.process.launcher import Launcher, launcher_path
from perftrail.process.lock_counts import remove_left_over_lock_files
from perftrail.process.sandbox import bubblewrap, find_program, refusal
from perftrail.process.sandbox.contained import Contained
from perftrail.process.sandbox.view import Room, View, refuse_whole_home, remove_left_over_rooms

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from perftrail.model.process import Command, Ran
    from perftrail.model.study import Phase, Sandbox
    from perftrail.model.trial import Trial
    from perftrail.ports import Starter
    from perftrail.process.protocol import Capabilities


MEMORY_SHARE = 0.8
"""What of the machine's memory a build or an invocation may use where the study does not say."""


SHORT_LIVED = Path(os.path.realpath("/var/tmp"))  # noqa: S108 - what is made there is made by mkdtemp
"""Where a sandbox has its room that is only tried."""


class Sandboxes:
    """Implements `ports.Enclosing` with a sandbox of its own for each call, below a results directory, or in `rooms`.

    `outside` is what the launcher outside can do. Inside, the study and what was made can be read, and of the
    results nothing else is there.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        *,
        study_directory: str,
        results: Path,
        outside: Capabilities,
        rooms: Path | None = None,
    ) -> None:
        self._sandbox = sandbox
        self._study = os.path.realpath(study_directory)
        self._results = results.resolve()
        self._outside = outside
        self._launchers: list[Launcher] = []
        self._rooms = rooms or self._results / "rooms"
        self._made = (self._results / "builds", self._results / "sources")

    def prepare(self) -> None:
        """Make ready for sandboxes, by whoever holds the results. Raises `SandboxError` where none can be had."""
        find_program()
        refuse_whole_home(self._study)
        remove_tree(self._rooms)  # a perftrail that was killed left them
        for directory in self._made:  # what is not there yet when a sandbox is made is never seen in it
            directory.mkdir(parents=True, exist_ok=True)

    def sees(self, phase: Phase) -> Sequence[object]:
        """Say for a content key what can be seen in there."""
        return self._sandbox.sees(phase)

    @contextmanager
    def around(
        self, phase: Phase, writable: Sequence[str], *, shown: Sequence[str] = ()
    ) -> Iterator[Contained]:
        """Give a starter in a sandbox in which these directories can be changed. Raises `SandboxError`.

        Directories in `shown` can be read there beside all else.
        """
        view = self.view(phase, writable, also=shown)
        logs = self._results / "logs"
        logs.mkdir(parents=True, exist_ok=True)
        with Room(self._rooms) as room:
            enclosure = Enclosure(
                prefix=bubblewrap(view, room),
                outputs=str(logs),
                exchange=str(room.exchange),
                outside=self._outside,
            )
            with entered(Launcher(enclosure=enclosure)) as launcher:
                self._launchers.append(launcher)
                try:
                    yield Contained(
                        launcher,
                        room,
                        sandbox=self._sandbox,
                        phase=phase,
                        view=view,
                        default_memory_bytes=_default_memory(launcher.start()),
                    )
                finally:
                    self._launchers.remove(launcher)

    def servers(self) -> tuple[int, ...]:
        """Name the launchers' own processes, whose work is not foreign."""
        return tuple(launcher.start().server_pid for launcher in self._launchers)

    def cancel(self) -> None:
        """Kill what runs in here now, which other threads have started; they go on with what comes next."""
        for launcher in tuple(self._launchers):
            launcher.cancel()

    def end(self) -> None:
        """Kill all that runs in here, which other threads have started."""
        for launcher in tuple(self._launchers):
            launcher.close()

    @contextmanager
    def prefix(self, phase: Phase, writable: Sequence[str]) -> Iterator[tuple[str, ...]]:
        """Give the words that, put before a program's own, start it in such a sandbox: for a shell, say.

        It is started by whoever asks, on a terminal that is not ours, and no limit holds there. It ends with
        whoever started it. Raises `SandboxError`.
        """
        refuse_whole_home(self._study)
        for directory in self._made:
            directory.mkdir(parents=True, exist_ok=True)
        with Room(self._rooms) as room:
            program, *words = bubblewrap(self.view(phase, writable), room)
            yield (program, "--die-with-parent", *words)

    def view(self, phase: Phase, writable: Sequence[str], *, also: Sequence[str] = ()) -> View:
        """Say what can be seen and changed in there; `also` names directories that are seen beside the usual."""
        shown = (self._study, str(launcher_path().parent), *map(str, self._made), *self._readable(), *also)
        return View(
            writable=tuple(os.path.realpath(path) for path in writable),
            shown=tuple(os.path.realpath(path) for path in shown),
            hidden=(str(self._results),),
            network=self._sandbox.has_network(phase),
        )

    def _readable(self) -> Iterator[str]:
        for named in self._sandbox.readable:
            path = Path(named).expanduser()
            if not path.exists():
                raise SandboxError(f"sandbox.readable: {named} — there is no such file or directory")
            refuse_whole_home(str(path))
            yield str(path)


@contextmanager
def entered(launcher: Launcher) -> Iterator[Launcher]:
    """Start a launcher in its sandbox. Raises `SandboxError` with the remedy where that cannot be."""
    try:
        launcher.start()
    except LauncherError as error:
        raise refusal(str(error)) from error
    with launcher:
        yield launcher


def why_no_sandbox() -> str:
    """Say why no sandbox can be had on this machine, nothing when one can: by making one."""
    try:
        with Launcher() as outside, Room(SHORT_LIVED) as room:
            enclosure = Enclosure(
                prefix=bubblewrap(View(shown=(str(launcher_path().parent.resolve()),)), room),
                outputs=str(room.exchange),
                exchange=str(room.exchange),
                outside=outside.start(),
            )
            with entered(Launcher(enclosure=enclosure)):
                return ""
    except (SandboxError, OSError) as error:
        return str(error)


def _default_memory(capabilities: Capabilities) -> int | None:
    """The limit where the study has none: only where a control group can keep it for a whole tree.

    For each process's address space it would be wrong: that is often far larger than what is used.
    """
    if capabilities.memory_cgroup is None:
        return None
    return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * MEMORY_SHARE)


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


WORKERS = "perftrail-workers-"
"""What directories of workers that a command starts on its own machine begin with."""


def remove_leftovers() -> None:
    """Remove what nobody who lives has claimed: files that locks are counted in, and directories of sandboxes."""
    remove_left_over_lock_files()
    remove_left_over_homes()
    remove_left_over_rooms(SHORT_LIVED)
    remove_claimed(WORKERS, below=SHORT_LIVED)
