"""The studies, and what one comes to: its answer, its claims, its figures, and what is done to it now."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse

from perftrail.charts.frame import config
from perftrail.present.dashboard.regressions import status_of
from perftrail.web.asked import desk_of, snapshot_of, still_here, visitor, web

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.requests import Request

    from perftrail.charts.frame import Figure

MOST_STREAMS = 40
"""So many watch at once at most; more are told to come back."""


async def studies(request: Request) -> Response:
    """Every study that is served; the only one at once."""
    desks = web(request).desks
    if len(desks) == 1:
        return RedirectResponse(f"/s/{next(iter(desks))}", 303)
    cards = [(desk, await asyncio.to_thread(desk.about)) for desk in desks.values()]
    return web(request).pages.page(request, "studies.html", cards=cards, desk=None)


async def study(request: Request) -> Response:
    """What a study comes to."""
    desk, snapshot = desk_of(request), await snapshot_of(request)
    live = await desk.live()
    notes = await desk.ask(lambda store: store.notes())
    fresh = sum(status_of(notes, each.key) == "new" for each in snapshot.regressions)
    return web(request).pages.page(
        request, "study.html", desk=desk, snapshot=snapshot, live=live, fresh=fresh, here="overview"
    )


async def figure(request: Request) -> Response:
    """One of the figures of a study's overview, as what Vega draws."""
    snapshot = await snapshot_of(request)
    drawn = {} if snapshot.page is None else {each.name: each for each in snapshot.page.figures}
    found = drawn.get(request.path_params["name"])
    if found is None:
        raise HTTPException(404, "no figure is called so")
    return drawing(found)


def drawing(figure: Figure, **more: object) -> Response:
    """Give a figure to the page's script, with its looks in light and dark."""
    looks = {theme: config(theme) for theme in ("light", "dark")}
    return JSONResponse({"spec": figure.spec, "looks": looks, **more}, headers={"Cache-Control": "no-cache"})


async def events(request: Request) -> Response:
    """Tell a browser what is done to a study as it happens, part of a page by part of a page."""
    desk, pages = desk_of(request), web(request).pages
    if sum(each.watchers for each in web(request).desks.values()) >= MOST_STREAMS:
        raise HTTPException(503, "too many watch already")
    context = {"visitor": visitor(request), "desk": desk}

    async def told() -> AsyncGenerator[str]:
        yield "retry: 3000\n\n"
        async with aclosing(desk.watch()) as watched:
            async for live in watched:
                if not still_here(request):
                    return
                if live is None:
                    yield ": still here\n\n"
                else:
                    yield _event("live", pages.text("live.html", {**context, "live": live}))

    # what lies between must neither keep it back nor pack it, which keeps it back too
    headers = {"X-Accel-Buffering": "no", "Cache-Control": "no-store, no-transform"}
    if request.method == "HEAD":  # which wants no more than this, and would wait for the end of it
        return Response(media_type="text/event-stream", headers=headers)
    return StreamingResponse(told(), media_type="text/event-stream", headers=headers)


def _event(name: str, text: str) -> str:
    lines = "".join(f"data: {line}\n" for line in text.splitlines())
    return f"event: {name}\n{lines}\n"
