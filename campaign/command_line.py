"""perftrail's command line, forked from one process that has imported it, also under strace.

Importing takes longer than a trial. A forked command line is a real process with its own files, directory and end.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import pkgutil
import random
import re
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import perftrail

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

_PR_SET_PTRACER = 0x59616D61
_ANY_PROCESS = ctypes.c_ulong(-1)
_WITH_THREADS = ("perftrail.__main__", "perftrail.cluster", "perftrail.notebook")
"""Modules that start threads, which a fork does not have; or the command line itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a command line ended: its exit code, negative for a signal, and what it printed."""

    code: int
    stdout: str
    stderr: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A running command line, for its client: its process, its standard input, and the files that it prints to."""

    process: int
    stdin: int
    out: Path
    err: Path

    def write(self, text: bytes) -> None:
        """Write to its standard input, unless it has ended."""
        with suppress(BrokenPipeError):
            os.write(self.stdin, text)

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal; it is not reaped before its client returns."""
        os.kill(self.process, number)

    def wait_for(self, pattern: str, *, errors: bool = False) -> re.Match[str] | None:
        """Wait until it prints a pattern; return `None` if it ends before."""
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        while True:
            ended = os.waitid(os.P_PID, self.process, flags) is not None
            text = (self.err if errors else self.out).read_text(errors="replace")
            if (found := re.search(pattern, text, re.MULTILINE)) or ended:
                return found
            time.sleep(0.02)


Client = Callable[[Served], str]
"""Talks with a running command line, and returns what it was answered elsewhere than on its standard output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A system call of perftrail's main thread: its name, and its number among the calls of this name, from 1."""

    name: str
    number: int
    text: str


def import_all(package: ModuleType = perftrail) -> None:
    """Import what command lines use, so that forked ones need not."""
    for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if not found.name.startswith(_WITH_THREADS):
            module = importlib.import_module(found.name)
            if found.ispkg:
                import_all(module)


def run(
    arguments: Sequence[str],
    directory: Path,
    *,
    strace: Sequence[str] = (),
    seconds: float | None = None,
    client: Client | None = None,
) -> Ended:
    """Run a command line in a directory to its end; with strace's options, under strace; kill it after `seconds`.

    A `client` talks with it meanwhile.
    """
    with tempfile.TemporaryDirectory() as temporary:
        out, err = Path(temporary) / "out", Path(temporary) / "err"
        reading, stdin = os.pipe() if client is not None else (os.open(os.devnull, os.O_RDONLY), -1)
        process = os.fork()
        if process == 0:
            if client is not None:
                os.close(stdin)
            _become(arguments, directory, reading, out, err, wait=bool(strace))
        os.close(reading)
        tracer = attach(process, strace) if strace else None
        late = threading.Timer(seconds or 0.0, os.killpg, (process, signal.SIGKILL))
        if seconds is not None:
            late.start()
        answers = ""
        if client is not None:
            out.touch()
            err.touch()
            answers = client(Served(process=process, stdin=stdin, out=out, err=err))
            os.close(stdin)
        _, status = os.waitpid(process, 0)
        late.cancel()
        if tracer is not None:
            tracer.communicate()
        return Ended(
            code=os.waitstatus_to_exitcode(status),
            stdout=out.read_text(errors="replace") + answers,
            stderr=err.read_text(errors="replace"),
        )


def calls(arguments: Sequence[str], directory: Path, names: Sequence[str]) -> tuple[tuple[Call, ...], Ended]:
    """Run a command line; return its calls on files below a directory, on sockets and without a file, and its end."""
    with tempfile.NamedTemporaryFile("r", errors="replace") as log:
        options = ("-y", "-s", "0", "-o", log.name, "-e", f"trace={','.join(names)}")
        ended = run(arguments, directory, strace=options)
        return tuple(_relevant(log.read().splitlines(), str(directory))), ended


def _relevant(lines: Sequence[str], directory: str) -> list[Call]:
    seen: Counter[str] = Counter()
    found = []
    for line in lines:
        match = re.match(r"(\w+)\(", line)
        if match is None:
            continue
        name = match[1]
        seen[name] += 1
        if _is_below(line, directory) or "/" not in line or "socket:" in line:
            found.append(Call(name=name, number=seen[name], text=line.replace(directory, "DIRECTORY")[:160]))
    return found


def _is_below(line: str, directory: str) -> bool:
    """Whether a call is on a file below a directory; not on a file of Python or perftrail with an absolute path."""
    path = re.search(r'AT_FDCWD<[^>]*>, "([^"]*)"', line)
    return directory in (path[1] if path and path[1].startswith("/") else line)


def _become(
    arguments: Sequence[str], directory: Path, stdin: int, out: Path, err: Path, *, wait: bool
) -> None:
    """Turn this forked process into a command line; with `wait`, stop first until somebody continues it."""
    os.setsid()
    os.dup2(stdin, 0)
    for number, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), number)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - the process ends with it
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - the process ends with it
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - the process ends with it
    os.chdir(directory)
    tempfile.tempdir = None
    random.seed()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if wait:
        become_traced()
    sys.argv = ["perftrail", *arguments]
    code = 1
    try:
        runpy.run_module("perftrail", run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def become_traced() -> None:
    """Stop this forked process until `attach` has strace attached and continues it."""
    ctypes.CDLL(None).prctl(_PR_SET_PTRACER, _ANY_PROCESS, 0, 0, 0)
    os.kill(os.getpid(), signal.SIGSTOP)


def attach(process: int, options: Sequence[str]) -> subprocess.Popen[bytes]:
    """Attach strace to a stopped process, and let the process continue."""
    os.waitid(os.P_PID, process, os.WSTOPPED | os.WNOWAIT)
    tracer = subprocess.Popen(["strace", "-p", str(process), *options], stderr=subprocess.PIPE)
    assert tracer.stderr is not None
    if b"attached" not in (line := tracer.stderr.readline()):
        os.kill(process, signal.SIGKILL)
        raise OSError(f"strace does not attach: {line.decode().strip()}")
    os.kill(process, signal.SIGCONT)
    return tracer
