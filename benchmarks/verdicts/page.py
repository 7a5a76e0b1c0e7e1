"""The verdicts as a page of the documentation, written by ``python -m benchmarks.verdicts --write``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.machine import measured_on
from benchmarks.markdown import table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.verdicts.counts import VerdictCounts

PAGE = Path(__file__).parents[1] / "results" / "verdicts.md"

HEAD = ("true difference", "tool", "metric", "right", "wrong", "undecided", "of", "pairs", "seconds")

TEXT = """\
Each trial runs every tool on the same two commands. One is a program that computes for {milliseconds:g} ms.
The other is the same program (no difference), or a program that computes longer by the true difference.
{busy}The counts are of verdicts as the tool prints them.

- Without a difference, "same" and "unclear" are **right**, and "faster" and "slower" are **wrong**.
- With a difference, "slower" is **right**, "faster" is **wrong**, and other verdicts are **undecided**.
- **Pairs** is the number of runs of each command. perftrail stops by itself, after at most {most}.
- hyperfine runs each command 12 times. The Welch test of its own script at p < .05 decides.
- pyperf runs each command 30 times in 5 processes, one loop for each value. `compare_to` decides.

Both programs use the same memory. Slow tools have fewer trials.

The table excludes poop, which no package registry of the other tools offers. Built from source, it ends
with "unable to open perf event" on this machine, which has no hardware counters.
"""


def page(counts: Sequence[VerdictCounts], *, milliseconds: float, busy: bool, most: int) -> str:
    """Return the whole page."""
    busy_text = "Another process keeps the other CPU busy. " if busy else ""
    return (
        "<!-- made by `python -m benchmarks.verdicts --write`: do not edit -->\n\n"
        "# Results of verdicts\n\n"
        f"{measured_on()}.\n\n"
        f"{TEXT.format(milliseconds=milliseconds, busy=busy_text, most=most)}\n"
        f"{table([HEAD, *(_cells(row) for row in counts)])}\n"
    )


def _cells(row: VerdictCounts) -> tuple[str, ...]:
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
