"""The pages of the dashboard, and the data of their charts.

Studies and their answers; metrics along the history; regressions with notes; searches; revisions, invocations and
logs; comparisons; login and errors.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote

from starlette.exceptions import HTTPException
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)

from perftrail.charts.frame import config
from perftrail.charts.history import SPARKLINE
from perftrail.errors import PerftrailError, StoreError
from perftrail.measure.events import now
from perftrail.model.build import Built, Failure, Prepared
from perftrail.model.store_records import STATUSES, RegressionNote
from perftrail.model.wording import escaped
from perftrail.present.dashboard.live import stored_search_section
from perftrail.present.dashboard.regressions import status_of
from perftrail.present.dashboard.subjects import (
    LOG_BYTES,
    compare_two,
    comparison_chart,
    invocations_of,
    log_of,
    log_path,
    units,
    value_words,
)
from perftrail.present.flame_graph import stored_flame_graph
from perftrail.present.html_page import log_end
from perftrail.present.report.words import row_metric, row_value
from perftrail.sources.forge import commit_addresses
from perftrail.web.guard import client_address
from perftrail.web.rendering import set_session_cookie
from perftrail.web.request_arguments import (
    NotYetError,
    has_access,
    named,
    number,
    part_of,
    requested_subjects,
    revision_of,
    series_of,
    served_study_of,
    snapshot_of,
    visitor,
    web,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.requests import Request

    from perftrail.charts.frame import Chart
    from perftrail.model.build import BuildRecord
    from perftrail.model.measurement import Outcome
    from perftrail.model.store_records import SearchRecord
    from perftrail.model.subject import Subject
    from perftrail.present.dashboard.snapshot import Snapshot
    from perftrail.present.html_page import Section
    from perftrail.web.studies import About, ServedStudy


MOST_STREAMS_EACH = 10
"""Maximum number of live pages of one address, so that one client cannot use all of `MOST_STREAMS`."""

MOST_STREAMS = 40
"""Maximum number of live pages of all addresses; further requests are refused."""


async def studies(request: Request) -> Response:
    """Every study of this server; a single study is shown directly."""
    served_studies = web(request).served_studies
    if len(served_studies) == 1:
        return RedirectResponse(f"/s/{next(iter(served_studies))}", 303)
    cards = await asyncio.gather(*map(_card, served_studies.values()))
    response = web(request).pages.page(
        request, "studies.html", cards=cards, size=SPARKLINE, served_study=None
    )
    if any(served_study.reading for served_study in served_studies.values()):
        response.headers["Refresh"] = "2"
    return response


async def _card(served_study: ServedStudy) -> tuple[ServedStudy, About, Snapshot | None, int]:
    """Return a study with its newest snapshot, and the number of its regressions that are not fixed."""
    about, snapshot = await asyncio.gather(asyncio.to_thread(served_study.about), served_study.snapshot())
    open_regressions = 0
    if snapshot is not None and snapshot.regressions:
        with suppress(StoreError):
            notes = await served_study.query(lambda store: store.notes())
            open_regressions = sum(status_of(notes, each.key) != "fixed" for each in snapshot.regressions)
    return served_study, about, snapshot, open_regressions


async def study(request: Request) -> Response:
    """A study's answer."""
    served_study, snapshot = served_study_of(request), await snapshot_of(request)
    live = await served_study.live()
    notes = await served_study.query(lambda store: store.notes())
    fresh = sum(status_of(notes, each.key) == "new" for each in snapshot.regressions)
    return web(request).pages.page(
        request,
        "study.html",
        served_study=served_study,
        snapshot=snapshot,
        live=live,
        fresh=fresh,
        here="overview",
    )


async def chart(request: Request) -> Response:
    """One of the charts of a study's overview, as Vega's specification."""
    snapshot = await snapshot_of(request)
    drawn = {} if snapshot.page is None else {each.name: each for each in snapshot.page.charts}
    found = drawn.get(request.path_params["name"])
    if found is None:
        raise HTTPException(404, "no such chart")
    return drawing(found)


def drawing(chart: Chart, **more: object) -> Response:
    """Return a chart for the page's script, in a light and a dark version."""
    looks = {theme: config(theme) for theme in ("light", "dark")}
    return JSONResponse({"spec": chart.spec, "looks": looks, **more}, headers={"Cache-Control": "no-cache"})


