"""Shell lines that start the programs of a suite in the build of a revision."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from perftrail.model.placeholders import literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from perftrail.model.suite import Suite

RUNNERS = "PERFTRAIL_RUNNERS"
"""Variable with the directory of the programs that run suites in the environment of a revision."""

_MARK = "perftrail: program "
"""Start of the line before the list of a program."""

_PATTERN = re.compile(r"[^\w./*?+@\[\]-]")
"""Characters that are quoted in a path; ``*`` and ``?`` stay patterns."""


def word(text: str) -> str:
    """Return a text as one word of a shell line, without placeholders.

    >>> word("a b"), word("{x}")
    ("'a b'", "'{{x}}'")
    """
    return literal(shlex.quote(text))


def words(texts: Iterable[str]) -> str:
    """Return texts as words of a shell line, each with a blank before it."""
    return "".join(f" {word(text)}" for text in texts)


def in_directory(path: str) -> str:
    """Return the start of a line that runs in a directory of the build."""
    return f"cd {{build}}{f'/{word(path)}' if path else ''}"


def patterns(suite: Suite) -> str:
    """Return the programs of a suite as patterns of a shell line that runs in the build."""
    plain = _without_stars(suite.program)
    return literal(" ".join(_PATTERN.sub(lambda found: f"\\{found[0]}", each) for each in plain))


def for_each_program(suite: Suite, line: str) -> str:
    """Return a shell line that runs `line` for each program of a suite, with its path as ``$program``.

    A line with the program's path in the build precedes the output of each. Programs are patterns relative to the
    build.
    """
    return (
        f"cd {{build}} && for program in {patterns(suite)}; do "
        f'[ -f "$program" ] && [ -x "$program" ] || continue; '
        f"printf '\\n%s%s\\n' '{_MARK}' \"$program\"; {line} || exit 1; done"
    )


_DEPTH = 8
"""Largest number of directories that ``**`` stands for."""


def _without_stars(programs: Iterable[str]) -> Iterator[str]:
    """Yield patterns without ``**``, which a plain shell does not know, for each number of directories.

    >>> list(_without_stars(["a/**/b"]))[:3]
    ['a/b', 'a/*/b', 'a/*/*/b']
    """
    for pattern in programs:
        if "**/" not in pattern:
            yield pattern
            continue
        yield from (pattern.replace("**/", "*/" * depth, 1) for depth in range(_DEPTH + 1))


def by_program(output: str) -> Iterator[tuple[str, str]]:
    """Yield each program of a listing with its output."""
    for part in output.split(f"\n{_MARK}")[1:]:
        program, _, printed = part.partition("\n")
        yield program, printed
