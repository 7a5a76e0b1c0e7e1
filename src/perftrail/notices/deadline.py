"""A time by which a receiver has taken a message: one that answers a byte at a time holds nobody up."""

from __future__ import annotations

from threading import Thread
from typing import TYPE_CHECKING

from perftrail.errors import NoticeFailed

if TYPE_CHECKING:
    from collections.abc import Callable


def within(seconds: float, send: Callable[[], None]) -> None:
    """Send in so many seconds at most. Raises what sending raises, and `NoticeFailed` when it takes longer.

    A connection's own timeout counts from each byte to the next. One that is given up is left to a thread that ends
    with the process, so its message may arrive yet.
    """
    ended: list[Exception | None] = []

    def work() -> None:
        try:
            send()
        except Exception as error:
            ended.append(error)
        else:
            ended.append(None)

    thread = Thread(target=work, name="perftrail-notice", daemon=True)
    thread.start()
    thread.join(seconds)
    if not ended:
        raise NoticeFailed(f"did not take it within {seconds:g} s")
    if ended[0] is not None:
        raise ended[0]
