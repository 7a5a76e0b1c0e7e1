"""The rows as Markdown tables, between the markers of a page of results."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.search.cases_with_goals import Row
    from benchmarks.search.summary import Summary

PAGE = Path(__file__).parents[1] / "results" / "searching.md"
BEGIN = "<!-- made by `python -m benchmarks.search rows --write`: do not edit -->"
END = "<!-- end of what is made -->"

DETAILS = (
    "case",
    "trials",
    "exact",
    "builds (p95)",
    "runs (p95)",
    "claimed",
    "held",
    "ask, ms (p95)",
    "verdicts",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One cell: its bounds (`None` without one) and summaries, that of perftrail first."""

    label: str
    bound: float | None
    isolated: float | None
    summaries: tuple[Summary, ...]


def tables(results: Sequence[tuple[Row, tuple[Result, ...]]], *, seed: int) -> str:
    """Return the goals with the results, the values of perftrail, then each row with all strategies."""
    goals, details = [], []
    for row, cells in results:
        own = [cell.summaries[0] for cell in cells]
        details += [_details(f"{row.title}: {cell.label}", cell.summaries[0]) for cell in cells]
        for number, goal in enumerate(row.goals):
            reached = goal.judge(own)
            first = row.title if not number else ""
            goals.append((first, goal.text, reached.text, "yes" if reached.met else "**no**"))
    parts = [
        f"Seed {seed}. Shares have Wilson's 95 % intervals.\n",
        _markdown([("case", "goal", "reached, case by case", "met"), *goals]),
        "\n### Rows of perftrail in detail\n",
        _markdown([DETAILS, *details]),
    ]
    for row, cells in results:
        parts += [f"\n### {row.title}\n", _trials(cells), _markdown(_side_by_side(cells))]
    return "\n".join(parts)


def write(tables_text: str, file: Path = PAGE) -> None:
    """Write the tables between the markers of the page; raise `ValueError` if it has none."""
    text = file.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{file}: has no place for the tables; it needs the lines {BEGIN!r} and {END!r}")
    file.write_text(f"{before}{BEGIN}\n\n{tables_text}\n\n{END}{after}", encoding="utf-8")


def _side_by_side(cells: Sequence[Result]) -> list[tuple[str, ...]]:
    """Return a line for each strategy, perftrail first, with a column for each cell."""
    bounds = ("–" if cell.bound is None else f"{cell.bound:.0f}" for cell in cells)
    isolated = ("–" if cell.isolated is None else f"{100 * cell.isolated:.1f} %" for cell in cells)
    lines = [
        ("right, wrong, builds, runs", *(cell.label for cell in cells)),
        ("information bound, runs", *bounds),
        ("layout bound, exact", *isolated),
    ]
    lines.append(("**perftrail**", *(_values(cell.summaries[0]) for cell in cells)))
    for number, peer in enumerate(cells[0].summaries[1:], start=1):
        lines.append((peer.strategy, *(_values(cell.summaries[number]) for cell in cells)))
    return lines


def _trials(cells: Sequence[Result]) -> str:
    """Return the numbers of trials as text."""
    own = ", ".join(str(cell.summaries[0].trials) for cell in cells)
    peers = ", ".join(str(summary.trials) for cell in cells for summary in cell.summaries[1:2])
    return f"{own} trials of perftrail, {peers} of the others.\n"


def _values(summary: Summary) -> str:
    right, wrong = 100 * summary.correct, 100 * summary.wrong
    return f"{right:.1f} %, {wrong:.1f} %, {summary.builds:,.1f}, {summary.invocations:,.0f}"


def _details(title: str, summary: Summary) -> tuple[str, ...]:
    ask_times = summary.ask_milliseconds_median, summary.ask_milliseconds_p95
    return (
        title,
        str(summary.trials),
        f"{100 * summary.exact:.1f} %",
        f"{summary.builds:.1f} ({summary.builds_p95:.0f})",
        f"{summary.invocations:.0f} ({summary.invocations_p95:.0f})",
        "–" if summary.claimed is None else f"{summary.claimed:.4f}",
        "–" if summary.held is None else f"{summary.held:.4f}",
        "–" if None in ask_times else f"{ask_times[0]:.0f} ({ask_times[1]:.0f})",
        ", ".join(f"{verdict} {count}" for verdict, count in sorted(summary.verdicts.items())),
    )


def _markdown(lines: Sequence[Sequence[str]]) -> str:
    head, *body = (f"| {' | '.join(line)} |" for line in lines)
    return "\n".join([head, "|" + "---|" * len(lines[0]), *body])
