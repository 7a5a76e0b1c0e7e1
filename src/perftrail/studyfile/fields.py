"""The fields of the model as keys of the study file."""

from __future__ import annotations

import dataclasses
import types
from dataclasses import dataclass
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from perftrail.model.field import Key

Hint = Any
"""A type as `typing` describes it, of which mypy has no notion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileKey:
    """A key that a table of the study file may have, and the dataclass field it fills."""

    field: str
    name: str
    type: Hint
    key: Key
    required: bool
    default: object = None


def keys_of(table: type) -> tuple[FileKey, ...]:
    """Give the keys of a table, in the order of the dataclass that it fills."""
    hints = get_type_hints(table, include_extras=True)
    return tuple(_file_key(item, hints[item.name]) for item in dataclasses.fields(table))


def _file_key(item: dataclasses.Field[Any], hint: Hint) -> FileKey:
    plain, key = _taken_apart(hint)
    required = item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING
    default = None if item.default is dataclasses.MISSING else item.default
    if item.default_factory is not dataclasses.MISSING:
        default = item.default_factory()
    return FileKey(
        field=item.name, name=key.name or item.name, type=plain, key=key, required=required, default=default
    )


def _taken_apart(hint: Hint) -> tuple[Hint, Key]:
    origin: object = get_origin(hint)
    if origin is not Annotated:
        raise TypeError(f"{hint} has no Key: a field of the study file needs one")
    plain, key = get_args(hint)
    return without_none(plain), key


def without_none(hint: Hint) -> Hint:
    """Give the type that a key has when it is there: TOML has no null.

    >>> without_none(int | None)
    <class 'int'>
    """
    origin: object = get_origin(hint)
    if origin is not Union and origin is not types.UnionType:
        return hint
    left = tuple(part for part in get_args(hint) if part is not type(None))
    return left[0] if len(left) == 1 else Union[left]  # noqa: UP007 - `|` cannot be applied to a tuple of types
