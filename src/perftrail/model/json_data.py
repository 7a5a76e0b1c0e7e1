"""Plain JSON data: its type, conversion from and to frozen values by the types of their fields, and JSON Schema."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from cattrs import BaseValidationError
from cattrs.preconf.json import make_converter

if TYPE_CHECKING:
    from cattrs import Converter


Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
"""Plain data: what JSON can contain."""

Kind = TypeVar("Kind")


def finite(data: object) -> object:
    """Return plain data with null instead of numbers that are not finite, which JSON cannot contain."""
    if isinstance(data, Mapping):
        return {name: finite(each) for name, each in data.items()}
    if isinstance(data, list | tuple):
        return [*map(finite, data)]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def to_plain(value: object) -> dict[str, Json]:
    """Return a dataclass instance as plain data, by the names of its fields."""
    return cast("dict[str, Json]", _converter().unstructure(value))


def json_of(typed: Mapping[str, object]) -> dict[str, Json]:
    """Return a typed dictionary as plain JSON data."""
    return cast("dict[str, Json]", typed)


def from_plain(kind: type[Kind], data: Mapping[str, Json]) -> Kind:
    """Return the instance of a dataclass that `to_plain` returned as `data`. Raises `ValueError` for other data."""
    try:
        return _converter().structure(data, kind)
    except (BaseValidationError, KeyError, TypeError) as error:
        raise ValueError(f"not the data of a {kind.__name__}") from error


@cache
def _converter() -> Converter:
    converter = make_converter()
    # JSON has no infinite numbers, but Python reads "inf".
    converter.register_unstructure_hook(float, lambda each: each if math.isfinite(each) else str(each))
    return converter


Schema = dict[str, Any]
"""A JSON Schema as plain data. Any: its values are of every JSON type."""

_SCALARS: Mapping[object, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    NoneType: {"type": "null"},
    object: {},
}


class Schemas:
    """Schemas of types; each typed dictionary and data class has a definition with its name.

    `references` is the address of the definitions in the document that will contain them.

    >>> schemas = Schemas()
    >>> schemas.of(list[int | None])
    {'type': 'array', 'items': {'anyOf': [{'type': 'integer'}, {'type': 'null'}]}}
    """

    def __init__(self, references: str = "#/$defs/") -> None:
        self._references = references
        self._kinds: dict[str, object] = {}
        self.definitions: dict[str, Schema] = {}

    def of(self, kind: Any) -> Schema:  # noqa: ANN401 - a type, in any of its forms
        """Return the schema of a type. Raises `TypeError` for a type that is not JSON."""
        if get_origin(kind) is not None:
            return self._composed(get_origin(kind), get_args(kind), kind)
        if kind in _SCALARS:
            return {**_SCALARS[kind]}
        if is_typeddict(kind) or (is_dataclass(kind) and isinstance(kind, type)):
            return self._named(kind)
        if isinstance(kind, type) and issubclass(kind, StrEnum):
            return {"enum": [each.value for each in kind]}
        raise TypeError(f"{kind} is not a type of JSON")

    def _composed(self, origin: object, parts: tuple[Any, ...], kind: object) -> Schema:
        if origin is Annotated:
            more = parts[1] if isinstance(parts[1], dict) else {"description": parts[1]}
            return {**self.of(parts[0]), **more}
        if origin is Literal:
            return {"enum": [*parts]}
        if origin in (Union, UnionType):
            return {"anyOf": [self.of(part) for part in parts if not (part is int and float in parts)]}
        if origin in (list, Sequence) or (origin is tuple and parts[1:] == (...,)):
            return {"type": "array", "items": self.of(parts[0])}
        if origin is tuple:
            return {"type": "array", "prefixItems": [self.of(part) for part in parts], "minItems": len(parts)}
        if origin in (dict, Mapping):
            return {"type": "object", "additionalProperties": self.of(parts[1])}
        raise TypeError(f"{kind} is not a type of JSON")

    def _named(self, kind: type) -> Schema:
        name = kind.__name__.removesuffix("Json")
        if self._kinds.setdefault(name, kind) is not kind:
            raise TypeError(f"{kind.__module__} and {self._kinds[name].__module__}: two types named {name}")
        if name not in self.definitions:
            self.definitions[name] = {}  # its own fields may refer to it
            self.definitions[name] = self._object(kind)
        return {"$ref": f"{self._references}{name}"}

    def _object(self, kind: type) -> Schema:
        hints = get_type_hints(kind, include_extras=True)
        if is_dataclass(kind):
            hints = {each.name: hints[each.name] for each in fields(kind)}
        required = getattr(kind, "__required_keys__", hints.keys())
        return {
            "type": "object",
            "description": " ".join(inspect.cleandoc(kind.__doc__ or "").split("\n\n")[0].split()),
            "properties": {name: self.of(hint) for name, hint in hints.items()},
            "required": [name for name in hints if name in required],
            "additionalProperties": False,
        }


def document(kind: Any, title: str) -> Schema:  # noqa: ANN401 - a type, in any of its forms
    """Return the JSON Schema (draft 2020-12) of one type, with the definitions it needs."""
    schemas = Schemas()
    found = schemas.of(kind)
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect, "title": title, **found, "$defs": schemas.definitions}
