"""Conversion of TOML data to the model, with the path of every value that does not fit (a misfit).

`keys_of` lists the keys of a table. Readers of single values are strict about types, and their messages name the
expected value. `Document` is the shape of the file, and `structure` converts the data.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import re
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, is_dataclass
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from cattrs import (
    ClassValidationError,
    Converter,
    ForbiddenExtraKeysError,
    IterableValidationError,
    IterableValidationNote,
)
from cattrs.gen import make_dict_structure_fn, override

from perftrail.model.benchmark import Benchmark, Value
from perftrail.model.field import AXIS, LONGEST_NAME, METRIC, NAME, NAME_RULES, Key
from perftrail.model.measurement import Quiet
from perftrail.model.metrics import Derived
from perftrail.model.notation import parse_duration, parse_fraction, parse_numbers, parse_size
from perftrail.model.recipe import Build, Variant
from perftrail.model.sandbox import Sandbox
from perftrail.model.service import Service
from perftrail.model.source import MAIN, Source
from perftrail.model.study import Claim, FindPolicy, Invocations, MeasurePolicy, WatchPolicy
from perftrail.model.suite import Suite
from perftrail.model.wording import listed, nearest, quoted, suggestion

if TYPE_CHECKING:
    from perftrail.studyfile.key_lines import KeyPath


Hint = Any
"""A type as `typing` describes it; mypy has no type for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileKey:
    """A key of a table in the study file, and its dataclass field."""

    field: str
    name: str
    type: Hint
    key: Key
    required: bool
    default: object = None


def keys_of(table: type) -> tuple[FileKey, ...]:
    """Return the keys of a table, in the order of its dataclass."""
    hints = get_type_hints(table, include_extras=True)
    return tuple(_file_key(item, hints[item.name]) for item in dataclasses.fields(table))


def _file_key(item: dataclasses.Field[Any], hint: Hint) -> FileKey:
    plain, key = _split_annotation(hint)
    required = item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING
    default = None if item.default is dataclasses.MISSING else item.default
    if item.default_factory is not dataclasses.MISSING:
        default = item.default_factory()
    return FileKey(
        field=item.name, name=key.name or item.name, type=plain, key=key, required=required, default=default
    )


def _split_annotation(hint: Hint) -> tuple[Hint, Key]:
    origin: object = get_origin(hint)
    if origin is not Annotated:
        raise TypeError(f"{hint} has no Key: a field of the study file needs one")
    plain, key = get_args(hint)
    return without_none(plain), key


def without_none(hint: Hint) -> Hint:
    """Return the type of a present key: TOML has no null.

    >>> without_none(int | None)
    <class 'int'>
    """
    origin: object = get_origin(hint)
    if origin is not Union and origin is not types.UnionType:
        return hint
    left = tuple(part for part in get_args(hint) if part is not type(None))
    return left[0] if len(left) == 1 else Union[left]  # noqa: UP007 - `|` cannot be applied to a tuple of types


Reader = Callable[[object], Any]
"""Converts a TOML value to a model value. Any: the reader of each key has its own type."""

_Number = TypeVar("_Number", int, float)

MOST_INVOCATIONS = 100_000


class InvalidValue(ValueError):
    """A value does not fit its key; the message names the expected value."""


def described(value: object) -> str:
    """Describe an unexpected value for a message.

    >>> described(True), described("x"), described([1])
    ('true', 'the text "x"', 'a list')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"the text {quoted(value)}"
    if isinstance(value, (int, float)):
        return f"the number {shown(value)}"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, dict):
        return "a table"
    return f"the date or time {value}"


def shown(value: int | float) -> str:
    """Format a number of any size in a few characters."""
    if isinstance(value, float):
        return f"{value:g}"
    return str(value) if abs(value) < 2**63 else f"{hex(value)[:12]}…"


def text(value: object) -> str:
    """Read text. Raises `InvalidValue`."""
    if isinstance(value, str):
        if "\0" in value:
            raise InvalidValue("contains a NUL character, which no program accepts")
        return value
    hint = ""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        hint = f'; write "{shown(value)}"'
    raise InvalidValue(f"expected text, not {described(value)}{hint}")


def flag(value: object) -> bool:
    """Read true or false. Raises `InvalidValue`."""
    if isinstance(value, bool):
        return value
    raise InvalidValue(f"expected true or false, not {described(value)}")


def whole(value: object) -> int:
    """Read a whole number of at most 64 bits. Raises `InvalidValue`."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidValue(f"expected a whole number, not {described(value)}")
    if abs(value) >= 2**63:
        raise InvalidValue("is too large a number")
    return value


