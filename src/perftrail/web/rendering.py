"""Pages from templates, with all values escaped, and the static files."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response

from perftrail._version import __version__
from perftrail.model.wording import counted, escaped, quantity
from perftrail.present.html_page import bundle, bundle_name, linked, template_text, tied
from perftrail.present.shared_sentences import effect_words, ratio_words
from perftrail.web.guard import COOKIE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

    from perftrail.charts.frame import HistoryPoint
    from perftrail.model.subject import Revision
    from perftrail.web.access import LoginSessions, Visitor


KINDS = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml", "txt": "text/plain"}
VEGA = "vega.js"
TABLES = "tables.js"
"""The script of tables and commands, the same as that of the report's page."""

KEPT = "public, max-age=31536000, immutable"
"""Cache header for files whose address changes with their content."""


def address(name: str) -> str:
    """Return a file's address. It changes with the content, so no browser uses an old file."""
    return f"/static/{name}?{_stamp(name)}"


async def static(request: Request) -> Response:
    """Return a static file."""
    name = request.path_params["name"]
    if name not in (*_names(), VEGA, TABLES):
        raise HTTPException(404, "no such file")
    packed = await asyncio.to_thread(_packed, name)
    headers = {
        "Cache-Control": KEPT if request.url.query == _stamp(name) else "no-cache",
        "Vary": "Accept-Encoding",
    }
    kind = KINDS[name.rpartition(".")[2]]
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(gzip.decompress(packed), media_type=kind, headers=headers)
    return Response(packed, media_type=kind, headers={**headers, "Content-Encoding": "gzip"})


@cache
def _names() -> frozenset[str]:
    return frozenset(each.name for each in (files("perftrail.web") / "static").iterdir())


@cache
def _packed(name: str) -> bytes:
    if name in (VEGA, TABLES):
        plain = (bundle() if name == VEGA else template_text(TABLES)).encode()
    else:
        plain = (files("perftrail.web") / "static" / name).read_bytes()
    return gzip.compress(plain, mtime=0)


@cache
def _stamp(name: str) -> str:
    result = bundle_name().encode() if name == VEGA else _packed(name)
    return hashlib.sha256(result).hexdigest()[:12]


SESSION_DAYS = 1

SHOWN_ROWS = 10
"""Rows of a long table on the overview, if another page has all rows."""

OPEN_ROWS = 30
"""Tables with more rows are folded if no other page has them."""


@dataclass(frozen=True, slots=True)
class Pages:
    """Renders pages from templates."""

    environment: Environment
    login_sessions: LoginSessions

    def text(self, template: str, context: Mapping[str, object]) -> str:
        """Render a part of a page."""
        return self.environment.get_template(template).render(context)

    def page(self, request: Request, template: str, *, status: int = 200, **context: object) -> Response:
        """Render a page for a visitor, with the token of its forms."""
        visitor: Visitor = request.state.visitor
        session_id = visitor.session_id or self.login_sessions.begin(None)
        whole = {
            "visitor": visitor,
            "form_token": self.login_sessions.form_token(session_id),
            **context,
        }
        response = HTMLResponse(self.text(template, whole), status)
        if not visitor.session_id:
            set_session_cookie(request, response, session_id)
        return response


def set_session_cookie(request: Request, response: Response, session_id: str) -> None:
    """Set the cookie of a session. No script can read it, and browsers do not send it with another site's form."""
    response.set_cookie(
        COOKIE,
        session_id,
        max_age=SESSION_DAYS * 86_400,
        httponly=True,
        samesite="lax",  # with strict, a link in a message would lead to the login page and end the session
        secure=request.headers.get("x-forwarded-proto", request.url.scheme) == "https",
    )


def environment(*, with_login: bool) -> Environment:
    """Return the template environment; with `with_login`, pages offer a login."""
    made = Environment(
        loader=PackageLoader("perftrail.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["tied"] = tied
    made.filters["linked"] = lambda text: linked(text, {})
    made.filters["part"] = lambda text: quote(str(text), safe="")
    made.filters["shown"] = lambda text: escaped(str(text), longest=300)
    made.filters["counted"] = counted
    made.filters["moment"] = _moment
    made.filters["label_and_message"] = _label_and_message
    made.globals.update(
        version=__version__,
        at_once=SHOWN_ROWS,
        unfolded=OPEN_ROWS,
        query=_query,
        with_login=with_login,
        asset=address,
        effect=lambda point: effect_words(point.effect, point.low, point.high),
        value_words=_value_words,
        times=lambda found: ratio_words(found.effect, found.low, found.high),
    )
    return made


def _moment(text: str) -> str:
    """Format a time in UTC; return a text that is not a time unchanged.

    >>> _moment("2021-11-24T03:36:05.606127+02:00"), _moment("long ago")
    ('2021-11-24 01:36:05', 'long ago')
    """
    try:
        at = datetime.fromisoformat(text)
        return (at.astimezone(UTC) if at.tzinfo else at).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError):
        return escaped(text, longest=40)


def _label_and_message(revision: Revision) -> str:
    """Return a revision's label and message, without those that repeat its id."""
    label = "" if revision.label in (revision.id, revision.short) else revision.label
    message = "" if revision.id in revision.summary else revision.summary
    return escaped(f"{label} {message}".strip(), longest=300)


def _value_words(point: HistoryPoint, unit: str) -> str:
    return quantity(point.value, unit, low=point.low, high=point.high)


def _query(**values: object) -> str:
    """Return the query part of an address."""
    return f"?{urlencode({name: value for name, value in values.items() if value not in (None, '')})}"
