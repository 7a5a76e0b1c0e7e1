"""The words of expressions and of what `--metric` names, with the position of each."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Never

from perftrail.model.parameters import Point
from perftrail.model.wording import quoted

if TYPE_CHECKING:
    from perftrail.model.parameters import Value

LONGEST = 4000
"""How many characters an expression may have."""

_BLANK = re.compile(r"\s*")
_NUMBER = re.compile(r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_AXIS = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_QUOTED = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'", re.DOTALL)
_BARE = re.compile(r"[^\s,=\[\]\"']+")
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_REAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


class ExpressionError(ValueError):
    """An expression cannot be read or computed: `message` says why, `position` is the character, from 0."""

    def __init__(self, position: int, message: str) -> None:
        super().__init__(message)
        self.position = position
        self.message = message


class Tokens:
    """A text and how far it has been read; blanks between words do not matter."""

    def __init__(self, text: str) -> None:
        if len(text) > LONGEST:
            raise ExpressionError(LONGEST, f"too long; at most {LONGEST} characters")
        self._text = text
        self.position = 0
        self._past_blanks()

    def take(self, *signs: str) -> str | None:
        """Go past one of some signs when it comes next, and say which."""
        for sign in signs:
            if self._text.startswith(sign, self.position):
                self.position += len(sign)
                self._past_blanks()
                return sign
        return None

    def expect(self, sign: str) -> None:
        """Go past a sign that must come next."""
        if not self.take(sign):
            self.refuse(f'expected "{sign}"')

    def expect_end(self) -> None:
        """Make sure that nothing is left."""
        if self.position < len(self._text):
            self.refuse("expected an operator or the end")

    def number(self) -> float | None:
        """Go past a number when one comes next."""
        position = self.position
        written = self._match(_NUMBER)
        if written is None:
            return None
        if not math.isfinite(float(written)):
            raise ExpressionError(position, f"{quoted(written)} is too large a number")
        return float(written)

    def name(self) -> str | None:
        """Go past the name of a metric or function when one comes next."""
        return self._match(_NAME)

    def bracket(self) -> Point:
        """Go past ``[parameter=value, …]`` when it comes next; without it no parameter is fixed."""
        fixed: dict[str, Value] = {}
        if not self.take("["):
            return Point()
        while True:
            position = self.position
            name = self._match(_AXIS)
            if name is None:
                self.refuse("expected a parameter, as in [threads=2]")
            if name in fixed:
                raise ExpressionError(position, f'parameter "{name}" is fixed twice')
            self.expect("=")
            fixed[name] = self._value()
            if self.take("]"):
                return Point(tuple(fixed.items()))
            if not self.take(","):
                self.refuse('expected "," or "]"')

    def refuse(self, message: str) -> Never:
        """Say that something else was expected than what comes next."""
        left = self._text[self.position :]
        raise ExpressionError(self.position, f"{message}, not {quoted(left[:20]) if left else 'the end'}")

    def _value(self) -> Value:
        written = self._match(_QUOTED)
        if written is not None:
            return re.sub(r"\\(.)", r"\1", written[1:-1], flags=re.DOTALL)
        written = self._match(_BARE)
        if written is None:
            self.refuse("expected a value")
        return bare_value(written)

    def _match(self, pattern: re.Pattern[str]) -> str | None:
        found = pattern.match(self._text, self.position)
        if found is None:
            return None
        self.position = found.end()
        self._past_blanks()
        return found.group()

    def _past_blanks(self) -> None:
        found = _BLANK.match(self._text, self.position)
        assert found is not None
        self.position = found.end()


def bare_value(written: str) -> Value:
    """Read a value without quotes: a number when it looks like one, else text.

    >>> bare_value("2"), bare_value("0.5"), bare_value("quick-sort")
    (2, 0.5, 'quick-sort')
    """
    if _WHOLE.fullmatch(written):
        return int(written)
    if _REAL.fullmatch(written) and math.isfinite(float(written)):
        return float(written)
    return written


def written_value(value: Value) -> str:
    """Write a value so that it is read as the same: text that looks otherwise in quotes.

    >>> written_value(2), written_value("quick-sort"), written_value("2")
    ('2', 'quick-sort', '"2"')
    """
    if not isinstance(value, str):
        return repr(value)
    if _BARE.fullmatch(value) and bare_value(value) == value:
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
