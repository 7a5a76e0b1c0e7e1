"""Everything that the API does, and the document that says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import JSONResponse
from starlette.routing import Route

from perftrail.web import api
from perftrail.web.openapi import Asked, Operation, document
from perftrail.web.schemas import TEXT, WHOLE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response


def _first(answer: Callable[[Request], Awaitable[Response]]) -> str:
    """The first line of what an operation says of itself."""
    return (answer.__doc__ or "").splitlines()[0]


STUDY = "/api/studies/{study}"

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
    Operation(path=STUDY, says=_first(api.overview), answers="Overview", answer=api.overview),
    Operation(
        path=f"{STUDY}/figures", says=_first(api.figures), answers="Figure", many=True, answer=api.figures
    ),
    Operation(
        path=f"{STUDY}/history/{{figure}}",
        says=_first(api.history),
        answers="History",
        answer=api.history,
        asked=(*_PART, _POINTS),
        refuses=(400, 401, 404, 429, 503),
    ),
    Operation(
        path=f"{STUDY}/revisions/{{revision:path}}",
        says=_first(api.revision),
        answers="Revision",
        answer=api.revision,
    ),
    Operation(
        path=f"{STUDY}/samples/{{key}}",
        says=_first(api.samples),
        answers="Starts",
        many=True,
        answer=api.samples,
    ),
    Operation(
        path=f"{STUDY}/compare",
        says=_first(api.compare),
        answers="Compared",
        answer=api.compare,
        asked=_BOTH,
        refuses=(400, 401, 404, 429, 503),
    ),
    Operation(
        path=f"{STUDY}/regressions",
        says=_first(api.regressions),
        answers="Regression",
        many=True,
        answer=api.regressions,
    ),
    Operation(
        path=f"{STUDY}/regressions/{{key}}/notes",
        says=_first(api.say),
        answers="Note",
        answer=api.say,
        method="POST",
        takes="NewNote",
        status=201,
        refuses=(401, 403, 404, 413, 415, 422, 429, 503),
    ),
    Operation(
        path=f"{STUDY}/searches", says=_first(api.searches), answers="Search", many=True, answer=api.searches
    ),
    Operation(
        path=f"{STUDY}/searches/{{key}}", says=_first(api.search), answers="SearchSteps", answer=api.search
    ),
    Operation(path=f"{STUDY}/live", says=_first(api.live), answers="Live", answer=api.live),
)


async def described(_: Request) -> Response:
    """This document."""
    return JSONResponse(document((*OPERATIONS, DESCRIBED)))


DESCRIBED = Operation(
    path="/api/openapi.json", says=_first(described), answers="object", answer=described, refuses=(401, 429)
)

API = [Route(each.path, each.answer, methods=[each.method]) for each in (DESCRIBED, *OPERATIONS)]
