"""The server's end of a connection, which gives up on who does not finish asking, or does not take the answer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    from asyncio import TimerHandle

ASKING_SECONDS = 10.0
"""A request is here, its body too, so long after its first byte, or after the connection was made."""

TAKING_SECONDS = 30.0
"""Who takes longer than this to take a piece of an answer has gone, or means no good."""


class Impatient(H11Protocol):
    """uvicorn's protocol with a time limit on each request as a whole, whatever dribbles in meanwhile.

    And with one on each piece of an answer: a connection that is closed while its other side takes nothing stays,
    and counts, for as long as that side likes.
    """

    seconds = ASKING_SECONDS
    taking_seconds = TAKING_SECONDS
    _limit: TimerHandle | None = None
    _untaken: TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._begin()

    def data_received(self, data: bytes) -> None:
        """Take what came; stop waiting once a request is whole."""
        super().data_received(data)
        if self.conn.their_state in {h11.IDLE, h11.SEND_BODY}:
            self._begin()
        else:
            self._end()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._end()
        self._taken()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Wait for the next request as uvicorn does, for what is left of this one no longer."""
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY:
            self._begin()
        if self.transport.get_write_buffer_size():
            self._wait_for_taking()

    def pause_writing(self) -> None:
        """Begin to wait for the other side to take what was sent."""
        super().pause_writing()
        self._wait_for_taking()

    def resume_writing(self) -> None:
        """Stop waiting: it took nearly all."""
        super().resume_writing()
        self._taken()

    def _wait_for_taking(self) -> None:
        if self._untaken is None:
            self._untaken = self.loop.call_later(self.taking_seconds, self._give_up_sending)

    def _taken(self) -> None:
        if self._untaken is not None:
            self._untaken.cancel()
            self._untaken = None

    def _give_up_sending(self) -> None:
        self._untaken = None
        if self.transport.get_write_buffer_size():
            self.transport.abort()

    def _begin(self) -> None:
        if self._limit is None:
            self._limit = self.loop.call_later(self.seconds, self._give_up)

    def _end(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None

    def _give_up(self) -> None:
        self._limit = None
        if not self.transport.is_closing():
            self.transport.abort()
