"""What became worse, the newest first, and what people say of it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse

from perftrail.measure.session import now
from perftrail.model.search_record import STATUSES, RegressionNote
from perftrail.present.dashboard.regressions import status_of
from perftrail.present.report.words import shown
from perftrail.web.asked import desk_of, named, snapshot_of, visitor, web

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from perftrail.web.studies import Desk

LONGEST_NOTE = 2000
LONGEST_AUTHOR = 80
LINES = "\n\t"


async def regressions(request: Request) -> Response:
    """What became worse, the newest first, with what becomes of it."""
    desk, snapshot = desk_of(request), await snapshot_of(request)
    wanted = named(request, "status")
    if wanted not in ("", *STATUSES):
        raise HTTPException(400, f"status: one of {', '.join(STATUSES)}")
    notes = await desk.ask(lambda store: store.notes())
    known = [(each, status_of(notes, each.key)) for each in snapshot.regressions]
    along = [(each.followed, name) for name, each in snapshot.courses.items()]
    courses = {
        (each.benchmark, each.metric): name for each, name in reversed(along)
    }  # the first of several points
    counts = {status: sum(own == status for _, own in known) for status in STATUSES}
    return web(request).pages.page(
        request,
        "regressions.html",
        desk=desk,
        snapshot=snapshot,
        found=[(each, status) for each, status in known if wanted in ("", status)],
        counts=counts,
        fresh=counts["new"],
        wanted=wanted,
        courses=courses,
        notes=notes,
        statuses=STATUSES,
        here="regressions",
    )


async def say(request: Request) -> Response:
    """Keep what a person says of a regression. The form must be one of this visit's own."""
    desk, who = desk_of(request), visitor(request)
    form = await form_of(request)
    if not web(request).visits.is_form_token(who.visit, form.get("form_token", "")):
        raise HTTPException(403, "this form is not of your visit, or that has ended; load the page again")
    await keep(request, desk, form)
    return RedirectResponse(f"/s/{desk.name}/regressions#{request.path_params['key']}", 303)


async def keep(request: Request, desk: Desk, said: dict[str, str]) -> RegressionNote:
    """Keep what was said. Raises `HTTPException` for who may not write, and for what says nothing that is known."""
    who, key = visitor(request), request.path_params["key"]
    if not who.may_write:
        raise HTTPException(403, "you may read, not write")
    snapshot = await snapshot_of(request)
    if all(each.key != key for each in snapshot.regressions):
        raise HTTPException(404, "no regression is called so")
    status = next((each for each in STATUSES if each == said.get("status")), None)
    if status is None:
        raise HTTPException(422, f"status: one of {', '.join(STATUSES)}")
    text, author = said.get("text", "").strip(), (who.name or said.get("author", "")).strip()
    if len(text) > LONGEST_NOTE or len(author) > LONGEST_AUTHOR:
        raise HTTPException(422, f"a note has {LONGEST_NOTE} letters at most, a name {LONGEST_AUTHOR}")
    note = RegressionNote(
        regression=key,
        status=status,
        text=shown(text, longest=LONGEST_NOTE * 8, kept=LINES),
        author=shown(author),
        written=now(),
    )
    await desk.add(note)
    return note


async def form_of(request: Request) -> dict[str, str]:
    """Read a form. Raises `HTTPException` for anything else."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    if kind != "application/x-www-form-urlencoded":
        raise HTTPException(415, "send a form")
    try:
        text = (await request.body()).decode("utf-8")
        found = parse_qs(text, keep_blank_values=True, max_num_fields=20, errors="strict")
    except ValueError as error:
        raise HTTPException(400, "this is no form") from error
    return {name: values[-1].replace("\r\n", "\n") for name, values in found.items()}