def real(value: object) -> float:
    """Read a finite number. Raises `InvalidValue`."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidValue(f"expected a number, not {described(value)}")
    number = float(whole(value)) if isinstance(value, int) else value
    if not math.isfinite(number):
        raise InvalidValue(f"expected a finite number, not {number}")
    return number


def parameter_value(value: object) -> int | float | str:
    """Read a parameter's value: a number or text. Raises `InvalidValue`."""
    if isinstance(value, str):
        return text(value)
    if isinstance(value, bool):
        raise InvalidValue(f'expected a number or text, not {described(value)}; write "{described(value)}"')
    if isinstance(value, int):
        return whole(value)
    if isinstance(value, float):
        return real(value)
    raise InvalidValue(f"expected a number or text, not {described(value)}")


def choice(choices: tuple[str, ...]) -> Reader:
    """Return the reader of a key with a fixed set of words."""

    def read(value: object) -> str:
        if not isinstance(value, str):
            raise InvalidValue(f"expected text, not {described(value)}; choose {' or '.join(choices)}")
        if value not in choices:
            raise InvalidValue(f"{quoted(value)} is not a valid choice{suggestion(value, choices)}")
        return value

    return read


def reader_with_bounds(key: Key, plain: Reader) -> Reader:
    """Return the reader of a key with its own form and bounds."""
    read = _FORMS.get(key.form, plain)

    def within_bounds(value: object) -> object:
        result = read(value)
        if isinstance(result, int | float) and not isinstance(result, bool):
            _check_bounds(key, result, value)
        return result

    return within_bounds


def check_name(name: str, rule: str | None) -> None:
    """Check a user-defined name. Raises `InvalidValue`."""
    if rule is None:
        return
    if len(name) > LONGEST_NAME:
        raise InvalidValue(f"the name is too long; at most {LONGEST_NAME} characters")
    if re.fullmatch(rule, name) is None:
        raise InvalidValue(f"{quoted(name)} is not a valid name here; {NAME_RULES[rule]}")


def _check_bounds(key: Key, result: float, written: object) -> None:
    value = written if isinstance(written, str) else shown(result)
    if key.above is not None and key.below is not None and not key.above < result < key.below:
        raise InvalidValue(f"{value} is out of range; write a number between {key.above:g} and {key.below:g}")
    if key.above is not None and not result > key.above:
        raise InvalidValue(f"{value} is out of range; it must be more than {key.above:g}")
    if key.least is not None and not result >= key.least:
        raise InvalidValue(f"{value} is out of range; it must be at least {key.least:g}")


def _duration(value: object) -> float:
    return _parsed(parse_duration, value) if isinstance(value, str) else real(value)


def _fraction(value: object) -> float:
    return _parsed(parse_fraction, value) if isinstance(value, str) else real(value)


def _size(value: object) -> int:
    return whole(_parsed(parse_size, value) if isinstance(value, str) else value)


def _parsed(parse: Callable[[str], _Number], written: str) -> _Number:
    try:
        return parse(written)
    except ValueError as error:
        raise InvalidValue(f"{quoted(written)} {error}") from error


def _invocations(value: object) -> Invocations:
    if isinstance(value, str):
        found = re.fullmatch(r"\s*([0-9]{1,9})\s*(?:\.\.\s*([0-9]{1,9})\s*)?", value)
        if found is None:
            raise InvalidValue(
                f'{quoted(value)} is not a number of invocations; write "5..30", "60..60" or 60'
            )
        least, most = int(found[1]), int(found[2] or found[1])
    else:
        least = most = whole(value)
    if not 1 <= least <= most <= MOST_INVOCATIONS:
        range_ = quoted(value) if isinstance(value, str) else shown(least)
        raise InvalidValue(
            f'{range_} is not a valid range; write "LEAST..MOST", from 1 to {MOST_INVOCATIONS}'
        )
    return Invocations(least=least, most=most)


def _quiet(value: object) -> Quiet:
    written = text(value)
    action, _, time = written.strip().partition(" ")
    match action:
        case "flag" | "refuse" if not time:
            return Quiet(action=action)
        case "wait" if time and (seconds := _parsed(parse_duration, time)) > 0.0:
            return Quiet(action="wait", seconds=seconds)
        case "wait":
            raise InvalidValue(f'{quoted(written)} needs a time; write, for example, "wait 60s"')
        case "mark" if not time:
            raise InvalidValue(f'{quoted(written)} is not a valid choice; its new name is "flag"')
        case _:
            raise InvalidValue(f"{quoted(written)} is not a valid choice{suggestion(written, QUIET_CHOICES)}")


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        return (text(value),)
    if not value:
        raise InvalidValue("is empty; name at least one, or remove the key")
    return tuple(text(each) for each in value)


