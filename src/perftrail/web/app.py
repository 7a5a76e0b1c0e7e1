"""The dashboard's application and its server.

The application connects pages, API and access control. The server uses this machine's loopback address unless access
is controlled, with limits on everything; `TimeLimitedProtocol` closes connections that are too slow.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import sys
from typing import TYPE_CHECKING

import h11
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from perftrail.errors import PerftrailError, UsageError
from perftrail.present.dashboard.live import LiveJson
from perftrail.web import api, pages, rendering
from perftrail.web.access import LoginSessions
from perftrail.web.guard import MOST_EACH, Guard
from perftrail.web.openapi import Operation, QueryParameter, document
from perftrail.web.rendering import Pages, environment
from perftrail.web.request_arguments import NotYetError, Web

if TYPE_CHECKING:
    from asyncio import TimerHandle
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from perftrail.web.access import Access
    from perftrail.web.studies import ServedStudy


def _first(answer: Callable[[Request], Awaitable[Response]]) -> str:
    """Return the first line of an operation's docstring."""
    return (answer.__doc__ or "").splitlines()[0]


STUDY_API = "/api/studies/{study}"

_HISTORY_PART = (
    QueryParameter(name="first", summary="The first position of the part; by default 0.", kind=int),
    QueryParameter(
        name="last", summary="The last position of the part; by default the end of the history.", kind=int
    ),
)
_SUBJECTS = (
    QueryParameter(
        name="a",
        summary="A revision: its id, the beginning of its id, its label, or its position as #12.",
        kind=str,
    ),
    QueryParameter(name="va", summary="A variant of a; by default that of b, else the first.", kind=str),
    QueryParameter(name="b", summary="The revision that is compared with it.", kind=str),
    QueryParameter(name="vb", summary="The variant of b; by default that of a.", kind=str),
)
_POINTS = QueryParameter(
    name="points", summary="Maximum number of points; neighbours are then combined.", kind=int
)

OPERATIONS = (
    Operation(
        path="/api/studies",
        summary=_first(api.studies),
        answer_type=list[api.StudyJson],
        answer=api.studies,
        errors=(400, 401, 429),
    ),
    Operation(
        path=STUDY_API, summary=_first(api.overview), answer_type=api.OverviewJson, answer=api.overview
    ),
    Operation(
        path=f"{STUDY_API}/metrics",
        summary=_first(api.metrics),
        answer_type=list[api.MetricJson],
        answer=api.metrics,
    ),
    Operation(
        path=f"{STUDY_API}/history/{{metric}}",
        summary=_first(api.history),
        answer_type=api.HistoryJson,
        answer=api.history,
        parameters=(*_HISTORY_PART, _POINTS),
    ),
    Operation(
        path=f"{STUDY_API}/revisions/{{revision:path}}",
        summary=_first(api.revision),
        answer_type=api.RevisionJson,
        answer=api.revision,
    ),
    Operation(
        path=f"{STUDY_API}/samples/{{key}}",
        summary=_first(api.samples),
        answer_type=list[api.InvocationsJson],
        answer=api.samples,
    ),
    Operation(
        path=f"{STUDY_API}/compare",
        summary=_first(api.compare),
        answer_type=api.ComparisonJson,
        answer=api.compare,
        parameters=_SUBJECTS,
    ),
    Operation(
        path=f"{STUDY_API}/regressions",
        summary=_first(api.regressions),
        answer_type=list[api.NotedRegressionJson],
        answer=api.regressions,
    ),
    Operation(
        path=f"{STUDY_API}/regressions/{{key}}/notes",
        summary=_first(api.add_note),
        answer_type=api.NoteJson,
        answer=api.add_note,
        method="POST",
        body_type=api.NewNoteJson,
        status=201,
        errors=(400, 401, 403, 404, 413, 415, 422, 429, 503),
    ),
    Operation(
        path=f"{STUDY_API}/searches",
        summary=_first(api.searches),
        answer_type=list[api.SearchJson],
        answer=api.searches,
    ),
    Operation(
        path=f"{STUDY_API}/searches/{{key}}",
        summary=_first(api.search),
        answer_type=api.SearchWithStepsJson,
        answer=api.search,
    ),
    Operation(path=f"{STUDY_API}/live", summary=_first(api.live), answer_type=LiveJson, answer=api.live),
)


async def described(_: Request) -> Response:
    """This document."""
    return JSONResponse(document((*OPERATIONS, DESCRIBED)))


DESCRIBED = Operation(
    path="/api/openapi.json",
    summary=_first(described),
    answer_type=dict[str, object],
    answer=described,
    errors=(400, 401, 429),
)

API = [Route(each.path, each.answer, methods=[each.method]) for each in (DESCRIBED, *OPERATIONS)]


STUDY_PAGE = "/s/{study}"

