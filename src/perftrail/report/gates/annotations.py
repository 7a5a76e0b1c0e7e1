"""What a comparison tells GitHub's runner: workflow commands, of which no text of others can begin one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.report.gates.words import effect, headline, name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perftrail.report.gates.result import Gate

MOST = 10
"""So many annotations of a kind does GitHub show for a step."""


def marks(gate: Gate, *, file: str) -> Iterator[str]:
    """Give an error for each figure that trips the gate, for what is broken, or that there is no answer.

    `file` is where they are shown.
    """
    for row in gate.tripped[:MOST]:
        yield _error(file, f"{name(row)} is {row.word}", f"{name(row)}: {effect(row)}")
    for lost in gate.broken[: max(0, MOST - len(gate.tripped))]:
        yield _error(file, f"{lost.title} is broken", f"{lost.failure.stage}: {lost.failure.message}")
    if gate.exit_code == 1 and not gate.broken:
        yield _error(file, "no answer", headline(gate))


def _error(file: str, title: str, message: str) -> str:
    return f"::error file={_property(file)},line=1,title={_property(title)}::{_text(message)}"


def _text(text: str) -> str:
    r"""Escape a message as the runner reads it.

    >>> _text("50 %\n::error::x")
    '50 %25%0A::error::x'
    """
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _text(text).replace(":", "%3A").replace(",", "%2C")
