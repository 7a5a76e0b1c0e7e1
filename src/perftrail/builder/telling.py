"""Finds the lines of a failed build's output that tell why it failed; these are seldom the last ones."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_LINES = 6
LONGEST_LINE = 300

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")

_KINDS = tuple(
    re.compile(pattern)
    for pattern in (
        # What a compiler, a linker or an interpreter says of the first thing it cannot do.
        r"\bfatal error\b|: error[:\s]|^error(\[\w+\])?:|\bundefined reference\b|cannot find -l"
        r"|multiple definition of|^\S*Error:|^\S*Exception:|^panicked at|^E\s{2,}",
        # What configure scripts, build systems and shells say.
        r"^configure: error|CMake Error|^meson\.build:\d+|\bERROR:|^fatal:|^error:|: not found$"
        r"|Could not resolve host|No such file or directory|command not found|Permission denied|No space left on device"
        r"|No rule to make target|unbound variable|parameter not set|Killed\b|Segmentation fault",
        # Any complaint at all.
        r"(?i)\berror\b|\bfailed\b|\bcannot\b",
        # What only says that something failed before.
        r"^g?make(\[\d+\])?: \*\*\*|^ninja: build stopped",
    )
)
"""Kinds of lines, the most telling first."""

_EMPTY_TALK = re.compile(
    r"(?i)\b0 errors?\b|\bno errors?\b|-Werror|checking |\berror\.[cho]\b|errors?\.o\b"
    r"|^npm (?:error|ERR!) (?:code|errno|syscall|path|command|A complete log)\b"
)


def telling_lines(output: str) -> str:
    r"""Choose the few lines that best tell why a build failed, the first complaint first.

    >>> telling_lines("cc -c a.c\na.c:1:1: error: unknown type\nmake: *** [a.o] Error 1\n")
    'a.c:1:1: error: unknown type\nmake: *** [a.o] Error 1'
    """
    lines = [line for line in map(_clean, output.splitlines()) if line]
    groups = _by_kind(lines)
    chosen = next((group for group in groups[:-1] if group), [])
    last = groups[-1][:1]
    return "\n".join([*chosen[: MOST_LINES - len(last)], *last] or lines[-3:])


def _by_kind(lines: Sequence[str]) -> list[list[str]]:
    groups: list[list[str]] = [[] for _ in _KINDS]
    last = len(_KINDS) - 1
    for line in dict.fromkeys(lines):
        if _KINDS[last].search(line):
            groups[last].append(line)
            continue
        kind = next((number for number, wanted in enumerate(_KINDS[:last]) if wanted.search(line)), None)
        if kind is not None and not (kind == last - 1 and _EMPTY_TALK.search(line)):
            groups[kind].append(line)
    return groups


def _clean(line: str) -> str:
    """Take terminal colours out, keep the line short and free of what would upset a terminal."""
    plain = _ESCAPES.sub("", line).replace("\t", " ").rstrip()
    plain = "".join(character if character.isprintable() else "�" for character in plain)
    return plain if len(plain) <= LONGEST_LINE else plain[: LONGEST_LINE - 1] + "…"
