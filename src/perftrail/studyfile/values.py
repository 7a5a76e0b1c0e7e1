"""Reads single values of the study file: strict about types, plain about what was expected."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from perftrail.model.field import LONGEST_NAME, NAME_RULES, Key
from perftrail.model.measurement import Quiet
from perftrail.model.quantity import parse_duration, parse_size
from perftrail.model.study import Invocations
from perftrail.model.wording import quoted, suggestion

Reader = Callable[[object], Any]
"""Makes what the model holds of what TOML holds. Any: the reader of each key has a type of its own."""

_Number = TypeVar("_Number", int, float)

MOST_INVOCATIONS = 100_000


class Wrong(ValueError):
    """A value is not what its key takes; the text says what it should be."""


def described(value: object) -> str:
    """Say what somebody wrote where something else was expected.

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
    """Write a number of any size in a few characters."""
    if isinstance(value, float):
        return f"{value:g}"
    return str(value) if abs(value) < 2**63 else f"{hex(value)[:12]}…"


def text(value: object) -> str:
    """Read text. Raises `Wrong`."""
    if isinstance(value, str):
        if "\0" in value:
            raise Wrong("holds a NUL character, which no program can be given")
        return value
    hint = ""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        hint = f'; write "{shown(value)}"'
    raise Wrong(f"expected text, not {described(value)}{hint}")


def flag(value: object) -> bool:
    """Read true or false. Raises `Wrong`."""
    if isinstance(value, bool):
        return value
    raise Wrong(f"expected true or false, not {described(value)}")


def whole(value: object) -> int:
    """Read a whole number of at most 64 bits. Raises `Wrong`."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise Wrong(f"expected a whole number, not {described(value)}")
    if abs(value) >= 2**63:
        raise Wrong("is too large a number")
    return value


def real(value: object) -> float:
    """Read a finite number. Raises `Wrong`."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Wrong(f"expected a number, not {described(value)}")
    number = float(whole(value)) if isinstance(value, int) else value
    if not math.isfinite(number):
        raise Wrong(f"expected a finite number, not {number}")
    return number


def parameter_value(value: object) -> int | float | str:
    """Read what a parameter may be set to: a number or text. Raises `Wrong`."""
    if isinstance(value, str):
        return text(value)
    if isinstance(value, bool):
        raise Wrong(f'expected a number or text, not {described(value)}; write "{described(value)}"')
    if isinstance(value, int):
        return whole(value)
    if isinstance(value, float):
        return real(value)
    raise Wrong(f"expected a number or text, not {described(value)}")


def choice(choices: tuple[str, ...]) -> Reader:
    """Make the reader of a key that takes one of several words."""

    def read(value: object) -> str:
        if not isinstance(value, str):
            raise Wrong(f"expected text, not {described(value)}; choose {' or '.join(choices)}")
        if value not in choices:
            raise Wrong(f"{quoted(value)} is no choice{suggestion(value, choices)}")
        return value

    return read


def formed(key: Key, plain: Reader) -> Reader:
    """Make the reader of a key that may have a form of its own and bounds."""
    read = _FORMS.get(key.form, plain)

    def within_bounds(value: object) -> object:
        result = read(value)
        if isinstance(result, int | float) and not isinstance(result, bool):
            _check_bounds(key, result, value)
        return result

    return within_bounds


def check_name(name: str, rule: str | None) -> None:
    """Check a name that the study's author chose. Raises `Wrong`."""
    if rule is None:
        return
    if len(name) > LONGEST_NAME:
        raise Wrong(f"too long a name; at most {LONGEST_NAME} characters")
    if re.fullmatch(rule, name) is None:
        raise Wrong(f"{quoted(name)} cannot be a name here; {NAME_RULES[rule]}")


def _check_bounds(key: Key, result: float, written: object) -> None:
    told = written if isinstance(written, str) else shown(result)
    if key.above is not None and key.below is not None and not key.above < result < key.below:
        raise Wrong(f"{told} makes no sense; write a number between {key.above:g} and {key.below:g}")
    if key.above is not None and not result > key.above:
        raise Wrong(f"{told} makes no sense; it must be more than {key.above:g}")
    if key.least is not None and not result >= key.least:
        raise Wrong(f"{told} makes no sense; it must be at least {key.least:g}")


def _duration(value: object) -> float:
    return _parsed(parse_duration, value) if isinstance(value, str) else real(value)


def _size(value: object) -> int:
    return whole(_parsed(parse_size, value) if isinstance(value, str) else value)


def _parsed(parse: Callable[[str], _Number], written: str) -> _Number:
    try:
        return parse(written)
    except ValueError as error:
        raise Wrong(f"{quoted(written)} {error}") from error


def _invocations(value: object) -> Invocations:
    if isinstance(value, str):
        found = re.fullmatch(r"\s*([0-9]{1,9})\s*(?:\.\.\s*([0-9]{1,9})\s*)?", value)
        if found is None:
            raise Wrong(f'{quoted(value)} is not a number of invocations; write "5..30", "60..60" or 60')
        least, most = int(found[1]), int(found[2] or found[1])
    else:
        least = most = whole(value)
    if not 1 <= least <= most <= MOST_INVOCATIONS:
        told = quoted(value) if isinstance(value, str) else shown(least)
        raise Wrong(f'{told} makes no sense; write "LEAST..MOST", from 1 to {MOST_INVOCATIONS}')
    return Invocations(least=least, most=most)


def _quiet(value: object) -> Quiet:
    written = text(value)
    action, _, time = written.strip().partition(" ")
    match action:
        case "mark" | "refuse" if not time:
            return Quiet(action=action)
        case "wait" if time and (seconds := _parsed(parse_duration, time)) > 0.0:
            return Quiet(action="wait", seconds=seconds)
        case "wait":
            raise Wrong(f'{quoted(written)} makes no sense; write how long, as "wait 60s"')
        case _:
            raise Wrong(f"{quoted(written)} is no choice{suggestion(written, QUIET_CHOICES)}")


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        return (text(value),)
    if not value:
        raise Wrong("is empty; name one, or leave the key out")
    return tuple(text(each) for each in value)


QUIET_CHOICES = ("mark", "refuse", "wait 60s")

_FORMS: Mapping[str, Reader] = {
    "duration": _duration,
    "size": _size,
    "invocations": _invocations,
    "quiet": _quiet,
    "texts": _texts,
}
