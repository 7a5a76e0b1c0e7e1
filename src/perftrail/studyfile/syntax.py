"""Syntax of study files: every mistake where it begins, in words for people who do not know TOML's grammar.

`read_toml` reads the text with `tomllib`. Only if that fails, it splits the text into statements. It reports and omits
each statement that is not valid, so that the other statements are checked as well. A list without a closing bracket
ends before the next line that is probably a table or a key.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from perftrail.model.wording import quoted
from perftrail.studyfile.key_lines import KeyPath
from perftrail.studyfile.problems import key_path

if TYPE_CHECKING:
    from collections.abc import Sequence


MOST_MISTAKES = 50
"""Largest number of reported mistakes; a file with more is probably not TOML."""

_MOST_LINES_OF_A_TABLE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntaxMistake:
    """A place that is not valid TOML; line and column count from 1."""

    line: int
    column: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadableToml:
    """The valid part of a text.

    `text` has the original line numbers, and blank lines instead of statements that are not valid. The values of
    `suspect` keys and tables were omitted.
    """

    data: dict[str, Any]  # Any: tables and lists of unknown values
    text: str
    mistakes: tuple[SyntaxMistake, ...] = ()
    suspect: tuple[KeyPath, ...] = ()


def read_toml(text: str) -> ReadableToml:
    """Read a text and report all its syntax mistakes. Raises `RecursionError` for values that are nested too deeply."""
    text = text.replace("\r\n", "\n")
    try:
        return ReadableToml(data=tomllib.loads(text), text=text)
    except ValueError:
        return _Repair(text.split("\n")).readable()


_NAME = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')"""
_NAMES = rf"{_NAME}(?:[ \t]*\.[ \t]*{_NAME})*"
_KEY = re.compile(rf"[ \t]*({_NAMES})[ \t]*")
_ASSIGNED = re.compile(rf"[ \t]*{_NAMES}[ \t]*=")
_HEADER = re.compile(rf"[ \t]*(\[\[?)[ \t]*({_NAMES})[ \t]*(\]\]?)?[ \t]*(.*)")
_LIKE_HEADER = re.compile(
    r"[ \t]*\[\[?[ \t]*(?!(?:true|false|inf|nan)\b)[A-Za-z_][^,\[\]=]*\]\]?[ \t]*(?:#.*)?$"
)
_PIECE = re.compile(
    r"""[ \t]+|\#.*|\"{3}|'{3}|"(?:[^"\\]|\\.)*"|'[^']*'|["']|[\[\]{},=]"""
    r"""|[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9][0-9:.+Zz-]*|[^\s,\[\]{}\#"'=]+|.""",
    re.DOTALL,
)
_CURLY_QUOTES = "\u201c\u201d\u201e\u2018\u2019"
"""Quotes that word processors write instead of straight ones."""


def _begins_statement(line: str) -> bool:
    return _ASSIGNED.match(line) is not None or _LIKE_HEADER.match(line) is not None


def _split_names(written: str) -> tuple[str, ...]:
    """Return the names of a dotted key as they are meant."""
    return tuple(each[1:-1] if each[0] in "\"'" else each for each in re.findall(_NAME, written))


@dataclass(slots=True)
class _Statement:
    """A header or a key with its value: its first line and the line after its last one, from 0.

    `path` is the readable part of what it declares; a header declares a table. `is_item`: in an array of tables.
    """

    first: int
    end: int
    path: KeyPath
    is_header: bool = False
    is_item: bool = False
    mistake: SyntaxMistake | None = None


