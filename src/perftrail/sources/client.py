"""Run the command lines of version control and package tools, and return their output.

Each goes through the `Starter`, so that its processes end with perftrail.
"""

from __future__ import annotations

import os
import re
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import SourceError
from perftrail.file_tree import temporary_directory, user_cache
from perftrail.model.process import Command, Signalled, describe_end
from perftrail.model.wording import quantity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftrail.ports import Starter

QUICK_SECONDS = 300.0
"""Longer than any query of a large history; a tool that takes longer is killed."""

LONG_SECONDS = 3600.0
"""Limit for commands that move data: clones, check-outs, downloads."""

LARGEST_OUTPUT_BYTES = 256 << 20
"""Limit of a tool's output, which perftrail reads into memory; a tool that prints more is stopped."""

LARGEST_FILE_BYTES = 64 << 30
"""Limit of each file that a command which moves data may write; larger than any known repository."""

LARGEST_MEMORY_BYTES = 4 << 30
"""Limit of the memory of a command that answers a question: git collects a comparison before it prints any."""


def shared_directory(name: str) -> Path | None:
    """Return a directory in the user's cache that all studies share, or `None` if perftrail cannot write there."""
    directory = user_cache() / name
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return directory if os.access(directory, os.W_OK) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """Output of a tool. `ended` describes how it failed; empty after success.

    `over_limit`: it printed more than `LARGEST_OUTPUT_BYTES`, or wrote a larger file than it may. Then there is no
    output.
    """

    output: bytes
    errors: str
    ended: str
    over_limit: bool = False

    @property
    def failed(self) -> bool:
        """Whether the tool failed."""
        return bool(self.ended)

    def lines(self) -> list[str]:
        """The output line by line; invalid bytes are replaced."""
        return self.output.decode("utf-8", errors="replace").splitlines()

    def fields(self) -> list[str]:
        """The output between NUL bytes; invalid bytes are replaced."""
        return self.output.decode("utf-8", errors="replace").split("\0")[:-1]

    @property
    def why(self) -> str:
        """The cause of the failure in the tool's own words."""
        return error_line(self.errors) or error_line("\n".join(self.lines())) or self.ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """Runs the commands of a tool in one environment."""

    starter: Starter
    environment: Mapping[str, str]

    def run(
        self,
        command: Sequence[str],
        *,
        directory: str | Path,
        stdin: bytes = b"",
        timeout_seconds: float = QUICK_SECONDS,
        log: str | Path | None = None,
        output_bytes: int | None = None,
    ) -> ToolResult:
        """Run one command and return its output; the command and all its output are appended to `log`.

        Commands limited to `QUICK_SECONDS` only answer a question: their memory is limited, and they may not write
        larger files than their output, which is limited to `output_bytes` [default: `LARGEST_OUTPUT_BYTES`].
        """
        with temporary_directory() as scratch:
            limit = LARGEST_OUTPUT_BYTES if output_bytes is None else output_bytes
            result = self._run(command, scratch, str(directory), stdin, timeout_seconds, limit)
        if log is not None:
            _append(Path(log), command, result)
        return result

    def _run(
        self,
        command: Sequence[str],
        scratch: Path,
        directory: str,
        stdin: bytes,
        timeout_seconds: float,
        limit: int,
    ) -> ToolResult:
        stdin_file, output, errors = scratch / "in", scratch / "out", scratch / "err"
        stdin_file.write_bytes(stdin)
        quick = timeout_seconds <= QUICK_SECONDS
        largest_file = limit if quick else LARGEST_FILE_BYTES
        ran = self.starter.run(
            Command(
                arguments=tuple(command),
                environment=self.environment,
                directory=directory,
                stdin=str(stdin_file),
                stdout=str(output),
                stderr=str(errors),
                output_cap_bytes=limit,
                timeout_seconds=timeout_seconds,
                tree_memory="off",
                limits={"fsize": largest_file, **({"data": LARGEST_MEMORY_BYTES} if quick else {})},
            )
        )
        printed = output.stat().st_size if output.exists() else 0
        if printed >= limit or ran.ended == Signalled(signal=signal.SIGXFSZ):
            written = limit if printed >= limit else largest_file
            return ToolResult(output=b"", errors="", ended=_over_limit(command, written), over_limit=True)
        return ToolResult(
            output=output.read_bytes() if output.exists() else b"",
            errors=errors.read_text("utf-8", errors="replace") if errors.exists() else "",
            ended=describe_end(ran.ended, timeout_seconds=timeout_seconds),
        )


def _over_limit(command: Sequence[str], limit_bytes: int) -> str:
    words = [Path(command[0]).name, *(word for word in command[1:] if not word.startswith("-"))]
    return (
        f"{' '.join(words[:2])} was stopped: it wrote more than {quantity(float(limit_bytes), 'B')}, the limit for "
        "what perftrail reads from a repository or package. A smaller range, or a source without the "
        "oversized data, stays below it"
    )


def client_environment(*, without: Sequence[str], keep: Sequence[str] = ()) -> dict[str, str]:
    """Return perftrail's environment in the C locale, except variables with prefixes in `without`.

    Variables named in `keep` stay.
    """
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name in keep or not name.startswith(tuple(without))
    }
    return {**inherited, "LC_ALL": "C.UTF-8", "LANGUAGE": ""}


_PASSED = re.compile(
    r"PATH|HOME|USER|LOGNAME|TMPDIR|NETRC|LANG|LC_\w+|XDG_\w+|SSL_\w+|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE"
    r"|(?:https?|ftp|all|no)_proxy",
    re.IGNORECASE,
)
"""Variables for tools that may run third-party code: paths, the locale, certificates and proxies."""


def reduced_environment(*, also: str) -> dict[str, str]:
    """Return the environment of a tool that may run third-party code, in the C locale.

    It contains the usual variables and those whose names match the regular expression `also`.
    """
    passed = {
        name: value
        for name, value in os.environ.items()
        if _PASSED.fullmatch(name) or re.fullmatch(also, name)
    }
    return {**passed, "LC_ALL": "C.UTF-8", "LANGUAGE": ""}


def error_line(text: str) -> str:
    """Return the line that names the cause of a tool's failure: the first error message, else the last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    messages = [line for line in lines if line.lower().startswith(("fatal:", "error:"))]
    return (messages or lines[-1:] or [""])[0]


def refuse_control_characters(text: str, *, what: str) -> None:
    """Raise `SourceError` for a name with control characters, which a tool could read as several names."""
    if any(character in text for character in "\n\r\0"):
        raise SourceError(f"{what} {text!r}: contains a line end or a NUL; no tool can look it up")


def _append(log: Path, command: Sequence[str], result: ToolResult) -> None:
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as file:
        file.write(f"$ {' '.join(command)}\n".encode(errors="replace"))
        file.write(result.output + result.errors.encode(errors="replace"))
        if result.failed:
            file.write(f"[{result.ended}]\n".encode())
