"""The figures as a page of the documentation, made anew by ``python -m benchmarks.measure --write``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.machine import taken
from benchmarks.markdown import table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.measure.figures import Goal, Row

PAGE = Path(__file__).parents[1] / "results" / "measuring.md"

HEAD = (
    "tool",
    "excess, 5 ms",
    "excess, 50 ms",
    "CPU bias, 5 ms",
    "floor",
    "2 MiB",
    "20 MiB",
    "200 MiB",
    "forked 200 MiB",
    "2 × 100 MiB",
    "grandchild's CPU",
    "threads' CPU",
    "CPU against cgroup",
    "cost of a run",
)

WORDS = """\
All tools ran the same programs in this one run, in turn, in an order drawn anew for each round. A program
stamps the start and end of its own `main`; **excess** is what a tool's wall time has beyond that, as median
± half of what lies between the quartiles, in µs. Making the process, the dynamic linker and the way to
`main` are in it for every tool: compare the tools, not with zero. **CPU bias** is likewise what CPU time
has beyond what the program used in `main`, in µs. **Floor** is the peak memory, in KiB, read of a program
without a C library that only exits. The **MiB** columns are errors of peak memory in KiB: of the sum over
the tree where a tool gives one, else of the largest process; a shared C library counts as some 1,200 KiB of
a process. **Grandchild's CPU** is the error for a daemonised grandchild that uses 200 ms, **threads' CPU**
that for four threads that contend for a mutex, **CPU against cgroup** that of rusage beside the kernel's
own sum in the same run, where a tool gives both. **Cost of a run** is the whole time that one more run of
the program that only exits takes, less that program's own, in µs; of perftrail it includes the Python side.
Its launcher alone was sent all lines at once, and its own stamps tell what it spends from one exec to the
next beside the program (the lines that wait in its memory are in its floor). A dash is a figure that the
tool does not give.
"""


def page(
    found: Sequence[Row], reached: Sequence[Goal], missing: Sequence[str], *, rounds: int, seed: int
) -> str:
    """Give the whole page."""
    return (
        "<!-- made by `python -m benchmarks.measure --write`: do not edit -->\n\n"
        "# Measuring beside peers\n\n"
        f"{taken()}. {rounds} rounds, seed {seed}. "
        f"At its end {os.getloadavg()[1]:.1f} processes wanted a CPU, over five minutes; "
        "where that is above 1 the spreads tell how a tool bears company.\n\n"
        f"{WORDS}\n{figures_table(found)}\n\n## Goals\n\n{goals_table(reached)}\n\n## Not in the table\n\n"
        + "".join(f"- {line}\n" for line in missing)
    )


def figures_table(found: Sequence[Row]) -> str:
    """Give the figures as a Markdown table."""
    return table([HEAD, *(_cells(row) for row in found)])


def goals_table(reached: Sequence[Goal]) -> str:
    """Give the goals as a Markdown table."""
    body = [(goal.text, goal.reached, "yes" if goal.met else "**no**") for goal in reached]
    return table([("goal", "reached", "met"), *body])


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.tool,
        _spread(row.excess5, row.spread5),
        _spread(row.excess50, row.spread50),
        _signed(row.cpu_bias),
        _plain(row.floor),
        *(_signed(error) for error in row.memory.values()),
        _signed(row.grandchild_cpu, 1, " %"),
        _signed(row.threads_cpu, 1, " %"),
        _signed(row.tree_cpu, 2, " %"),
        _plain(row.cost),
    )


def _spread(value: float | None, spread: float | None) -> str:
    return "–" if value is None else f"{value:+,.0f}" + ("" if spread is None else f" ± {spread:,.0f}")


def _signed(value: float | None, digits: int = 0, unit: str = "") -> str:
    return "–" if value is None else f"{value:+,.{digits}f}{unit}"


def _plain(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"