@dataclass(slots=True)
class _Repair:
    """Removes what is not valid, and records each mistake."""

    lines: list[str]
    statements: list[_Statement] = field(default_factory=list)
    mistakes: list[SyntaxMistake] = field(default_factory=list)
    suspect: list[KeyPath] = field(default_factory=list)

    def readable(self) -> ReadableToml:
        self._split()
        for each in self.statements:
            if each.mistake is not None:
                self._reject(each, each.mistake)
        data = self._data()
        return ReadableToml(
            data=data,
            text="\n".join(self.lines),
            mistakes=tuple(self.mistakes[:MOST_MISTAKES]),
            suspect=tuple(self.suspect),
        )

    def _split(self) -> None:
        table: KeyPath = ()
        items: dict[KeyPath, int] = {}
        at = wrong = 0
        while at < len(self.lines) and wrong < MOST_MISTAKES:
            line = self.lines[at]
            if not line.strip() or line.lstrip().startswith("#"):
                at += 1
                continue
            if line.lstrip().startswith("["):
                statement = self._header(at, items)
                table = statement.path
            else:
                statement = self._assignment(at, table)
            self.statements.append(statement)
            wrong += int(statement.mistake is not None)
            at = statement.end
        if wrong >= MOST_MISTAKES:
            self.suspect.append(())

    def _header(self, at: int, items: dict[KeyPath, int]) -> _Statement:
        line = self.lines[at]
        found = _HEADER.match(line)
        if found is None:
            nameless = _mistake(at, _indent(line), f"{_quoted_line(line)} is not a valid table; write [NAME]")
            return _Statement(first=at, end=at + 1, path=(), is_header=True, mistake=nameless)
        opening, written, closing, rest = found.groups()
        if blank := re.match(rf"({_NAME})[ \t]*\]", "" if closing else rest):
            written = f"{written}.{blank[1]}"
        right = f"{opening}{written}{']' * len(opening)}"
        message = None
        if blank or closing is None or len(closing) != len(opening):
            message = f"{_quoted_line(line)} is not a valid table; write {right}"
        elif rest and not rest.startswith("#"):
            message = f"{quoted(rest)} must be on a separate line, below {right}"
        if message is not None:
            self.lines[at] = right
        path: KeyPath = ()
        for name in _split_names(written):
            path = (*path, name)
            if path in items:
                path = (*path, items[path])
        if len(opening) > 1:
            plain = path[:-1] if isinstance(path[-1], int) else path
            items[plain] = items.get(plain, -1) + 1
            path = (*plain, items[plain])
        mistake = None if message is None else _mistake(at, _indent(line), message)
        return _Statement(
            first=at, end=at + 1, path=path, is_header=True, is_item=len(opening) > 1, mistake=mistake
        )

    def _assignment(self, at: int, table: KeyPath) -> _Statement:
        line = self.lines[at]
        key = _KEY.match(line)
        path = table if key is None else (*table, *_split_names(key[1]))
        if key is not None and line.startswith("=", key.end()):
            value = _Value(self.lines, at, key.end() + 1, key=key[1], path=path)
            value.scan()
            return _Statement(first=at, end=value.end, path=path, mistake=value.mistake)
        column = _indent(line) if key is None else key.end()
        mistake = _mistake(at, column, _without_equals(line, key))
        if key is None or (_is_word(line[key.end() :]) and "=" in line):
            path = table
        return _Statement(first=at, end=self._end_of_rest(at), path=path, mistake=mistake)

    def _end_of_rest(self, at: int) -> int:
        """Return the line after the brackets that a line without a valid key opens."""
        opened = self.lines[at].count("[") - self.lines[at].count("]")
        at += 1
        while opened > 0 and at < len(self.lines) and not _begins_statement(self.lines[at]):
            opened += self.lines[at].count("[") - self.lines[at].count("]")
            at += 1
        return at

    def _reject(self, statement: _Statement, mistake: SyntaxMistake) -> None:
        """Record a mistake and omit its statement; a header was repaired if it names a table."""
        self.mistakes.append(mistake)
        if statement.is_header and statement.path:
            return
        self.suspect.append(statement.path)
        for at in range(statement.first, statement.end):
            self.lines[at] = ""

    def _data(self) -> dict[str, Any]:
        """Return the data of the remaining statements; reject those that contradict each other."""
        for _ in range(MOST_MISTAKES):
            try:
                return tomllib.loads("\n".join(self.lines))
            except ValueError as error:
                self._contradiction(str(error))
        self.suspect.append(())
        return {}

    def _contradiction(self, description: str) -> None:
        message, _, location = description.partition(" (at ")
        found = re.match(r"line (\d+), column (\d+)", location)
        line, column = (int(found[1]), int(found[2])) if found is not None else (len(self.lines), 1)
        before = [each for each in self.statements if each.first < line]
        if not before:
            self.mistakes.append(SyntaxMistake(line=line, column=column, message=_plainly(message)))
            self.lines[:] = [""] * len(self.lines)
            self.suspect.append(())
            return
        statement = before[-1]
        earlier = next((each for each in self.statements if each.path == statement.path), statement)
        if message.startswith("Cannot"):
            column = _indent(self.lines[statement.first]) + 1
            line = statement.first + 1
            message = self._twice(statement, earlier)
        self.mistakes.append(SyntaxMistake(line=line, column=column, message=_plainly(message)))
        position = self.statements.index(statement)
        rejected = [statement]
        if statement.is_header:
            for each in self.statements[position + 1 :]:
                if each.is_header:
                    break
                rejected.append(each)
        for each in rejected:
            self.statements.remove(each)
            for at in range(each.first, each.end):
                self.lines[at] = ""
        self.suspect.append(statement.path)

    def _twice(self, statement: _Statement, earlier: _Statement) -> str:
        name = key_path(statement.path)
        what = f"table {name}" if statement.is_header else name
        if earlier is statement:
            above = [each for each in self.statements if statement.path[: len(each.path)] == each.path]
            outer = [each for each in above if not each.is_header and each is not statement]
            if not outer:
                return f"{what} occurs twice; write it once"
            return f"{key_path(outer[0].path)} is complete in line {outer[0].first + 1}; write {name} there"
        remedy = "write all its keys there" if statement.is_header else "remove one of them"
        return f"{what} occurs twice, first in line {earlier.first + 1}; {remedy}"


