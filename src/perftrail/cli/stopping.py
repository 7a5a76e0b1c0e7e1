"""A command that runs until it is stopped ends at SIGTERM as it does at Ctrl-C: cleanly, with what it has kept."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

SECONDS_TO_END = 2.0


class Stop:
    """Whether a stop was asked for: what a signal raises is lost where Python happens to be in a callback."""

    def __init__(self) -> None:
        self._asked = False

    def ask(self, _number: int, _frame: FrameType | None) -> None:
        """Handle a signal."""
        self._asked = True
        raise KeyboardInterrupt

    def heed(self) -> None:
        """Stop if it was asked for. Raises `KeyboardInterrupt`."""
        if self._asked:
            raise KeyboardInterrupt


@contextmanager
def stopped_like_ctrl_c() -> Iterator[Stop]:
    """Take SIGTERM for Ctrl-C while the block runs, which looks between its steps whether it is to stop."""
    stop = Stop()
    before = {number: signal.signal(number, stop.ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def stopped_soon() -> Iterator[None]:
    """Let the block end by itself when a stop is asked for, in two seconds at most; a second one breaks it off."""
    asked = False

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            _interrupt(number, frame)
        asked = True
        signal.setitimer(signal.ITIMER_REAL, SECONDS_TO_END)

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    before[signal.SIGALRM] = signal.signal(signal.SIGALRM, _interrupt)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        for number, handler in before.items():
            signal.signal(number, handler)
    if asked:
        raise KeyboardInterrupt


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
