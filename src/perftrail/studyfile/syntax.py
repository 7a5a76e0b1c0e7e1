"""Syntax of study files: the first mistake where it begins, with a hint for people who do not know TOML's grammar."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from perftrail.model.wording import quoted


class NotToml(Exception):
    """A text is not valid TOML. `message` has the column; line and column count from 1."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line
        self.message = message


def read_toml(text: str) -> dict[str, Any]:  # Any: tables and lists of unknown values
    """Return the data of a text.

    Raises `NotToml` at the first mistake, and `RecursionError` for values that are nested too deeply.
    """
    try:
        return tomllib.loads(text)
    except ValueError as error:
        raise _located(text, str(error)) from error


_KEY = r"""[ \t]*((?:[A-Za-z0-9_.-]+|"[^"\n]*"|'[^'\n]*'))[ \t]*"""
_QUOTES = "text needs quotes"
_HINTS = (
    (r"[ \t]*\[\[?[^\]]*\]*[ \t]*(?:#.*)?$", "write a table alone on its line: [NAME], or [NAME.NAME]"),
    (rf"{_KEY}:", 'write "=" instead of ":"'),
    (r"[ \t]*-[ \t]", "write a list as KEY = [ …, … ]"),
    (r"[^=]*=.*[\u201c\u201d\u201e\u2018\u2019]", 'write straight quotes: "'),
    (rf"{_KEY}=[ \t]*(?i:true|false|yes|no|on|off)\b", "write true or false, in small letters"),
    (rf"{_KEY}=[ \t]*(?i:none|null|nil)\b", "remove the key to use its default"),
    (rf"{_KEY}=[ \t]*[+-]?\.[0-9]", "a number begins with a digit, as 0.02"),
    (rf"{_KEY}=[ \t]*(?:#.*)?$", "the key has no value"),
    (rf"{_KEY}=[ \t]*\"[^\"\n]*\"[ \t]*,", "several values need brackets: [ …, … ]"),
    (rf"{_KEY}=[ \t]*+(?![\"'\[{{])", _QUOTES),
    (rf"{_KEY}=[ \t]*\{{\w+\}}", _QUOTES),
    (rf"{_KEY}=[ \t]*\{{[ \t]*(?:#.*)?$", "a table in { } must be in one line"),
    (rf"{_KEY}=", "check that each text has both quotes, and each list its commas and brackets"),
    (r"", "write KEY = VALUE; a key with blanks or signs needs quotes"),
)
"""Patterns of a wrong line, and what to write; the first that matches counts."""


def _located(text: str, description: str) -> NotToml:
    lines = text.splitlines() or [""]
    reason = description.partition(" (at ")[0].replace(r" '\n'", "")
    found = re.search(r"\(at line (\d+), column (\d+)\)$", description)
    line, column = (int(found[1]), int(found[2])) if found else (len(lines), len(lines[-1]) + 1)
    if reason.startswith(("Unclosed array", "Invalid value")) and (begun := _open_list(lines, line)):
        column = lines[begun - 1].index("[") + 1
        return NotToml(begun, f'column {column}: the list that begins here has no closing "]"')
    if reason.startswith("Unescaped"):
        hint = "write the text in single quotes, or each backslash twice"
    elif reason.startswith(("Cannot", "Duplicate")):
        reason, hint = "Table or key occurs twice", "write all its keys in one place"
    else:
        hint = next(hint for pattern, hint in _HINTS if re.match(pattern, lines[line - 1]))
    if hint == _QUOTES and (found := re.match(rf"{_KEY}=[ \t]*(.*?)[\"']?[ \t]*(?:#.*)?$", lines[line - 1])):
        hint = f"{hint}; write {found[1]} = {quoted(found[2])}"
    plain = f"{reason[:1].lower()}{reason[1:]}"
    return NotToml(line, f"column {column}: {plain} in {quoted(lines[line - 1].strip())}; {hint}")


def _open_list(lines: list[str], line: int) -> int:
    """Return the line of the list that is not closed before the key or table in a line; 0 if there is none."""
    if not re.match(rf"{_KEY}=|[ \t]*\[\[?[A-Za-z]", lines[line - 1]):
        return 0
    for at in range(line - 1, 0, -1):
        if re.match(rf"{_KEY}=[ \t]*\[", lines[at - 1]):
            between = "\n".join(lines[at - 1 : line - 1])
            return at if between.count("[") > between.count("]") else 0
    return 0
