"""What a comparison came to, for people: the answer, a table with the worst first, and what to do next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from perftrail.cli.console import output
from perftrail.cli.failures import telling
from perftrail.cli.speech import plain
from perftrail.report.gates.words import (
    effect,
    effort,
    figure,
    headline,
    limits,
    name,
    reach,
    revision,
    strip,
    sureness,
)
from perftrail.stats.comparison import Verdict

if TYPE_CHECKING:
    from perftrail.report.gates.result import Gate

STYLES = {Verdict.SLOWER: "red", Verdict.FASTER: "green", Verdict.UNCLEAR: "dim", Verdict.SAME: ""}
LONGEST = 400
MOST_LOST = 10


def print_gate(gate: Gate) -> None:
    """Print the answer in a line, every figure, what could not be had, how sure it is, and what to do next."""
    console = output()
    console.print(Text(plain(headline(gate), longest=LONGEST), style="bold"))
    console.print(Text(f"base {plain(revision(gate.base))}"))
    console.print(Text(f"head {plain(revision(gate.head))}"))
    if gate.rows:
        console.print()
        console.print(_table(gate))
        console.print()
    for lost in gate.lost[:MOST_LOST]:
        why = f"{lost.failure.stage}: {telling(lost.failure)} (log: {lost.failure.log})"
        console.print(Text(f"{f'{lost.side} {plain(lost.place)}'.strip()}: {why}", style="yellow"))
    if len(gate.lost) > MOST_LOST:
        console.print(Text(f"and {len(gate.lost) - MOST_LOST} more; --json names all", style="yellow"))
    sure = sureness(gate)
    console.print(Text(f"{sure[:1].upper()}{sure[1:]}"))
    told = effort(gate)
    console.print(Text(f"{told[:1].upper()}{told[1:]}; machine {plain(gate.machine.id)}"))
    for text in limits(gate):
        console.print(Text(plain(f"{text[:1].upper()}{text[1:]}", longest=LONGEST)))
    if gate.verdict in (Verdict.SLOWER, Verdict.FASTER):
        console.print(Text(f"Next: {plain(gate.hunt, longest=LONGEST)}    which change did it", style="dim"))


def _table(gate: Gate) -> Table:
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for head in ("metric", "base", "head", "change", "", "verdict"):
        table.add_column(head, no_wrap=True, justify="right" if head in ("base", "head") else "left")
    ends = reach(gate)
    for row in gate.rows:
        style = STYLES[row.verdict]
        table.add_row(
            Text(plain(name(row))),
            Text(figure(row.base, row.target.unit)),
            Text(figure(row.head, row.target.unit)),
            Text(plain(effect(row)), style=style),
            Text(strip(row, ends) if row.comparison is not None else "", style=style),
            Text(f"{row.word}{', trips the gate' if gate.trips(row) else ''}", style=style),
        )
    return table
