"""A comparison as a comment in Markdown, for a pull or merge request: answer, figure, table, how to go on."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from perftrail.model.build import content_key
from perftrail.present.gate.words import (
    effect,
    effort,
    figure,
    headline,
    limits,
    lost,
    machine,
    name,
    reach,
    revision,
    strip,
    sureness,
)
from perftrail.present.page_markdown import inert
from perftrail.stats.comparison import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from perftrail.results.gate import Gate, Row

SIGNS = {Verdict.SLOWER: "🔴", Verdict.FASTER: "🟢", Verdict.UNCLEAR: "⚪", Verdict.SAME: "⚫"}
"""Beside the word, never instead of it."""

HEAD = ("", "metric", "base", "head", "change", "figure", "verdict")
MOST_ROWS, MOST_FOLDED = 100, 60
"""So many rows that moved, and of each folded verdict; the rest is counted. A comment may have 65,536 letters."""

MOST_LOST = 20


def to_markdown(gate: Gate) -> str:
    """Write the comment. What others wrote stays text, and calls nobody."""
    return "\n".join(_lines(gate)).rstrip() + "\n"


def marker(gate: Gate) -> str:
    """Give the line by which a later comparison of the same study finds its comment."""
    return f"<!-- perftrail compare {content_key(gate.title)[:16]} -->"


def _lines(gate: Gate) -> Iterator[str]:
    yield marker(gate)
    yield f"### {inert(gate.title)}"
    yield ""
    yield f"**{inert(headline(gate))}**"
    yield ""
    yield f"Base {inert(revision(gate.base))}  "
    yield f"Head {inert(revision(gate.head))}"
    yield from _figures(gate)
    yield from _lost(gate)
    yield ""
    yield f"- How sure: {inert(sureness(gate))}"
    yield f"- Measured: {inert(effort(gate))}"
    yield f"- Machine: {inert(machine(gate))}"
    yield from (f"- {inert(text[:1].upper() + text[1:])}" for text in limits(gate))
    yield from _command("To repeat it", gate.repeat)
    if gate.verdict in (Verdict.SLOWER, Verdict.FASTER):
        yield from _command("To find which change did it", gate.hunt)


def _figures(gate: Gate) -> Iterator[str]:
    moved = [row for row in gate.rows if row.verdict in (Verdict.SLOWER, Verdict.FASTER)]
    still = [row for row in gate.rows if row not in moved]
    ends = reach(gate)
    if moved:
        yield from _table(gate, moved[:MOST_ROWS], ends, left=len(moved) - MOST_ROWS)
    for verdict, word in ((Verdict.UNCLEAR, "unclear"), (Verdict.SAME, "unchanged")):
        rows = [row for row in still if row.verdict is verdict]
        if rows:
            opened = " open" if gate.fail_on in ("unclear", "any") and verdict is Verdict.UNCLEAR else ""
            yield ""
            yield f"<details{opened}><summary>{len(rows)} {word}</summary>"
            yield from _table(gate, rows[:MOST_FOLDED], ends, left=len(rows) - MOST_FOLDED)
            yield ""
            yield "</details>"


def _table(gate: Gate, rows: Sequence[Row], ends: float, *, left: int) -> Iterator[str]:
    yield ""
    yield f"| {' | '.join(HEAD)} |"
    yield "| --- | :--- | ---: | ---: | :--- | :---: | :--- |"
    for row in rows:
        unit = row.target.unit
        cells = (
            SIGNS[row.verdict],
            inert(name(row)),
            _unbroken(figure(row.base, unit)),
            _unbroken(figure(row.head, unit)),
            _unbroken(effect(row)) if row.comparison is not None else inert(effect(row)),
            f"`{strip(row, ends)}`" if row.comparison is not None else "",
            inert(f"{row.word}, trips the gate" if gate.trips(row) else row.word),
        )
        yield f"| {' | '.join(cells)} |"
    if left > 0:
        yield ""
        yield f"{left} more."
    yield ""
    low, high = (f"{100.0 * math.expm1(end):+.0f} %".replace("-", "−") for end in (-ends, ends))
    yield f"<sub>Each figure goes from {low} to {high}; the bar is the interval.</sub>"


def _unbroken(text: str) -> str:
    """Keep a number and its unit in one line of a narrow column."""
    return inert(text).replace(" ", "\u00a0")


def _lost(gate: Gate) -> Iterator[str]:
    if gate.lost:
        yield ""
        yield f"<details{' open' if gate.broken else ''}><summary>{len(gate.lost)} could not be had</summary>"
        yield ""
        yield from (f"- {inert(lost(each))}" for each in gate.lost[:MOST_LOST])
        if len(gate.lost) > MOST_LOST:
            yield f"- and {len(gate.lost) - MOST_LOST} more"
        yield ""
        yield "</details>"


def _command(title: str, command: str) -> Iterator[str]:
    """A command in a block that none of its letters can end, and that no runner takes for one of its own."""
    if command:
        flat = "".join(letter if letter.isprintable() else "?" for letter in command).replace("##[", "# #[")
        yield ""
        yield f"{title}:"
        yield ""
        yield "~~~~~~~~sh"
        yield flat
        yield "~~~~~~~~"
