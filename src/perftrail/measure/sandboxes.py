"""Create sandboxes for builds, invocations and trials, and remove what killed processes left.

`Sandboxes` contains a study's builds and invocations. `open_trial_starter` starts a trial's commands directly, or in
a sandbox with one writable directory. `remove_leftovers` deletes files that killed perftrail processes left
outside any results.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import LauncherError, SandboxError
from perftrail.file_tree import claimed_directory, expanded, real_path, remove_left_over, remove_tree
from perftrail.process.launcher import Launcher, launcher_path
from perftrail.process.preloaded import remove_left_over_count_files
from perftrail.process.sandbox import bubblewrap, find_program, sandbox_error
from perftrail.process.sandbox.contained import SandboxedStarter
from perftrail.process.sandbox.shared_network import SharedNetwork, network_of
from perftrail.process.sandbox.view import (
    PrivateDirectories,
    View,
    refuse_whole_home,
    remove_left_over_directories,
)
from perftrail.process.sandboxed_launcher import LauncherSandbox

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from perftrail.model.process import Command, Ran
    from perftrail.model.sandbox import Phase, Sandbox
    from perftrail.model.trial import Trial
    from perftrail.ports import Starter
    from perftrail.process.protocol import Capabilities


NO_SHARED_NETWORK = SharedNetwork(prefix=(), descriptors=())

MEMORY_SHARE = 0.8
"""The share of the machine's memory that a build or an invocation may use if the study sets no limit."""


TEMPORARY_DIRECTORY = Path(os.path.realpath("/var/tmp"))  # noqa: S108 - mkdtemp creates the directories in it
"""Directory of sandboxes outside any results; on a disk, so that the files of programs do not fill the memory."""


class Sandboxes:
    """Implements `ports.Isolation` with a separate sandbox for each call, below the results or in `sandbox_directory`.

    `outside` describes the launcher outside the sandbox. Inside, the study, the builds and the sources are
    readable, and nothing else of the results is visible.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        *,
        study_directory: str,
        results: Path,
        outside: Capabilities,
        sandbox_directory: Path | None = None,
    ) -> None:
        self._sandbox = sandbox
        self._study = os.path.realpath(study_directory)
        self._results = real_path(results)
        self._outside = outside
        self._launchers: list[Launcher] = []
        self._sandbox_directory = sandbox_directory or self._results / "sandboxes"
        self._shown_directories = (self._results / "builds", self._results / "sources")

    def prepare(self) -> None:
        """Prepare for sandboxes, while holding the results' lock. Raises `SandboxError` if none can be created."""
        find_program()
        refuse_whole_home(self._study)
        remove_tree(self._sandbox_directory)  # leftovers of a killed perftrail
        for (
            directory
        ) in self._shown_directories:  # a sandbox never shows a directory that is created after it
            directory.mkdir(parents=True, exist_ok=True)

    def visible_settings(self, phase: Phase) -> Sequence[object]:
        """Return what is visible in the sandbox, as part of a content key."""
        return self._sandbox.visible_settings(phase)

    @contextmanager
    def sandboxed(
        self,
        phase: Phase,
        writable: Sequence[str],
        *,
        shown: Sequence[str] = (),
        network_from: SandboxedStarter | None = None,
    ) -> Iterator[SandboxedStarter]:
        """Yield a starter in a sandbox in which these directories are writable. Raises `SandboxError`.

        Directories in `shown` are readable there as well. With `network_from`, it has the network of that sandbox.
        """
        view = self.view(phase, writable, also=shown)
        with ExitStack() as stack:
            network = NO_SHARED_NETWORK
            if network_from is not None and not view.network:
                view = replace(view, shares_network=True)
                network = stack.enter_context(network_of(network_from.start().pid))
            yield stack.enter_context(self._started(phase, view, network))

    @contextmanager
    def _started(self, phase: Phase, view: View, network: SharedNetwork) -> Iterator[SandboxedStarter]:
        logs = self._results / "logs"
        logs.mkdir(parents=True, exist_ok=True)
        with PrivateDirectories(self._sandbox_directory) as private:
            launcher_sandbox = LauncherSandbox(
                prefix=(*network.prefix, *bubblewrap(view, private)),
                outputs=str(logs),
                exchange=str(private.exchange),
                outside=self._outside,
                inherited=network.descriptors,
            )
            with started_in_sandbox(Launcher(sandbox=launcher_sandbox)) as launcher:
                self._launchers.append(launcher)
                try:
                    yield SandboxedStarter(
                        launcher,
                        private,
                        sandbox=self._sandbox,
                        phase=phase,
                        view=view,
                        default_memory_bytes=_default_memory(launcher.start()),
                    )
                finally:
                    self._launchers.remove(launcher)

    def servers(self) -> tuple[int, ...]:
        """Return the ids of the launchers' processes, whose work does not count as noise."""
        return tuple(launcher.start().server_pid for launcher in self._launchers)

    def cancel(self) -> None:
        """Kill the current processes of other threads in the sandbox; those threads continue with their next task."""
        for launcher in tuple(self._launchers):
            launcher.cancel()

    def end(self) -> None:
        """Kill all processes of other threads in the sandbox."""
        for launcher in tuple(self._launchers):
            launcher.close()

    @contextmanager
    def prefix(self, phase: Phase, writable: Sequence[str]) -> Iterator[tuple[str, ...]]:
        """Yield words that, before the command line of a program such as a shell, start it in a sandbox.

        The caller starts the program on its own terminal, without limits. The program ends with its caller.
        Raises `SandboxError`.
        """
        refuse_whole_home(self._study)
        for directory in self._shown_directories:
            directory.mkdir(parents=True, exist_ok=True)
        with PrivateDirectories(self._sandbox_directory) as private:
            program, *words = bubblewrap(self.view(phase, writable), private)
            yield (program, "--die-with-parent", *words)

    def view(self, phase: Phase, writable: Sequence[str], *, also: Sequence[str] = ()) -> View:
        """Return what is visible and writable in the sandbox; `also` adds visible directories."""
        shown = (
            self._study,
            str(launcher_path().parent),
            *map(str, self._shown_directories),
            *self._readable(),
            *also,
        )
        return View(
            writable=tuple(os.path.realpath(path) for path in writable),
            shown=tuple(os.path.realpath(path) for path in shown),
            hidden=(str(self._results),),
            network=self._sandbox.has_network(phase),
        )

    def _readable(self) -> Iterator[str]:
        for named in self._sandbox.readable:
            path = expanded(named)
            if not path.exists():
                raise SandboxError(f"sandbox.readable: {named} — no such file or directory")
            refuse_whole_home(str(path))
            yield str(path)


