"""A program started from here of which nothing is left when it ends, or when we do, however that happens."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_DEATH_SIGNAL, _SUBREAPER = 1, 36
"""PR_SET_PDEATHSIG and PR_SET_CHILD_SUBREAPER of prctl(2)."""

_HEARD = (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


def run_guarded(arguments: Sequence[str], *, directory: str, environment: Mapping[str, str]) -> int:
    """Run a program on our own streams, in a session of its own, and give its exit code, 128 and more for a signal.

    A guard, which is a process between it and us, ends all that descends from it when the program has ended,
    when we are gone, and before `KeyboardInterrupt` goes on. There must be one thread only.
    """
    us = os.getpid()
    guard = os.fork()
    if guard == 0:
        _guard(arguments, directory=directory, environment=environment, parent=us)
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
        signal.pthread_sigmask(signal.SIG_BLOCK, _HEARD)
        _control(_SUBREAPER, 1)
        _control(_DEATH_SIGNAL, signal.SIGTERM)
        if os.getppid() == parent:
            code = _watched(arguments, directory=directory, environment=environment)
    finally:
        _end_all()
        os._exit(code)


def _watched(arguments: Sequence[str], *, directory: str, environment: Mapping[str, str]) -> int:
    """Run the program until it ends or we are told to; give its exit code, 128 and more for a signal."""
    program = subprocess.Popen(
        arguments,
        cwd=directory,
        env=environment,
        start_new_session=True,  # a program in a sandbox must not type into the terminal that we may be on
        preexec_fn=_unblock,  # noqa: PLW1509 - a fork has one thread
    )
    while signal.sigwait(_HEARD) == signal.SIGCHLD:
        code = program.poll()
        if code is not None:
            return code if code >= 0 else 128 - code
        _reap(but=program.pid)
    return 128 + signal.SIGTERM


def _unblock() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HEARD)
    _control(_DEATH_SIGNAL, signal.SIGKILL)


def _end_all() -> None:
    """Kill everything below us until nothing is left: what is orphaned by that becomes our own child."""
    while True:
        for pid in _children():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _reap(*, but: int) -> None:
    """Take leave of orphans that have ended; the program's own end is left to whoever waits for it."""
    for pid in _children():
        if pid != but:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def _children() -> list[int]:
    own = os.getpid()
    return [int(word) for word in Path(f"/proc/{own}/task/{own}/children").read_text().split()]


def _control(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
