"""A comparison as plain lines, one for each figure, for the log of any CI."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.report.gates.words import (
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

    from perftrail.report.gates.result import Gate


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
