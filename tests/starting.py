"""Runs the command line for tests in real processes, forked from one that has imported perftrail."""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

REPOSITORY = Path(__file__).parents[1]
TIMEOUT_SECONDS = 600.0


class _Server:
    """The process that forks; it ends when its socket is closed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ours, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.fork_server", str(theirs.fileno())],
            cwd=REPOSITORY,
            pass_fds=(theirs.fileno(),),
        )
        theirs.close()
        atexit.register(self._end)

    def start(self, request: Mapping[str, object], *descriptors: int) -> None:
        with self._lock:
            socket.send_fds(self._ours, [json.dumps(request).encode()], descriptors)

    def _end(self) -> None:
        self._ours.close()
        self._process.wait()


_servers: list[_Server] = []


@dataclass
class _Spent:
    """What the started command lines cost so far."""

    starts: int = 0
    cpu_seconds: float = 0.0


spent = _Spent()


def serve_forks() -> None:
    """Start the process that forks command lines, so that processes forked from this one share it."""
    if not _servers:
        _servers.append(_Server())


def start(
    *arguments: str | Path,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = TIMEOUT_SECONDS,
) -> subprocess.CompletedProcess[str]:
    """Run the command line to its end, like `subprocess.run`. At the timeout it is killed; raises `TimeoutExpired`."""
    words = [str(each) for each in arguments]
    environment = dict(os.environ if env is None else env)
    if any(name.startswith("PYTHON") for name in environment.keys() - os.environ.keys()):
        return _run_python(words, cwd, environment, timeout)
    with ExitStack() as stack:
        stdout, stderr = (stack.enter_context(_Pipe()) for _ in range(2))
        started = stack.enter_context(Started(words, stdout.end, stderr.end, cwd=cwd, env=environment))
        for pipe in (stdout, stderr):
            pipe.close_end()
        guard = threading.Timer(timeout, os.kill, (started.pid, signal.SIGKILL))
        guard.start()
        with ThreadPoolExecutor(2) as readers:
            reading = [readers.submit(pipe.file.read) for pipe in (stdout, stderr)]
            output = [each.result().decode() for each in reading]
        code = started.wait()
        late = not guard.is_alive()
        guard.cancel()
    if late:
        raise subprocess.TimeoutExpired(words, timeout, output[0], output[1])
    return subprocess.CompletedProcess(words, code, stdout=output[0], stderr=output[1])


class Started:
    """A command line that runs in a process of its own, like `subprocess.Popen`; leaving the context waits for it."""

    def __init__(
        self,
        words: Sequence[str],
        stdout: int,
        stderr: int,
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        session: bool = False,
    ) -> None:
        serve_forks()
        environment = dict(os.environ if env is None else env)
        request = {
            "arguments": words,
            "directory": str(cwd or Path.cwd()),
            "environment": environment,
            "session": session,
        }
        spent.starts += 1
        self.returncode: int | None = None
        self._words = words
        self._report = _Pipe()
        with open(os.devnull, "rb") as stdin:  # noqa: PTH123 - a device
            _servers[0].start(request, stdin.fileno(), stdout, stderr, self._report.end)
        self._report.close_end()
        self.pid = int(self._report.file.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.wait()

    def poll(self) -> int | None:
        """Return the exit code; `None` while the process runs."""
        try:
            return self.wait(0.0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code at the end of the process. Raises `TimeoutExpired` if that takes longer."""
        if self.returncode is None:
            if not select.select([self._report.file], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self._words, timeout or 0.0)
            code, seconds = self._report.file.readline().split()
            self.returncode = int(code)
            spent.cpu_seconds += float(seconds)
            self._report.file.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal to the process, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)


class _Pipe:
    """A pipe that a started process writes to. `end` is its writing end, closed here once the process has it."""

    def __init__(self) -> None:
        reading, self.end = os.pipe()
        self.file = os.fdopen(reading, "rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()
        self.close_end()

    def close_end(self) -> None:
        if self.end >= 0:
            os.close(self.end)
            self.end = -1


def _run_python(
    words: list[str], cwd: Path | None, environment: Mapping[str, str], timeout: float
) -> subprocess.CompletedProcess[str]:
    """Start a new Python, for environment variables that a fork ignores."""
    return subprocess.run(
        [sys.executable, "-m", "perftrail", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env=environment,
        timeout=timeout,
    )
