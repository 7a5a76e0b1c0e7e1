"""How values become pages: one place where templates are read, and everything in them is escaped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse

from perftrail import __version__
from perftrail.model.quantity import decimals, quantity
from perftrail.report.page_html import tied
from perftrail.web.guard import COOKIE
from perftrail.workflows.reporting.words import effect_words, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from perftrail.analysis.compare import Comparison
    from perftrail.figures.thinning import Along
    from perftrail.web.access import Visitor, Visits

VISIT_DAYS = 1

SHOWN_ROWS = 10
"""So many rows of a long table stand on the overview; History has them all."""


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
    """Give a browser the cookie of its visit: no script reads it, no other site makes it be sent."""
    response.set_cookie(
        COOKIE,
        visit,
        max_age=VISIT_DAYS * 86_400,
        httponly=True,
        samesite="strict",
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
    made.globals.update(
        version=__version__,
        at_once=SHOWN_ROWS,
        query=_query,
        asks=asks,
        effect=lambda point: effect_words(point.effect, point.low, point.high),
        figure_words=_figure_words,
        times=_times,
    )
    return made


def _figure_words(point: Along, unit: str) -> str:
    return quantity(point.value, unit, low=point.low, high=point.high)


def _times(found: Comparison) -> tuple[str, str]:
    """Write a ratio and its interval with as many digits as that supports."""
    digits = decimals(found.effect, found.low, found.high)
    return f"× {found.effect:.{digits}f}", f"{found.low:.{digits}f} to {found.high:.{digits}f}"


def _query(**values: object) -> str:
    """Write the end of an address that says what is asked for."""
    return f"?{urlencode({name: value for name, value in values.items() if value not in (None, '')})}"
