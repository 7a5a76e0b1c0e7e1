"""The results as a page, written by ``python -m benchmarks.measure --write``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.machine import measured_on
from benchmarks.markdown import table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.measure.rows import Goal, Row

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

TEXT = """\
All tools ran the same programs in one run, in a new random order for each round. A program stamps the start
and end of its own `main`.

- **Excess** is the tool's wall time beyond that, as median ± half the interquartile range, in µs. For every
  tool, it includes creating the process, the dynamic linker and the code before `main`. So compare the
  tools, not with zero.
- **CPU bias** is the CPU time beyond that of the program in `main`, in µs.
- **Floor** is the reported peak memory, in KiB, of a program without a C library that only exits.
- The **MiB** columns are errors of peak memory in KiB: of the sum over the tree if the tool reports it,
  otherwise of the largest process. A shared C library counts as about 1,200 KiB of a process.
- **Grandchild's CPU** is the error for a daemonised grandchild that uses 200 ms. **Threads' CPU** is the
  error for four threads that contend for a mutex.
- **CPU against cgroup** is the error of rusage relative to the kernel's own sum, if a tool reports both.
- **Cost of a run** is the additional time of one more run of the program that only exits, in µs. It
  excludes that program's own time. perftrail's cost includes Python. Its launcher alone received all lines
  at once. The cost of the launcher alone comes from its own time stamps between one exec and the next. Its
  floor includes the waiting lines in its memory.
- A dash is a value that the tool does not report.
"""


def page(
    found: Sequence[Row], reached: Sequence[Goal], missing: Sequence[str], *, rounds: int, seed: int
) -> str:
    """Return the whole page."""
    return (
        "<!-- made by `python -m benchmarks.measure --write`: do not edit -->\n\n"
        "# Results of measuring\n\n"
        f"{measured_on()}. {rounds} rounds, seed {seed}. "
        f"At the end, the load average over five minutes was {os.getloadavg()[1]:.1f}. "
        "Above 1, the spreads include the effect of other processes.\n\n"
        f"{TEXT}\n{values_table(found)}\n\n## Goals\n\n{goals_table(reached)}\n\n## Not in the table\n\n"
        + "".join(f"- {line}\n" for line in missing)
    )


def values_table(found: Sequence[Row]) -> str:
    """Return the values as a Markdown table."""
    return table([HEAD, *(_cells(row) for row in found)])


def goals_table(reached: Sequence[Goal]) -> str:
    """Return the goals as a Markdown table."""
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