async def events(request: Request) -> Response:
    """Send a browser new versions of the live part of a page, as server-sent events."""
    served_study, pages = served_study_of(request), web(request).pages
    if sum(each.watchers for each in web(request).served_studies.values()) >= MOST_STREAMS:
        raise HTTPException(503, "too many browsers watch already; try again later")
    streams, address = web(request).streams, client_address(request.scope, web(request).access)
    if streams[address] >= MOST_STREAMS_EACH:
        raise HTTPException(
            503, f"{MOST_STREAMS_EACH} pages of your address are live already; close one, or reload this one"
        )
    context = {"visitor": visitor(request), "served_study": served_study}

    async def events() -> AsyncGenerator[str]:
        streams[address] += 1
        try:
            yield "retry: 3000\n\n"
            async with aclosing(served_study.watch()) as watched:
                async for live in watched:
                    if not has_access(request):
                        return
                    if live is None:
                        yield ": no change\n\n"
                    else:
                        yield _event("live", pages.text("live.html", {**context, "live": live}))
        finally:
            streams[address] -= 1
            if not streams[address]:
                del streams[address]

    # proxies must neither buffer nor compress events
    headers = {"X-Accel-Buffering": "no", "Cache-Control": "no-store, no-transform"}
    if request.method == "HEAD":  # a HEAD request would wait for the end of the events
        return Response(media_type="text/event-stream", headers=headers)
    return StreamingResponse(events(), media_type="text/event-stream", headers=headers)


def _event(name: str, text: str) -> str:
    lines = "".join(f"data: {line}\n" for line in text.splitlines())
    return f"event: {name}\n{lines}\n"


MOST_ROWS = 60
"""Maximum rows below a chart: in a longer part, each row stands for several revisions."""


async def history(request: Request) -> Response:
    """A metric along the history: a chart, and a table with links to parts."""
    served_study, snapshot = served_study_of(request), await snapshot_of(request)
    names = list(snapshot.histories)
    if not names:
        return web(request).pages.page(
            request, "history.html", served_study=served_study, snapshot=snapshot, series=None, here="history"
        )
    name = named(request, "metric") or names[0]
    series = series_of(snapshot, name)
    part = part_of(request, series)
    return web(request).pages.page(
        request,
        "history.html",
        served_study=served_study,
        snapshot=snapshot,
        series=series,
        name=name,
        part=part,
        rows=series.within(part.first, part.last, most=MOST_ROWS),
        changes=series.changes_between(part.first, part.last),
        here="history",
    )


async def history_chart(request: Request) -> Response:
    """A part of a metric along the history, as Vega's specification."""
    snapshot = await snapshot_of(request)
    series = series_of(snapshot, request.path_params["name"])
    part = part_of(request, series)
    return drawing(
        series.chart(part.first, part.last), first=part.first, last=part.last, length=series.length
    )


async def searches(request: Request) -> Response:
    """Every search of a study, and the steps of one of them."""
    served_study, snapshot = served_study_of(request), await snapshot_of(request)
    here = snapshot.report_data.view.machine.id
    records = [
        each for each in await served_study.query(lambda store: store.searches()) if each.machine == here
    ]
    key = named(request, "search")
    chosen = next((each for each in reversed(records) if key in ("", each.key)), None)
    if key and chosen is None:
        raise HTTPException(404, "no search has this key")
    section = None if chosen is None else await _search_section(served_study, snapshot, chosen)
    return web(request).pages.page(
        request,
        "searches.html",
        served_study=served_study,
        snapshot=snapshot,
        records=list(reversed(records)),
        chosen=chosen,
        section=section,
        here="searches",
    )


async def search_chart(request: Request) -> Response:
    """A search's belief after each step, as Vega's specification."""
    served_study, snapshot = served_study_of(request), await snapshot_of(request)
    found = {each.key: each for each in await served_study.query(lambda store: store.searches())}
    record = found.get(request.path_params["key"])
    section = None if record is None else await _search_section(served_study, snapshot, record)
    if section is None or section.chart is None:
        raise HTTPException(404, "no search has this key, or it has no belief yet")
    return drawing(section.chart)


async def _search_section(
    served_study: ServedStudy, snapshot: Snapshot, record: SearchRecord
) -> Section | None:
    steps = await served_study.query(lambda store: store.steps(record.key, record.machine))
    return stored_search_section(snapshot, record, steps)


LONGEST_NOTE = 2000
LONGEST_AUTHOR = 80
LINES = "\n\t"


