"""Connect the pages, the API and access control, with the API's own description."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.routing import Route

from perftrail.errors import PerftrailError
from perftrail.web import api, pages, rendering
from perftrail.web.access import Visits
from perftrail.web.asked import NotYetError, Web
from perftrail.web.guard import Guard
from perftrail.web.openapi import TEXT, WHOLE, Asked, Operation, document
from perftrail.web.rendering import Pages, environment

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from perftrail.web.access import Access
    from perftrail.web.studies import ServedStudy


def _first(answer: Callable[[Request], Awaitable[Response]]) -> str:
    """Return the first line of an operation's docstring."""
    return (answer.__doc__ or "").splitlines()[0]


STUDY_API = "/api/studies/{study}"

_PART = (
    Asked(name="first", says="The first position of the part; 0 unless given.", schema=WHOLE),
    Asked(name="last", says="The last position of the part; the history's end unless given.", schema=WHOLE),
)
_BOTH = (
    Asked(
        name="a", says="A revision: its id, the beginning of it, its label, or its place as #12.", schema=TEXT
    ),
    Asked(name="va", says="A variant of it; the other's, else the first, unless given.", schema=TEXT),
    Asked(name="b", says="The revision that is compared with it.", schema=TEXT),
    Asked(name="vb", says="A variant of that; likewise.", schema=TEXT),
)
_POINTS = Asked(name="points", says="So many points at most; neighbours then stand together.", schema=WHOLE)

OPERATIONS = (
    Operation(
        path="/api/studies",
        says=_first(api.studies),
        answers="Study",
        many=True,
        answer=api.studies,
        refuses=(401, 429),
    ),
    Operation(path=STUDY_API, says=_first(api.overview), answers="Overview", answer=api.overview),
    Operation(
        path=f"{STUDY_API}/figures", says=_first(api.figures), answers="Figure", many=True, answer=api.figures
    ),
    Operation(
        path=f"{STUDY_API}/history/{{figure}}",
        says=_first(api.history),
        answers="History",
        answer=api.history,
        asked=(*_PART, _POINTS),
        refuses=(400, 401, 404, 429, 503),
    ),
    Operation(
        path=f"{STUDY_API}/revisions/{{revision:path}}",
        says=_first(api.revision),
        answers="Revision",
        answer=api.revision,
    ),
    Operation(
        path=f"{STUDY_API}/samples/{{key}}",
        says=_first(api.samples),
        answers="Starts",
        many=True,
        answer=api.samples,
    ),
    Operation(
        path=f"{STUDY_API}/compare",
        says=_first(api.compare),
        answers="Compared",
        answer=api.compare,
        asked=_BOTH,
        refuses=(400, 401, 404, 429, 503),
    ),
    Operation(
        path=f"{STUDY_API}/regressions",
        says=_first(api.regressions),
        answers="Regression",
        many=True,
        answer=api.regressions,
    ),
    Operation(
        path=f"{STUDY_API}/regressions/{{key}}/notes",
        says=_first(api.say),
        answers="Note",
        answer=api.say,
        method="POST",
        takes="NewNote",
        status=201,
        refuses=(401, 403, 404, 413, 415, 422, 429, 503),
    ),
    Operation(
        path=f"{STUDY_API}/searches",
        says=_first(api.searches),
        answers="Search",
        many=True,
        answer=api.searches,
    ),
    Operation(
        path=f"{STUDY_API}/searches/{{key}}",
        says=_first(api.search),
        answers="SearchSteps",
        answer=api.search,
    ),
    Operation(path=f"{STUDY_API}/live", says=_first(api.live), answers="Live", answer=api.live),
)


async def described(_: Request) -> Response:
    """This document."""
    return JSONResponse(document((*OPERATIONS, DESCRIBED)))


DESCRIBED = Operation(
    path="/api/openapi.json", says=_first(described), answers="object", answer=described, refuses=(401, 429)
)

API = [Route(each.path, each.answer, methods=[each.method]) for each in (DESCRIBED, *OPERATIONS)]


STUDY_PAGE = "/s/{study}"

ROUTES = [
    Route("/", pages.studies),
    Route("/login", pages.login, methods=["GET"]),
    Route("/login", pages.enter, methods=["POST"]),
    Route("/logout", pages.leave, methods=["POST"]),
    Route("/static/{name}", rendering.static),
    Route(STUDY_PAGE, pages.study),
    Route(f"{STUDY_PAGE}/events", pages.events),
    Route(f"{STUDY_PAGE}/figures/{{name}}.json", pages.figure),
    Route(f"{STUDY_PAGE}/history", pages.history),
    Route(f"{STUDY_PAGE}/history/{{name}}.json", pages.history_figure),
    Route(f"{STUDY_PAGE}/searches", pages.searches),
    Route(f"{STUDY_PAGE}/searches/{{key}}.json", pages.search_figure),
    Route(f"{STUDY_PAGE}/compare", pages.compare),
    Route(f"{STUDY_PAGE}/compare.json", pages.compare_figure),
    Route(f"{STUDY_PAGE}/samples/{{key}}", pages.samples),
    Route(f"{STUDY_PAGE}/logs/{{key}}/{{machine}}/{{phase}}/{{ordinal}}", pages.log),
    Route(f"{STUDY_PAGE}/build-logs/{{key}}", pages.build_log),
    Route(f"{STUDY_PAGE}/regressions", pages.regressions),
    Route(f"{STUDY_PAGE}/regressions/{{key}}", pages.say, methods=["POST"]),
    Route(f"{STUDY_PAGE}/revisions/{{revision:path}}", pages.revision),
]


def make_app(desks: Mapping[str, ServedStudy], access: Access) -> Guard:
    """Return the application of the dashboard for some studies, by the names in their addresses."""
    visits = Visits()
    app = Starlette(
        routes=[*ROUTES, *API],
        exception_handlers={
            HTTPException: pages.refused,
            NotYetError: pages.not_yet,
            PerftrailError: pages.failed,
        },
    )
    writer = Pages(environment(asks=access.tokens is not None), visits)
    app.state.web = Web(desks=desks, pages=writer, access=access, visits=visits)
    return Guard(app, access=access, visits=visits)
