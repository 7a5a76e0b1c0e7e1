"""A figure along the history, from all of it down to one revision; what became worse; searches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException

from perftrail.present.dashboard.live import search_told
from perftrail.web.asked import course_of, desk_of, named, part_of, snapshot_of, web
from perftrail.web.pages.overview import drawing

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from perftrail.model.search_record import SearchRecord
    from perftrail.present.dashboard.snapshot import Snapshot
    from perftrail.present.page import Section
    from perftrail.web.studies import Desk

MOST_ROWS = 60
"""So many rows stand below a figure: of a longer part, each stands for neighbours."""


async def history(request: Request) -> Response:
    """A figure along the history: drawn, and as a table that leads closer."""
    desk, snapshot = desk_of(request), await snapshot_of(request)
    names = list(snapshot.courses)
    if not names:
        return web(request).pages.page(
            request, "history.html", desk=desk, snapshot=snapshot, course=None, here="history"
        )
    name = named(request, "figure") or names[0]
    course = course_of(snapshot, name)
    part = part_of(request, course)
    return web(request).pages.page(
        request,
        "history.html",
        desk=desk,
        snapshot=snapshot,
        course=course,
        name=name,
        part=part,
        rows=course.within(part.first, part.last, most=MOST_ROWS),
        changes=course.changed(part.first, part.last),
        here="history",
    )


async def history_figure(request: Request) -> Response:
    """A part of a figure along the history as what Vega draws."""
    snapshot = await snapshot_of(request)
    course = course_of(snapshot, request.path_params["name"])
    part = part_of(request, course)
    return drawing(
        course.figure(part.first, part.last), first=part.first, last=part.last, length=course.length
    )


async def searches(request: Request) -> Response:
    """Every search of a study, and how one of them goes or went."""
    desk, snapshot = desk_of(request), await snapshot_of(request)
    here = snapshot.gathered.view.machine.id
    records = [each for each in await desk.ask(lambda store: store.searches()) if each.machine == here]
    key = named(request, "search")
    chosen = next((each for each in reversed(records) if key in ("", each.key)), None)
    if key and chosen is None:
        raise HTTPException(404, "no search is called so")
    section = None if chosen is None else await _told(desk, snapshot, chosen)
    return web(request).pages.page(
        request,
        "searches.html",
        desk=desk,
        snapshot=snapshot,
        records=list(reversed(records)),
        chosen=chosen,
        section=section,
        here="searches",
    )


async def search_figure(request: Request) -> Response:
    """What a search believed after each step, as what Vega draws."""
    desk, snapshot = desk_of(request), await snapshot_of(request)
    found = {each.key: each for each in await desk.ask(lambda store: store.searches())}
    record = found.get(request.path_params["key"])
    section = None if record is None else await _told(desk, snapshot, record)
    if section is None or section.figure is None:
        raise HTTPException(404, "no search is called so, or it believes nothing yet")
    return drawing(section.figure)


async def _told(desk: Desk, snapshot: Snapshot, record: SearchRecord) -> Section | None:
    steps = await desk.ask(lambda store: store.steps(record.key, record.machine))
    return search_told(snapshot, record, steps)