@contextmanager
def started_in_sandbox(launcher: Launcher) -> Iterator[Launcher]:
    """Start a launcher in its sandbox. Raises `SandboxError` with the remedy if that fails."""
    try:
        launcher.start()
    except LauncherError as error:
        raise sandbox_error(str(error)) from error
    with launcher:
        yield launcher


def why_no_sandbox() -> str:
    """Return why this machine cannot create sandboxes, empty if it can; creates one to find out."""
    try:
        with Launcher() as outside, PrivateDirectories(TEMPORARY_DIRECTORY) as private:
            launcher_sandbox = LauncherSandbox(
                prefix=bubblewrap(View(shown=(str(real_path(launcher_path().parent)),)), private),
                outputs=str(private.exchange),
                exchange=str(private.exchange),
                outside=outside.start(),
            )
            with started_in_sandbox(Launcher(sandbox=launcher_sandbox)):
                return ""
    except (SandboxError, OSError) as error:
        return str(error)


def _default_memory(capabilities: Capabilities) -> int | None:
    """Return the limit if the study has none: only where a control group can limit a whole process tree.

    A limit on each process's address space would be wrong: the address space is often far larger than its
    use.
    """
    if capabilities.memory_cgroup is None:
        return None
    return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * MEMORY_SHARE)


_TRIAL_PREFIX = "perftrail-measure-"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyTrial:
    """A trial that is ready to start, its starter, and its processes, whose work does not count as noise."""

    trial: Trial
    starter: Starter
    servers: Callable[[], tuple[int, ...]]


@contextmanager
def open_trial_starter(trial: Trial, launcher: Launcher) -> Iterator[ReadyTrial]:
    """Yield a trial with its starter, in a sandbox if it requests one. Raises `SandboxError` if that is not available.

    In a sandbox `$TMPDIR` names the one directory that persists over all starts; it is removed with the
    sandbox. Other writable directories, /tmp and the home directory, are empty at each start.
    """

    def outside() -> tuple[int, ...]:
        return (launcher.start().server_pid,)

    sandbox = trial.run_settings.sandbox
    if sandbox is None:
        yield ReadyTrial(trial=trial, starter=launcher, servers=outside)
        return
    with claimed_directory(_TRIAL_PREFIX, below=TEMPORARY_DIRECTORY) as claimed:
        home = real_path(claimed)
        scratch = home / "scratch"
        scratch.mkdir()
        sandboxes = Sandboxes(
            _showing_input(sandbox, trial),
            study_directory=trial.run_settings.directory,
            results=home,
            outside=launcher.start(),
        )
        sandboxes.prepare()
        with sandboxes.sandboxed("run", [str(scratch)]) as starter:
            yield ReadyTrial(
                trial=_with_temporary_directory(trial, scratch),
                starter=_CopiedOutput(starter, home / "logs" / "output"),
                servers=lambda: (*outside(), *sandboxes.servers()),
            )


def _showing_input(sandbox: Sandbox, trial: Trial) -> Sandbox:
    """Make the commands' input file readable in the sandbox."""
    stdin = trial.run_settings.stdin
    own = () if stdin is None else (os.path.realpath(stdin),)
    return replace(sandbox, readable=(*sandbox.readable, *own))


def _with_temporary_directory(trial: Trial, scratch: Path) -> Trial:
    environment = {**trial.run_settings.environment, "TMPDIR": str(scratch)}
    return replace(trial, run_settings=replace(trial.run_settings, environment=environment))


class _CopiedOutput:
    """Implements `ports.Starter`: captured output goes to a file that nothing in a sandbox can open."""

    def __init__(self, starter: Starter, file: Path) -> None:
        self._starter = starter
        self._file = file

    def run(self, command: Command) -> Ran:
        """Run a process, and pass on its output when it has ended."""
        if command.stdout is None:
            return self._starter.run(command)
        ran = self._starter.run(replace(command, stdout=str(self._file), stderr=str(self._file)))
        with self._file.open("rb") as printed, Path(command.stdout).open("wb") as wanted:
            shutil.copyfileobj(printed, wanted)
        return ran


WORKERS = "perftrail-workers-"
"""Prefix of the directories of workers that a command starts on its own machine."""


def remove_leftovers() -> None:
    """Remove files that no running process claims: files of counters, and directories of sandboxes."""
    remove_left_over_count_files()
    remove_left_over(_TRIAL_PREFIX, below=TEMPORARY_DIRECTORY)
    remove_left_over_directories(TEMPORARY_DIRECTORY)
    remove_left_over(WORKERS, below=TEMPORARY_DIRECTORY)
