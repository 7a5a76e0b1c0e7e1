"""The OpenAPI document of the API's operations. It generates the schemas from the types of the answers."""

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
    """The reason why a request was refused."""

    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryParameter:
    """A parameter after the question mark of an address."""

    name: str
    summary: str
    kind: type


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An operation of the API. `answer_type` is the type of its answer, `body_type` the type of the request's body."""

    path: str
    summary: str
    answer_type: object
    answer: Callable[[Request], Awaitable[Response]]
    method: str = "GET"
    parameters: Sequence[QueryParameter] = ()
    body_type: object = None
    status: int = 200
    errors: Sequence[int] = (400, 401, 404, 429, 503)


REFUSALS: Mapping[int, str] = {
    400: "The request is not valid.",
    401: "The request needs a token.",
    403: "This token has no permission, or another site sent the request.",
    404: "Not found.",
    413: "The request is too long.",
    415: "The request is not JSON.",
    422: "A value is not valid.",
    429: "Too many requests.",
    503: "perftrail is reading the study, or cannot read it.",
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
            "description": "The samples of studies, their answers, and their running commands.",
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
    """Return a route's path in OpenAPI's notation.

    >>> plain_path("/api/studies/{study}/revisions/{revision:path}")
    '/api/studies/{study}/revisions/{revision}'
    """
    return re.sub(r":\w+}", "}", path)


def _operation(each: Operation, schemas: Schemas) -> Schema:
    names = re.findall(r"{(\w+)", each.path)
    answer_type: dict[str, Schema] = {
        str(each.status): {"description": each.summary, "content": _json(schemas.of(each.answer_type))}
    }
    for status in each.errors:
        kept: Schema = {"description": REFUSALS[status]}
        # the guard refuses these before the API, as plain text
        if status not in (413, 429):
            kept["content"] = _json(schemas.of(ErrorJson))
        answer_type[str(status)] = kept
    data: Schema = {
        "summary": each.summary,
        "operationId": f"{each.method.lower()}{re.sub(r'[^a-z]+', '_', plain_path(each.path).lower())}".strip(
            "_"
        ),
        "parameters": [
            *map(_in_path, names),
            *(_in_query(parameter, schemas.of(parameter.kind)) for parameter in each.parameters),
        ],
        "responses": answer_type,
    }
    if each.body_type is not None:
        data["requestBody"] = {"required": True, "content": _json(schemas.of(each.body_type))}
    return data


def _in_path(name: str) -> Schema:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _in_query(parameter: QueryParameter, schema: Schema) -> Schema:
    return {
        "name": parameter.name,
        "in": "query",
        "required": False,
        "description": parameter.summary,
        "schema": schema,
    }


def _json(schema: Schema) -> Schema:
    return {"application/json": {"schema": schema}}
