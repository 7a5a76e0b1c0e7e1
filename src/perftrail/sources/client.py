"""Runs the command lines of version control and package tools, and keeps what they say.

Every one goes through the `Starter`, so that whatever a tool starts dies with perftrail.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from perftrail.errors import SourceError
from perftrail.model.process import (
    Cancelled,
    Command,
    Exited,
    NotStarted,
    OutOfMemory,
    Signalled,
    TimedOut,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftrail.model.process import Ended
    from perftrail.ports import Starter

QUICK_SECONDS = 300.0
"""Longer than any query of a large history takes; a tool that hangs is given up then."""

LONG_SECONDS = 3600.0
"""For what moves data: clones, check-outs, downloads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a tool said. `ended` says in words how it ended when it failed and is empty when it did not."""

    output: bytes
    errors: str
    ended: str

    @property
    def failed(self) -> bool:
        """Whether the tool said that it could not do what it was asked."""
        return bool(self.ended)

    def lines(self) -> list[str]:
        """What was printed, line by line, bytes that are no text replaced."""
        return self.output.decode("utf-8", errors="replace").splitlines()

    def fields(self) -> list[str]:
        """What was printed between NUL bytes, bytes that are no text replaced."""
        return self.output.decode("utf-8", errors="replace").split("\0")[:-1]

    @property
    def why(self) -> str:
        """The line that best tells why the tool failed, in its own words."""
        return telling_line(self.errors) or telling_line("\n".join(self.lines())) or self.ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A tool with the environment that all its commands are run in."""

    starter: Starter
    environment: Mapping[str, str]

    def ask(
        self,
        command: Sequence[str],
        *,
        directory: str | Path,
        stdin: bytes = b"",
        timeout_seconds: float = QUICK_SECONDS,
        log: str | Path | None = None,
    ) -> Answer:
        """Run one command and give what it printed; a `log` gets the command and all it says as well."""
        with tempfile.TemporaryDirectory(prefix="perftrail-client-") as scratch:
            answer = self._run(command, Path(scratch), str(directory), stdin, timeout_seconds)
        if log is not None:
            _append(Path(log), command, answer)
        return answer

    def _run(
        self, command: Sequence[str], scratch: Path, directory: str, stdin: bytes, timeout_seconds: float
    ) -> Answer:
        told, output, errors = scratch / "in", scratch / "out", scratch / "err"
        told.write_bytes(stdin)
        ran = self.starter.run(
            Command(
                arguments=tuple(command),
                environment=self.environment,
                directory=directory,
                stdin=str(told),
                stdout=str(output),
                stderr=str(errors),
                timeout_seconds=timeout_seconds,
                tree_memory="off",
            )
        )
        return Answer(
            output=output.read_bytes() if output.exists() else b"",
            errors=errors.read_text("utf-8", errors="replace") if errors.exists() else "",
            ended=_in_words(ran.ended, timeout_seconds),
        )


def client_environment(*, without: Sequence[str], keep: Sequence[str] = ()) -> dict[str, str]:
    """Give our own environment without the variables that begin so, in the language of the tools' authors."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name in keep or not name.startswith(tuple(without))
    }
    return {**inherited, "LC_ALL": "C.UTF-8", "LANGUAGE": ""}


def telling_line(text: str) -> str:
    """Choose the line of a tool's messages that tells why it failed: a complaint, else the last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    complaints = [line for line in lines if line.lower().startswith(("fatal:", "error:"))]
    return (complaints or lines[-1:] or [""])[0]


def refuse_control_characters(text: str, *, what: str) -> None:
    """Raise `SourceError` when a name would be taken for several by a tool that reads line by line."""
    if any(character in text for character in "\n\r\0"):
        raise SourceError(f"{what} {text!r}: holds a line end or a NUL; no tool can be asked for it")


def _in_words(ended: Ended, timeout_seconds: float) -> str:
    """How a tool failed, nothing when it did not."""
    match ended:
        case Exited(code=code):
            words = f"exit code {code}" if code else ""
        case Signalled(signal=number):
            words = f"killed by signal {number}"
        case TimedOut():
            words = f"gave up after {timeout_seconds:.0f} s"
        case OutOfMemory():
            words = "out of memory"
        case Cancelled():
            words = "cancelled"
        case NotStarted(message=message):
            words = f"cannot be started: {message}"
        case _:
            assert_never(ended)
    return words


def _append(log: Path, command: Sequence[str], answer: Answer) -> None:
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as file:
        file.write(f"$ {' '.join(command)}\n".encode(errors="replace"))
        file.write(answer.output + answer.errors.encode(errors="replace"))
        if answer.failed:
            file.write(f"[{answer.ended}]\n".encode())
