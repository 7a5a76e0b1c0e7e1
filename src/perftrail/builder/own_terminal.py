"""A program on a terminal of its own, shown on ours: it can be talked to, and cannot type into ours."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import pty
import select
import signal
import sys
import termios
import tty
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import FrameType

_DEATH_SIGNAL = 1
_READ_BYTES = 65536
_NO_SIZE = bytes(8)


def run_on_own_terminal(arguments: Sequence[str], *, directory: str, environment: Mapping[str, str]) -> int:
    """Run a program on a new terminal, pass on what is typed and said, and give its exit code."""
    program, terminal = pty.fork()
    if program == 0:
        _become(arguments, directory=directory, environment=environment)
    ended = False
    try:
        with _typed_through(terminal):
            _pass_on(terminal)
        code = os.waitstatus_to_exitcode(os.waitpid(program, 0)[1])
        ended = True
        return code
    finally:
        os.close(terminal)
        if not ended:
            os.kill(program, signal.SIGKILL)
            os.waitpid(program, 0)


def _become(arguments: Sequence[str], *, directory: str, environment: Mapping[str, str]) -> NoReturn:
    try:
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        os.chdir(directory)
        os.execve(arguments[0], list(arguments), dict(environment))  # noqa: S606 - a list of words
    finally:
        os._exit(127)


def _pass_on(terminal: int) -> None:
    """Pass bytes on both ways until nobody has the terminal open any more, or nothing more can be typed."""
    ours, said = sys.stdin.fileno(), sys.stdout.fileno()
    sources = [ours, terminal]
    while True:
        ready = select.select(sources, (), ())[0]
        if terminal in ready:
            piece = b""
            with contextlib.suppress(OSError):  # how the end of a terminal is told
                piece = os.read(terminal, _READ_BYTES)
            if not piece:
                return
            _write(said, piece)
        if ours in ready:
            typed = os.read(ours, _READ_BYTES)
            if not typed:
                sources = [terminal]
                typed = b"\x04"
            _write(terminal, typed)


def _write(target: int, piece: bytes) -> None:
    left = memoryview(piece)
    while left:
        left = left[os.write(target, left) :]


@contextmanager
def _typed_through(terminal: int) -> Iterator[None]:
    """Have every key go through to a terminal, Ctrl-C too, and keep it as large as ours."""
    ours = sys.stdin.fileno()

    def resize(_number: int = 0, _frame: FrameType | None = None) -> None:
        with contextlib.suppress(OSError):
            fcntl.ioctl(terminal, termios.TIOCSWINSZ, fcntl.ioctl(ours, termios.TIOCGWINSZ, _NO_SIZE))

    resize()
    before, mode = signal.signal(signal.SIGWINCH, resize), termios.tcgetattr(ours)
    tty.setraw(ours)
    try:
        yield
    finally:
        termios.tcsetattr(ours, termios.TCSAFLUSH, mode)
        signal.signal(signal.SIGWINCH, before)
