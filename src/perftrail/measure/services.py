"""Start a service, wait until it is ready, notice its end, and stop it.

Each service has its own launcher, because a launcher runs one command at a time: a thread waits for its end. The
launcher ends everything that the service started, also if perftrail is killed.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from perftrail.errors import NoAnswer, PerftrailError
from perftrail.model.process import NotStarted, describe_end
from perftrail.model.sandbox import with_refusals
from perftrail.model.service import stop_signal
from perftrail.model.wording import duration, quoted
from perftrail.process.tree_usage import TreeUsage

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from perftrail.model.process import Command, Ran
    from perftrail.model.service import Readiness
    from perftrail.process.protocol import Capabilities

POLL_SECONDS = 0.01
"""Time between two looks at a service that starts or stops."""

END_SECONDS = 1.0
"""Time in which perftrail notices that a service ended: the end is the reason for an invocation that failed before."""

STOP_SECONDS = 10.0
"""Time for a service to stop before perftrail kills it."""

MOST_QUOTED = 3
"""Number of the last lines of a service's output in a message."""
LONGEST_QUOTE = 300
LOCAL_ADDRESS = "127.0.0.1"


class FixtureFailed(NoAnswer):
    """A line or a service of a fixture failed. `log` is the path of its output."""

    def __init__(self, message: str, *, log: str = "") -> None:
        super().__init__(message)
        self.log = log


class BackgroundStarter(Protocol):
    """A starter whose command other threads can signal and end while `run` waits for it."""

    def run(self, command: Command) -> Ran:
        """Start a process, as in `ports.Starter`."""
        ...

    def start(self) -> Capabilities:
        """Start the launcher, unless it runs, and return what it can do."""
        ...

    def signal(self, number: int) -> None:
        """Send a signal to the program that runs."""
        ...

    def cancel(self) -> None:
        """Kill the running command with all its descendants."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceStart:
    """How to start a service, with its placeholders filled in: the command, and how it becomes ready and stops."""

    name: str
    command: Command
    readiness: Readiness
    ready_within_seconds: float
    stop: str


class RunningService:
    """A service that was started. Call `stop` once; `run_line` runs a shell line and returns why it failed."""

    def __init__(
        self,
        start: ServiceStart,
        opened: AbstractContextManager[BackgroundStarter],
        run_line: Callable[[str], str],
    ) -> None:
        self._start = start
        self._run_line = run_line
        with ExitStack() as stack:
            self._starter = stack.enter_context(opened)
            capabilities = self._starter.start()
            self.usage = TreeUsage(capabilities)
            self._process = capabilities.server_pid
            self._stack = stack.pop_all()
        self._ran: Ran | None = None
        self._error: PerftrailError | None = None
        self._waiting = threading.Thread(target=self._run, name=f"service-{start.name}", daemon=True)
        self._waiting.start()

    def _run(self) -> None:
        try:
            self._ran = self._starter.run(self._start.command)
        except PerftrailError as error:
            self._error = error

    @property
    def log(self) -> Path:
        """The file of the service's output."""
        assert self._start.command.stdout is not None
        return Path(self._start.command.stdout)

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._waiting.is_alive()

    @property
    def final_cpu_seconds(self) -> float:
        """Its CPU time after its end, in seconds; 0 before."""
        ran = self._ran
        if ran is None:
            return 0.0
        return max(ran.cpu_seconds, ran.tree_cpu.seconds if ran.tree_cpu is not None else 0.0)

    def wait_until_ready(self) -> None:
        """Wait until it is ready. Raises `FixtureFailed` if it ends before, or takes too long."""
        readiness, seconds = self._start.readiness, self._start.ready_within_seconds
        deadline = time.monotonic() + seconds
        reason = ""
        pause = POLL_SECONDS
        lines = _NewLines(self.log, readiness.line)
        while True:
            self.check()
            if readiness.line:
                reason = "" if lines.found() else f"no line of its output matches {quoted(readiness.line)}"
            elif readiness.command:
                reason = self._run_line(readiness.command)
                pause = 5 * POLL_SECONDS
            else:
                reason = _connection_failure(int(readiness.port), self._process)
            if not reason:
                self.check()
                return
            if time.monotonic() >= deadline:
                late = f"service {self._start.name} is not ready after {duration(seconds)}: {reason}"
                raise FixtureFailed(f"{late}{last_output(self.log)}", log=str(self.log))
            time.sleep(pause)

    def check(self, *, until: float = 0.0) -> None:
        """Raise `FixtureFailed` if it has ended, or ends until a time of the monotonic clock."""
        self._waiting.join(max(0.0, until - time.monotonic()))
        if self.is_running:
            return
        if self._error is not None:
            raise FixtureFailed(f"service {self._start.name}: {self._error}", log=str(self.log))
        assert self._ran is not None
        ended = self._ran.ended
        how = describe_end(ended) or "exit code 0, but a service must stay in the foreground"
        if isinstance(ended, NotStarted):
            shown = quoted(self._start.command.arguments[0])
            raise FixtureFailed(f"service {self._start.name}: {shown} {how}", log=str(self.log))
        message = with_refusals(f"service {self._start.name} ended: {how}", self._ran.refused)
        raise FixtureFailed(f"{message}{last_output(self.log)}", log=str(self.log))

    def begin_stop(self) -> None:
        """Ask it to stop, without waiting for a signal's effect."""
        if not self.is_running:
            return
        number = stop_signal(self._start.stop)
        if number is None:
            self._run_line(self._start.stop)
        else:
            self._starter.signal(number)

    def end(self, deadline: float) -> None:
        """Wait for its end until a time of the monotonic clock, then kill it; release its launcher."""
        try:
            self._waiting.join(max(0.0, deadline - time.monotonic()))
            while self.is_running:
                self._starter.cancel()
                self._waiting.join(POLL_SECONDS)
        finally:
            self._stack.close()


