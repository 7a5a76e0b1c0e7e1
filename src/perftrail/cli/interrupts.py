"""Handle Ctrl-C at any time without a traceback.

This module imports almost nothing: a signal during the imports of the program ends it at once.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import time
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from types import FrameType

INTERRUPTED = 130

MESSAGE = "interrupted; all samples are stored, and the same command resumes"

GRACE_SECONDS = 2.0
"""Seconds after the first signal in which further ones are ignored, so that the command removes its files and links."""


AGAIN_SECONDS = 0.01
"""Seconds after which a lost interrupt is delivered again: not at once, as this would be in the same callback."""


class Interrupts:
    """Signals of Ctrl-C: the first one stops the command, and one that follows much later ends the process."""

    def __init__(self) -> None:
        self._stops_command = False
        self._since: float | None = None
        self._code = INTERRUPTED
        self._reporting = False

    def install(self) -> None:
        """Handle Ctrl-C from now on, unless the caller ignores it, as a shell does for commands in the background."""
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, self.handle)
            # Registered first, so it runs last: then Python restores the signal's default, which kills the process.
            atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
        # Also in the background: SIGTERM, which commands treat as Ctrl-C, can be lost too.
        signal.signal(signal.SIGALRM, self._deliver_again)
        sys.unraisablehook = self._report_unraisable

    def begin(self) -> None:
        """Stop the command at a signal, instead of ending the process."""
        self._stops_command = True

    def end(self, code: int) -> None:
        """Ignore signals while the process exits with a code; it ends if it does not exit soon."""
        self._since, self._code = time.monotonic(), code

    def handle(self, _number: int, _frame: FrameType | None) -> None:
        """Handle a signal. Raises `KeyboardInterrupt` at the first one in a command."""
        if not self._stops_command:
            self._leave(MESSAGE)
        if self._since is None:
            self._since = time.monotonic()
            raise KeyboardInterrupt
        if time.monotonic() - self._since >= GRACE_SECONDS:
            self._leave("" if self._code != INTERRUPTED else MESSAGE)

    def _leave(self, message: str) -> NoReturn:
        if message:
            os.write(2, f"{message}\n".encode())
        os._exit(self._code)

    def _report_unraisable(self, unraisable: sys.UnraisableHookArgs) -> None:
        """Deliver an interrupt again that Python lost in a callback; report anything else as usual."""
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            self._reporting = True
            self._since = None
            signal.setitimer(signal.ITIMER_REAL, AGAIN_SECONDS)
            self._reporting = False
        else:
            sys.__unraisablehook__(unraisable)

    def _deliver_again(self, number: int, frame: FrameType | None) -> None:
        """Handle a lost interrupt. While the hook still runs, as on a busy machine, it would be lost again: wait."""
        if self._reporting:
            signal.setitimer(signal.ITIMER_REAL, AGAIN_SECONDS)
        else:
            self.handle(number, frame)
