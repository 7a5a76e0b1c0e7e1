"""The API: the content of the pages, for programs. `openapi` describes the input and output of each operation."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from perftrail.model.build import Failure
from perftrail.present.dashboard.regressions import status_of
from perftrail.present.dashboard.subjects import compare_two, outcome_json, starts
from perftrail.web.asked import (
    asked_subjects,
    course_of,
    desk_of,
    part_of,
    revision_of,
    snapshot_of,
    web,
    whole_number,
)
from perftrail.web.pages import build_log_address, keep, log_address

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from perftrail.model.search_record import Json, RegressionNote, SearchRecord
    from perftrail.model.subject import Subject
    from perftrail.present.dashboard.metric_history import Course
    from perftrail.present.dashboard.regressions import Regression

MOST_POINTS = 5000


async def studies(request: Request) -> Response:
    """Every study of this server."""
    found = [(desk, await asyncio.to_thread(desk.about)) for desk in web(request).desks.values()]
    return JSONResponse(
        [{"name": desk.name, "title": about.title, "running": about.running} for desk, about in found]
    )


async def overview(request: Request) -> Response:
    """A study's answer."""
    desk, snapshot = desk_of(request), await snapshot_of(request)
    page = snapshot.page
    sections = () if page is None else page.sections
    tables = [table for section in sections if section.name == "claims" for table in section.tables]
    return JSONResponse(
        {
            "name": desk.name,
            "title": snapshot.gathered.view.study.title,
            "taken": snapshot.taken,
            "reading": desk.reading,
            "stored": dict(snapshot.stored),
            "verdict": None
            if page is None
            else {
                "sentence": page.verdict.sentence,
                "tone": page.verdict.tone,
                "facts": [{"label": each.label, "text": each.text} for each in page.verdict.facts],
                "notes": list(page.verdict.notes),
            },
            "answer": None if page is None or page.answer is None else dict(page.answer),
            "claims": [
                dict(zip(("claim", "verdict", "found"), row, strict=True))
                for table in tables
                for row in table.rows
            ],
        }
    )


async def figures(request: Request) -> Response:
    """Every metric that was measured along the history."""
    snapshot = await snapshot_of(request)
    return JSONResponse([_figure(name, course) for name, course in snapshot.courses.items()])


def _figure(name: str, course: Course) -> dict[str, Json]:
    followed = course.followed
    return {
        "name": name,
        "benchmark": followed.benchmark,
        "metric": followed.metric,
        "point": dict(followed.point.values),
        "unit": followed.unit,
        "better": followed.better,
        "measured": len(course.points),
    }


async def history(request: Request) -> Response:
    """A metric along a part of the history."""
    snapshot, name = await snapshot_of(request), request.path_params["figure"]
    course = course_of(snapshot, name)
    part = part_of(request, course)
    most = max(1, min(MOST_POINTS, whole_number(request, "points", 400)))
    return JSONResponse(
        {
            "figure": _figure(name, course),
            "length": part.length,
            "first": part.first,
            "last": part.last,
            "points": [
                {
                    "position": each.position,
                    "last": each.last,
                    "of": each.of,
                    "subject": each.subject,
                    "revision": each.revision,
                    "value": each.value,
                    "low": each.low,
                    "high": each.high,
                    "count": each.count,
                }
                for each in course.within(part.first, part.last, most=most)
            ],
            "changes": [
                {
                    "revision": each.row.subject.revision.id,
                    "position": each.point.position,
                    "variant": each.row.subject.variant,
                    "effect": {"value": each.point.effect, "low": each.point.low, "high": each.point.high},
                }
                for each in course.changed(part.first, part.last)
            ],
        }
    )


async def revision(request: Request) -> Response:
    """One revision: its builds and all its metrics."""
    desk, snapshot = desk_of(request), await snapshot_of(request)
    found = revision_of(request, snapshot)
    return JSONResponse(
        {
            "id": found.id,
            "position": snapshot.gathered.positions[found.id],
            "label": found.label,
            "time": found.time,
            "message": found.summary,
            "builds": [
                {
                    "key": each.key,
                    "variant": each.variant,
                    "benchmark": each.benchmark,
                    "finished": each.finished,
                    "succeeded": not isinstance(each.outcome, Failure),
                    "log": build_log_address(desk.name, each),
                }
                for each in snapshot.builds.get(found.id, ())
            ],
            "figures": [
                {**row.as_json(), "runnables": sorted(row.runnables)}
                for row in snapshot.rows_of.get(found.id, ())
            ],
        }
    )


