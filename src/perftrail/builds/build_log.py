"""The log of a build, and the lines of it that explain a failure, which are seldom the last ones."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.model.wording import escaped

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """The log of one build: its lines, their output, their time."""

    path: Path

    def begin(self) -> None:
        """Start an empty log."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_bytes(b"")

    def note(self, text: str) -> None:
        """Add a line that perftrail itself writes."""
        with self.path.open("ab") as file:
            file.write(f"{text}\n".encode(errors="surrogateescape"))

    def append(self, output: Path) -> None:
        """Add a program's output from a file."""
        if output.exists():
            with self.path.open("ab") as file, output.open("rb") as printed:
                shutil.copyfileobj(printed, file)


MOST_LINES = 6
"""Maximum number of lines in an excerpt."""

LONGEST_LINE = 300
"""Characters of a line in an excerpt; longer lines are shortened."""

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")

_PATTERNS = tuple(
    re.compile(pattern)
    for pattern in (
        # First errors of compilers, linkers and interpreters.
        r"\bfatal error\b|: error[:\s]|^error(\[\w+\])?:|\bundefined reference\b|cannot find -l"
        r"|multiple definition of|^\S+\.go:\d+:|^\S*(?:Error|Exception)(?::|$)|^panicked at|^E\s{2,}"
        # Errors of the machine, which repeat in other words.
        r"|No space left on device|Disk quota exceeded|Cannot allocate memory|out of memory allocating",
        # Errors of configure scripts, build systems and shells.
        r"^configure: error|CMake Error|^meson\.build:\d+|\bERROR:|^fatal:|^error:|: not found$"
        r"|Could not resolve host|No such file or directory|command not found|Permission denied|Too many open files"
        r"|No rule to make target|unbound variable|parameter not set|Killed\b|Segmentation fault",
        # Any other error message.
        r"(?i)\berror\b|\bfailed\b|\bcannot\b",
        # Messages that something failed before.
        r"^g?make(\[\d+\])?: \*\*\*|^ninja: build stopped",
    )
)
"""Patterns of lines that explain a failure, the most specific first."""

_UNINFORMATIVE = re.compile(
    r"(?i)\b0 errors?\b|\bno errors?\b|-Werror|checking |\berror\.[cho]\b|errors?\.o\b"
    r"|^npm (?:error|ERR!) (?:code|errno|syscall|path|command|A complete log)\b"
)


def log_excerpt(output: str) -> str:
    r"""Return the few lines that best explain a failed build, the first error first.

    >>> log_excerpt("cc -c a.c\na.c:1:1: error: unknown type\nmake: *** [a.o] Error 1\n")
    'a.c:1:1: error: unknown type\nmake: *** [a.o] Error 1'
    >>> log_excerpt("# example.org/program\n./main.go:39:11: undefined: top\n")
    './main.go:39:11: undefined: top'
    """
    lines = [line for line in map(_clean, output.splitlines()) if line]
    groups = _by_pattern(lines)
    chosen = next((group for group in groups[:-1] if group), [])
    last = groups[-1][:1]
    return "\n".join([*chosen[: MOST_LINES - len(last)], *last] or lines[-3:])


def _by_pattern(lines: Sequence[str]) -> list[list[str]]:
    groups: list[list[str]] = [[] for _ in _PATTERNS]
    last = len(_PATTERNS) - 1
    for line in dict.fromkeys(lines):
        if _PATTERNS[last].search(line):
            groups[last].append(line)
            continue
        kind = next((number for number, wanted in enumerate(_PATTERNS[:last]) if wanted.search(line)), None)
        if kind is not None and not (kind == last - 1 and _UNINFORMATIVE.search(line)):
            groups[kind].append(line)
    return groups


def _clean(line: str) -> str:
    """Remove terminal colours and control characters, and shorten the line."""
    plain = _ESCAPES.sub("", line).replace("\t", " ").rstrip()
    return escaped(plain, longest=LONGEST_LINE)


READ_BYTES = 4 << 20
"""Bytes of a failed line's output that are searched for the reason, at its start and at its end."""


def read_ends(output: Path) -> str:
    """Return the start and the end of a program's output, at most `READ_BYTES` of each; empty without a file."""
    if not output.exists():
        return ""
    size = output.stat().st_size
    with output.open("rb") as file:
        start = file.read(READ_BYTES)
        file.seek(max(len(start), size - READ_BYTES))
        return (start + file.read()).decode("utf-8", errors="replace")
