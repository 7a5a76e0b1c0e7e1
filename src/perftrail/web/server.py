"""Starts the server: on this machine's loopback unless somebody keeps the door, and with limits on everything.

The server's end of a connection, which gives up on who does not finish asking, or does not take the answer.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import sys
from typing import TYPE_CHECKING

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from perftrail.errors import UsageError

if TYPE_CHECKING:
    from asyncio import TimerHandle

    from perftrail.web.access import Access
    from perftrail.web.guard import Guard


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


MOST_CONNECTIONS = 200
HEAD_BYTES = 16_384
IDLE_SECONDS = 15
LAST_SECONDS = 3
"""So long those who are being answered are waited for at the end."""

SWITCH_SECONDS = 0.0005
"""So long a page waits for the interpreter beside what else computes, each of the dozens of times that it needs it."""


def is_loopback(host: str) -> bool:
    """Whether only this machine's own users reach a host.

    >>> is_loopback("localhost"), is_loopback("127.0.0.2"), is_loopback("0.0.0.0"), is_loopback("example.org")
    (True, True, False, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def own_names(host: str) -> frozenset[str]:
    """Give the names that this server may be called by when it listens at a host, beside its numbers."""
    names = {"localhost", host.lower()}
    if not is_loopback(host):
        names |= {socket.gethostname().lower(), socket.getfqdn().lower()}
    return frozenset(names)


def bind(host: str, port: int, access: Access) -> socket.socket:
    """Take a port. Raises `UsageError` where it cannot be had, and where anybody could come in."""
    if access.open and not is_loopback(host):
        raise UsageError(
            f"--host {host}: others than this machine's users could come in; keep the door with --token-file, "
            "PERFTRAIL_TOKEN or --trust-header, or leave --host out"
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        bound = socket.create_server((host, port), family=family, backlog=128)
    except (OSError, OverflowError) as error:
        raise UsageError(f"--host {host} --port {port}: {error}; name another, --port 0 takes any") from error
    # or the end of each answer waits 40 ms for the other side to say that it has the beginning
    bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return bound


def make_server(app: Guard, *, protocol: type[Impatient] = Impatient) -> uvicorn.Server:
    """Make what answers; it is given the port that it listens at when it is run.

    From then on the process's threads take turns more often than Python has it by itself.
    """
    sys.setswitchinterval(SWITCH_SECONDS)
    config = uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=MOST_CONNECTIONS,
        h11_max_incomplete_event_size=HEAD_BYTES,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=LAST_SECONDS,
    )
    return uvicorn.Server(config)
