"""What a search reports, and how that is judged against the truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.search.simulator import History, Machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The answer of a strategy: candidates (none of them: it accuses nobody), and what it claims."""

    verdict: str
    candidates: tuple[int, ...]
    confidence: float | None = None
    ask_milliseconds: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A report, judged.

    `right`: the culprit is among the candidates, or nothing changed and it says so. `exact`: one candidate,
    or one and unbuildable neighbours only. `accused`: candidates without the culprit among them.
    """

    verdict: str
    right: bool
    exact: bool
    accused: bool
    confidence: float | None
    builds: int
    invocations: int
    ask_milliseconds: tuple[float, ...]


def judge(report: Report, history: History, machine: Machine) -> Outcome:
    """Compare a report with what was simulated."""
    candidates = report.candidates
    within = history.culprit is not None and history.culprit in candidates
    silent = history.culprit is None and report.verdict == "none"
    return Outcome(
        verdict=report.verdict,
        right=within or silent,
        exact=bool(candidates) and bool(history.broken[list(candidates[:-1])].all()),
        accused=bool(candidates) and not within,
        confidence=report.confidence,
        builds=machine.builds,
        invocations=machine.invocations,
        ask_milliseconds=report.ask_milliseconds,
    )
