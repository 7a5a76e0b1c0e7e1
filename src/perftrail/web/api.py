"""The API: the content of the pages, for programs, described as data.

Its routes and its OpenAPI document are built from the same descriptions.
"""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from perftrail._version import __version__
from perftrail.model.build import Failure
from perftrail.model.search_record import STATUSES, Json
from perftrail.present.dashboard.regressions import status_of
from perftrail.present.dashboard.subjects import compare_two, outcome_json, starts
from perftrail.web.asked import (
    asked_subjects,
    part_of,
    revision_of,
    series_of,
    served_study_of,
    snapshot_of,
    web,
    whole_number,
)
from perftrail.web.pages import build_log_address, keep, log_address

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from perftrail.model.search_record import RegressionNote, SearchRecord
    from perftrail.model.subject import Subject
    from perftrail.present.dashboard.metric_history import MetricHistory
    from perftrail.present.dashboard.regressions import Regression


MOST_POINTS = 5000


async def studies(request: Request) -> Response:
    """Every study of this server."""
    found = [
        (served_study, await asyncio.to_thread(served_study.about))
        for served_study in web(request).served_studies.values()
    ]
    return JSONResponse(
        [
            {"name": served_study.name, "title": about.title, "running": about.running}
            for served_study, about in found
        ]
    )