def stop_all(services: list[RunningService], *, seconds: float = STOP_SECONDS) -> None:
    """Stop services at the same time, the last one first; kill those that still run after this time."""
    deadline = time.monotonic() + seconds
    with ExitStack() as stack:
        for service in services:
            stack.callback(service.end, deadline)
        for service in reversed(services):
            service.begin_stop()


class _NewLines:
    """Reads the new lines of a growing file, and searches a pattern in each."""

    def __init__(self, file: Path, pattern: str) -> None:
        self._file = file
        self._pattern = re.compile(pattern)
        self._offset = 0
        self._found = False

    def found(self) -> bool:
        """Return whether a line matched, including an unfinished last one."""
        if self._found:
            return True
        with contextlib.suppress(FileNotFoundError), self._file.open("rb") as file:
            file.seek(self._offset)
            lines = file.read().split(b"\n")
            self._offset += sum(len(line) + 1 for line in lines[:-1])
            self._found = any(self._pattern.search(line.decode("utf-8", "replace")) for line in lines)
        return self._found


def _connection_failure(port: int, process: int) -> str:
    """Return why a port cannot be reached in the network of a process; empty if it can be."""
    try:
        if _network_of(process) != _network_of(os.getpid()):
            return "" if port in _listening_ports(process) else f"no process listens at port {port}"
        socket.create_connection((LOCAL_ADDRESS, port), timeout=1.0).close()
    except OSError as error:
        return f"port {port}: {os.strerror(error.errno).lower() if error.errno else error}"
    return ""


def _network_of(process: int) -> str:
    return os.readlink(f"/proc/{process}/ns/net")  # noqa: PTH115 - its target is not a path


_LISTENING = "0A"


def _listening_ports(process: int) -> set[int]:
    """Return the TCP ports at which processes listen in the network of a process."""
    found = set()
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(FileNotFoundError):  # a kernel without IPv6
            rows = Path(f"/proc/{process}/net/{name}").read_text().splitlines()[1:]
            found |= {
                int(fields[1].rpartition(":")[2], 16)
                for row in rows
                if len(fields := row.split()) > 3 and fields[3] == _LISTENING
            }
    return found


def free_port() -> int:
    """Return a TCP port of this machine that no program uses now."""
    with socket.socket() as probe:
        probe.bind((LOCAL_ADDRESS, 0))
        port: int = probe.getsockname()[1]
        return port


_END_BYTES = 1 << 16


def last_output(log: Path) -> str:
    """Return the last line of a service's output as a quote, and the lines before it; empty if there are none."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _END_BYTES))
            lines = [
                line.strip() for line in file.read().decode("utf-8", "replace").splitlines() if line.strip()
            ]
    except OSError:
        return ""
    if not lines:
        return ""
    *earlier, last = (line[:LONGEST_QUOTE] for line in lines[-MOST_QUOTED:])
    return "\n".join([f'; its last line is "{last}"', *(f"earlier: {line}" for line in reversed(earlier))])
