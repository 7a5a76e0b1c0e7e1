"""Where a comparison is written: on stdout, into files, and into what a job of GitHub offers."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

import click

from perftrail.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

    from perftrail.report.gates.result import Gate

LONGEST_SUMMARY_BYTES = 900_000
"""GitHub takes a megabyte from a step, and nothing at all of what is longer."""


@dataclass(frozen=True, slots=True)
class Job:
    """The job of GitHub that we run in, if it is to be told anything.

    While the block runs, the runner takes nothing that is printed for a command: builds and revisions of others speak
    there. `token` ends that, and nobody else knows it.
    """

    token: str = ""

    @classmethod
    def of(cls, form: str) -> Self:
        """Give the job, one that is told nothing where we run in none or another form is asked for."""
        there = form == "github" and os.environ.get("GITHUB_ACTIONS") == "true"
        return cls(secrets.token_hex(16) if there else "")

    def __enter__(self) -> Self:
        if self.token:
            click.echo(f"::stop-commands::{self.token}", err=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.token:
            click.echo(f"::{self.token}::", err=True)

    def tell(self, gate: Gate, text: str) -> None:
        """Write the summary of the step, and mark what failed."""
        if not self.token:
            return
        from perftrail.report.gates.annotations import marks

        summary = os.environ.get("GITHUB_STEP_SUMMARY")
        if summary:
            whole = text.encode()[:LONGEST_SUMMARY_BYTES].decode(errors="ignore")
            _write(Path(summary), whole + "\n", append=True)
        for line in marks(gate, file=_within(gate.file, os.environ.get("GITHUB_WORKSPACE", ""))):
            click.echo(line, err=True)


def check_also(texts: Sequence[str], *, known: Sequence[str]) -> Mapping[Path, str]:
    """Read ``FORMAT=FILE`` of --also: each file with its format. Raises `UsageError`."""
    found = {}
    for text in texts:
        form, equals, file = text.partition("=")
        if not equals or not file or form not in known:
            raise UsageError(f"--also {text}: write FORMAT=FILE; FORMAT is one of {', '.join(known)}")
        found[Path(file)] = form
    return found


def write_gate(gate: Gate, *, form: str, output: str | None, also: Mapping[Path, str], job: Job) -> None:
    """Write a comparison in the form asked for, in the others too, and tell the job. Raises `UsageError`."""
    for file, other in also.items():
        _write_one(gate, other, file)
    if output is not None:
        _write_one(gate, form, Path(output))
    elif form == "text":
        from perftrail.cli.gate_words import print_gate

        print_gate(gate)
    else:
        click.echo(_text(gate, form), nl=False)
    if output is not None and form != "json":
        from perftrail.report.gates import FORMATS

        click.echo(FORMATS["plain"](gate).splitlines()[0], err=True)
    job.tell(gate, _text(gate, "github") if job.token else "")


def _write_one(gate: Gate, form: str, file: Path) -> None:
    if form not in ("svg", "png"):
        _write(file, _text(gate, form))
        return
    from perftrail.report.gates.image import draw, to_png

    drawn = draw(gate)
    try:
        if form == "svg":
            file.write_text(drawn, encoding="utf-8")
        else:
            file.write_bytes(to_png(drawn))
    except OSError as error:
        raise UsageError(f"{file}: cannot be written: {error.strerror}") from error


def _text(gate: Gate, form: str) -> str:
    from perftrail.report.gates import FORMATS

    return FORMATS["plain" if form == "text" else form](gate)


def _write(file: Path, text: str, *, append: bool = False) -> None:
    try:
        with file.open("a" if append else "w", encoding="utf-8") as opened:
            opened.write(text)
    except OSError as error:
        raise UsageError(f"{file}: cannot be written: {error.strerror}") from error


def _within(file: str, workspace: str) -> str:
    """Name a file relative to the job's repository, where it lies in it."""
    path = Path(file)
    return str(path.relative_to(workspace)) if workspace and path.is_relative_to(workspace) else path.name
