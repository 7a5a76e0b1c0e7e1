"""Run the shell lines of a recipe one by one, and write their output to a log.

`log_excerpt` finds the lines of the output that explain a failure, which are seldom the last ones. Builds run in a
small, clean environment that is the same for everybody.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.file_tree import temporary_directory
from perftrail.model.process import (
    Command,
    TimedOut,
    describe_end,
)
from perftrail.model.study import with_refusals
from perftrail.model.wording import escaped

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftrail.ports import Starter


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
        r"|multiple definition of|^\S+\.go:\d+:|^\S*Error:|^\S*Exception:|^panicked at|^E\s{2,}",
        # Errors of configure scripts, build systems and shells.
        r"^configure: error|CMake Error|^meson\.build:\d+|\bERROR:|^fatal:|^error:|: not found$"
        r"|Could not resolve host|No such file or directory|command not found|Permission denied|No space left on device"
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


MOST_OUTPUT_BYTES = 64 << 20
"""Output limit of one line, so that an endless build cannot fill the disk."""

READ_BYTES = 4 << 20
"""Bytes of a failed line's output that are searched for the reason, at its start and at its end."""

VERSION_SECONDS = 20.0


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellSteps:
    """Shell lines, each run as ``sh -eu -c``, in one directory and within one timeout."""

    lines: Sequence[str]
    directory: Path
    environment: Mapping[str, str]
    timeout_seconds: float

    def run(self, starter: Starter, log: Log) -> str:
        """Run the lines until one fails; return the lines that explain the failure, or an empty text."""
        end = time.monotonic() + self.timeout_seconds
        for line in self.lines:
            left = end - time.monotonic()
            if left <= 0:
                late = describe_end(TimedOut(), timeout_seconds=self.timeout_seconds)
                log.note(f"[not started: {late}]")
                return late
            failure = self._run_line(starter, log, line, left)
            if failure:
                return failure
        return ""

    def _run_line(self, starter: Starter, log: Log, line: str, seconds: float) -> str:
        log.note(f"$ {line}")
        output = log.path.with_suffix(".now")
        began = time.monotonic()
        ran = starter.run(
            Command(
                arguments=("/bin/sh", "-eu", "-c", line),
                environment=self.environment,
                directory=str(self.directory),
                stdout=str(output),
                stderr=str(output),
                output_cap_bytes=MOST_OUTPUT_BYTES,
                timeout_seconds=seconds,
                tree_memory="off",
            )
        )
        ended = describe_end(ran.ended, timeout_seconds=self.timeout_seconds)
        log.append(output)
        if ran.refused:
            log.note(f"[{with_refusals('', ran.refused)}]")
        log.note(f"[{ended or 'done'}, {time.monotonic() - began:.2f} s]")
        text = _read_ends(output)
        output.unlink(missing_ok=True)
        if not ended:
            return ""
        excerpt = "" if isinstance(ran.ended, TimedOut) else log_excerpt(text)
        return with_refusals(excerpt or f"{ended}: {line}", ran.refused)


def version_of(starter: Starter, program: str, argument: str, environment: Mapping[str, str]) -> str:
    """Return the complete output of a program's version query."""
    with temporary_directory() as scratch:
        output = scratch / "output"
        starter.run(
            Command(
                arguments=(program, argument),
                environment=environment,
                directory=str(scratch),
                stdout=str(output),
                stderr=str(output),
                output_cap_bytes=1 << 16,
                timeout_seconds=VERSION_SECONDS,
                tree_memory="off",
            )
        )
        return output.read_text("utf-8", errors="replace") if output.exists() else ""


def _read_ends(output: Path) -> str:
    if not output.exists():
        return ""
    size = output.stat().st_size
    with output.open("rb") as file:
        start = file.read(READ_BYTES)
        file.seek(max(len(start), size - READ_BYTES))
        return (start + file.read()).decode("utf-8", errors="replace")


_INHERITED = (
    "HOME",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
)
"""Variables by which tools find their own files, certificates and proxies."""


def search_path() -> str:
    """Return the search path for programs; absolute directories only."""
    return os.pathsep.join(
        part for part in os.environ.get("PATH", os.defpath).split(os.pathsep) if part[:1] == "/"
    )


def build_environment(*, temporary: Path) -> dict[str, str]:
    """Return the variables of a build line, before the recipe's own."""
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    user = pwd.getpwuid(os.getuid()).pw_name
    return {
        "HOME": "/",
        **inherited,
        "USER": user,
        "LOGNAME": user,
        "PATH": search_path(),
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "TMPDIR": str(temporary),
    }