async def regressions(request: Request) -> Response:
    """Regressions, the newest first, with their status."""
    served_study, snapshot = served_study_of(request), await snapshot_of(request)
    wanted = named(request, "status")
    if wanted not in ("", *STATUSES):
        raise HTTPException(400, f"status: one of {', '.join(STATUSES)}")
    notes = await served_study.query(lambda store: store.notes())
    known = [(each, status_of(notes, each.key)) for each in snapshot.regressions]
    along = [(each.history_metric, name) for name, each in snapshot.histories.items()]
    histories = {
        (each.benchmark, each.metric): name for each, name in reversed(along)
    }  # the first of several points
    counts = {status: sum(own == status for _, own in known) for status in STATUSES}
    return web(request).pages.page(
        request,
        "regressions.html",
        served_study=served_study,
        snapshot=snapshot,
        found=[(each, status) for each, status in known if wanted in ("", status)],
        counts=counts,
        fresh=counts["new"],
        wanted=wanted,
        histories=histories,
        notes=notes,
        statuses=STATUSES,
        here="regressions",
    )


FLAME_GRAPH_POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Policy of a flame graph: its script has no access to the dashboard. The page's own policy allows no other script."""


async def explained_flame_graph(request: Request) -> Response:
    """The flame graph of a stored explanation, a separate page."""
    data, name = (await snapshot_of(request)).report_data, request.path_params["name"]
    for record in data.explanations:
        graph = stored_flame_graph(record, data.by_id)
        if graph is not None and graph.name == name:
            text = await asyncio.to_thread(graph.content)
            return HTMLResponse(text, headers={"Content-Security-Policy": FLAME_GRAPH_POLICY})
    raise HTTPException(404, "no explanation has this flame graph")


async def add_note(request: Request) -> Response:
    """Store a note about a regression, from a form of this session."""
    served_study, who = served_study_of(request), visitor(request)
    form = await form_of(request)
    if not web(request).login_sessions.is_form_token(who.session_id, form.get("form_token", "")):
        raise HTTPException(
            403, "this form is from another login, or the login has ended; load the page again"
        )
    await store_note(request, served_study, form)
    return RedirectResponse(f"/s/{served_study.name}/regressions#{request.path_params['key']}", 303)


async def store_note(request: Request, served_study: ServedStudy, fields: dict[str, str]) -> RegressionNote:
    """Store a note. Raises `HTTPException` for users who may not write, and for an unknown status."""
    who, key = visitor(request), request.path_params["key"]
    if not who.may_write:
        raise HTTPException(403, "you have read access only")
    snapshot = await snapshot_of(request)
    if all(each.key != key for each in snapshot.regressions):
        raise HTTPException(404, "no regression has this id")
    status = next((each for each in STATUSES if each == fields.get("status")), None)
    if status is None:
        raise HTTPException(422, f"status: one of {', '.join(STATUSES)}")
    text, author = fields.get("text", "").strip(), (who.name or fields.get("author", "")).strip()
    if len(text) > LONGEST_NOTE or len(author) > LONGEST_AUTHOR:
        raise HTTPException(422, f"a note has at most {LONGEST_NOTE} characters, a name {LONGEST_AUTHOR}")
    note = RegressionNote(
        regression=key,
        status=status,
        text=escaped(text, longest=LONGEST_NOTE * 8, allowed=LINES),
        author=escaped(author),
        written=now(),
    )
    await served_study.add(note)
    return note


