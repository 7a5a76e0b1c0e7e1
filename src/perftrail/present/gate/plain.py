"""A comparison as plain lines, one for each figure, for the log of any CI.

What a comparison tells GitHub's runner: workflow commands, of which no text of others can begin one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.present.gate.words import (
    effect,
    effort,
    figure,
    headline,
    limits,
    lost,
    machine,
    name,
    revision,
    sureness,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perftrail.results.gate import Gate


def to_plain(gate: Gate) -> str:
    """Write the lines; the first is the answer, each of the others begins with what it is about."""
    return "".join(f"{_flat(line)}\n" for line in _lines(gate))


def _lines(gate: Gate) -> Iterator[str]:
    yield headline(gate)
    yield f"base {revision(gate.base)}"
    yield f"head {revision(gate.head)}"
    for row in gate.rows:
        unit = row.target.unit
        told = (name(row), effect(row), figure(row.base, unit), figure(row.head, unit), f"{row.pairs} pairs")
        yield "  ".join([f"{row.word}{'!' if gate.trips(row) else ''}".ljust(8), *filter(None, told)])
    yield from (f"lost      {lost(each)}" for each in gate.lost)
    yield f"sure {sureness(gate)}"
    yield f"measured {effort(gate)}"
    yield f"machine {machine(gate)}"
    yield from (f"note {text}" for text in limits(gate))
    yield f"repeat {gate.repeat}"
    if gate.hunt:
        yield f"find {gate.hunt}"


def _flat(line: str) -> str:
    """One line that prints, whatever others wrote into it; none that a runner takes for a command of its own."""
    told = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in line)
    return told.replace("##[", "## [").replace("##vso", "## vso")


MOST = 10
"""So many annotations of a kind does GitHub show for a step."""


def marks(gate: Gate, *, file: str) -> Iterator[str]:
    """Give an error for each figure that trips the gate, for what is broken, or that there is no answer.

    `file` is where they are shown.
    """
    for row in gate.tripped[:MOST]:
        yield _error(file, f"{name(row)} is {row.word}", f"{name(row)}: {effect(row)}")
    for failed in gate.broken[: max(0, MOST - len(gate.tripped))]:
        yield _error(file, f"{failed.title} is broken", f"{failed.failure.stage}: {failed.failure.message}")
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