ROUTES = [
    Route("/", pages.studies),
    Route("/login", pages.login, methods=["GET"]),
    Route("/login", pages.log_in, methods=["POST"]),
    Route("/logout", pages.log_out, methods=["POST"]),
    Route("/static/{name}", rendering.static),
    Route(STUDY_PAGE, pages.study),
    Route(f"{STUDY_PAGE}/events", pages.events),
    Route(f"{STUDY_PAGE}/charts/{{name}}.json", pages.chart),
    Route(f"{STUDY_PAGE}/history", pages.history),
    Route(f"{STUDY_PAGE}/history/{{name}}.json", pages.history_chart),
    Route(f"{STUDY_PAGE}/searches", pages.searches),
    Route(f"{STUDY_PAGE}/searches/{{key}}.json", pages.search_chart),
    Route(f"{STUDY_PAGE}/compare", pages.compare),
    Route(f"{STUDY_PAGE}/compare.json", pages.compare_chart),
    Route(f"{STUDY_PAGE}/samples/{{key}}", pages.samples),
    Route(f"{STUDY_PAGE}/logs/{{key}}/{{machine}}/{{phase}}/{{ordinal}}", pages.log),
    Route(f"{STUDY_PAGE}/build-logs/{{key}}", pages.build_log),
    Route(f"{STUDY_PAGE}/flame-graphs/{{name}}", pages.explained_flame_graph),
    Route(f"{STUDY_PAGE}/regressions", pages.regressions),
    Route(f"{STUDY_PAGE}/regressions/{{key}}", pages.add_note, methods=["POST"]),
    Route(f"{STUDY_PAGE}/revisions/{{revision:path}}", pages.revision),
]


def make_app(served_studies: Mapping[str, ServedStudy], access: Access) -> Guard:
    """Return the application of the dashboard for some studies, by the names in their addresses."""
    login_sessions = LoginSessions()
    app = Starlette(
        routes=[*ROUTES, *API],
        exception_handlers={
            HTTPException: pages.refused,
            NotYetError: pages.not_yet,
            PerftrailError: pages.failed,
        },
    )
    writer = Pages(environment(with_login=access.tokens is not None), login_sessions)
    app.state.web = Web(
        served_studies=served_studies, pages=writer, access=access, login_sessions=login_sessions
    )
    return Guard(app, access=access, login_sessions=login_sessions)


REQUEST_SECONDS = 10.0
"""Time for a complete request with its body, after its first byte or after the connection."""

SENDING_SECONDS = 30.0
"""Time for a client to accept a piece of an answer; slower clients are gone or hostile."""


class TimeLimitedProtocol(H11Protocol):
    """uvicorn's protocol with a time limit for each whole request, however slowly it arrives.

    Each piece of an answer has a limit, too: otherwise a client that accepts nothing could keep a connection open
    forever.
    """

    seconds = REQUEST_SECONDS
    sending_seconds = SENDING_SECONDS
    _counted: tuple[Guard, str] | None = None
    _limit: TimerHandle | None = None
    _send_limit: TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        """Start waiting for the first request."""
        super().connection_made(transport)
        guard = self.config.app
        peer = self.client[0] if self.client else ""
        if isinstance(guard, Guard) and peer not in guard.access.proxies:
            self._counted = (guard, peer)
            guard.connections[peer] += 1
            if guard.connections[peer] > MOST_EACH:
                transport.abort()
                return
        self._begin()

    def data_received(self, data: bytes) -> None:
        """Accept data; stop waiting when a request is complete."""
        super().data_received(data)
        if self.conn.their_state in {h11.IDLE, h11.SEND_BODY}:
            self._begin()
        else:
            self._end()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        if self._counted is not None:
            (guard, peer), self._counted = self._counted, None
            guard.connections[peer] -= 1
            if not guard.connections[peer]:
                del guard.connections[peer]
        self._end()
        self._end_send_limit()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Wait for the next request as uvicorn does, and not for the rest of this one."""
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY:
            self._begin()
        if self.transport.get_write_buffer_size():
            self._limit_sending()

    def pause_writing(self) -> None:
        """Start waiting for the client to accept the answer."""
        super().pause_writing()
        self._limit_sending()

    def resume_writing(self) -> None:
        """Stop waiting: the client accepted nearly everything."""
        super().resume_writing()
        self._end_send_limit()

    def _limit_sending(self) -> None:
        if self._send_limit is None:
            self._send_limit = self.loop.call_later(self.sending_seconds, self._give_up_sending)

    def _end_send_limit(self) -> None:
        if self._send_limit is not None:
            self._send_limit.cancel()
            self._send_limit = None

    def _give_up_sending(self) -> None:
        self._send_limit = None
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
"""Time for unfinished answers when the server ends."""

SWITCH_SECONDS = 0.0005
"""Switch interval of threads. A page needs the interpreter dozens of times, and waits this long each time."""


def is_loopback(host: str) -> bool:
    """Return whether only users of this machine can reach a host.

    >>> is_loopback("localhost"), is_loopback("127.0.0.2"), is_loopback("0.0.0.0"), is_loopback("example.org")
    (True, True, False, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def own_names(host: str) -> frozenset[str]:
    """Return the valid names of this server at a host, in addition to its IP addresses."""
    names = {"localhost", host.lower()}
    if not is_loopback(host):
        names |= {socket.gethostname().lower(), socket.getfqdn().lower()}
    return frozenset(names)


def bind(host: str, port: int, access: Access) -> socket.socket:
    """Bind a port. Raises `UsageError` if it is not available, or if everybody would have access."""
    if access.open and not is_loopback(host):
        raise UsageError(
            f"--host {host}: users of other machines would have access; control it with --token-file, "
            "PERFTRAIL_TOKEN or --trust-header, or omit --host"
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        bound = socket.create_server((host, port), family=family, backlog=128)
    except (OSError, OverflowError) as error:
        raise UsageError(
            f"--host {host} --port {port}: {error}; choose another; --port 0 uses a free one"
        ) from error
    # otherwise the end of each answer waits 40 ms for an acknowledgement of its beginning
    bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return bound


def make_server(app: Guard, *, protocol: type[TimeLimitedProtocol] = TimeLimitedProtocol) -> uvicorn.Server:
    """Return the server; it gets its port when it runs.

    From then on, the process's threads switch more often than by Python's default.
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
