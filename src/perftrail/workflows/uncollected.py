"""Making very many values at once without looking for cycles among them, which takes a third of the time."""

from __future__ import annotations

import gc
import time
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

COSTLY_SECONDS = 1.0
"""Looking through what was made in less CPU time than this holds nobody up."""

ALL_EVERY = 100
"""After so many costly makings everything is looked through once, for what each leaves of cycles is lost till then."""

_NEVER = 1_000_000_000
_costly = count(1)


@contextmanager
def uncollected() -> Iterator[None]:
    """Keep the garbage collector from running meanwhile; what has no cycle is freed all the same."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


@contextmanager
def kept_out() -> Iterator[None]:
    """Make values that stay for long, in a process whose other threads must not be held up by the collector.

    Meanwhile it looks at what is young alone, and later never at what was made here: walking over the values of ten
    million samples takes more than a second, in which no other thread runs. They are freed as soon as nobody
    has them. Only one thread may be in here at a time.
    """
    young, middle, old = gc.get_threshold()
    gc.set_threshold(young, middle, _NEVER)
    began = time.thread_time()
    try:
        yield
    finally:
        if time.thread_time() - began > COSTLY_SECONDS:
            if next(_costly) % ALL_EVERY == 0:
                gc.unfreeze()
                gc.collect()
            gc.collect(1)
            gc.freeze()
        gc.set_threshold(young, middle, old)


def crumble(pieces: list[list[object]], *, at_once: int = 500) -> None:
    """Free what only some lists have, so many at a time: all at once, no other thread would run until it is done."""
    for piece in pieces:
        while piece:
            del piece[-at_once:]
