"""What the API offers, as data: its routes and its OpenAPI document are both made of this, so that they agree."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail import __version__
from perftrail.web.schemas import SCHEMAS, TEXT, several

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from perftrail.model.search_record import Json
    from perftrail.web.schemas import Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Something that an address may say after its question mark."""

    name: str
    says: str
    schema: Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One thing that the API does: `answers` is the name of a schema, of a list of them where `many`."""

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
    """Write the OpenAPI document of some operations."""
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
