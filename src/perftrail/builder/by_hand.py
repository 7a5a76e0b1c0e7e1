"""Lets somebody go through a recipe by hand: a shell on our own terminal, or on commands from a pipe."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import stat
import subprocess
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Literal

from perftrail.builder.guarded import run_guarded
from perftrail.builder.own_terminal import run_on_own_terminal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import FrameType

    from perftrail.model.build import Workplace

Input = Literal["terminal", "commands", "nothing"]
"""What our standard input is: somebody, a file or pipe of commands, or something no command can come from."""

PROMPT = "perftrail$ "
LAST_SECONDS = 1.0
"""How long a shell that has to end may take over it."""

_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of prctl(2)."""


def standard_input() -> Input:
    """Say what commands could come from."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError, AttributeError):
        return "nothing"
    if sys.stdin.isatty():
        return "terminal"
    is_stream = stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)
    return "commands" if is_stream else "nothing"


def go_through(
    place: Workplace, *, given: Literal["terminal", "commands"], prefix: Sequence[str] = ()
) -> int:
    """Run a shell where the steps run, in their environment, and give its exit code.

    It reads none of the user's own start-up files, keeps no history and dies with us. The words of `prefix`
    start it in a sandbox; there it has a terminal of its own. Raises `KeyboardInterrupt` when we are told to end.
    """
    environment = dict(place.environment)
    arguments = ["/bin/sh"]
    if given == "terminal":
        bash = shutil.which("bash", path=environment.get("PATH"))
        arguments = [bash, "--noprofile", "--norc", "-i"] if bash else ["/bin/sh", "-i"]
        environment |= {"TERM": os.environ.get("TERM", "dumb"), "PS1": PROMPT, "HISTFILE": ""}
    words = [*prefix, *arguments]
    with _leaving_interrupts_to_the_shell(given):
        if given == "commands":
            return run_guarded(words, directory=place.directory, environment=environment)
        if prefix:
            return run_on_own_terminal(words, directory=place.directory, environment=environment)
        return _run_on_our_terminal(words, directory=place.directory, environment=environment)


def _run_on_our_terminal(words: Sequence[str], *, directory: str, environment: Mapping[str, str]) -> int:
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
        shell.wait(LAST_SECONDS)
    shell.kill()
    shell.wait()


@contextmanager
def _leaving_interrupts_to_the_shell(given: Literal["terminal", "commands"]) -> Iterator[None]:
    """Ctrl-C is for what runs in a shell on a terminal; a closed terminal or a request to end is for us."""

    def ignore(_number: int, _frame: FrameType | None) -> None:
        # A handler and not SIG_IGN, which the shell would inherit.
        return

    def end(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    interrupted = ignore if given == "terminal" else end
    wanted = {signal.SIGINT: interrupted, signal.SIGHUP: end, signal.SIGTERM: end}
    before = {number: signal.signal(number, handler) for number, handler in wanted.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGHUP, 0, 0, 0)
