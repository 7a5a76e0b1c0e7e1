"""Run a recipe by hand: a shell on the user's terminal, or for commands from a pipe.

The shell runs on its own terminal, so that it cannot inject input into the user's. When it ends, or when perftrail
ends, none of its processes survives.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import pty
import select
import shutil
import signal
import stat
import subprocess
import sys
import termios
import tty
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import FrameType

    from perftrail.model.build import ManualBuild


_READ_BYTES = 65536
_NO_SIZE = bytes(8)


def run_on_own_terminal(arguments: Sequence[str], *, directory: str, environment: Mapping[str, str]) -> int:
    """Run a program on a new terminal, pass input and output on, and return its exit code."""
    program, terminal = pty.fork()
    if program == 0:
        _exec(arguments, directory=directory, environment=environment)
    ended = False
    try:
        with _raw_terminal(terminal):
            _relay(terminal)
        code = os.waitstatus_to_exitcode(os.waitpid(program, 0)[1])
        ended = True
        return code
    finally:
        os.close(terminal)
        if not ended:
            os.kill(program, signal.SIGKILL)
            os.waitpid(program, 0)


def _exec(arguments: Sequence[str], *, directory: str, environment: Mapping[str, str]) -> NoReturn:
    try:
        _prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
        os.chdir(directory)
        os.execve(arguments[0], list(arguments), dict(environment))  # noqa: S606 - a list of words
    finally:
        os._exit(127)


def _relay(terminal: int) -> None:
    """Pass bytes in both directions until the terminal is closed, or input ends."""
    stdin, stdout = sys.stdin.fileno(), sys.stdout.fileno()
    sources = [stdin, terminal]
    while True:
        ready = select.select(sources, (), ())[0]
        if terminal in ready:
            piece = b""
            with contextlib.suppress(OSError):  # the terminal was closed
                piece = os.read(terminal, _READ_BYTES)
            if not piece:
                return
            _write(stdout, piece)
        if stdin in ready:
            typed = os.read(stdin, _READ_BYTES)
            if not typed:
                sources = [terminal]
                typed = b"\x04"
            _write(terminal, typed)


def _write(target: int, piece: bytes) -> None:
    left = memoryview(piece)
    while left:
        left = left[os.write(target, left) :]


@contextmanager
def _raw_terminal(terminal: int) -> Iterator[None]:
    """Pass every key on to a terminal, also Ctrl-C, and set its size to that of the user's terminal."""
    stdin = sys.stdin.fileno()

    def resize(_number: int = 0, _frame: FrameType | None = None) -> None:
        with contextlib.suppress(OSError):
            fcntl.ioctl(terminal, termios.TIOCSWINSZ, fcntl.ioctl(stdin, termios.TIOCGWINSZ, _NO_SIZE))

    resize()
    before, mode = signal.signal(signal.SIGWINCH, resize), termios.tcgetattr(stdin)
    tty.setraw(stdin)
    try:
        yield
    finally:
        termios.tcsetattr(stdin, termios.TCSAFLUSH, mode)
        signal.signal(signal.SIGWINCH, before)


_SET_DEATH_SIGNAL, _SUBREAPER = 1, 36
"""PR_SET_PDEATHSIG and PR_SET_CHILD_SUBREAPER of prctl(2)."""

_SIGNALS = (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


def run_guarded(arguments: Sequence[str], *, directory: str, environment: Mapping[str, str]) -> int:
    """Run a program on perftrail's own streams, in its own session; return its exit code, 128 and more for a signal.

    A guard process between perftrail and the program kills all descendants when the program or perftrail ends, and
    before `KeyboardInterrupt` propagates. Only one thread may exist.
    """
    parent = os.getpid()
    guard = os.fork()
    if guard == 0:
        _guard(arguments, directory=directory, environment=environment, parent=parent)
    try:
        return os.waitstatus_to_exitcode(os.waitpid(guard, 0)[1])
    except BaseException:
        os.kill(guard, signal.SIGTERM)
        os.waitpid(guard, 0)
        raise


def _guard(
    arguments: Sequence[str], *, directory: str, environment: Mapping[str, str], parent: int
) -> NoReturn:
    code = 1
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        _prctl(_SUBREAPER, 1)
        _prctl(_SET_DEATH_SIGNAL, signal.SIGTERM)
        if os.getppid() == parent:
            code = _run_until_end(arguments, directory=directory, environment=environment)
    finally:
        _kill_descendants()
        os._exit(code)


def _run_until_end(arguments: Sequence[str], *, directory: str, environment: Mapping[str, str]) -> int:
    """Run the program until it ends or a stop is requested; return its exit code, 128 and more for a signal."""
    program = subprocess.Popen(
        arguments,
        cwd=directory,
        env=environment,
        start_new_session=True,  # a program in a sandbox must not inject input into perftrail's terminal
        preexec_fn=_unblock,  # noqa: PLW1509 - a fork has one thread
    )
    while signal.sigwait(_SIGNALS) == signal.SIGCHLD:
        code = program.poll()
        if code is not None:
            return code if code >= 0 else 128 - code
        _reap(exclude=program.pid)
    return 128 + signal.SIGTERM


def _unblock() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    _prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)