async def samples(request: Request) -> Response:
    """Every invocation of a runnable, by machine."""
    desk, key = desk_of(request), request.path_params["key"]
    found = await desk.ask(lambda store: starts(store, key))
    if not found:
        raise HTTPException(404, "nothing was started that is called so")
    return JSONResponse(
        [
            {
                "machine": each.machine.id,
                "facts": dict(each.machine.facts),
                "starts": [
                    {**outcome_json(outcome), "log": log_address(desk.name, outcome)}
                    for outcome in each.outcomes
                ],
            }
            for each in found
        ]
    )


async def compare(request: Request) -> Response:
    """Compare any two subjects."""
    snapshot = await snapshot_of(request)
    subjects = asked_subjects(request, snapshot)
    if subjects is None:
        return JSONResponse({"a": None, "b": None, "figures": []})
    found = compare_two(snapshot.gathered, snapshot.rows_of, *subjects)
    first, second = (_subject(each) for each in subjects)
    return JSONResponse({"a": first, "b": second, "figures": [each.as_json() for each in found]})


def _subject(subject: Subject) -> dict[str, Json]:
    return {"revision": subject.revision.id, "variant": subject.variant}


async def regressions(request: Request) -> Response:
    """Regressions, the newest first."""
    desk, snapshot = desk_of(request), await snapshot_of(request)
    notes = await desk.ask(lambda store: store.notes())
    return JSONResponse([_regression(each, notes) for each in snapshot.regressions])


def _regression(found: Regression, notes: Sequence[RegressionNote]) -> dict[str, Json]:
    own = [note for note in notes if note.regression == found.key]
    return {**found.as_json(), "status": status_of(notes, found.key), "notes": [_note(note) for note in own]}


def _note(note: RegressionNote) -> dict[str, Json]:
    return {"status": note.status, "text": note.text, "author": note.author, "written": note.written}


async def say(request: Request) -> Response:
    """Store a note about a regression."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    if kind != "application/json":  # a form of another site's page cannot send that without asking first
        raise HTTPException(415, "send JSON")
    try:
        said = json.loads(await request.body())
    except (ValueError, RecursionError) as error:
        raise HTTPException(422, "this is no JSON") from error
    known = {"status", "text", "author"}
    if (
        not isinstance(said, dict)
        or not said.keys() <= known
        or not all(isinstance(each, str) for each in said.values())
    ):
        raise HTTPException(422, "send an object with status, text and author, all of them texts")
    return JSONResponse(_note(await keep(request, desk_of(request), said)), 201)


async def searches(request: Request) -> Response:
    """Every search of a study on this machine, the latest first."""
    desk, snapshot = desk_of(request), await snapshot_of(request)
    here = snapshot.gathered.view.machine.id
    return JSONResponse(
        [
            _search(each)
            for each in reversed(await desk.ask(lambda store: store.searches()))
            if each.machine == here
        ]
    )


async def search(request: Request) -> Response:
    """One search, running or ended: each step with its belief."""
    desk, snapshot = desk_of(request), await snapshot_of(request)
    here, key = snapshot.gathered.view.machine.id, request.path_params["key"]
    known = await desk.ask(lambda store: store.searches())
    found = next((each for each in known if (each.key, each.machine) == (key, here)), None)
    if found is None:
        raise HTTPException(404, "no search is called so")
    steps = await desk.ask(lambda store: store.steps(key, here))
    told = [
        {
            "number": each.number,
            "action": dict(each.action),
            "news": dict(each.news),
            "belief": dict(each.belief),
            "words": each.words,
        }
        for each in steps
    ]
    return JSONResponse({**_search(found), "steps": told})


def _search(found: SearchRecord) -> dict[str, Json]:
    return {
        "key": found.key,
        "question": dict(found.question),
        "started": found.started,
        "answer": None if found.answer is None else dict(found.answer),
    }


async def live(request: Request) -> Response:
    """What runs on a study right now."""
    await snapshot_of(request)
    found = await desk_of(request).live()
    assert found is not None
    return JSONResponse(found.as_json())
