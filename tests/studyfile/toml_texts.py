"""Generated TOML in every style of writing."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("é", "\\u00e9")


_BARE = st.text("abcXYZ019_-", min_size=1, max_size=5)
_ODD = st.text(st.characters(codec="utf-8", exclude_characters="\x7f"), max_size=4)
_BLANKS = st.sampled_from(["", " ", "\t", "  "])
_NEWLINES = st.sampled_from(["\n", "\n\n", "  # a comment = [ { \" '\n", "\r\n"])


@st.composite
def keys(draw: st.DrawFn) -> str:
    """A key as in a file: bare, or in either kind of quotes."""
    odd = draw(_ODD)
    choice = draw(st.integers(0, 3))
    if choice == 1:
        return _quoted(odd)
    if choice == 2 and "'" not in odd and odd.isprintable():
        return f"'{odd}'"
    return draw(_BARE)


_SCALARS = st.one_of(
    st.integers(-999, 999).map(str),
    st.sampled_from(["1.5", "-2e3", "nan", "inf", "true", "0x_f".replace("_", ""), "1_000"]),
    st.sampled_from(["1979-05-27", "1979-05-27 07:32:00", "1979-05-27T07:32:00.5Z", "07:32:00"]),
    _ODD.map(_quoted),
    st.sampled_from(
        [
            '"a # b"',
            "'[x]'",
            "'c:\\'",
            '"\\"]"',
            "'''\nx = 1\n'''",
            "''''a'''''",
            '"""\n[y]\nz = "1" \\\n  """',
            '""""quoted""""',
            '"""\\""""',
        ]
    ),
)


@st.composite
def values(draw: st.DrawFn, depth: int = 3) -> str:
    """A value as in a file, with lists over several lines and inline tables."""
    kind = draw(st.integers(0, 4)) if depth else 0
    if kind in {0, 1}:
        return draw(_SCALARS)
    between = st.one_of(_BLANKS, _NEWLINES)
    count = draw(st.integers(0, 3))
    if kind == 4:
        items = [
            f"{draw(keys())}{draw(_BLANKS)}={draw(_BLANKS)}{draw(values(depth - 1))}" for _ in range(count)
        ]
        return "{" + ",".join(f" {item} " for item in items) + "}"
    items = [f"{draw(between)}{draw(values(depth - 1))}{draw(between)}" for _ in range(count)]
    comma = draw(st.sampled_from([",", ""])) if items else ""
    return f"[{','.join(items)}{comma}{draw(between)}]"


@st.composite
def documents(draw: st.DrawFn) -> str:
    """A document that usually is valid TOML: keys may occur twice."""
    lines = []
    for _ in range(draw(st.integers(0, 8))):
        dotted = f"{draw(_BLANKS)}.{draw(_BLANKS)}".join(draw(st.lists(keys(), min_size=1, max_size=3)))
        form = draw(st.sampled_from(["key", "key", "key", "table", "array", "blank"]))
        if form == "key":
            lines.append(f"{draw(_BLANKS)}{dotted}{draw(_BLANKS)}={draw(_BLANKS)}{draw(values())}")
        elif form != "blank":
            left, right = ("[", "]") if form == "table" else ("[[", "]]")
            lines.append(f"{draw(_BLANKS)}{left}{draw(_BLANKS)}{dotted}{draw(_BLANKS)}{right}")
        lines.append(draw(_NEWLINES))
    return "".join(lines)


def paths(data: Any, path: tuple[str | int, ...] = ()) -> set[tuple[str | int, ...]]:
    """Every key of parsed TOML, and every table in a list of tables."""
    found: set[tuple[str | int, ...]] = set()
    if isinstance(data, dict):
        for name, value in data.items():
            found |= {(*path, name)} | paths(value, (*path, name))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            found |= paths(value, (*path, index))
    return found
