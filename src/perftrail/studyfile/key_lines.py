"""Find the line of each key of a TOML text, which `tomllib` does not report.

The text must be valid for `tomllib`: the scanner follows the grammar without checks. It needs no recursion for nested
values. An unexpected text ends the scan without an error.
"""

from __future__ import annotations

import bisect
import contextlib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass

KeyPath = tuple[str | int, ...]
"""Position of a value: keys, and indices into arrays."""

_SPACE = re.compile(r"[ \t]*+")
_BLANK = re.compile(r"(?:[ \t\n]|#[^\n]*+)*+")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]++")
_BASIC = re.compile(r'"(?:[^"\\\n]|\\.)*+"')
_LITERAL = re.compile(r"'[^'\n]*+'")
_SCALAR = re.compile(
    r'"""(?>(?:[^"\\]|\\.|"{1,2}(?!"))*)"{3,5}'  # not possessive: before Python 3.11.4, no lookahead works in it
    r"|'''(?>(?:[^']|'{1,2}(?!'))*)'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*+"'
    r"|'[^'\n]*+'"
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9][0-9:.+Zz-]*+"
    r"|[^\s,\[\]{}#\"'=]++",
    re.DOTALL,
)


@dataclass(slots=True)
class _Open:
    """An open array or inline table; `index` is the current item of an array."""

    path: KeyPath
    index: int | None


_MOST_NESTED = 3
"""Items of lists that are nested more deeply have the line of their key: a study file has no such lists."""


class _ScanStopped(Exception):
    """The text does not follow the grammar here."""


def key_lines(text: str) -> Mapping[KeyPath, int]:
    r"""Return the line of every key and item of a list, from 1; for a table, that of its header or first mention.

    >>> key_lines('a = { b.c = 1 }\n[[d]]\ne = [\n2]')
    {('a',): 1, ('a', 'b'): 1, ('a', 'b', 'c'): 1, ('d',): 2, ('d', 0): 2, ('d', 0, 'e'): 3, ('d', 0, 'e', 0): 4}
    """
    scanner = _Scanner(text.replace("\r\n", "\n"))
    with contextlib.suppress(_ScanStopped):
        scanner.document()
    return scanner.lines


class _Scanner:
    def __init__(self, text: str) -> None:
        self.lines: dict[KeyPath, int] = {}
        self._text = text
        self._at = 0
        self._starts = [0, *(found.end() for found in re.finditer("\n", text))]
        self._last_index: dict[KeyPath, int] = {}

    def document(self) -> None:
        table: KeyPath = ()
        while True:
            self._skip(_BLANK)
            if self._at >= len(self._text):
                return
            if self._peek("[["):
                table = self._array_header()
            elif self._peek("["):
                table = self._table_header()
            else:
                self._value(self._key(table))

    def _table_header(self) -> KeyPath:
        line = self._line()
        self._at += 1
        path = self._descend(self._dotted(), line)
        self.lines[path] = line
        self._expect("]")
        return path

    def _array_header(self) -> KeyPath:
        line = self._line()
        self._at += 2
        *parents, name = self._dotted()
        path = (*self._descend(parents, line), name)
        self._expect("]]")
        index = self._last_index[path] = self._last_index.get(path, -1) + 1
        self.lines.setdefault(path, line)
        self.lines[*path, index] = line
        return (*path, index)

    def _descend(self, names: list[str], line: int) -> KeyPath:
        path: KeyPath = ()
        for name in names:
            path = (*path, name)
            self.lines.setdefault(path, line)
            if path in self._last_index:
                path = (*path, self._last_index[path])
        return path

    def _key(self, table: KeyPath) -> KeyPath:
        line = self._line()
        path = table
        for name in self._dotted():
            path = (*path, name)
            self.lines.setdefault(path, line)
        self._expect("=")
        return path

    def _dotted(self) -> list[str]:
        names = [self._name()]
        while self._peek("."):
            self._at += 1
            names.append(self._name())
        return names

    def _name(self) -> str:
        self._skip(_SPACE)
        if found := _BARE_KEY.match(self._text, self._at):
            name = found.group()
        elif found := _LITERAL.match(self._text, self._at):
            name = found.group()[1:-1]
        elif found := _BASIC.match(self._text, self._at):
            name = _unescaped(found.group())
        else:
            raise _ScanStopped
        self._at = found.end()
        self._skip(_SPACE)
        return name

    def _value(self, path: KeyPath) -> None:
        opened: list[_Open] = []
        while True:
            self._skip(_BLANK if opened else _SPACE)
            if self._peek("[") or self._peek("{"):
                opened.append(_Open(path, 0 if self._peek("[") else None))
                self._at += 1
                self._skip(_BLANK)
            else:
                self._skip(_SCALAR, needed=True)
            self._close(opened)
            if not opened:
                return
            within = opened[-1]
            if within.index is None:
                path = self._key(within.path)
            else:
                path = (*within.path, within.index)
                if len(opened) <= _MOST_NESTED:
                    self.lines[path] = self._line()

    def _close(self, opened: list[_Open]) -> None:
        """Skip what may follow a value or an opening bracket, up to the next item or the end."""
        while opened:
            self._skip(_BLANK)
            if self._peek("]") or self._peek("}"):
                self._at += 1
                opened.pop()
            elif self._peek(","):
                self._at += 1
                self._skip(_BLANK)
                within = opened[-1]
                if within.index is not None:
                    within.index += 1
                if not (self._peek("]") or self._peek("}")):
                    return
            elif self._at < len(self._text):
                return
            else:
                raise _ScanStopped

    def _peek(self, token: str) -> bool:
        return self._text.startswith(token, self._at)

    def _expect(self, token: str) -> None:
        self._skip(_SPACE)
        if not self._peek(token):
            raise _ScanStopped
        self._at += len(token)

    def _skip(self, pattern: re.Pattern[str], *, needed: bool = False) -> None:
        found = pattern.match(self._text, self._at)
        if found is not None:
            self._at = found.end()
        elif needed:
            raise _ScanStopped

    def _line(self) -> int:
        return bisect.bisect_right(self._starts, self._at)


def _unescaped(written: str) -> str:
    try:
        return str(tomllib.loads(f"key = {written}")["key"])
    except tomllib.TOMLDecodeError as error:
        raise _ScanStopped from error