async def overview(request: Request) -> Response:
    """A study's answer."""
    served_study, snapshot = served_study_of(request), await snapshot_of(request)
    page = snapshot.page
    sections = () if page is None else page.sections
    tables = [table for section in sections if section.name == "claims" for table in section.tables]
    return JSONResponse(
        {
            "name": served_study.name,
            "title": snapshot.gathered.view.study.title,
            "taken": snapshot.taken,
            "reading": served_study.reading,
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
    return JSONResponse([_figure(name, series) for name, series in snapshot.histories.items()])


def _figure(name: str, series: MetricHistory) -> dict[str, Json]:
    followed = series.followed
    return {
        "name": name,
        "benchmark": followed.benchmark,
        "metric": followed.metric,
        "point": dict(followed.point.values),
        "unit": followed.unit,
        "better": followed.better,
        "measured": len(series.points),
    }


async def history(request: Request) -> Response:
    """A metric along a part of the history."""
    snapshot, name = await snapshot_of(request), request.path_params["figure"]
    series = series_of(snapshot, name)
    part = part_of(request, series)
    most = max(1, min(MOST_POINTS, whole_number(request, "points", 400)))
    return JSONResponse(
        {
            "figure": _figure(name, series),
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
                for each in series.within(part.first, part.last, most=most)
            ],
            "changes": [
                {
                    "revision": each.row.subject.revision.id,
                    "position": each.point.position,
                    "variant": each.row.subject.variant,
                    "effect": {"value": each.point.effect, "low": each.point.low, "high": each.point.high},
                }
                for each in series.changed(part.first, part.last)
            ],
        }
    )


async def revision(request: Request) -> Response:
    """One revision: its builds and all its metrics."""
    served_study, snapshot = served_study_of(request), await snapshot_of(request)
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
                    "log": build_log_address(served_study.name, each),
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
    served_study, key = served_study_of(request), request.path_params["key"]
    found = await served_study.ask(lambda store: starts(store, key))
    if not found:
        raise HTTPException(404, "nothing was started that is called so")
    return JSONResponse(
        [
            {
                "machine": each.machine.id,
                "facts": dict(each.machine.facts),
                "starts": [
                    {**outcome_json(outcome), "log": log_address(served_study.name, outcome)}
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
    served_study, snapshot = served_study_of(request), await snapshot_of(request)
    notes = await served_study.ask(lambda store: store.notes())
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
    return JSONResponse(_note(await keep(request, served_study_of(request), said)), 201)


async def searches(request: Request) -> Response:
    """Every search of a study on this machine, the latest first."""
    served_study, snapshot = served_study_of(request), await snapshot_of(request)
    here = snapshot.gathered.view.machine.id
    return JSONResponse(
        [
            _search(each)
            for each in reversed(await served_study.ask(lambda store: store.searches()))
            if each.machine == here
        ]
    )


async def search(request: Request) -> Response:
    """One search, running or ended: each step with its belief."""
    served_study, snapshot = served_study_of(request), await snapshot_of(request)
    here, key = snapshot.gathered.view.machine.id, request.path_params["key"]
    known = await served_study.ask(lambda store: store.searches())
    found = next((each for each in known if (each.key, each.machine) == (key, here)), None)
    if found is None:
        raise HTTPException(404, "no search is called so")
    steps = await served_study.ask(lambda store: store.steps(key, here))
    parts = [
        {
            "number": each.number,
            "action": dict(each.action),
            "news": dict(each.news),
            "belief": dict(each.belief),
            "words": each.words,
        }
        for each in steps
    ]
    return JSONResponse({**_search(found), "steps": parts})


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
    found = await served_study_of(request).live()
    assert found is not None
    return JSONResponse(found.as_json())


Schema = dict[str, Json]

TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
FLAG: Schema = {"type": "boolean"}


def maybe(schema: Schema) -> Schema:
    """Return the schema of a value that may be null."""
    return {"anyOf": [schema, {"type": "null"}]}


def several(schema: Schema) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": schema}


def record(**fields: Schema) -> Schema:
    """Return the schema of an object with exactly these fields."""
    return {
        "type": "object",
        "properties": {**fields},
        "required": [*fields],
        "additionalProperties": False,
    }


def by_name(schema: Schema) -> Schema:
    """Return the schema of an object with metrics as field names."""
    return {"type": "object", "additionalProperties": schema}


INTERVAL = record(value=NUMBER, low=NUMBER, high=NUMBER)

SEARCH: Mapping[str, Schema] = {
    "key": TEXT,
    "question": {"type": "object"},
    "started": TEXT,
    "answer": maybe({"type": "object"}),
}
STEP = record(
    number=WHOLE,
    action={"type": "object"},
    news={"type": "object"},
    belief={"type": "object"},
    words=TEXT,
)

SCHEMAS: Mapping[str, Schema] = {
    "Error": record(error=TEXT),
    "Study": record(name=TEXT, title=TEXT, running=FLAG),
    "Verdict": record(
        sentence=TEXT,
        tone={"type": "string", "enum": ["better", "worse", "plain", "unclear"]},
        facts=several(record(label=TEXT, text=TEXT)),
        notes=several(TEXT),
    ),
    "Overview": record(
        name=TEXT,
        title=TEXT,
        taken=TEXT,
        reading=FLAG,
        stored=by_name(WHOLE),
        verdict=maybe({"$ref": "#/components/schemas/Verdict"}),
        answer=maybe({"type": "object"}),
        claims=several(record(claim=TEXT, verdict=TEXT, found=TEXT)),
    ),
    "Figure": record(
        name=TEXT,
        benchmark=TEXT,
        metric=TEXT,
        point={"type": "object"},
        unit=TEXT,
        better={"type": "string", "enum": ["lower", "higher"]},
        measured=WHOLE,
    ),
    "Point": record(
        position=WHOLE,
        last=WHOLE,
        of=WHOLE,
        subject=TEXT,
        revision=TEXT,
        value=NUMBER,
        low=NUMBER,
        high=NUMBER,
        count=WHOLE,
    ),
    "Change": record(revision=TEXT, position=WHOLE, variant=TEXT, effect=INTERVAL),
    "History": record(
        figure={"$ref": "#/components/schemas/Figure"},
        length=WHOLE,
        first=WHOLE,
        last=WHOLE,
        points=several({"$ref": "#/components/schemas/Point"}),
        changes=several({"$ref": "#/components/schemas/Change"}),
    ),
    "Row": record(
        revision=TEXT,
        label=TEXT,
        variant=TEXT,
        benchmark=TEXT,
        point={"type": "object"},
        metric=TEXT,
        unit=TEXT,
        count=WHOLE,
        failures=WHOLE,
        flags=several(TEXT),
        noise=TEXT,
        outdated=TEXT,
        estimate=maybe({"type": "object"}),
        runnables=several(TEXT),
    ),
    "Revision": record(
        id=TEXT,
        position=WHOLE,
        label=TEXT,
        time=TEXT,
        message=TEXT,
        builds=several(
            record(key=TEXT, variant=TEXT, benchmark=TEXT, finished=TEXT, succeeded=FLAG, log=maybe(TEXT))
        ),
        figures=several({"$ref": "#/components/schemas/Row"}),
    ),
    "Start": record(
        phase={"type": "string", "enum": ["warmup", "sample"]},
        ordinal=WHOLE,
        started=TEXT,
        seconds=NUMBER,
        values=by_name(NUMBER),
        flags=several(TEXT),
        failure=maybe(record(stage=TEXT, message=TEXT)),
        log=maybe(TEXT),
    ),
    "Starts": record(
        machine=TEXT, facts=by_name(TEXT), starts=several({"$ref": "#/components/schemas/Start"})
    ),
    "Comparison": record(
        figure=TEXT,
        first=TEXT,
        second=TEXT,
        reason=TEXT,
        comparison=maybe(
            record(
                effect=INTERVAL,
                confidence=NUMBER,
                count=WHOLE,
                in_turns=FLAG,
                verdict={"type": "string", "enum": ["faster", "slower", "same", "unclear"]},
                words=TEXT,
            )
        ),
    ),
    "Compared": record(
        a=maybe(record(revision=TEXT, variant=TEXT)),
        b=maybe(record(revision=TEXT, variant=TEXT)),
        figures=several({"$ref": "#/components/schemas/Comparison"}),
    ),
    "Note": record(status={"type": "string", "enum": [*STATUSES]}, text=TEXT, author=TEXT, written=TEXT),
    "Regression": record(
        id=TEXT,
        figure=TEXT,
        benchmark=TEXT,
        metric=TEXT,
        variant=TEXT,
        position=WHOLE,
        revisions=several(TEXT),
        ratio=NUMBER,
        effect=TEXT,
        levels=TEXT,
        certainty=TEXT,
        found_by={"type": "string", "enum": ["search", "history"]},
        better_since=maybe(TEXT),
        status={"type": "string", "enum": [*STATUSES]},
        notes=several({"$ref": "#/components/schemas/Note"}),
    ),
    "Search": record(**SEARCH),
    "SearchSteps": record(**SEARCH, steps=several(STEP)),
    "Live": record(
        running=maybe(TEXT),
        since=maybe(TEXT),
        invocations=WHOLE,
        latest=several(record(of=TEXT, runnable=TEXT, gave=TEXT, failed=FLAG)),
        progress=maybe(
            record(
                done=WHOLE,
                left_least=WHOLE,
                left_most=WHOLE,
                builds=WHOLE,
                seconds_least=maybe(NUMBER),
                seconds_most=maybe(NUMBER),
            )
        ),
        search=maybe(record(metric=TEXT, steps=WHOLE, last=TEXT, believed=TEXT)),
    ),
    "NewNote": {
        "type": "object",
        "properties": {
            "status": {"type": "string", "enum": [*STATUSES]},
            "text": {"type": "string", "maxLength": 2000},
            "author": {"type": "string", "maxLength": 80},
        },
        "required": ["status"],
        "additionalProperties": False,
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryParameter:
    """A parameter after the question mark of an address."""

    name: str
    says: str
    schema: Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An operation of the API: `answers` is the name of a schema, or of the items of a list if `many`."""

    path: str
    says: str
    answers: str
    answer: Callable[[Request], Awaitable[Response]]
    many: bool = False
    method: str = "GET"
    asked: Sequence[QueryParameter] = ()
    takes: str = ""
    status: int = 200
    refuses: Sequence[int] = (401, 404, 429, 503)


REFUSALS: Mapping[int, str] = {
    400: "What is asked for makes no sense.",
    401: "A token is needed.",
    403: "This token may not do that, or the request came from another site.",
    404: "Not found.",
    413: "It is too long.",
    415: "It is not JSON.",
    422: "It says nothing that is known.",
    429: "Too many requests.",
    503: "The study is being read, or cannot be.",
}


def document(operations: Sequence[Operation]) -> Schema:
    """Return the OpenAPI document of some operations."""
    paths: dict[str, dict[str, Json]] = {}
    for each in operations:
        paths.setdefault(plain_path(each.path), {})[each.method.lower()] = _operation(each)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "perftrail",
            "version": __version__,
            "description": "What was measured of a study, what it says, and what is done to it right now.",
        },
        "paths": {**paths},
        "components": {
            "schemas": {**SCHEMAS},
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "visit": {"type": "apiKey", "in": "cookie", "name": "perftrail"},
            },
        },
        "security": [{"token": []}, {"visit": []}, {}],
    }


def plain_path(path: str) -> str:
    """Give a route's path as OpenAPI writes it.

    >>> plain_path("/api/studies/{study}/revisions/{revision:path}")
    '/api/studies/{study}/revisions/{revision}'
    """
    return re.sub(r":\w+}", "}", path)


def _operation(each: Operation) -> Schema:
    names = re.findall(r"{(\w+)", each.path)
    schema: Schema = (
        {"$ref": f"#/components/schemas/{each.answers}"} if each.answers in SCHEMAS else {"type": "object"}
    )
    answers: dict[str, Json] = {
        str(each.status): {
            "description": each.says,
            "content": _json(several(schema) if each.many else schema),
        }
    }
    for status in each.refuses:
        kept: dict[str, Json] = {"description": REFUSALS[status]}
        # what is refused before it comes to the API is said in plain words
        if status not in (413, 429):
            kept["content"] = _json({"$ref": "#/components/schemas/Error"})
        answers[str(status)] = kept
    data: dict[str, Json] = {
        "summary": each.says,
        "operationId": f"{each.method.lower()}{re.sub(r'[^a-z]+', '_', plain_path(each.path).lower())}".strip(
            "_"
        ),
        "parameters": [*map(_in_path, names), *map(_in_query, each.asked)],
        "responses": answers,
    }
    if each.takes:
        data["requestBody"] = {
            "required": True,
            "content": _json({"$ref": f"#/components/schemas/{each.takes}"}),
        }
    return data


def _in_path(name: str) -> Schema:
    return {"name": name, "in": "path", "required": True, "schema": TEXT}


def _in_query(asked: QueryParameter) -> Schema:
    return {
        "name": asked.name,
        "in": "query",
        "required": False,
        "description": asked.says,
        "schema": asked.schema,
    }


def _json(schema: Schema) -> Schema:
    return {"application/json": {"schema": schema}}
