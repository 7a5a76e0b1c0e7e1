"""The server's end of a connection, which gives up on who does not finish asking: a few could hold all of it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    from asyncio import TimerHandle

ASKING_SECONDS = 10.0
"""A request is here, its body too, so long after its first byte, or after the connection was made."""


class Impatient(H11Protocol):
    """uvicorn's protocol with a time limit on each request as a whole, whatever dribbles in meanwhile."""

    seconds = ASKING_SECONDS
    _limit: TimerHandle | None = None

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
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Wait for the next request as uvicorn does, for what is left of this one no longer."""
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY:
            self._begin()

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
