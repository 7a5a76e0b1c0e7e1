"""Check every request before the pages: its author, its origin and its rate. Set security headers for browsers.

The rate limit is a bucket for each author, which refills over time.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse

from perftrail.web.access import LoginSessions, Visitor

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from perftrail.web.access import Access, Role


MOST_KNOWN = 10_000

MOST_EACH = 50
"""Maximum number of connections and unfinished requests of one address, so that others can still connect."""


@dataclass(slots=True)
class RateLimit:
    """A rate limit: requests at once, and requests per second after that."""

    burst: float
    each_second: float
    _buckets: dict[str, tuple[float, float]] = field(default_factory=dict)

    def allows(self, who: str) -> bool:
        """Count a request of an author, and return whether it is within the limit."""
        at = time.monotonic()
        left, before = self._buckets.get(who, (self.burst, at))
        left = min(self.burst, left + (at - before) * self.each_second)
        allowed = left >= 1.0
        if len(self._buckets) >= MOST_KNOWN and who not in self._buckets:
            self._forget(at)
        self._buckets[who] = (left - 1.0 if allowed else left, at)
        return allowed

    def _forget(self, at: float) -> None:
        """Forget authors whose bucket is full again; all of them if that is not enough."""
        full = self.burst / self.each_second
        self._buckets = {who: each for who, each in self._buckets.items() if at - each[1] < full}
        if len(self._buckets) >= MOST_KNOWN:
            self._buckets.clear()


COOKIE = "perftrail"

OPEN = ("/login", "/static/")
"""Addresses without access control: the login and static files."""

SAFE = frozenset({"GET", "HEAD"})

BODY_BYTES = 20_000
BODY_SECONDS = 10.0
LONGEST_NUMBER = 12
"""Maximum digits of a number in a request; Python refuses numbers with thousands of digits."""

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # without a referrer, a form has no origin, even for its own site
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


@dataclass(slots=True)
class Guard:
    """Middleware that passes on permitted requests. Every answer, also a refusal, has security headers for browsers.

    `running` counts the unfinished requests of each client, `connections` the connections of each peer that is not a
    proxy.
    """

    app: ASGIApp
    access: Access
    login_sessions: LoginSessions
    rate_limit: RateLimit = field(default_factory=lambda: RateLimit(burst=300.0, each_second=30.0))
    running: Counter[str] = field(default_factory=Counter)
    connections: Counter[str] = field(default_factory=Counter)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on to the pages."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        client = client_address(scope, self.access)
        self.running[client] += 1
        try:
            await self._answer(scope, receive, _with_headers(send), crowded=self.running[client] > MOST_EACH)
        finally:
            self.running[client] -= 1
            if not self.running[client]:
                del self.running[client]

    async def _answer(
        self, scope: Scope, receive: Receive, send_with_headers: Send, *, crowded: bool
    ) -> None:
        headers = Headers(scope=scope)
        if crowded:
            text = f"{MOST_EACH} requests of your address are unfinished; wait for one of them"
            await PlainTextResponse(text, 429, {"Retry-After": "5"})(scope, receive, send_with_headers)
            return
        visitor = self._visitor(scope, headers)
        refusal = self._refusal(scope, headers, visitor)
        if refusal is not None:
            await refusal(scope, receive, send_with_headers)
            return
        scope.setdefault("state", {})["visitor"] = visitor
        body = await _body(receive, headers) if scope["method"] not in SAFE else b""
        if body is None:
            await PlainTextResponse("too large, or too slow", 413)(scope, receive, send_with_headers)
            return
        await self.app(scope, _replaying(body, receive), send_with_headers)

    def _refusal(self, scope: Scope, headers: Headers, visitor: Visitor) -> Response | None:
        """Return the refusal of a request with its reason; `None` permits it."""
        if not _known_host(headers.get("host", ""), self.access):
            return PlainTextResponse(
                "this is not a name of this server; allow it with --allow-host NAME", 421
            )
        if "\0" in scope["path"] or b"%00" in scope["query_string"]:  # PostgreSQL rejects this character
            return _invalid(scope, "the address contains a null character")
        if not self.rate_limit.allows(self._rate_limit_key(scope, visitor)):
            return PlainTextResponse("too many requests; slow down", 429, {"Retry-After": "5"})
        if scope["method"] not in SAFE and _cross_site(headers):
            return PlainTextResponse("another site sent this request", 403)
        if visitor.role is None and not str(scope["path"]).startswith(OPEN):
            return self._unauthorized(scope)
        return None

    def _rate_limit_key(self, scope: Scope, visitor: Visitor) -> str:
        """Return the author for the rate limit: the user, the session, or the client's address."""
        known = visitor.session_id if visitor.role is not None and not self.access.open else ""
        return visitor.name or known or client_address(scope, self.access)

    def _unauthorized(self, scope: Scope) -> Response:
        if str(scope["path"]).startswith("/api/"):
            error = "this request needs a token in its header: Authorization: Bearer TOKEN"
            return JSONResponse({"error": error}, 401, {"WWW-Authenticate": "Bearer"})
        if self.access.tokens is None:
            return PlainTextResponse("the proxy sent no user name in the header of --trust-header", 401)
        if scope["method"] not in SAFE:  # the target of a form is not a page
            return RedirectResponse("/login", 303)
        whole = f"{scope['raw_path'].decode('ascii')}?{scope['query_string'].decode('ascii')}".rstrip("?")
        return RedirectResponse(f"/login?next={quote(whole, safe='/')}", 303)

    def _visitor(self, scope: Scope, headers: Headers) -> Visitor:
        session_id = _cookie(headers)
        if self.access.open:
            return Visitor(role="write", session_id=session_id)
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if self.access.tokens is not None and scheme.lower() == "bearer":
            return Visitor(role=self.access.tokens.role(token.strip()), program=True)
        users = headers.getlist(self.access.header) if self.access.header else []
        # if there are two headers, the proxy did not remove the client's
        user = users[0].strip() if len(users) == 1 else ""
        if user and _address(scope) in self.access.proxies:
            role: Role = "write" if user in self.access.writers else "read"
            return Visitor(role=role, name=user, session_id=session_id)
        return Visitor(role=self.login_sessions.role(session_id), session_id=session_id)


