"""JSON with comments, trailing commas and single quotes, as configuration files have it; each value with its line."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.formats.document import decoded
from perftrail.model.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_BYTES = 1 << 20
"""Largest size of a configuration file."""

_DEEPEST = 40
_BLANK = re.compile(r"(?:[\s\ufeff]|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_TEXT = re.compile(r""""(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'""", re.DOTALL)
_WORD = re.compile(r"[^\s,:\[\]{}\"'/]+")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_LONGEST_NUMBER = 40
Scalar = str | int | float | bool | None
_WORDS: Mapping[str, Scalar] = {"true": True, "false": False, "null": None}


@dataclass(frozen=True, slots=True)
class Located:
    """A value with the line on which it begins: a scalar, a tuple of values, or a dictionary of them."""

    value: Scalar | tuple[Located, ...] | dict[str, Located]
    line: int


class NotJson(Exception):
    """A text is not JSON, from a line on."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line
        self.message = message


def parse(content: bytes) -> Located:
    """Parse a document. Raises `NotJson` for invalid JSON, and `FormatError` for a text that is not UTF-8."""
    reader = _Reader(decoded(content))
    found = reader.value(0)
    reader.skip()
    if not reader.at_end():
        raise reader.error("there is more text after the end of the document")
    return found


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._ends_of_lines = [found.start() for found in re.finditer("\n", text)]

    def skip(self) -> None:
        """Skip blanks and comments."""
        found = _BLANK.match(self._text, self._at)
        self._at = found.end() if found else self._at
        if self._text.startswith("/*", self._at):
            raise self.error("the comment that begins with /* has no end")

    def at_end(self) -> bool:
        return self._at >= len(self._text)

    def error(self, message: str) -> NotJson:
        return NotJson(self._line(), message)

    def value(self, depth: int) -> Located:
        self.skip()
        line = self._line()
        if depth > _DEEPEST:
            raise self.error("nested too deeply")
        if self._takes("{"):
            return Located(self._members(depth), line)
        if self._takes("["):
            elements = []
            while not self._ends("]"):
                elements.append(self.value(depth + 1))
                self._separated("]")
            return Located(tuple(elements), line)
        return Located(self._scalar(), line)

    def _members(self, depth: int) -> dict[str, Located]:
        members: dict[str, Located] = {}
        while not self._ends("}"):
            name = self._name()
            self.skip()
            if not self._takes(":"):
                raise self.error(f"there must be a colon after {quoted(name)}{self._found()}")
            value = self.value(depth + 1)
            if name in members:
                raise NotJson(value.line, f"{quoted(name)} occurs twice; remove one of them")
            members[name] = value
            self._separated("}")
        return members

    def _name(self) -> str:
        found = _TEXT.match(self._text, self._at) or _WORD.match(self._text, self._at)
        if found is None:
            raise self.error(f"there must be a name or }}{self._found()}")
        if found.group()[0] not in "\"'":
            self._at = found.end()
            return found.group()
        return str(self._scalar())

    def _scalar(self) -> Scalar:
        if found := _TEXT.match(self._text, self._at):
            text = found.group()
            if text[0] == "'":
                text = '"' + text[1:-1].replace("\\'", "'").replace('"', '\\"') + '"'
            try:
                value = str(json.loads(text.replace("\\\n", ""), strict=False))
            except ValueError:
                raise self.error(
                    f"{quoted(found.group()[:60])} is not a text: check its backslashes"
                ) from None
            self._at = found.end()
            return value
        word = found.group() if (found := _WORD.match(self._text, self._at)) else ""
        if not word:
            raise self.error(f"there must be a value{self._found()}")
        if word not in _WORDS and not (_NUMBER.fullmatch(word) and len(word) <= _LONGEST_NUMBER):
            raise self.error(f"{quoted(word[:60])} is not a value; write texts in quotes")
        self._at += len(word)
        if word in _WORDS:
            return _WORDS[word]
        return int(word) if word.lstrip("+-").isdigit() else float(word)

    def _ends(self, end: str) -> bool:
        self.skip()
        if self.at_end():
            raise self.error(f"the file ends without {end}")
        return self._takes(end)

    def _separated(self, end: str) -> None:
        self.skip()
        if not self._takes(",") and not self._text.startswith(end, self._at):
            raise self.error(f"there must be a comma or {end}{self._found()}")

    def _takes(self, letter: str) -> bool:
        if self._text.startswith(letter, self._at):
            self._at += 1
            return True
        return False

    def _found(self) -> str:
        rest = self._text[self._at : self._at + 20].split("\n")[0]
        return f", not {quoted(rest)}" if rest else ""

    def _line(self) -> int:
        return bisect_left(self._ends_of_lines, self._at) + 1
