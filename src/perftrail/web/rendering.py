"""How values become pages: one place where templates are read, and everything in them is escaped."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse

from perftrail import __version__
from perftrail.model.quantity import counted, decimals, quantity
from perftrail.report.page_html import tied
from perftrail.web.assets import address
from perftrail.web.guard import COOKIE
from perftrail.workflows.reporting.words import effect_words, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from perftrail.charts.frame import Along
    from perftrail.model.subject import Revision
    from perftrail.stats.comparison import Comparison
    from perftrail.web.access import Visitor, Visits

VISIT_DAYS = 1

SHOWN_ROWS = 10
"""So many rows of a long table stand on the overview, where another page has them all."""

OPEN_ROWS = 30
"""A table of more rows, which no other page has, is folded."""


@dataclass(frozen=True, slots=True)
class Pages:
    """Writes pages from templates."""

    environment: Environment
    visits: Visits

    def text(self, template: str, context: Mapping[str, object]) -> str:
        """Write a part of a page."""
        return self.environment.get_template(template).render(context)

    def page(self, request: Request, template: str, *, status: int = 200, **context: object) -> Response:
        """Write a page for whoever asks, with what its forms must carry."""
        visitor: Visitor = request.state.visitor
        visit = visitor.visit or self.visits.begin(None)
        whole = {
            "visitor": visitor,
            "form_token": self.visits.form_token(visit),
            **context,
        }
        response = HTMLResponse(self.text(template, whole), status)
        if not visitor.visit:
            keep_visit(request, response, visit)
        return response


def keep_visit(request: Request, response: Response, visit: str) -> None:
    """Give a browser the cookie of its visit: no script reads it, no form of another site is sent with it."""
    response.set_cookie(
        COOKIE,
        visit,
        max_age=VISIT_DAYS * 86_400,
        httponly=True,
        samesite="lax",  # strict, a link in a message would lead to the door, and its answer end the visit
        secure=request.headers.get("x-forwarded-proto", request.url.scheme) == "https",
    )


def environment(*, asks: bool) -> Environment:
    """Make the environment of all templates; `asks` says whether there is a way in and out."""
    made = Environment(
        loader=PackageLoader("perftrail.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["tied"] = tied
    made.filters["part"] = lambda text: quote(str(text), safe="")
    made.filters["shown"] = lambda text: shown(str(text), longest=300)
    made.filters["counted"] = counted
    made.filters["moment"] = _moment
    made.filters["beside_id"] = _beside_id
    made.globals.update(
        version=__version__,
        at_once=SHOWN_ROWS,
        unfolded=OPEN_ROWS,
        query=_query,
        asks=asks,
        asset=address,
        effect=lambda point: effect_words(point.effect, point.low, point.high),
        figure_words=_figure_words,
        times=_times,
    )
    return made


def _moment(text: str) -> str:
    """Write when something was, in UTC; what says no time, which any text may be, as it is.

    >>> _moment("2021-11-24T03:36:05.606127+02:00"), _moment("long ago")
    ('2021-11-24 01:36:05', 'long ago')
    """
    try:
        at = datetime.fromisoformat(text)
        return (at.astimezone(UTC) if at.tzinfo else at).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError):
        return shown(text, longest=40)


def _beside_id(revision: Revision) -> str:
    """Say what a revision's id does not: its label and its message, where they are more than that."""
    label = "" if revision.label in (revision.id, revision.short) else revision.label
    message = "" if revision.id in revision.summary else revision.summary
    return shown(f"{label} {message}".strip(), longest=300)


def _figure_words(point: Along, unit: str) -> str:
    return quantity(point.value, unit, low=point.low, high=point.high)


def _times(found: Comparison) -> tuple[str, str]:
    """Write a ratio and its interval with as many digits as that supports."""
    digits = decimals(found.effect, found.low, found.high)
    return f"× {found.effect:.{digits}f}", f"{found.low:.{digits}f} to {found.high:.{digits}f}"


def _query(**values: object) -> str:
    """Write the end of an address that says what is asked for."""
    return f"?{urlencode({name: value for name, value in values.items() if value not in (None, '')})}"
