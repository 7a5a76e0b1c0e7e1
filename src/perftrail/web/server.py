"""Starts the server: on this machine's loopback unless somebody keeps the door, and with limits on everything."""

from __future__ import annotations

import ipaddress
import socket
import sys
from typing import TYPE_CHECKING

import uvicorn

from perftrail.errors import UsageError
from perftrail.web.impatient import Impatient

if TYPE_CHECKING:
    from perftrail.web.access import Access
    from perftrail.web.guard import Guard

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
