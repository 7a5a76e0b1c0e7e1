"""JSON documents in which every value has a path for error messages, and the file that contains the content.

A format may read a file's first bytes, its name, and other files of its directory.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePath
from typing import TYPE_CHECKING

from perftrail.errors import FormatError
from perftrail.model.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


_KINDS = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}


@dataclass(frozen=True, slots=True)
class Node:
    """A value in a document and its path. Missing or wrong values raise `FormatError` with the path."""

    value: object
    path: str = ""

    def __getitem__(self, key: str) -> Node:
        found = self.get(key)
        if found is None:
            raise self.error(f"has no {quoted(key)}")
        return found

    def get(self, key: str) -> Node | None:
        """Return a member of an object; `None` if it is missing or null."""
        value = self._object().get(key)
        return None if value is None else Node(value, f"{self.path}.{key}" if self.path else key)

    def members(self) -> Iterator[tuple[str, Node]]:
        """Return the members of an object that are not null."""
        for key, value in self._object().items():
            if value is not None:
                yield key, Node(value, f"{self.path}.{key}" if self.path else key)

    def elements(self) -> tuple[Node, ...]:
        """Return the elements of a list."""
        if not isinstance(self.value, list):
            raise self._not("a list")
        return tuple(Node(value, f"{self.path}[{index}]") for index, value in enumerate(self.value))

    def text(self) -> str:
        """Return a text."""
        if not isinstance(self.value, str):
            raise self._not("a text")
        return self.value

    def number(self) -> float:
        """Return a finite number."""
        if isinstance(self.value, int | float) and not isinstance(self.value, bool):
            try:
                number = float(self.value)
            except OverflowError:
                number = math.inf
            if math.isfinite(number):
                return number
        raise self._not("a finite number")

    def numbers(self) -> tuple[float, ...]:
        """Return a list of finite numbers."""
        return tuple(each.number() for each in self.elements())

    def scalar(self) -> str:
        """Return a text, or a number or truth value in JSON's notation: a parameter's value."""
        if isinstance(self.value, str):
            return self.value
        if isinstance(self.value, int | float):
            return json.dumps(self.value)
        raise self._not("a text or a number")

    def time(self) -> datetime:
        """Return a time in ISO 8601."""
        try:
            return datetime.fromisoformat(self.text())
        except ValueError:
            raise self._not("a time such as 2026-01-31T12:00:00") from None

    def error(self, what: str) -> FormatError:
        """Return an error about this value."""
        return FormatError(f"{self.path or 'the document'}: {what}")

    def _object(self) -> dict[str, object]:
        if not isinstance(self.value, dict):
            raise self._not("an object")
        return self.value

    def _not(self, wanted: str) -> FormatError:
        kind = type(self.value)
        is_what = _KINDS[kind] if kind in _KINDS else quoted(str(self.value)[:80])
        return self.error(f"must be {wanted}, but is {is_what}")


_ESCAPED_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def parse(content: bytes, *, line: int = 1) -> Node:
    """Parse a document that begins on a line of its file. Raises `FormatError` for invalid JSON."""
    try:
        value = json.loads(content)
        if _ESCAPED_SURROGATE.search(content):
            json.dumps(
                value, ensure_ascii=False
            ).encode()  # half a pair is no text, and no file could have it
        return Node(value)
    except json.JSONDecodeError as error:
        raise FormatError(
            f"line {line + error.lineno - 1}: is not valid JSON: {error.msg.lower()}"
        ) from error
    except (UnicodeDecodeError, RecursionError, ValueError) as error:
        deep = isinstance(error, RecursionError)
        why = "nested too deeply" if deep else "not Unicode text, or a number with too many digits"
        raise FormatError(f"line {line}: is not valid JSON: {why}") from error


def decoded(content: bytes) -> str:
    """Decode a UTF-8 text. Raises `FormatError` with the first invalid line."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise FormatError(f"line {line}: is not UTF-8 text; convert it") from error


HEAD_BYTES = 1 << 16
"""Number of bytes that determine a file's format."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def _nothing(path: str) -> None:  # noqa: ARG001 - content without a file has no other files
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileContext:
    """File that contains content: its path, and `read_relative`, which reads other files by paths relative to it."""

    path: PurePath
    read_relative: Callable[[str], bytes | None] = _nothing


NO_FILE = FileContext(path=PurePath())
"""Context of content without a file, for example of a benchmark's output."""


def begins_with(head: bytes, pattern: bytes) -> bool:
    """Return whether content begins with a pattern, after a byte order mark and white space."""
    return re.match(rb"\s*+" + pattern, head.removeprefix(_BYTE_ORDER_MARK)) is not None
