"""The verdicts as a page of the documentation, made anew by ``python -m benchmarks.verdicts --write``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.machine import taken
from benchmarks.markdown import table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.verdicts.counted import Counted

PAGE = Path(__file__).parents[1] / "results" / "verdicts.md"

HEAD = ("true difference", "tool", "metric", "right", "wrong", "undecided", "of", "pairs", "seconds each")

WORDS = """\
Each trial asks every tool in turn about the same two commands: a program of our own that computes for
{milliseconds:g} ms, against itself (no difference) or against one that computes longer by the true difference.
{busy}What a tool says is counted as its users get it.
With no difference, **right** is "same" or "unclear" and **wrong** is any "faster" or "slower"; with a difference,
**right** is "slower", **wrong** is "faster", and the rest is **undecided**. **Pairs** are the starts of each
command: perftrail stops by itself, at most after {most}; hyperfine runs 12 of each, and its own script's Welch test
at p < .05 decides; pyperf runs 30 of each in 5 processes, one loop for each value, and `compare_to` decides. Both
programs use the same memory. A tool with fewer trials was left out of the later ones for the time it takes.

poop is not in the table. It is in no package registry that the other peers come from; built from its source it ends
with "unable to open perf event" where, as here, the machine has no hardware counters.
"""


def page(counted: Sequence[Counted], *, milliseconds: float, busy: bool, most: int) -> str:
    """Give the whole page."""
    kept_busy = "The other CPU is kept busy meanwhile. " if busy else ""
    return (
        "<!-- made by `python -m benchmarks.verdicts --write`: do not edit -->\n\n"
        "# Verdicts beside peers\n\n"
        f"{taken()}.\n\n"
        f"{WORDS.format(milliseconds=milliseconds, busy=kept_busy, most=most)}\n"
        f"{table([HEAD, *(_cells(row) for row in counted)])}\n"
    )


def _cells(row: Counted) -> tuple[str, ...]:
    return (
        f"{row.effect:.0%}" if row.effect else "none",
        row.tool,
        row.metric,
        str(row.right),
        f"**{row.wrong}**" if row.wrong else "0",
        str(row.undecided),
        str(row.trials),
        f"{row.pairs:.0f}",
        f"{row.seconds:.1f}",
    )
