"""Starts the command line for tests: real processes, forked from one that has imported perftrail already."""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Self

REPOSITORY = Path(__file__).parents[1]
PATIENCE_SECONDS = 600.0


class _Server:
    """The process that is forked from; it ends when its socket is closed."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._ours, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.fork_server", str(theirs.fileno())],
            cwd=REPOSITORY,
            pass_fds=(theirs.fileno(),),
        )
        theirs.close()
        atexit.register(self._end)

    def start(self, asked: Mapping[str, object], *descriptors: int) -> None:
        with self._turn:
            socket.send_fds(self._ours, [json.dumps(asked).encode()], descriptors)

    def _end(self) -> None:
        self._ours.close()
        self._process.wait()


_servers: list[_Server] = []


def start(
    *arguments: str | Path,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = PATIENCE_SECONDS,
) -> subprocess.CompletedProcess[str]:
    """Run the command line to its end, as `subprocess.run` would. Raises `TimeoutExpired`, with it killed."""
    words = [str(each) for each in arguments]
    environment = dict(os.environ if env is None else env)
    if any(name.startswith("PYTHON") for name in environment.keys() - os.environ.keys()):
        return _anew(words, cwd, environment, timeout)
    if not _servers:
        _servers.append(_Server())
    asked = {"arguments": words, "directory": str(cwd or Path.cwd()), "environment": environment}
    with ExitStack() as stack:
        told, stdout, stderr = (stack.enter_context(_Pipe()) for _ in range(3))
        with open(os.devnull, "rb") as stdin:  # noqa: PTH123 - a device
            _servers[0].start(asked, stdin.fileno(), stdout.end, stderr.end, told.end)
        for pipe in (told, stdout, stderr):
            pipe.close_end()
        pid = int(told.file.readline())
        guard = threading.Timer(timeout, os.kill, (pid, signal.SIGKILL))
        guard.start()
        with ThreadPoolExecutor(2) as readers:
            reading = [readers.submit(pipe.file.read) for pipe in (stdout, stderr)]
            said = [each.result().decode() for each in reading]
        code = int(told.file.readline())
        late = not guard.is_alive()
        guard.cancel()
    if late:
        raise subprocess.TimeoutExpired(words, timeout, said[0], said[1])
    return subprocess.CompletedProcess(words, code, stdout=said[0], stderr=said[1])


class _Pipe:
    """What a started process writes into, and we read: `end` is the process's, which we close once it has it."""

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


def _anew(
    words: list[str], cwd: Path | None, environment: Mapping[str, str], timeout: float
) -> subprocess.CompletedProcess[str]:
    """Start Python itself, which alone heeds variables of its own."""
    return subprocess.run(
        [sys.executable, "-m", "perftrail", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env=environment,
        timeout=timeout,
    )