def _invalid(scope: Scope, reason: str) -> Response:
    """Return the refusal of an invalid address: JSON for the API, else plain text."""
    if str(scope["path"]).startswith("/api/"):
        return JSONResponse({"error": reason}, 400)
    return PlainTextResponse(reason, 400)


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else ""


def client_address(scope: Scope, access: Access) -> str:
    """Return the address of a client; behind a trusted proxy, the address that the proxy saw.

    A proxy appends this address to X-Forwarded-For, so only the last address in the last header counts.
    """
    peer = _address(scope)
    if peer not in access.proxies:
        return peer
    seen = Headers(scope=scope).getlist("x-forwarded-for")[-1:]
    last = seen[0].rpartition(",")[2].strip() if seen else ""
    try:
        return str(ipaddress.ip_address(last))
    except ValueError:
        return peer


_SESSION_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def _cookie(headers: Headers) -> str:
    """Return the name of the session; empty without a valid one. The standard library's parser takes quadratic time."""
    for part in headers.get("cookie", "").split(";"):
        name, _, value = part.strip().partition("=")
        if name == COOKIE:
            return value if _SESSION_ID.fullmatch(value) else ""
    return ""


def host_name(host: str) -> str:
    """Return the server's name in a Host header, without the port; empty if it is not valid.

    >>> host_name("Perf.example.org:8457"), host_name("[::1]:80"), host_name("[::1")
    ('perf.example.org', '::1', '')
    """
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _known_host(host: str, access: Access) -> bool:
    """Return whether a request names this server by an allowed name or an IP address: only names can be faked."""
    name = host_name(host)
    if name and name in access.hosts:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _cross_site(headers: Headers) -> bool:
    """Return whether a browser reports that another site's page sent the request."""
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return True
    origin = headers.get("origin")
    if origin is None:
        return False
    return origin not in {f"{scheme}://{headers.get('host', '')}" for scheme in ("https", "http")}


def _with_headers(send: Send) -> Send:
    """Return a sender that adds the headers."""

    async def with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            headers.setdefault("Cache-Control", "no-store")
            if "server" in headers:
                del headers["server"]
        await send(message)

    return with_headers


async def _body(receive: Receive, headers: Headers) -> bytes | None:
    """Return a request's body; `None` if it is too long or incomplete."""
    result = headers.get("content-length", "0")
    if not result.isdecimal() or len(result) > LONGEST_NUMBER or int(result) > BODY_BYTES:
        return None
    try:
        return await asyncio.wait_for(_whole(receive), BODY_SECONDS)
    except TimeoutError:
        return None


async def _whole(receive: Receive) -> bytes | None:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        if len(body) > BODY_BYTES:
            return None
        if not message.get("more_body", False):
            return bytes(body)


def _replaying(body: bytes, receive: Receive) -> Receive:
    """Return a receiver that first repeats messages, and then continues with new ones."""
    was_returned = False

    async def replaying() -> Message:
        nonlocal was_returned
        if was_returned:
            return await receive()
        was_returned = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replaying
