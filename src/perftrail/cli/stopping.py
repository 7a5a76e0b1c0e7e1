"""A command that runs until it is stopped ends at SIGTERM as it does at Ctrl-C: cleanly, with what it has kept."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType


@contextmanager
def stopped_like_ctrl_c() -> Iterator[None]:
    """Take SIGTERM for Ctrl-C while the block runs."""
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