def _without_equals(line: str, key: re.Match[str] | None) -> str:
    """Return what is wrong with a line that is neither a table nor begins with a key and "="."""
    if key is None or (_is_word(line[key.end() :]) and "=" in line) or line.lstrip().startswith("- "):
        return _without_key(line)
    name, rest = key[1], line[key.end() :].strip()
    if rest.startswith(":"):
        return f'":" after {name}; write "=": {name} = {_value_of(rest[1:])}'
    if not rest or rest.startswith("#"):
        return f'{name} has no value; write {name} = "…"'
    return f'"=" is missing after {name}; write {name} = {_value_of(rest)}'


def _without_key(line: str) -> str:
    begin, before = line.strip(), line.partition("=")[0].strip()
    if begin.startswith("- "):
        return f"{_quoted_line(line)} is not a list item; write KEY = [ … ]"
    if begin[0] in "]}":
        return f"{quoted(begin[0])} closes nothing; remove it"
    if "=" in line and before:
        return f"{quoted(before)} is not a valid key; a key with blanks or signs needs quotes"
    return f"{_quoted_line(line)} is neither a [table] nor a key with a value; write KEY = VALUE"


def _is_word(text: str) -> bool:
    return re.match(r"[A-Za-z]", text) is not None


def _value_of(text: str) -> str:
    """Return a written value as it may be meant, short enough for a message."""
    text = text.strip()
    if not text or len(text) > 40:
        return "…"
    return text if text[0] in "\"'[{" or _is_value(text) else quoted(text)


def _is_value(text: str) -> bool:
    try:
        return len(tomllib.loads(f"x = {text}")) == 1
    except ValueError:
        return False


