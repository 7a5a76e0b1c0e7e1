"""One revision, every start at one point with its log, and any subject against any other."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse

from perftrail.model.build import Built, Failure, Prepared
from perftrail.present.dashboard.comparison import compare_two, compared_figure
from perftrail.present.dashboard.invocations import LOG_BYTES, kept_log, log_of, starts, units, value_words
from perftrail.present.page_files import log_end
from perftrail.present.report.words import row_figure, row_metric, shown
from perftrail.web.asked import asked_subjects, desk_of, named, number, revision_of, snapshot_of, web
from perftrail.web.pages.overview import drawing

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from perftrail.model.build import BuildRecord
    from perftrail.model.measurement import Outcome
    from perftrail.model.subject import Subject

MOST_STARTS = 500

BESIDE = 25
"""From a revision, so many on each side of it are looked at along the history."""


async def revision(request: Request) -> Response:
    """One revision: what it is, its builds, and every figure of it."""
    desk, snapshot = desk_of(request), await snapshot_of(request)
    found = revision_of(request, snapshot)
    position = snapshot.gathered.positions[found.id]
    names = {course.followed: name for name, course in snapshot.courses.items()}
    beside = snapshot.gathered.revisions
    return web(request).pages.page(
        request,
        "revision.html",
        desk=desk,
        snapshot=snapshot,
        revision=found,
        position=position,
        before=beside[position - 1] if position else None,
        after=beside[position + 1] if position + 1 < len(beside) else None,
        rows=snapshot.rows_of.get(found.id, ()),
        metric_of=row_metric,
        figure_of=row_figure,
        course_of=lambda row: names.get(snapshot.gathered.followed(row), ""),
        around=(max(0, position - BESIDE), position + BESIDE),
        builds=snapshot.builds.get(found.id, ()),
        came=_came,
        log_address=build_log_address,
        regressions=[each for each in snapshot.regressions if found in each.revisions],
        here="",
    )


def _came(record: BuildRecord) -> str:
    """Say what came of a build."""
    match record.outcome:
        case Failure(stage=stage, message=message):
            return f"{stage}: {shown(message, longest=300)}"
        case Built(layout=0):
            return "built"
        case Built(layout=layout):
            return f"relinked, layout {layout}"
        case Prepared():
            return "made"


async def samples(request: Request) -> Response:
    """Every start of a runnable, on each machine."""
    desk, snapshot = desk_of(request), await snapshot_of(request)
    key = request.path_params["key"]
    found = await desk.ask(lambda store: starts(store, key))
    if not found:
        raise HTTPException(404, "nothing was started that is called so")
    cells = snapshot.cells_of.get(key, ())
    known = units(snapshot.gathered.view.study, cells[0].benchmark) if cells else {}
    return web(request).pages.page(
        request,
        "samples.html",
        desk=desk,
        snapshot=snapshot,
        key=key,
        cells=cells,
        found=found,
        most=MOST_STARTS,
        log_address=log_address,
        words=lambda outcome, metric: value_words(outcome, metric, known.get(metric, "")),
        here="",
    )


def log_address(study: str, outcome: Outcome) -> str | None:
    """Give where the log of a start can be read; `None` where it left none."""
    key = outcome.key
    named = (study, "logs", key.runnable, key.machine, key.phase, str(key.ordinal))
    return f"/s/{'/'.join(quote(each, safe='') for each in named)}" if kept_log(outcome) else None


def build_log_address(study: str, record: BuildRecord) -> str | None:
    """Give where the log of a build can be read; `None` where it left none."""
    kept = "" if isinstance(record.outcome, Prepared) else record.outcome.log
    return f"/s/{quote(study)}/build-logs/{quote(record.key)}" if kept else None


async def log(request: Request) -> Response:
    """The end of what a start printed."""
    desk, snapshot = desk_of(request), await snapshot_of(request)
    asked = request.path_params
    ordinal, results = number(asked["ordinal"]), desk.results(snapshot)
    if ordinal is None:
        raise HTTPException(404, "no start is called so")
    text = await desk.ask(
        lambda store: log_of(store, asked["key"], asked["machine"], asked["phase"], ordinal, results=results)
    )
    return _plain(text)


async def build_log(request: Request) -> Response:
    """The end of what a build printed."""
    desk, snapshot = desk_of(request), await snapshot_of(request)
    record = await desk.ask(lambda store: store.build(request.path_params["key"]))
    if record is None or isinstance(record.outcome, Prepared):
        raise HTTPException(404, "no build that left a log is called so")
    return _plain(log_end(record.outcome.log, desk.results(snapshot), most=LOG_BYTES))


def _plain(text: str | None) -> Response:
    if not text:
        raise HTTPException(404, "there is no log, or it was removed to make room")
    return PlainTextResponse(text, headers={"Content-Disposition": "inline"})


async def compare(request: Request) -> Response:
    """Any subject against any other, in every figure that both have."""
    desk, snapshot = desk_of(request), await snapshot_of(request)
    subjects: tuple[Subject, Subject] | None = None
    wrong = ""
    try:
        subjects = asked_subjects(request, snapshot)
    except HTTPException as error:
        if error.status_code != 404:
            raise
        wrong = error.detail
    found = () if subjects is None else compare_two(snapshot.gathered, snapshot.rows_of, *subjects)
    return web(request).pages.page(
        request,
        "compare.html",
        status=404 if wrong else 200,
        desk=desk,
        snapshot=snapshot,
        asked={name: named(request, name) for name in ("a", "b")},
        subjects=subjects,
        found=found,
        drawn=any(each.beside is not None for each in found),
        wrong=wrong,
        here="compare",
    )


async def compare_figure(request: Request) -> Response:
    """The comparison of two subjects as what Vega draws."""
    snapshot = await snapshot_of(request)
    subjects = asked_subjects(request, snapshot)
    if subjects is None:
        raise HTTPException(404, "nothing is compared")
    drawn = compared_figure(compare_two(snapshot.gathered, snapshot.rows_of, *subjects), *subjects)
    if drawn is None:
        raise HTTPException(404, "nothing of both can be compared")
    return drawing(drawn)