async def form_of(request: Request) -> dict[str, str]:
    """Return a form's fields. Raises `HTTPException` for anything else."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    if kind != "application/x-www-form-urlencoded":
        raise HTTPException(415, "send a form")
    try:
        text = (await request.body()).decode("utf-8")
        found = parse_qs(text, keep_blank_values=True, max_num_fields=20, errors="strict")
    except ValueError as error:
        raise HTTPException(400, "not a form") from error
    return {name: values[-1].replace("\r\n", "\n") for name, values in found.items()}


async def login(request: Request) -> Response:
    """Ask for a token."""
    if web(request).access.tokens is None:
        raise HTTPException(404, "this server has no login")
    return _login_page(request, "", request.query_params.get("next", "/"))


async def log_in(request: Request) -> Response:
    """Check the token in a form and start a session. A token in an address is ignored: addresses are logged."""
    shared, who = web(request), visitor(request)
    if shared.access.tokens is None:
        raise HTTPException(404, "this server has no login")
    form = await form_of(request)
    onward = form.get("next", "/")
    if not shared.login_sessions.is_form_token(who.session_id, form.get("form_token", "")):
        return _login_page(request, "This form was too old; try again.", onward, status=403)
    if not shared.logins.allows(client_address(request.scope, shared.access)):
        return _login_page(request, "Too many attempts; wait a minute.", "/", status=429)
    role = shared.access.tokens.role(form.get("token", "").strip())
    if role is None:
        return _login_page(request, "This token is not valid.", onward, status=403)
    response = RedirectResponse(_own_path(onward), 303)
    shared.login_sessions.end(who.session_id)
    set_session_cookie(request, response, shared.login_sessions.begin(role))
    return response


async def log_out(request: Request) -> Response:
    """End a session."""
    shared, who = web(request), visitor(request)
    form = await form_of(request)
    if not shared.login_sessions.is_form_token(who.session_id, form.get("form_token", "")):
        raise HTTPException(403, "this form is from another login; load the page again")
    shared.login_sessions.end(who.session_id)
    response = RedirectResponse("/login", 303)
    set_session_cookie(request, response, shared.login_sessions.begin(None))
    return response


def _login_page(request: Request, wrong: str, onward: str, *, status: int = 200) -> Response:
    return web(request).pages.page(
        request, "login.html", status=status, wrong=wrong, onward=_own_path(onward), served_study=None
    )


def _own_path(path: str) -> str:
    r"""Return a path if it belongs to this server, else the root.

    >>> [_own_path(path) for path in ("/s/one", "//evil.example", "/\\evil.example", "https://evil.example", "/\n/x")]
    ['/s/one', '/', '/', '/', '/']
    """
    plain = path.isprintable() and path.isascii()
    return path if plain and path.startswith("/") and not path.startswith(("//", "/\\")) else "/"


async def refused(request: Request, error: Exception) -> Response:
    """Explain what is wrong with a request."""
    assert isinstance(error, HTTPException)
    return _error_page(request, error.status_code, error.detail)


async def failed(request: Request, error: Exception) -> Response:
    """Explain a failure of perftrail itself."""
    assert isinstance(error, PerftrailError)
    return _error_page(request, 503, str(error))


async def not_yet(request: Request, error: Exception) -> Response:
    """Show that perftrail is reading a study, and reload; or show why it cannot read the study."""
    assert isinstance(error, NotYetError)
    served_study = error.served_study
    if request.url.path.startswith("/api/"):
        text = served_study.trouble or "perftrail is reading the study; try again in a moment"
        return JSONResponse({"error": text}, 503, {"Retry-After": "1"})
    response = web(request).pages.page(
        request, "reading.html", served_study=served_study, status=503 if served_study.trouble else 200
    )
    response.headers["Refresh"] = "1"
    return response


def _error_page(request: Request, status: int, text: str) -> Response:
    if request.url.path.startswith("/api/"):
        return JSONResponse({"error": text}, status)
    served_study = web(request).served_studies.get(request.path_params.get("study", ""))
    return web(request).pages.page(
        request, "message.html", status=status, text=text, served_study=served_study
    )


MOST_INVOCATIONS = 500

NEIGHBOURS = 25
"""Number of revisions on each side of a revision in its chart."""


async def revision(request: Request) -> Response:
    """One revision: its description, its builds, and all its metrics."""
    served_study, snapshot = served_study_of(request), await snapshot_of(request)
    found = revision_of(request, snapshot)
    position = snapshot.report_data.positions[found.id]
    names = {series.history_metric: name for name, series in snapshot.histories.items()}
    revisions = snapshot.report_data.revisions
    return web(request).pages.page(
        request,
        "revision.html",
        served_study=served_study,
        snapshot=snapshot,
        revision=found,
        position=position,
        before=revisions[position - 1] if position else None,
        after=revisions[position + 1] if position + 1 < len(revisions) else None,
        rows=snapshot.rows_of.get(found.id, ()),
        metric_of=row_metric,
        value_of=row_value,
        series_of=lambda row: names.get(snapshot.report_data.history_metric(row), ""),
        around=(max(0, position - NEIGHBOURS), position + NEIGHBOURS),
        builds=snapshot.builds.get(found.id, ()),
        build_outcome=_build_outcome,
        log_address=build_log_address,
        regressions=[each for each in snapshot.regressions if found in each.revisions],
        commit=commit_addresses(snapshot.report_data.view.study.searched_source, (found,)).get(
            found.short, ""
        ),
        here="",
    )


def _build_outcome(record: BuildRecord) -> str:
    """Describe the outcome of a build."""
    match record.outcome:
        case Failure(stage=stage, message=message):
            return f"{stage}: {escaped(message, longest=300)}"
        case Built(layout=0):
            return "built"
        case Built(layout=layout):
            return f"relinked, layout {layout}"
        case Prepared():
            return "built"


async def samples(request: Request) -> Response:
    """Every invocation of a runnable, by machine."""
    served_study, snapshot = served_study_of(request), await snapshot_of(request)
    key = request.path_params["key"]
    found = await served_study.query(lambda store: invocations_of(store, key))
    if not found:
        raise HTTPException(404, "no invocation has this key")
    cells = snapshot.cells_of.get(key, ())
    known = units(snapshot.report_data.view.study, cells[0].benchmark) if cells else {}
    return web(request).pages.page(
        request,
        "samples.html",
        served_study=served_study,
        snapshot=snapshot,
        key=key,
        cells=cells,
        found=found,
        most=MOST_INVOCATIONS,
        log_address=log_address,
        words=lambda outcome, metric: value_words(outcome, metric, known.get(metric, "")),
        here="",
    )


def log_address(study: str, outcome: Outcome) -> str | None:
    """Return the address of an invocation's log; `None` without a log."""
    key = outcome.key
    named = (study, "logs", key.runnable, key.machine, key.phase, str(key.ordinal))
    return f"/s/{'/'.join(quote(each, safe='') for each in named)}" if log_path(outcome) else None


