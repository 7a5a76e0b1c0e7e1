"""What is to be reached in a row, and whether it was."""

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
    """What was reached, in words, and whether that is the goal."""

    text: str
    met: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """A goal in words, and what judges our summaries of a row's cells, in their order."""

    text: str
    judge: Callable[[Sequence[Summary]], Reached]


def interval(held: int, of: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share.

    >>> tuple(round(bound, 3) for bound in interval(99, 100))
    (0.946, 0.998)
    """
    bounds = binomtest(held, of).proportion_ci(confidence_level=SHARE, method="wilson")
    return float(bounds.low), float(bounds.high)


def share(held: float, of: int) -> str:
    """Say a share of so many with its interval.

    >>> share(0.99, 100)
    '99.0 % [94.6, 99.8] of 100'
    """
    low, high = interval(round(held * of), of)
    return f"{100 * held:.1f} % [{100 * low:.1f}, {100 * high:.1f}] of {of}"


def all_right(least: float) -> Goal:
    """Right in at least this share of the trials, in each cell."""
    return _at_least(f"right ≥ {100 * least:g} %", lambda cell: cell.correct, least)


def exact(least: float) -> Goal:
    """One revision in at least this share, in each cell."""
    return _at_least(f"exact ≥ {100 * least:g} %", lambda cell: cell.exact, least)


def told_as_ramp() -> Goal:
    """Told as a ramp in most trials, in each cell; not a goal of the table, but told beside it."""
    return _at_least("reported as a ramp, mostly", lambda cell: cell.exact, 0.5)


def nobody_accused(most: float) -> Goal:
    """Somebody accused in at most this share, in each cell."""

    def judge(cells: Sequence[Summary]) -> Reached:
        text = "; ".join(share(cell.wrongly_accused, cell.trials) for cell in cells)
        return Reached(text=text, met=all(cell.wrongly_accused <= most for cell in cells))

    return Goal(text=f"accused ≤ {100 * most:g} %", judge=judge)


def none_said(least: float) -> Goal:
    """That nothing changed is said in at least this share, in each cell."""
    return _at_least(
        f"answer “none” ≥ {100 * least:g} %", lambda cell: cell.verdicts.get("none", 0) / cell.trials, least
    )


def built_within(most: float) -> Goal:
    """So many builds at most on average, in each cell."""
    return _at_most(f"builds ≤ {most:g}", lambda cell: cell.builds, most, 1)


def ran_within(most: float) -> Goal:
    """So many runs at most on average, in each cell."""
    return _at_most(f"runs ≤ {most:g}", lambda cell: cell.invocations, most, 0)


def asked_within(milliseconds: float) -> Goal:
    """So long for an answer to "what next?" at most, in 95 of 100, in each cell."""
    return _at_most(
        f"asked within {milliseconds:g} ms (p95)",
        lambda cell: cell.ask_milliseconds_p95 or 0.0,
        milliseconds,
        0,
    )


def ran_within_times(most: float) -> Goal:
    """So many times the runs of the first cell at most in the second."""

    def judge(cells: Sequence[Summary]) -> Reached:
        plain, other = (cell.invocations for cell in cells)
        text = f"{other:.0f} / {plain:.0f} = {other / plain:.2f}"
        return Reached(text=text, met=other <= most * plain)

    return Goal(text=f"runs ≤ {most:g} times those without", judge=judge)


def calibrated(least: float) -> Goal:
    """Of the answers that claim the confidence asked for, at least this share right, over all cells."""

    def judge(cells: Sequence[Summary]) -> Reached:
        claims = sum(cell.sure for cell in cells)
        if not claims:
            return Reached(text="no such claim", met=True)
        held = sum(cell.sure * (cell.sure_held or 0.0) for cell in cells) / claims
        return Reached(text=share(held, claims), met=held >= least)

    return Goal(text=f"claims at 0.99 held ≥ {100 * least:g} %", judge=judge)


def _at_least(text: str, value: Callable[[Summary], float], least: float) -> Goal:
    def judge(cells: Sequence[Summary]) -> Reached:
        told = "; ".join(share(value(cell), cell.trials) for cell in cells)
        return Reached(text=told, met=all(value(cell) >= least for cell in cells))

    return Goal(text=text, judge=judge)


def _at_most(text: str, value: Callable[[Summary], float], most: float, digits: int) -> Goal:
    def judge(cells: Sequence[Summary]) -> Reached:
        told = "; ".join(f"{value(cell):.{digits}f}" for cell in cells)
        return Reached(text=told, met=all(round(value(cell), digits) <= most for cell in cells))

    return Goal(text=text, judge=judge)