def _numbers(value: object) -> tuple[int, ...]:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return (whole(value),)
    if not isinstance(value, str):
        raise InvalidValue(f'expected numbers as text, for example "0,2-3", not {described(value)}')
    try:
        return parse_numbers(value)
    except ValueError as error:
        raise InvalidValue(f"{quoted(value)} {error}") from error


QUIET_CHOICES = ("flag", "refuse", "wait 60s")

_FORMS: Mapping[str, Reader] = {
    "duration": _duration,
    "fraction": _fraction,
    "size": _size,
    "invocations": _invocations,
    "quiet": _quiet,
    "texts": _texts,
    "numbers": _numbers,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """The question of the study."""

    title: Annotated[str, Key("The question, in a sentence.")] = ""
    along: Annotated[
        str, Key("The source whose history is searched: main, which is [source], or one of [sources].")
    ] = MAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A perftrail study: one question about a program's performance."""

    study: Annotated[Heading, Key("What the study is about.")] = field(default_factory=Heading)
    source: Annotated[Source, Key("Where revisions come from.")]
    sources: Annotated[
        Mapping[str, Source],
        Key(
            "Other sources, for example an application: {source.NAME} is the directory of such a tree.",
            names=AXIS,
        ),
    ] = field(default_factory=dict)
    build: Annotated[Build, Key("How to build a revision.")] = field(default_factory=Build)
    variants: Annotated[
        Mapping[str, Variant],
        Key("Named ways to build or to run. Default: one variant, plain.", names=NAME),
    ] = field(default_factory=dict)
    benchmark: Annotated[
        Mapping[str, Benchmark],
        Key("Commands to run, with their parameters and metrics; a study of samples has none.", names=NAME),
    ] = field(default_factory=dict)
    service: Annotated[
        Mapping[str, Service],
        Key("Servers that run while a benchmark's command is measured.", names=AXIS),
    ] = field(default_factory=dict)
    suite: Annotated[
        Mapping[str, Suite],
        Key("Suites of other benchmark tools, whose benchmarks perftrail lists and measures.", names=NAME),
    ] = field(default_factory=dict)
    derived: Annotated[
        Mapping[str, Derived], Key("Metrics computed from others of one benchmark.", names=METRIC)
    ] = field(default_factory=dict)
    claims: Annotated[
        Mapping[str, Claim],
        Key(
            "Sentences to judge by samples, for example those of a paper: `perftrail show --claims`.",
            names=NAME,
        ),
    ] = field(default_factory=dict)
    measure: Annotated[MeasurePolicy, Key("How often, how precisely, in which order.")] = field(
        default_factory=MeasurePolicy
    )
    find: Annotated[FindPolicy, Key("What `perftrail find` searches.")] = field(default_factory=FindPolicy)
    sandbox: Annotated[Sandbox, Key("What builds and runs may access in a sandbox.")] = field(
        default_factory=Sandbox
    )
    watch: Annotated[WatchPolicy, Key("What `perftrail watch` follows, and whom it notifies.")] = field(
        default_factory=WatchPolicy
    )


StandIn = str | dict[str, object]
Index = TypeVar("Index", int, str)
Hook = Callable[[object, Hint], Any]
"""Function that cattrs calls with a value and its type. Any: each type's hook returns that type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Misfit:
    """A value that does not fit its key.

    `stand_in` replaces a required value so that the rest can be checked. `meant` is the probable key instead of an
    unknown one. `item` is the index of the wrong item if the value is a list.
    """

    path: KeyPath
    message: str
    stand_in: StandIn | None = None
    meant: str | None = None
    item: int | None = None


def structure(data: Mapping[str, Any]) -> Document | tuple[Misfit, ...]:
    """Return the document of plain data, or all its misfits."""
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
            raise InvalidValue(f"expected a table, not {described(value)}")
        return inner(value, kind)

    return read


def _hook(read: Reader) -> Hook:
    return lambda value, _: read(value)


def _reader(kind: Hint, key: Key, converter: Converter) -> Reader:
    """Return the reader of a type of the model; the study file has no others."""
    if kind in _PLAIN or key.form in ("texts", "numbers"):
        return reader_with_bounds(key, _PLAIN.get(kind, text))
    origin: object = get_origin(kind)
    parts = get_args(kind)
    if origin is Literal:
        return choice(parts)
    if origin is tuple:
        return _list(_reader(parts[0], key, converter))
    if origin is Mapping:
        return _names(_reader(parts[1], key, converter), key.names)
    assert is_dataclass(kind), kind
    hook = converter.get_structure_hook(kind)
    return lambda value: hook(value, kind)


_PLAIN: Mapping[Hint, Reader] = {
    str: text,
    bool: flag,
    int: whole,
    float: real,
    Value: parameter_value,
    Invocations: whole,
    Quiet: text,
}


def _list(read: Reader) -> Reader:
    def items(value: object) -> tuple[Any, ...]:
        if not isinstance(value, list):
            hint = "" if isinstance(value, dict) else "; write it in [ ]"
            raise InvalidValue(f"expected a list, not {described(value)}{hint}")
        return tuple(each for _, each in _every(enumerate(value), read))

    return items


def _names(read: Reader, rule: str | None) -> Reader:
    def named(value: object) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            raise InvalidValue(f"expected a table, not {described(value)}")
        return dict(_every(value.items(), read, rule))

    return named


def _every(
    items: Iterable[tuple[Index, object]], read: Reader, rule: str | None = None
) -> list[tuple[Index, Any]]:
    """Read every item, and raise all mistakes together in the form of cattrs."""
    result: list[tuple[Index, Any]] = []
    errors: list[Exception] = []

    for index, value in items:
        try:
            check_name(str(index), rule)
        except InvalidValue as error:
            errors.append(_noted(error, index))
        try:
            result.append((index, read(value)))
        except (InvalidValue, ClassValidationError, IterableValidationError) as error:
            errors.append(_noted(error, index))
    if errors:
        raise IterableValidationError("items", errors, object)
    return result


def _noted(error: Exception, index: int | str) -> Exception:
    error.add_note(IterableValidationNote(f"item {index}", index, object))
    return error


def _misfits(error: Exception, path: KeyPath, known: FileKey | None) -> Iterator[Misfit]:
    """Yield the misfits in a tree of cattrs errors."""
    if isinstance(error, ClassValidationError):
        keys = {key.field: key for key in keys_of(error.cl)}
        noted, others = error.group_exceptions()
        for inner, note in noted:
            yield from _misfits_at_key(inner, path, keys[note.name])
        for inner in others:
            yield from _unknown_keys(inner, path)
    elif isinstance(error, IterableValidationError):
        noted_items, _ = error.group_exceptions()
        for inner, item in noted_items:
            yield from _misfits_of_item(inner, path, item.index)
    else:
        assert isinstance(error, InvalidValue), error
        yield Misfit(path=path, message=str(error), stand_in=known.key.stand_in if known else None)


def _misfits_at_key(error: Exception, path: KeyPath, key: FileKey) -> Iterator[Misfit]:
    if isinstance(error, KeyError):
        message = f"missing; {key.key.doc[0].lower()}{key.key.doc[1:].rstrip('.')}"
        stand_in: StandIn = {} if key.key.stand_in is None else key.key.stand_in
        yield Misfit(path=(*path, key.name), message=message, stand_in=stand_in)
    else:
        yield from _misfits(error, (*path, key.name), key)


def _misfits_of_item(error: Exception, path: KeyPath, index: int | str) -> Iterator[Misfit]:
    if isinstance(error, InvalidValue) and isinstance(index, int):
        yield Misfit(path=path, message=f"item {index + 1}: {error}", item=index)
    else:
        yield from _misfits(error, (*path, index), None)


RENAMED = {"smallest": "threshold", "figure": "item_metric"}
"""Keys of older study files, and their current names."""


_RANGE = 'the two ends of the search are source.range = "OLD..NEW"'
_WRITTEN_ELSEWHERE = {
    **dict.fromkeys(("good", "bad", "old", "new", "from", "to"), _RANGE),
    **{
        kind: f'write kind = "{kind}" and location = "…"'
        for kind in ("git", "fossil", "release", "directory")
    },
}
"""Keys that people expect, and what to write instead."""


def _unknown_keys(error: Exception, path: KeyPath) -> Iterator[Misfit]:
    assert isinstance(error, ForbiddenExtraKeysError), error
    known = [key.name for key in keys_of(error.cl)]
    for name in sorted(error.extra_fields):
        near = RENAMED.get(name) if RENAMED.get(name) in known else nearest(name, known)
        hint = (
            f"its new name is {quoted(near)}"
            if name in RENAMED and near == RENAMED[name]
            else f"did you mean {quoted(near)}?"
            if near
            else _WRITTEN_ELSEWHERE[name]
            if name in _WRITTEN_ELSEWHERE and path in (("source",), ("find",))
            else f"the known keys are {listed(known, 'and')}"
        )
        yield Misfit(path=(*path, name), message=f"unknown key; {hint}", meant=near)
