"""JSON Schema of study files, generated from the model, for completion and checks in editors."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any, Literal, get_args, get_origin

from perftrail.model.benchmark import Value
from perftrail.model.field import LONGEST_NAME, Key
from perftrail.model.measurement import Quiet
from perftrail.model.metrics import OWN_METRICS, Metric
from perftrail.model.quantity import DURATION, SIZE
from perftrail.model.study import Invocations
from perftrail.studyfile.structure import Document, FileKey, Hint, keys_of

Schema = dict[str, Any]
"""A JSON Schema as plain data. Any: its values are of every JSON type."""

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TAKEN_ELSEWHERE: Schema = {
    "required": ["source"],
    "properties": {"source": {"required": ["kind"], "properties": {"kind": {"const": "samples"}}}},
}
"""A study of imported samples, which runs nothing."""
_LARGEST_WHOLE = 2**63 - 1


def schema() -> Schema:
    """Return the JSON Schema (draft 2020-12) of valid study files.

    It does not cover rules across several keys, such as the names in an expression: `load` checks these.
    """
    measured = {"if": _TAKEN_ELSEWHERE, "else": {"required": ["benchmark"]}}
    return {"$schema": DIALECT, "title": "perftrail study", **_table(Document), **measured}


def _table(kind: type) -> Schema:
    keys = keys_of(kind)
    result: Schema = {
        "type": "object",
        "description": described(kind),
        "properties": {key.name: _key(key) for key in keys},
        "additionalProperties": False,
    }
    required = [key.name for key in keys if key.required]
    return {**result, "required": required} if required else result


def described(kind: type) -> str:
    """Return the first paragraph of a table's docstring in the model."""
    return inspect.cleandoc(kind.__doc__ or "").split("\n\n")[0].replace("\n", " ")


def _key(key: FileKey) -> Schema:
    result = {**_typed(key.type, key.key), "description": key.key.doc}
    default = default_of(key)
    return result if default is None else {**result, "default": default}


def default_of(key: FileKey) -> str | int | float | None:
    """Return the TOML value of a missing key; `None` if it has no value."""
    if isinstance(key.default, Invocations | Quiet):
        return str(key.default)
    return key.default if isinstance(key.default, str | int | float) and key.default != "" else None


def _typed(kind: Hint, key: Key) -> Schema:
    if key.form != "plain":
        return {"anyOf": _FORMS[key.form](key)}
    origin: object = get_origin(kind)
    parts = get_args(kind)
    if origin is Literal:
        return {"enum": list(parts)}
    if origin is tuple:
        return {"type": "array", "items": _typed(parts[0], key)}
    if origin is Mapping:
        return _names(parts[1], key)
    return _table(kind) if is_dataclass(kind) and isinstance(kind, type) else _scalar(kind, key)


def _names(value: Hint, key: Key) -> Schema:
    names: Schema = {"pattern": key.names, "maxLength": LONGEST_NAME} if key.names else {}
    if value is Metric:
        names["not"] = {"enum": list(OWN_METRICS)}
    return {"type": "object", "propertyNames": names, "additionalProperties": _typed(value, key)}


def _scalar(kind: Hint, key: Key) -> Schema:
    if kind == Value:
        return {"type": ["number", "string"]}
    if kind is str:
        return {"type": "string"}
    if kind is bool:
        return {"type": "boolean"}
    return {"type": "integer" if kind is int else "number", **_bounds(key)}


def _bounds(key: Key) -> Schema:
    bounds = {"exclusiveMinimum": key.above, "exclusiveMaximum": key.below, "minimum": key.least}
    return {name: bound for name, bound in bounds.items() if bound is not None}


def _duration(key: Key) -> list[Schema]:
    return [{"type": "number", **_bounds(key)}, {"type": "string", "pattern": DURATION}]


def _size(key: Key) -> list[Schema]:
    return [
        {"type": "integer", **_bounds(key), "maximum": _LARGEST_WHOLE},
        {"type": "string", "pattern": SIZE},
    ]


def _invocations(_: Key) -> list[Schema]:
    return [
        {"type": "integer", "minimum": 1},
        {"type": "string", "pattern": r"^\s*[0-9]+\s*(\.\.\s*[0-9]+\s*)?$"},
    ]


def _quiet(_: Key) -> list[Schema]:
    return [{"enum": ["mark", "refuse"]}, {"type": "string", "pattern": rf"^\s*wait {DURATION[1:]}"}]


def _texts(_: Key) -> list[Schema]:
    return [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]


_FORMS = {
    "duration": _duration,
    "size": _size,
    "invocations": _invocations,
    "quiet": _quiet,
    "texts": _texts,
}
