"""What a search reports, and how that is judged against the truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.search.histories import History
    from benchmarks.search.simulator import Machine

PINNED = 10
"""A ramp is pinned when it is told as a step on fewer revisions than this part of it, one tenth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The answer of a strategy: candidates (none of them: it accuses nobody), and what it claims.

    All revisions are numbers as a history numbers them. `others` are the candidates of further changes, where
    it names more than one; `ramps` the revisions of each stretch of which it says that they changed the metric
    bit by bit.
    """

    verdict: str
    candidates: tuple[int, ...]
    confidence: float | None = None
    ask_milliseconds: tuple[float, ...] = ()
    others: tuple[tuple[int, ...], ...] = ()
    ramps: tuple[tuple[int, ...], ...] = ()

    @property
    def named(self) -> tuple[tuple[int, ...], ...]:
        """The candidates of each step that it names."""
        return tuple(candidates for candidates in (self.candidates, *self.others) if candidates)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A report, judged.

    `right`: each culprit is among the candidates of a change of its own and no other change is named, or
    nothing changed and it says so. `exact`: each change has one candidate, or one and unbuildable neighbours
    only. `accused`: some change is named without a culprit among its candidates; to name the merge that brought
    the culprit accuses nobody. `held`: what it claims its confidence for is true: for one change that the
    culprit is a candidate, for several and for none that all of it is right.

    Of a ramp, `right` is that it was not pinned on a few revisions nor denied, `exact` that it was told as a
    ramp that covers at least half of the true one, `accused` that it was pinned.
    """

    verdict: str
    right: bool
    exact: bool
    accused: bool
    held: bool
    confidence: float | None
    builds: int
    invocations: int
    ask_milliseconds: tuple[float, ...]


def judge(report: Report, history: History, machine: Machine) -> Outcome:
    """Compare a report with what was simulated."""
    right, exact, accused = _ramp(report, history) if history.settings.ramp else _steps(report, history)
    return Outcome(
        verdict=report.verdict,
        right=right,
        exact=exact,
        accused=accused,
        held=not accused if report.verdict in {"found", "range"} else right,
        confidence=report.confidence,
        builds=machine.builds,
        invocations=machine.invocations,
        ask_milliseconds=report.ask_milliseconds,
    )


def _steps(report: Report, history: History) -> tuple[bool, bool, bool]:
    """Whether steps are named rightly, exactly, and whether somebody is accused."""
    named, truth = report.named, set(history.culprits)
    hits = [truth.intersection(candidates) for candidates in named]
    whole = set().union(*hits) == truth and len(named) == len(truth) and all(hits)
    right = whole and not report.ramps and (bool(truth) or report.verdict == "none")
    exact = bool(named) and all(history.broken[list(candidates[:-1])].all() for candidates in named)
    blamed = [candidates for candidates, hit in zip(named, hits, strict=True) if not hit]
    accused = bool(report.ramps) or any(history.merge not in candidates for candidates in blamed)
    return right, exact, accused


def _ramp(report: Report, history: History) -> tuple[bool, bool, bool]:
    """Whether a ramp is left unpinned, told as one, or pinned."""
    truth = set(history.culprits)
    pinned = any(len(candidates) < len(truth) / PINNED for candidates in report.named)
    told = any(2 * len(truth.intersection(ramp)) >= len(truth) for ramp in report.ramps)
    return not pinned and report.verdict != "none", told, pinned
