"""The tables and their goals, between the markers of the page of results."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.machine import measured_on
from benchmarks.markdown import table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.changepoints.cases import Row

PAGE = Path(__file__).parents[1] / "results" / "change-points.md"
BEGIN = "<!-- made by `python -m benchmarks.changepoints --write`: do not edit -->"
END = "<!-- end of what was made -->"
OWN = "perftrail"
F1_GOAL = 0.98
F1_LENGTHS = (1000, 10_000)
ALARM_GOAL = 0.01
CORRELATED_GOAL = 0.05
SECONDS_GOAL = {10_000: 0.3, 100_000: 5.0}
HEAD = ("series", "detector", "F1", "exact", "precision", "recall", "false points", "seconds (slowest)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """A goal, the value that was reached, and whether it is met."""

    text: str
    reached: str
    met: bool


def values_table(rows: Sequence[Row]) -> str:
    """Return the values as a Markdown table."""
    return table([HEAD, *(_cells(row) for row in rows)])


def goals_table(rows: Sequence[Row]) -> str:
    """Return the goals as a Markdown table."""
    body = [(goal.text, goal.reached, "yes" if goal.met else "**no**") for goal in goals(rows)]
    return table([("goal", "reached", "met"), *body])


def goals(rows: Sequence[Row]) -> list[Goal]:
    """Compare perftrail's rows with the goals."""
    own = [row for row in rows if row.detector == OWN]
    found = []
    for row in own:
        if row.changes and row.length in F1_LENGTHS and not row.correlation:
            peers = (each for each in rows if not each.detector.startswith(OWN))
            best = max((each.f1 for each in peers if each.case == row.case), default=0.0)
            found.append(
                Goal(
                    text=f"F1 at n = {row.length:,}: at least {F1_GOAL} (best peer: {best:.3f})",
                    reached=f"{row.f1:.3f} ± {row.f1_error:.3f}",
                    met=row.f1 >= F1_GOAL,
                )
            )
        if row.length in SECONDS_GOAL:
            limit = SECONDS_GOAL[row.length]
            found.append(
                Goal(
                    text=f"{row.case}: less than {limit} s",
                    reached=f"{row.slowest:.2f} s",
                    met=row.slowest < limit,
                )
            )
    quiet = [row for row in own if row.case in ("1,000, none", "1,000, none, outliers on both sides")]
    for row in quiet:
        found.append(
            Goal(
                text=f"{row.case}: a point in at most {ALARM_GOAL:.0%} of series",
                reached=f"{row.alarmed} of {row.series}",
                met=row.alarmed <= ALARM_GOAL * row.series,
            )
        )
    correlated = [row for row in own if "none, correlation" in row.case]
    if correlated:
        worst = max(correlated, key=lambda row: row.alarmed / row.series)
        found.append(
            Goal(
                text=f"none, correlation 0 to 0.7: a point in at most {CORRELATED_GOAL:.0%} of series",
                reached=f"at worst {worst.alarmed} of {worst.series} ({worst.case})",
                met=worst.alarmed <= CORRELATED_GOAL * worst.series,
            )
        )
    return found


def rewritten(page: str, rows: Sequence[Row], missing: Sequence[str], *, seed: int) -> str:
    """Return the page with the tables between its markers. Raises `ValueError` if these are missing."""
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    conditions = (
        f"{measured_on()}. Seed {seed}. "
        f"At the end, the load average over five minutes was {os.getloadavg()[1]:.1f}."
    )
    parts = [BEGIN, conditions, values_table(rows), goals_table(rows), *missing, END]
    return before + "\n\n".join(parts) + after


def _cells(row: Row) -> tuple[str, ...]:
    changed = (
        f"{row.f1:.3f} ± {row.f1_error:.3f}",
        f"{row.f1_exact:.3f}",
        f"{row.precision:.3f}",
        f"{row.recall:.3f}",
    )
    return (
        f"{row.case} (× {row.series})",
        row.detector,
        *(changed if row.changes else ("–",) * 4),
        f"{row.false} in {row.alarmed} series",
        f"{row.seconds:.3g} ({row.slowest:.3g})",
    )