class _Value:
    """Finds the end of a value, and its first mistake."""

    def __init__(self, lines: Sequence[str], line: int, column: int, *, key: str, path: KeyPath) -> None:
        self.end = line + 1
        self.mistake: SyntaxMistake | None = None
        self._lines = lines
        self._first = self._line = line
        self._start = self._column = column
        self._key = key
        self._path = path
        self._opened: list[tuple[str, int, int]] = []
        self._last = ""
        self._text = ""

    def scan(self) -> None:
        """Read pieces up to the end of the value."""
        while True:
            self._scan_line()
            if not self._opened or self._line + 1 >= len(self._lines) or self._ends_here():
                break
            self._line, self._column = self._line + 1, 0
        self.end = self._line + 1
        if self._opened:
            self._unclosed(*self._opened[0])
        elif not self._last:
            self._wrong(self._start, f'{self._key} has no value; write {self._key} = "…"')
        rejected = _rejected("\n".join(self._lines[self._first : self.end]))
        if rejected is None:
            self.mistake = None
        elif self.mistake is None:
            self._wrong(self._start, rejected, line=self._first)

    def _wrong(self, column: int, message: str, *, line: int | None = None) -> None:
        if self.mistake is None:
            self.mistake = _mistake(self._line if line is None else line, column, message)

    def _scan_line(self) -> None:
        while self._column < len(self._lines[self._line]):
            found = _PIECE.match(self._lines[self._line], self._column)
            assert found is not None, "the last alternative matches any character"
            piece, at = found.group(), self._column
            self._column = found.end()
            if piece.startswith("#"):
                self._skip_line()
            elif not piece.isspace():
                self._read_piece(piece, at)

    def _skip_line(self) -> None:
        self._column = len(self._lines[self._line])

    def _read_piece(self, piece: str, at: int) -> None:
        inner = self._opened[-1][0] if self._opened else ""
        if piece in ("]", "}"):
            self._close(piece, at)
        elif piece == ",":
            self._comma(at)
        elif piece == "=":
            if inner == "{" and self._last == "key":
                self._last = "equals"
            else:
                self._wrong(at, 'a "=" inside of a value; text needs quotes')
                self._skip_line()
        elif inner == "{" and self._last in ("open", "comma", "key") and piece not in ("[", "{"):
            self._last = "key"
        elif self._last == "value":
            self._no_separator(piece, at)
        elif piece in ("[", "{"):
            self._opened.append((piece, self._line, at))
            self._last = "open"
        else:
            self._single(piece, at)
            self._last, self._text = "value", piece

    def _close(self, piece: str, at: int) -> None:
        expected = "" if not self._opened else {"[": "]", "{": "}"}[self._opened[-1][0]]
        if piece != expected:
            remedy = f'write "{expected}" first' if expected else "remove it"
            self._wrong(at, f'this "{piece}" closes nothing; {remedy}')
            return
        if piece == "}" and self._last == "key" and len(self._opened) == 1:
            self._needs_quotes(self._opened.pop()[2])
            return
        if piece == "}" and self._last == "comma":
            self._wrong(at, "a table in { } must not end with a comma; remove it")
        self._opened.pop()
        self._last, self._text = "value", piece

    def _comma(self, at: int) -> None:
        if not self._opened:
            self._wrong(at, f"several values need brackets; write {self._key} = [ … ]")
            self._skip_line()
        elif self._last != "value":
            self._wrong(at, "a value is missing before this comma")
        self._last = "comma"

    def _no_separator(self, piece: str, at: int) -> None:
        line = self._lines[self._line]
        begin = line[:at].rstrip()
        if self._is_quote_missing(line):
            begun = len(begin) - len(self._text)
            self._wrong(
                max(begun, 0),
                f"a quote is missing near {quoted(self._text.strip(chr(34)))}; text needs a quote at each end",
            )
        elif self._opened:
            self._wrong(at, f"a comma is missing between {_short(self._text)} and {_short(piece)}")
        else:
            rest = line[at:].strip()
            remedy = (
                "remove it"
                if self._text[0] in "\"']}"
                else f"text needs quotes: {self._key} = {quoted(line[self._start :].strip())}"
            )
            self._wrong(at, f"{quoted(rest)} follows the value; {remedy}")
        self._skip_line()

    @staticmethod
    def _is_quote_missing(line: str) -> bool:
        return line.replace('\\"', "").count('"') % 2 == 1

    def _single(self, piece: str, at: int) -> None:
        """Check a value that is not a list or a table."""
        if piece in ('"""', "'''"):
            self._long_text(piece, at)
        elif piece in ('"', "'"):
            text = self._lines[self._line][at:].strip()
            self._wrong(at, f"the text that begins with {_short(text)} has no closing quote")
            self._skip_line()
        elif piece[0] in "\"'":
            if not _is_value(piece):
                self._wrong(at, _wrong_escape(piece))
        elif piece[0] in _CURLY_QUOTES:
            self._wrong(at, f'{piece[0]} does not begin a text; write the straight quote "')
            self._skip_line()
        elif not _is_value(piece):
            self._bare(piece, at)

    def _bare(self, piece: str, at: int) -> None:
        line = self._lines[self._line]
        if self._is_quote_missing(line):
            self._wrong(at, f"the text that begins with {piece} has no opening quote")
        elif (right := _WORDS.get(piece.casefold())) is not None:
            self._wrong(at, f"{piece} is not a value; {right}")
        elif re.fullmatch(r"[+-]?\.[0-9]+", piece):
            self._wrong(at, f"{piece} is not a number; write {piece.replace('.', '0.')}")
        elif self._opened:
            self._wrong(at, f"text needs quotes; write {quoted(piece)}")
        else:
            self._needs_quotes(at)

    def _needs_quotes(self, at: int) -> None:
        """Report text without quotes, up to the end of its line."""
        whole = re.split(r"[ \t]+#", self._lines[self._line][at:], maxsplit=1)[0].strip()
        self._wrong(at, f"text needs quotes; write {self._key} = {quoted(whole)}")
        self._skip_line()
        self._last = "value"

    def _long_text(self, mark: str, at: int) -> None:
        """Skip text in triple quotes; if it is not closed, skip up to the next statement."""
        line, column = self._line, self._column
        while line < len(self._lines):
            found = self._lines[line].find(mark, column)
            if found >= 0:
                while self._lines[line].startswith(mark[0], found + len(mark)):
                    found += 1
                self._line, self._column = line, found + len(mark)
                return
            line, column = line + 1, 0
        self._wrong(at, f"the text that begins here has no closing {mark}")
        while self._line + 1 < len(self._lines) and not _begins_statement(self._lines[self._line + 1]):
            self._line += 1
        self._skip_line()
        self._opened.clear()

    def _ends_here(self) -> bool:
        """Return whether the next line cannot belong to the value, so that a bracket is not closed."""
        following = self._lines[self._line + 1]
        if self._opened[-1][0] == "[":
            return _begins_statement(following)
        near = self._lines[self._line + 1 : self._line + 1 + _MOST_LINES_OF_A_TABLE]
        for line in near:
            if line.lstrip().startswith("}"):
                table = key_path(self._path)
                _, begun, at = self._opened[-1]
                self._wrong(
                    at,
                    f"a table in {{ }} must be in one line; write [{table}] and a line for each key",
                    line=begun,
                )
                return False
            if _LIKE_HEADER.match(line):
                break
        return True

    def _unclosed(self, bracket: str, line: int, at: int) -> None:
        closing, what = ("]", "list") if bracket == "[" else ("}", "table")
        self._wrong(at, f'the {what} of {self._key} has no closing "{closing}"', line=line)


