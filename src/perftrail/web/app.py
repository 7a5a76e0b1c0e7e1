"""Puts the pages, the API and what stands before them together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Route

from perftrail.errors import PerftrailError
from perftrail.web import assets
from perftrail.web.access import Visits
from perftrail.web.asked import NotYetError, Web
from perftrail.web.guard import Guard
from perftrail.web.operations import API
from perftrail.web.pages import entrance, history, overview, regressions, subjects
from perftrail.web.rendering import Pages, environment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perftrail.web.access import Access
    from perftrail.web.desk import Desk

STUDY = "/s/{study}"

ROUTES = [
    Route("/", overview.studies),
    Route("/login", entrance.login, methods=["GET"]),
    Route("/login", entrance.enter, methods=["POST"]),
    Route("/logout", entrance.leave, methods=["POST"]),
    Route("/static/{name}", assets.static),
    Route(STUDY, overview.study),
    Route(f"{STUDY}/events", overview.events),
    Route(f"{STUDY}/figures/{{name}}.json", overview.figure),
    Route(f"{STUDY}/history", history.history),
    Route(f"{STUDY}/history/{{name}}.json", history.history_figure),
    Route(f"{STUDY}/searches", history.searches),
    Route(f"{STUDY}/searches/{{key}}.json", history.search_figure),
    Route(f"{STUDY}/compare", subjects.compare),
    Route(f"{STUDY}/compare.json", subjects.compare_figure),
    Route(f"{STUDY}/samples/{{key}}", subjects.samples),
    Route(f"{STUDY}/logs/{{key}}/{{machine}}/{{phase}}/{{ordinal}}", subjects.log),
    Route(f"{STUDY}/build-logs/{{key}}", subjects.build_log),
    Route(f"{STUDY}/regressions", regressions.regressions),
    Route(f"{STUDY}/regressions/{{key}}", regressions.say, methods=["POST"]),
    Route(f"{STUDY}/revisions/{{revision:path}}", subjects.revision),
]


def make_app(desks: Mapping[str, Desk], access: Access) -> Guard:
    """Make the whole of the dashboard for some studies, by the names that their addresses bear."""
    visits = Visits()
    app = Starlette(
        routes=[*ROUTES, *API],
        exception_handlers={
            HTTPException: entrance.refused,
            NotYetError: entrance.not_yet,
            PerftrailError: entrance.failed,
        },
    )
    pages = Pages(environment(asks=access.tokens is not None), visits)
    app.state.web = Web(desks=desks, pages=pages, access=access, visits=visits)
    return Guard(app, access=access, visits=visits)
