"""The way in and out, and what is said where there is no page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, RedirectResponse

from perftrail.errors import PerftrailError
from perftrail.web.asked import NotYetError, visitor, web
from perftrail.web.pages.regressions import form_of
from perftrail.web.rendering import keep_visit

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


async def login(request: Request) -> Response:
    """Ask for a token."""
    if web(request).access.tokens is None:
        raise HTTPException(404, "nobody is asked for a token here")
    return _asking(request, "", request.query_params.get("next", "/"))


async def enter(request: Request) -> Response:
    """Take a token, which comes in the body and stands in no address; give a visit for it."""
    shared, who = web(request), visitor(request)
    if shared.access.tokens is None:
        raise HTTPException(404, "nobody is asked for a token here")
    client = request.client.host if request.client else ""
    if not shared.logins.allows(client):
        return _asking(request, "Too many attempts; wait a minute.", "/", status=429)
    form = await form_of(request)
    onward = form.get("next", "/")
    if not shared.visits.is_form_token(who.visit, form.get("form_token", "")):
        return _asking(request, "This form was too old; try again.", onward, status=403)
    role = shared.access.tokens.role(form.get("token", "").strip())
    if role is None:
        return _asking(request, "This token is not known.", onward, status=403)
    response = RedirectResponse(_own(onward), 303)
    shared.visits.end(who.visit)
    keep_visit(request, response, shared.visits.begin(role))
    return response


async def leave(request: Request) -> Response:
    """End a visit."""
    shared, who = web(request), visitor(request)
    form = await form_of(request)
    if not shared.visits.is_form_token(who.visit, form.get("form_token", "")):
        raise HTTPException(403, "this form is not of your visit")
    shared.visits.end(who.visit)
    response = RedirectResponse("/login", 303)
    keep_visit(request, response, shared.visits.begin(None))
    return response


def _asking(request: Request, wrong: str, onward: str, *, status: int = 200) -> Response:
    return web(request).pages.page(
        request, "login.html", status=status, wrong=wrong, onward=_own(onward), desk=None
    )


def _own(path: str) -> str:
    r"""Give a path of this server, whatever was asked for.

    >>> [_own(path) for path in ("/s/one", "//evil.example", "/\\evil.example", "https://evil.example", "/\n/x")]
    ['/s/one', '/', '/', '/', '/']
    """
    plain = path.isprintable() and path.isascii()
    return path if plain and path.startswith("/") and not path.startswith(("//", "/\\")) else "/"


async def refused(request: Request, error: Exception) -> Response:
    """Say what is wrong with a request."""
    assert isinstance(error, HTTPException)
    return _said(request, error.status_code, error.detail)


async def failed(request: Request, error: Exception) -> Response:
    """Say what perftrail itself could not do."""
    assert isinstance(error, PerftrailError)
    return _said(request, 503, str(error))


async def not_yet(request: Request, error: Exception) -> Response:
    """Say that a study is being read, and look again by itself; or why it cannot be."""
    assert isinstance(error, NotYetError)
    desk = error.desk
    if request.url.path.startswith("/api/"):
        text = desk.trouble or "the study is being read; ask again in a moment"
        return JSONResponse({"error": text}, 503, {"Retry-After": "1"})
    response = web(request).pages.page(
        request, "reading.html", desk=desk, status=503 if desk.trouble else 200
    )
    response.headers["Refresh"] = "1"
    return response


def _said(request: Request, status: int, text: str) -> Response:
    if request.url.path.startswith("/api/"):
        return JSONResponse({"error": text}, status)
    desk = web(request).desks.get(request.path_params.get("study", ""))
    return web(request).pages.page(request, "message.html", status=status, text=text, desk=desk)