def build_log_address(study: str, record: BuildRecord) -> str | None:
    """Return the address of a build's log; `None` without a log."""
    kept = "" if isinstance(record.outcome, Prepared) else record.outcome.log
    return f"/s/{quote(study)}/build-logs/{quote(record.key)}" if kept else None


async def log(request: Request) -> Response:
    """The end of an invocation's output."""
    served_study, snapshot = served_study_of(request), await snapshot_of(request)
    parameters = request.path_params
    ordinal, results = number(parameters["ordinal"]), served_study.results(snapshot)
    if ordinal is None:
        raise HTTPException(404, "no invocation has this number")
    text = await served_study.query(
        lambda store: log_of(
            store, parameters["key"], parameters["machine"], parameters["phase"], ordinal, results=results
        )
    )
    return _plain(text)


async def build_log(request: Request) -> Response:
    """The end of a build's output."""
    served_study, snapshot = served_study_of(request), await snapshot_of(request)
    record = await served_study.query(lambda store: store.build(request.path_params["key"]))
    if record is None or isinstance(record.outcome, Prepared):
        raise HTTPException(404, "no build with this key has a log")
    return _plain(log_end(record.outcome.log, served_study.results(snapshot), most=LOG_BYTES))


def _plain(text: str | None) -> Response:
    if not text:
        raise HTTPException(404, "no such log, or it was removed to save space")
    return PlainTextResponse(text, headers={"Content-Disposition": "inline"})


async def compare(request: Request) -> Response:
    """Compare any two subjects in every metric that both have."""
    served_study, snapshot = served_study_of(request), await snapshot_of(request)
    subjects: tuple[Subject, Subject] | None = None
    wrong = ""
    try:
        subjects = requested_subjects(request, snapshot)
    except HTTPException as error:
        if error.status_code != 404:
            raise
        wrong = error.detail
    found = (
        ()
        if subjects is None
        else await asyncio.to_thread(compare_two, snapshot.report_data, snapshot.rows_of, *subjects)
    )
    return web(request).pages.page(
        request,
        "compare.html",
        status=404 if wrong else 200,
        served_study=served_study,
        snapshot=snapshot,
        entered={name: named(request, name) for name in ("a", "b")},
        subjects=subjects,
        found=found,
        drawn=any(each.subject_comparison is not None for each in found),
        wrong=wrong,
        here="compare",
    )


async def compare_chart(request: Request) -> Response:
    """The comparison of two subjects, as Vega's specification."""
    snapshot = await snapshot_of(request)
    subjects = requested_subjects(request, snapshot)
    if subjects is None:
        raise HTTPException(404, "the study has no samples to compare")
    found = await asyncio.to_thread(compare_two, snapshot.report_data, snapshot.rows_of, *subjects)
    drawn = comparison_chart(found, *subjects)
    if drawn is None:
        raise HTTPException(404, "the two subjects have no metric that can be compared")
    return drawing(drawn)