_WORDS = {
    "true": "write true",
    "false": "write false",
    "yes": "write true",
    "no": "write false",
    "on": "write true",
    "off": "write false",
    "none": "remove the key to use its default",
    "null": "remove the key to use its default",
    "nil": "remove the key to use its default",
}
"""Values of other languages, and what to write."""


def _wrong_escape(piece: str) -> str:
    found = re.search(r"\\(?![btnfr\"\\]|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}).?", piece.replace("\\\\", "  "))
    if found is None or piece[0] == "'":
        return f"{_short(piece)} contains a character that is not allowed in text"
    plain = piece[1:-1]
    remedy = (
        f"write the text in single quotes: '{plain}'"
        if "'" not in plain and len(plain) < 60
        else "write each backslash twice"
    )
    return f"{found.group()} has no meaning in double quotes; {remedy}"


def _rejected(statement: str) -> str | None:
    """Return why `tomllib` rejects a statement; `None` if it is valid."""
    try:
        tomllib.loads(statement)
    except ValueError as error:
        return _plainly(str(error).partition(" (at ")[0])
    return None


def _plainly(message: str) -> str:
    return f"{message[:1].lower()}{message[1:]}"


def _mistake(line: int, column: int, message: str) -> SyntaxMistake:
    return SyntaxMistake(line=line + 1, column=column + 1, message=message)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _short(text: str) -> str:
    """Return a piece of the file as it is written, escaped and shortened."""
    kept = text if len(text) <= 40 else f"{text[:40]}…"
    return kept if kept.isprintable() else quoted(kept)


def _quoted_line(line: str) -> str:
    return quoted(line.strip())
