"""Where builds and runs are kept: the launchers in sandboxes, put together from the edges."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import LauncherError, SandboxError
from perftrail.file_tree import remove_tree
from perftrail.process.enclosure import Enclosure
from perftrail.process.launcher import Launcher, launcher_path
from perftrail.process.sandbox import bubblewrap, find_program, refusal
from perftrail.process.sandbox.contained import Contained
from perftrail.process.sandbox.view import Room, View, refuse_whole_home

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from perftrail.model.study import Phase, Sandbox
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
