"""The goals of a row, and whether they are met."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from scipy.stats import binomtest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.search.summary import Summary

SHARE = 0.95
"""The probability of the interval of a share (Wilson's)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """The value that was reached, as text, and whether it meets the goal."""

    text: str
    met: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """A goal as text, and the function that checks it on perftrail's summaries of the cells of a row."""

    text: str
    judge: Callable[[Sequence[Summary]], Reached]


def interval(hits: int, of: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share.

    >>> tuple(round(bound, 3) for bound in interval(99, 100))
    (0.946, 0.998)
    """
    bounds = binomtest(hits, of).proportion_ci(confidence_level=SHARE, method="wilson")
    return float(bounds.low), float(bounds.high)


def share(part: float, of: int) -> str:
    """Return a share of a number of trials, with its interval.

    >>> share(0.99, 100)
    '99.0 % [94.6, 99.8] of 100'
    """
    low, high = interval(round(part * of), of)
    return f"{100 * part:.1f} % [{100 * low:.1f}, {100 * high:.1f}] of {of}"


def right_at_least(least: float) -> Goal:
    """The answer is right in at least this share of the trials of each cell."""
    return _at_least(f"right ≥ {100 * least:g} %", lambda cell: cell.correct, least)


def exact_at_least(least: float) -> Goal:
    """The answer is one revision in at least this share of the trials of each cell."""
    return _at_least(f"exact ≥ {100 * least:g} %", lambda cell: cell.exact, least)


def reported_as_ramp() -> Goal:
    """The answer is a ramp in limit trials of each cell."""
    return _at_least("reported as a ramp, mostly", lambda cell: cell.exact, 0.5)


def wrong_at_most(limit: float) -> Goal:
    """A wrong revision is named in at limit this share of the trials of each cell."""

    def judge(cells: Sequence[Summary]) -> Reached:
        text = "; ".join(share(cell.wrong, cell.trials) for cell in cells)
        return Reached(text=text, met=all(cell.wrong <= limit for cell in cells))

    return Goal(text=f"wrong ≤ {100 * limit:g} %", judge=judge)


def none_at_least(least: float) -> Goal:
    """The answer is "none" in at least this share of the trials of each cell."""
    return _at_least(
        f"answer “none” ≥ {100 * least:g} %", lambda cell: cell.verdicts.get("none", 0) / cell.trials, least
    )


def builds_at_most(limit: float) -> Goal:
    """At limit this number of builds on average, in each cell."""
    return _at_most(f"builds ≤ {limit:g}", lambda cell: cell.builds, limit, 1)


def runs_at_most(limit: float) -> Goal:
    """At limit this number of runs on average, in each cell."""
    return _at_most(f"runs ≤ {limit:g}", lambda cell: cell.invocations, limit, 0)


def ask_at_most(milliseconds: float) -> Goal:
    """The search chooses its next samples within this time in 95 of 100 cases, in each cell."""
    return _at_most(
        f"asked within {milliseconds:g} ms (p95)",
        lambda cell: cell.ask_milliseconds_p95 or 0.0,
        milliseconds,
        0,
    )


def run_ratio_at_most(limit: float) -> Goal:
    """The second cell has at limit this multiple of the runs of the first."""

    def judge(cells: Sequence[Summary]) -> Reached:
        plain, other = (cell.invocations for cell in cells)
        text = f"{other:.0f} / {plain:.0f} = {other / plain:.2f}"
        return Reached(text=text, met=other <= limit * plain)

    return Goal(text=f"runs ≤ {limit:g} times those without", judge=judge)


def calibrated(least: float) -> Goal:
    """At least this share of the answers with the required confidence is right, over all cells."""

    def judge(cells: Sequence[Summary]) -> Reached:
        claims = sum(cell.sure for cell in cells)
        if not claims:
            return Reached(text="no such claim", met=True)
        held = sum(cell.sure * (cell.sure_held or 0.0) for cell in cells) / claims
        return Reached(text=share(held, claims), met=held >= least)

    return Goal(text=f"claims at 0.99 held ≥ {100 * least:g} %", judge=judge)


def _at_least(text: str, value: Callable[[Summary], float], least: float) -> Goal:
    def judge(cells: Sequence[Summary]) -> Reached:
        text_reached = "; ".join(share(value(cell), cell.trials) for cell in cells)
        return Reached(text=text_reached, met=all(value(cell) >= least for cell in cells))

    return Goal(text=text, judge=judge)


def _at_most(text: str, value: Callable[[Summary], float], limit: float, digits: int) -> Goal:
    def judge(cells: Sequence[Summary]) -> Reached:
        text_reached = "; ".join(f"{value(cell):.{digits}f}" for cell in cells)
        return Reached(text=text_reached, met=all(round(value(cell), digits) <= limit for cell in cells))

    return Goal(text=text, judge=judge)
