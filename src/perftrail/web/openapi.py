"""Describe the API as data, from which both its routes and its OpenAPI document are built."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail._version import __version__
from perftrail.model.search_record import STATUSES, Json

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from starlette.requests import Request
    from starlette.responses import Response


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
class Asked:
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
    asked: Sequence[Asked] = ()
    takes: str = ""
    status: int = 200
    refuses: Sequence[int] = (401, 404, 429, 503)


REFUSALS: Mapping[int, str] = {
    400: "What is asked for makes no sense.",
    401: "A token is needed.",
    403: "This token may not do that, or the request came from another site.",
    404: "There is no such thing.",
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
    told: dict[str, Json] = {
        "summary": each.says,
        "operationId": f"{each.method.lower()}{re.sub(r'[^a-z]+', '_', plain_path(each.path).lower())}".strip(
            "_"
        ),
        "parameters": [*map(_in_path, names), *map(_in_query, each.asked)],
        "responses": answers,
    }
    if each.takes:
        told["requestBody"] = {
            "required": True,
            "content": _json({"$ref": f"#/components/schemas/{each.takes}"}),
        }
    return told


def _in_path(name: str) -> Schema:
    return {"name": name, "in": "path", "required": True, "schema": TEXT}


def _in_query(asked: Asked) -> Schema:
    return {
        "name": asked.name,
        "in": "query",
        "required": False,
        "description": asked.says,
        "schema": asked.schema,
    }


def _json(schema: Schema) -> Schema:
    return {"application/json": {"schema": schema}}
