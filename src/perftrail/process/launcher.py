"""Client of the launcher: start it, send it commands, and read the results.

If both processes of the launcher are killed at the same moment, its cgroups remain, with everything that the
target started. Then this module removes them. The kernel kills the target itself (PR_SET_PDEATHSIG), but not
its children.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import signal
import subprocess
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Self

from perftrail.errors import LauncherError
from perftrail.installed_programs import installed_program
from perftrail.process.allocation_counts import allocation_file
from perftrail.process.lock_counts import lock_file
from perftrail.process.protocol import (
    CANCEL,
    SIGNAL,
    Capabilities,
    job_line,
    read_answer,
    read_hello,
    read_result,
)
from perftrail.process.sandboxed_launcher import LauncherResources, launcher_killed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from perftrail.model.process import Command, Ran
    from perftrail.process.sandboxed_launcher import LauncherSandbox


SECONDS_TO_DIE = 2.0
"""Time for killed processes to leave their cgroup."""


def remove_cgroups(paths: Sequence[str]) -> None:
    """Kill every process in these cgroups and remove them; missing cgroups are ignored."""
    deadline = time.monotonic() + SECONDS_TO_DIE
    left = [Path(path) for path in paths if Path(path).is_dir()]
    while left and time.monotonic() < deadline:
        for path in left:
            _kill_members(path)
            with contextlib.suppress(OSError):  # still busy: the next round tries again
                path.rmdir()
        left = [path for path in left if path.is_dir()]


def _kill_members(path: Path) -> None:
    # A cgroup may disappear while it is read, a process before it is killed.
    with contextlib.suppress(OSError):
        for pid in (path / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)


def launcher_path() -> Path:
    """Return the path of the installed launcher; raises `LauncherError` if there is none."""
    path = installed_program("perftrail-launcher")
    if not path.is_file():
        raise LauncherError(
            f"{path} — the launcher is missing; every wheel has it, and an installation from the sources builds it "
            "with a C compiler: install perftrail again (`make setup` in the source tree)"
        )
    if not os.access(path, os.X_OK):
        raise LauncherError(f"{path} — the launcher is not executable; check its permissions and mount")
    return path


KERNEL_COUNTS = Path("/proc/vmstat")
"""Counts of the whole machine since its start."""


def memory_kills() -> int:
    """Return how many processes the kernel killed because no memory was left; 0 if it does not report that."""
    with contextlib.suppress(OSError, ValueError):
        return int(KERNEL_COUNTS.read_text().partition("\noom_kill ")[2].partition("\n")[0])
    return 0


SECONDS_TO_END = 10.0
"""Time for a launcher to kill everything and end, before perftrail kills it."""

SECONDS_TO_START = 30.0
"""Time limit for a launcher's first line."""

LONGEST_ANSWER_BYTES = 1 << 16
"""Upper limit of an answer's length, four times that of the launcher's buffer."""

LONGEST_WAIT_SECONDS = 1e6
"""Largest timeout of poll; longer than any sensible timeout."""

SECONDS_BETWEEN_CANCELS = 0.05
"""Time between two attempts to cancel another thread's run: an attempt before its job starts would be lost."""


class Launcher:
    """One launcher process, started on demand and again after its death; a context manager.

    A launcher runs one command at a time: any thread may call `run`, and calls wait for each other. Leaving the
    context, the end of this process and the launcher's own death all kill the running command.

    With a `sandbox` it runs inside a sandbox, where programs can attack it: if one kills it or keeps it from
    answering, that is reported as the end of that program.
    """

    def __init__(self, path: Path | None = None, *, sandbox: LauncherSandbox | None = None) -> None:
        self._path = path
        self._sandbox = sandbox
        self._lock = threading.RLock()
        self._server: _Server | None = None
        self._ids = itertools.count(1)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> Capabilities:
        """Start the launcher unless it runs, and return its capabilities.

        Raises `LauncherError` if it is missing, cannot run or has another version.
        """
        server = self._server
        if server is not None:  # without the lock, which another thread has while its command runs
            return server.capabilities
        with self._lock:
            if self._server is None:
                self._server = _Server(self._file, self._sandbox)
            return self._server.capabilities

    def run(self, command: Command) -> Ran:
        """Run a command, and return its result with all its descendants; none of them survives.

        Raises `LauncherError` if the launcher died or refuses the command. On an interruption, for example Ctrl-C,
        the process tree is killed before the exception propagates. In both cases the next call starts a new
        launcher if necessary.
        """
        exchange = None if self._sandbox is None else self._sandbox.exchange
        if command.lock_counter != "off":
            with lock_file(self._file, command, directory=exchange) as (counting, locks):
                ran = self.run(counting)
                return replace(ran, locks=locks.counted(until=ran.ended_at))
        if command.allocation_counter != "off":
            with allocation_file(self._file, command, directory=exchange) as (counting, allocations):
                return replace(self._run(counting), allocations=allocations.counted())
        return self._run(command)

    @property
    def _file(self) -> Path:
        return self._path or launcher_path()

    def _run(self, command: Command) -> Ran:
        with self._lock:
            id = str(next(self._ids))
            self.start()
            server = self._server
            assert server is not None
            line = job_line(server.adapted(command), id=id)
            kills = memory_kills()
            began = time.monotonic()
            try:
                answer = read_answer(server.request(line, wait_seconds=self._wait_seconds(command)))
            except LauncherError:
                self.close()
                if self._sandbox is None:
                    raise
                return launcher_killed(command, began=began)
            except BaseException:
                self.close()
                raise
            if answer.get("fatal"):
                self.close()
            return replace(read_result(answer, id=id), memory_kills=memory_kills() - kills)

    def _wait_seconds(self, command: Command) -> float | None:
        """Return the time limit for an answer: inside a sandbox, a program can stop its launcher."""
        if self._sandbox is None or command.timeout_seconds is None:
            return None
        return min(command.timeout_seconds + SECONDS_TO_END, LONGEST_WAIT_SECONDS)

    def cancel(self) -> None:
        """Kill the command of another thread's `run`, which then returns `Cancelled`; without one, do nothing."""
        server = self._server
        if server is not None:
            server.send(CANCEL)

    def signal(self, number: int) -> None:
        """Send a signal to the program of another thread's `run`; without one, do nothing."""
        server = self._server
        if server is not None:
            server.send(SIGNAL % number)

    def close(self) -> None:
        """Kill the running command of any thread, and wait until it and the launcher have ended.

        May be called again; a later `run` starts a new launcher.
        """
        while not self._lock.acquire(timeout=SECONDS_BETWEEN_CANCELS):
            self.cancel()
        try:
            server, self._server = self._server, None
            if server is not None:
                server.close()
        finally:
            self._lock.release()


