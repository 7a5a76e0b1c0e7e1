"""From the plain data of a TOML file to the frozen values of the model, every misfit told with its path."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin

from cattrs import (
    ClassValidationError,
    Converter,
    ForbiddenExtraKeysError,
    IterableValidationError,
    IterableValidationNote,
)
from cattrs.gen import make_dict_structure_fn, override

from perftrail.model.benchmark import Value
from perftrail.model.field import Key
from perftrail.model.measurement import Quiet
from perftrail.model.study import Invocations
from perftrail.model.wording import listed, nearest, quoted
from perftrail.studyfile import values
from perftrail.studyfile.document import Document
from perftrail.studyfile.fields import FileKey, Hint, keys_of

if TYPE_CHECKING:
    from perftrail.studyfile.positions import KeyPath

StandIn = str | dict[str, object]
Place = TypeVar("Place", int, str)
Hook = Callable[[object, Hint], Any]
"""What cattrs calls with a value and its type. Any: each type's hook gives that type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Misfit:
    """A value that is not what its key takes.

    `stand_in` is what a required key can be set to so that the rest can still be checked; `meant` is the
    key that an unknown one was probably meant to be.
    """

    path: KeyPath
    message: str
    stand_in: StandIn | None = None
    meant: str | None = None


def structure(data: Mapping[str, Any]) -> Document | tuple[Misfit, ...]:
    """Give the document that plain data holds, or everything about it that does not fit."""
    try:
        return _converter().structure(data, Document)
    except ClassValidationError as error:
        return tuple(_misfits(error, (), None))


@functools.cache
def _converter() -> Converter:
    converter = Converter(detailed_validation=True)
    converter.register_structure_hook_factory(
        lambda kind: is_dataclass(kind) and kind not in _PLAIN, lambda kind: _table(kind, converter)
    )
    return converter


def _table(kind: Hint, converter: Converter) -> Hook:
    fields: dict[str, Any] = {  # Any: mypy takes them for the function's other keyword arguments
        key.field: override(rename=key.name, struct_hook=_hook(_reader(key.type, key.key, converter)))
        for key in keys_of(kind)
    }
    inner = make_dict_structure_fn(kind, converter, _cattrs_forbid_extra_keys=True, **fields)

    def read(value: object, _: Hint) -> object:
        if not isinstance(value, dict):
            raise values.Wrong(f"expected a table, not {values.described(value)}")
        return inner(value, kind)

    return read


def _hook(read: values.Reader) -> Hook:
    return lambda value, _: read(value)


def _reader(kind: Hint, key: Key, converter: Converter) -> values.Reader:
    """Give the reader of a type as the model writes them; the study file has no others."""
    if kind in _PLAIN or key.form == "texts":
        return values.formed(key, _PLAIN.get(kind, values.text))
    origin: object = get_origin(kind)
    parts = get_args(kind)
    if origin is Literal:
        return values.choice(parts)
    if origin is tuple:
        return _list(_reader(parts[0], key, converter))
    if origin is Mapping:
        return _names(_reader(parts[1], key, converter), key.names)
    assert is_dataclass(kind), kind
    hook = converter.get_structure_hook(kind)
    return lambda value: hook(value, kind)


_PLAIN: Mapping[Hint, values.Reader] = {
    str: values.text,
    bool: values.flag,
    int: values.whole,
    float: values.real,
    Value: values.parameter_value,
    Invocations: values.whole,
    Quiet: values.text,
}


def _list(read: values.Reader) -> values.Reader:
    def items(value: object) -> tuple[Any, ...]:
        if not isinstance(value, list):
            hint = "" if isinstance(value, dict) else "; put it in [ ]"
            raise values.Wrong(f"expected a list, not {values.described(value)}{hint}")
        return tuple(each for _, each in _every(enumerate(value), read))

    return items


def _names(read: values.Reader, rule: str | None) -> values.Reader:
    def named(value: object) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            raise values.Wrong(f"expected a table, not {values.described(value)}")
        return dict(_every(value.items(), read, rule))

    return named


def _every(
    items: Iterable[tuple[Place, object]], read: values.Reader, rule: str | None = None
) -> list[tuple[Place, Any]]:
    """Read every item, and tell of all that are wrong the way cattrs does."""
    result: list[tuple[Place, Any]] = []
    errors: list[Exception] = []

    for place, value in items:
        try:
            values.check_name(str(place), rule)
        except values.Wrong as error:
            errors.append(_noted(error, place))
        try:
            result.append((place, read(value)))
        except (values.Wrong, ClassValidationError, IterableValidationError) as error:
            errors.append(_noted(error, place))
    if errors:
        raise IterableValidationError("items", errors, object)
    return result


def _noted(error: Exception, place: int | str) -> Exception:
    error.add_note(IterableValidationNote(f"item {place}", place, object))
    return error


def _misfits(error: Exception, path: KeyPath, known: FileKey | None) -> Iterator[Misfit]:
    """Walk the tree of errors that cattrs raises."""
    if isinstance(error, ClassValidationError):
        keys = {key.field: key for key in keys_of(error.cl)}
        noted, others = error.group_exceptions()
        for inner, note in noted:
            yield from _misfits_at_key(inner, path, keys[note.name])
        for inner in others:
            yield from _unknown_keys(inner, path)
    elif isinstance(error, IterableValidationError):
        noted_items, _ = error.group_exceptions()
        for inner, place in noted_items:
            yield from _misfits_of_item(inner, path, place.index)
    else:
        assert isinstance(error, values.Wrong), error
        yield Misfit(path=path, message=str(error), stand_in=known.key.stand_in if known else None)


def _misfits_at_key(error: Exception, path: KeyPath, key: FileKey) -> Iterator[Misfit]:
    if isinstance(error, KeyError):
        message = f"missing; {key.key.doc[0].lower()}{key.key.doc[1:].rstrip('.')}"
        stand_in: StandIn = {} if key.key.stand_in is None else key.key.stand_in
        yield Misfit(path=(*path, key.name), message=message, stand_in=stand_in)
    else:
        yield from _misfits(error, (*path, key.name), key)


def _misfits_of_item(error: Exception, path: KeyPath, index: int | str) -> Iterator[Misfit]:
    if isinstance(error, values.Wrong) and isinstance(index, int):
        yield Misfit(path=path, message=f"item {index + 1}: {error}")
    else:
        yield from _misfits(error, (*path, index), None)


def _unknown_keys(error: Exception, path: KeyPath) -> Iterator[Misfit]:
    assert isinstance(error, ForbiddenExtraKeysError), error
    known = [key.name for key in keys_of(error.cl)]
    for name in sorted(error.extra_fields):
        near = nearest(name, known)
        hint = (
            f"did you mean {quoted(near)}?" if near else f"known are {listed(known).replace(' or ', ' and ')}"
        )
        yield Misfit(path=(*path, name), message=f"unknown key; {hint}", meant=near)