def _kill_descendants() -> None:
    """Kill all descendants until none is left; orphans become children of this process."""
    while True:
        for pid in _children():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _reap(*, exclude: int) -> None:
    """Reap ended orphans; the caller waits for the program itself."""
    for pid in _children():
        if pid != exclude:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def _children() -> list[int]:
    own = os.getpid()
    return [int(word) for word in Path(f"/proc/{own}/task/{own}/children").read_text().split()]


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


Input = Literal["terminal", "commands", "nothing"]
"""Kind of standard input: a terminal, commands from a file or pipe, or nothing."""

PROMPT = "perftrail$ "
HANGUP_SECONDS = 1.0
"""Time for a shell to end after a hang-up signal."""


def standard_input() -> Input:
    """Return the kind of standard input."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError, AttributeError):
        return "nothing"
    if sys.stdin.isatty():
        return "terminal"
    is_stream = stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)
    return "commands" if is_stream else "nothing"


def run_shell(
    build: ManualBuild, *, input_kind: Literal["terminal", "commands"], prefix: Sequence[str] = ()
) -> int:
    """Run a shell in the directory and environment of the steps, and return its exit code.

    It reads no start-up files of the user, stores no history and ends with perftrail. The words of `prefix` start it
    in a sandbox, where it has its own terminal. Raises `KeyboardInterrupt` if a stop is requested.
    """
    environment = dict(build.environment)
    arguments = ["/bin/sh"]
    if input_kind == "terminal":
        bash = shutil.which("bash", path=environment.get("PATH"))
        arguments = [bash, "--noprofile", "--norc", "-i"] if bash else ["/bin/sh", "-i"]
        environment |= {"TERM": os.environ.get("TERM", "dumb"), "PS1": PROMPT, "HISTFILE": ""}
    words = [*prefix, *arguments]
    with _signal_handlers(input_kind):
        if input_kind == "commands":
            return run_guarded(words, directory=build.directory, environment=environment)
        if prefix:
            return run_on_own_terminal(words, directory=build.directory, environment=environment)
        return _run_on_user_terminal(words, directory=build.directory, environment=environment)


def _run_on_user_terminal(words: Sequence[str], *, directory: str, environment: Mapping[str, str]) -> int:
    shell = subprocess.Popen(
        words,
        cwd=directory,
        env=environment,
        preexec_fn=_die_with_parent,  # noqa: PLW1509 - there is one thread, and nothing else sets it
    )
    try:
        return shell.wait()
    finally:
        _end(shell)


def _end(shell: subprocess.Popen[bytes]) -> None:
    if shell.poll() is not None:
        return
    shell.send_signal(signal.SIGHUP)
    with suppress(subprocess.TimeoutExpired):
        shell.wait(HANGUP_SECONDS)
    shell.kill()
    shell.wait()


@contextmanager
def _signal_handlers(input_kind: Literal["terminal", "commands"]) -> Iterator[None]:
    """Leave Ctrl-C to a shell on a terminal; handle a closed terminal and requests to end here."""

    def ignore(_number: int, _frame: FrameType | None) -> None:
        # A handler and not SIG_IGN, which the shell would inherit.
        return

    def end(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    interrupted = ignore if input_kind == "terminal" else end
    wanted = {signal.SIGINT: interrupted, signal.SIGHUP: end, signal.SIGTERM: end}
    before = {number: signal.signal(number, handler) for number, handler in wanted.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _die_with_parent() -> None:
    _prctl(_SET_DEATH_SIGNAL, signal.SIGHUP)
