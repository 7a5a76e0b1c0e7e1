"""One revision, every start at one point with its log, and any subject against any other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse

from perftrail.errors import UsageError
from perftrail.model.build import Built, Failure, Prepared
from perftrail.model.subject import Revision, Subject
from perftrail.report.page_files import log_end
from perftrail.web.asked import desk_of, named, snapshot_of, web
from perftrail.web.pages.overview import drawing
from perftrail.workflows.reporting.words import row_figure, row_metric, shown
from perftrail.workflows.serving.one import LOG_BYTES, log_of, starts, units, value_words
from perftrail.workflows.serving.two import compare_two, compared_figure, named_revision

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from perftrail.model.build import BuildRecord
    from perftrail.workflows.serving.snapshot import Snapshot
    from perftrail.workflows.serving.two import Compared

MOST_STARTS = 500


async def revision(request: Request) -> Response:
    """One revision: what it is, its builds, and every figure of it."""
    desk, snapshot = desk_of(request), await snapshot_of(request)
    try:
        found = named_revision(snapshot.gathered, request.path_params["revision"])
    except UsageError as error:
        raise HTTPException(404, str(error)) from error
    position = snapshot.gathered.positions[found.id]
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
        rows=[
            (
                row_metric(row),
                row.subject.variant,
                row_figure(row),
                row,
                next(iter(sorted(row.runnables)), ""),
            )
            for row in snapshot.rows_of.get(found.id, ())
        ],
        builds=[(each, _came(each)) for each in snapshot.builds.get(found.id, ())],
        regressions=[each for each in snapshot.regressions if found in each.revisions],
        here="",
    )


def _came(record: BuildRecord) -> tuple[str, bool]:
    """Say what came of a build, and whether it left a log to be read."""
    match record.outcome:
        case Failure(stage=stage, message=message, log=log):
            return f"{stage}: {shown(message, longest=300)}", bool(log)
        case Built(log=log):
            return "built", bool(log)
        case Prepared():
            return "made", False


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
        words=lambda outcome, metric: value_words(outcome, metric, known.get(metric, "")),
        here="",
    )


async def log(request: Request) -> Response:
    """The end of what a start printed."""
    desk, snapshot = desk_of(request), await snapshot_of(request)
    asked = request.path_params
    results = desk.results(snapshot)
    text = await desk.ask(
        lambda store: log_of(
            store, asked["key"], asked["machine"], asked["phase"], asked["ordinal"], results=results
        )
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
    asked = {name: named(request, name) for name in ("a", "va", "b", "vb")}
    found: tuple[Compared, ...] = ()
    subjects: tuple[Subject, Subject] | None = None
    wrong = ""
    try:
        subjects = both(snapshot, asked)
        if subjects is not None:
            found = compare_two(snapshot.gathered, snapshot.rows_of, *subjects)
    except UsageError as error:
        wrong = str(error)
    return web(request).pages.page(
        request,
        "compare.html",
        status=404 if wrong else 200,
        desk=desk,
        snapshot=snapshot,
        asked=asked,
        subjects=subjects,
        found=found,
        drawn=any(each.beside is not None for each in found),
        wrong=wrong,
        here="compare",
    )


async def compare_figure(request: Request) -> Response:
    """The comparison of two subjects as what Vega draws."""
    snapshot = await snapshot_of(request)
    try:
        subjects = both(snapshot, {name: named(request, name) for name in ("a", "va", "b", "vb")})
    except UsageError as error:
        raise HTTPException(404, str(error)) from error
    if subjects is None:
        raise HTTPException(404, "nothing is compared")
    drawn = compared_figure(compare_two(snapshot.gathered, snapshot.rows_of, *subjects), *subjects)
    if drawn is None:
        raise HTTPException(404, "nothing of both can be compared")
    return drawing(drawn)


def both(snapshot: Snapshot, asked: dict[str, str]) -> tuple[Subject, Subject] | None:
    """Give the two subjects that are asked for: the oldest and the newest measured where none is named.

    `None` where nothing was measured. Raises `UsageError` for what there is not.
    """
    gathered = snapshot.gathered
    if not gathered.measured:
        return None
    several = len(gathered.variants) > 1
    ends = (gathered.measured[-1 if several else 0], gathered.measured[-1])
    variants = (gathered.variants[0], gathered.variants[-1 if several else 0])
    return (
        _subject(snapshot, asked["a"], asked["va"], ends[0], variants[0]),
        _subject(snapshot, asked["b"], asked["vb"], ends[1], variants[1]),
    )


def _subject(snapshot: Snapshot, revision: str, variant: str, default: Revision, usual: str) -> Subject:
    found = named_revision(snapshot.gathered, revision) if revision else default
    chosen = variant or usual
    if chosen not in snapshot.gathered.variants:
        raise UsageError(f"{shown(chosen, longest=60)}: no variant of this study is called so")
    return Subject(revision=found, variant=chosen)