class _Server:
    """One started launcher, its two pipes and its error output."""

    def __init__(self, path: Path, sandbox: LauncherSandbox | None) -> None:
        self._resources = None if sandbox is None else LauncherResources(sandbox)
        prefix = () if sandbox is None else sandbox.prefix
        arguments = () if self._resources is None else self._resources.arguments()
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the server
        self._waiting = bytearray()
        self._writing = threading.Lock()
        self._capabilities: Capabilities | None = None
        try:
            # In a separate session: Ctrl-C in the terminal reaches perftrail, which then stops the launcher.
            self._process = subprocess.Popen(
                [*prefix, path, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                env={},  # it needs none, and its stack adds to the lower limit of peak memory
                bufsize=0,
                start_new_session=True,
                pass_fds=()
                if self._resources is None or sandbox is None
                else (*self._resources.descriptors, *sandbox.inherited),
            )
        except OSError as error:
            self._stderr.close()
            self._release()
            started = prefix[0] if prefix else path
            raise LauncherError(f"{started} — the launcher cannot be started: {error.strerror}") from error
        try:
            hello = read_hello(read_answer(self._read_line(SECONDS_TO_START)))
            resources = self._resources
            self._capabilities = (
                hello if resources is None else resources.seen_outside(hello, self._process.pid)
            )
        except BaseException:
            self.close()
            raise

    @property
    def capabilities(self) -> Capabilities:
        assert self._capabilities is not None
        return self._capabilities

    def adapted(self, command: Command) -> Command:
        return command if self._resources is None else self._resources.inside(command)

    def request(self, line: bytes, *, wait_seconds: float | None) -> bytes:
        if not self.send(line):
            raise self._death()
        return self._read_line(wait_seconds)

    def send(self, line: bytes) -> bool:
        assert self._process.stdin is not None
        unsent = memoryview(line)
        with self._writing:
            try:
                while unsent:
                    unsent = unsent[os.write(self._process.stdin.fileno(), unsent) :]
            except (BrokenPipeError, ValueError):  # it died, or was closed
                return False
        return True

    def _read_line(self, wait_seconds: float | None) -> bytes:
        assert self._process.stdout is not None
        output = select.poll()
        output.register(self._process.stdout, select.POLLIN)
        deadline = None if wait_seconds is None else time.monotonic() + wait_seconds
        while b"\n" not in self._waiting:
            if len(self._waiting) > LONGEST_ANSWER_BYTES:
                raise LauncherError(
                    f"launcher — answered more than {LONGEST_ANSWER_BYTES} bytes without a newline; please report it"
                )
            left = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000
            if not output.poll(left):
                raise LauncherError("launcher — does not answer; perhaps another process stopped it")
            more = os.read(self._process.stdout.fileno(), 65536)
            if not more:
                raise self._death()
            self._waiting += more
        line, _, rest = self._waiting.partition(b"\n")
        self._waiting = bytearray(rest)
        return bytes(line)

    def _death(self) -> LauncherError:
        self._wait_for_end()
        self._stderr.seek(0)
        output = self._stderr.read()[-2000:].decode(errors="replace").strip()
        return LauncherError(
            f"launcher — ended unexpectedly (status {self._process.poll()}); "
            "its processes were killed; perhaps another process killed it" + (f"\n{output}" if output else "")
        )

    def close(self) -> None:
        """Close the pipe, so that the launcher kills everything and ends; kill it if it does not."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        with self._writing:
            process.stdin.close()
        if self._resources is not None:
            self._resources.hang_up()
        try:
            self._wait_for_end()
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
            self._stderr.close()
            self._release()

    def _release(self) -> None:
        if self._resources is not None:
            self._resources.close()

    def _wait_for_end(self) -> None:
        """Wait for both processes: the guard is a child, and the server has the end of a pipe."""
        assert self._process.stdout is not None
        deadline = time.monotonic() + SECONDS_TO_END
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(SECONDS_TO_END)
        output = select.poll()
        output.register(self._process.stdout, select.POLLIN)
        while (left := deadline - time.monotonic()) > 0:
            if output.poll(left * 1000) and not os.read(self._process.stdout.fileno(), 65536):
                break
        if self._capabilities is not None:
            remove_cgroups(self._capabilities.cgroup_paths)
