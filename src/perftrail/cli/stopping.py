"""A command that runs until it is stopped ends at SIGTERM as it does at Ctrl-C: cleanly, with what it has kept."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import FrameType

    Handler = Callable[[int, FrameType | None], None]

STOPS = (signal.SIGINT, signal.SIGTERM)

SECONDS_TO_END = 2.0
"""How long what has begun may go on once a stop was asked for."""


class Stop:
    """Whether a stop was asked for: what a signal raises is lost where Python happens to be in a callback."""

    def __init__(self) -> None:
        self._asked = False

    def heed(self) -> None:
        """Stop if it was asked for. Raises `KeyboardInterrupt`."""
        if self._asked:
            raise KeyboardInterrupt

    @contextmanager
    def soon(self) -> Iterator[None]:
        """Let the block come to its end before a stop, in a short time; a second one breaks it off."""
        with _handled({**dict.fromkeys(STOPS, self._ask_soon), signal.SIGALRM: self.ask}):
            try:
                yield
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0.0)
        self.heed()

    def ask(self, _number: int, _frame: FrameType | None) -> None:
        """Handle a signal: stop at once."""
        self._asked = True
        raise KeyboardInterrupt

    def _ask_soon(self, _number: int, _frame: FrameType | None) -> None:
        self.heed()
        self._asked = True
        signal.setitimer(signal.ITIMER_REAL, SECONDS_TO_END)


@contextmanager
def stopped_like_ctrl_c() -> Iterator[Stop]:
    """Take SIGTERM for Ctrl-C while the block runs, which looks between its steps whether it is to stop."""
    stop = Stop()
    with _handled(dict.fromkeys(STOPS, stop.ask)):
        yield stop


@contextmanager
def _handled(handlers: Mapping[signal.Signals, Handler]) -> Iterator[None]:
    """Handle signals so while the block runs."""
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
