"""Describe the API's operations as an OpenAPI document; its schemas are those of the answers' types."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

from perftrail._version import __version__
from perftrail.model.json_data import Schema, Schemas

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from starlette.requests import Request
    from starlette.responses import Response


class ErrorJson(TypedDict):
    """Why a request has no answer."""

    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryParameter:
    """A parameter after the question mark of an address."""

    name: str
    says: str
    kind: type


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An operation of the API: `answers` is the type of its answer, `takes` that of its request's body."""

    path: str
    says: str
    answers: object
    answer: Callable[[Request], Awaitable[Response]]
    method: str = "GET"
    asked: Sequence[QueryParameter] = ()
    takes: object = None
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
    schemas = Schemas("#/components/schemas/")
    paths: dict[str, dict[str, Schema]] = {}
    for each in operations:
        paths.setdefault(plain_path(each.path), {})[each.method.lower()] = _operation(each, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "perftrail",
            "version": __version__,
            "description": "What was measured of a study, what it says, and what is done to it right now.",
        },
        "paths": {**paths},
        "components": {
            "schemas": dict(sorted(schemas.definitions.items())),
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


def _operation(each: Operation, schemas: Schemas) -> Schema:
    names = re.findall(r"{(\w+)", each.path)
    answers: dict[str, Schema] = {
        str(each.status): {"description": each.says, "content": _json(schemas.of(each.answers))}
    }
    for status in each.refuses:
        kept: Schema = {"description": REFUSALS[status]}
        # what is refused before it comes to the API is said in plain words
        if status not in (413, 429):
            kept["content"] = _json(schemas.of(ErrorJson))
        answers[str(status)] = kept
    data: Schema = {
        "summary": each.says,
        "operationId": f"{each.method.lower()}{re.sub(r'[^a-z]+', '_', plain_path(each.path).lower())}".strip(
            "_"
        ),
        "parameters": [
            *map(_in_path, names),
            *(_in_query(parameter, schemas.of(parameter.kind)) for parameter in each.asked),
        ],
        "responses": answers,
    }
    if each.takes is not None:
        data["requestBody"] = {"required": True, "content": _json(schemas.of(each.takes))}
    return data


def _in_path(name: str) -> Schema:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _in_query(asked: QueryParameter, schema: Schema) -> Schema:
    return {
        "name": asked.name,
        "in": "query",
        "required": False,
        "description": asked.says,
        "schema": schema,
    }


def _json(schema: Schema) -> Schema:
    return {"application/json": {"schema": schema}}
