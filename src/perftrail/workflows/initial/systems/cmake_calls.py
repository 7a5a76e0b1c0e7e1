"""Reads the commands of a CMakeLists.txt: their names and arguments, and which run whatever is configured."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_TOKEN = re.compile(
    r"""
      \#\[(?P<hashes>=*)\[.*?\](?P=hashes)\]         # a bracket comment
    | \#[^\n]*                                       # a comment
    | \[(?P<signs>=*)\[\n?(?P<bracket>.*?)\](?P=signs)\]
    | "(?P<quoted>(?:[^"\\]|\\.)*)"
    | (?P<sign>[()])
    | (?P<plain>(?:[^\s()"\#\\]|\\.)+)
    """,
    re.VERBOSE | re.DOTALL,
)

_OPENS = frozenset({"if", "foreach", "while", "function", "macro"})
_CLOSES = frozenset({"endif", "endforeach", "endwhile", "endfunction", "endmacro"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One command: its name in small letters and its arguments. `sure`: no condition stands around it."""

    name: str
    arguments: tuple[str, ...]
    sure: bool


def calls(text: str) -> tuple[Call, ...]:
    r"""Read every command of a file in order; what cannot be read is passed over.

    >>> calls('if(X) # why\nADD_EXECUTABLE("a b" main.c)\nendif()')[1]
    Call(name='add_executable', arguments=('a b', 'main.c'), sure=False)
    """
    found, depth = [], 0
    for name, arguments in _commands(text):
        if name in _CLOSES:
            depth = max(0, depth - 1)
        found.append(Call(name=name, arguments=arguments, sure=depth == 0))
        if name in _OPENS:
            depth += 1
    return tuple(found)


def _commands(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    name, arguments, nested = "", list[str](), 0
    for token in _TOKEN.finditer(text):
        sign = token["sign"]
        if sign == "(":
            nested += 1
        elif sign == ")":
            nested = max(0, nested - 1)
            if nested == 0 and name:
                yield name, tuple(arguments)
                name, arguments = "", []
        else:
            value = next(
                (token[kind] for kind in ("bracket", "quoted", "plain") if token[kind] is not None), None
            )
            if value is not None and nested:
                arguments.append(value)
            elif value is not None:
                name, arguments = value.lower(), []
