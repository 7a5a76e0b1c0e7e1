"""The report of a search, and its comparison with the truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.search.histories import History
    from benchmarks.search.simulator import Machine

PINNED = 10
"""A ramp is pinned if it is reported as a step on fewer than a tenth of its revisions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The answer of a strategy: the candidates, which may be empty, and its claims.

    All revisions are numbers of the history. `others` are the candidates of further changes, and `ramps` the revisions
    of each reported gradual change.
    """

    verdict: str
    candidates: tuple[int, ...]
    confidence: float | None = None
    ask_milliseconds: tuple[float, ...] = ()
    others: tuple[tuple[int, ...], ...] = ()
    ramps: tuple[tuple[int, ...], ...] = ()

    @property
    def named(self) -> tuple[tuple[int, ...], ...]:
        """The candidates of each reported step."""
        return tuple(candidates for candidates in (self.candidates, *self.others) if candidates)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The comparison of a report with the truth.

    `right`: each culprit is a candidate of a separate change and no other change is named, or the answer is "none" and
    there is no change. `exact`: each change has one candidate, or one and unbuildable neighbours only. `wrong`: a
    change is named without a culprit among its candidates; naming the merge of the culprit does not count. `held`: the
    claim with the stated confidence is true. For one change, the culprit is a candidate; for several or none, all of
    the answer is right.

    For a ramp, `right` means that it was neither pinned on a few revisions nor denied, `exact` that the answer is a
    ramp that covers at least half of the true one, and `wrong` that it was pinned.
    """

    verdict: str
    right: bool
    exact: bool
    wrong: bool
    held: bool
    confidence: float | None
    builds: int
    invocations: int
    ask_milliseconds: tuple[float, ...]


def judge(report: Report, history: History, machine: Machine) -> Outcome:
    """Compare a report with the simulated truth."""
    right, exact, wrong = _ramp(report, history) if history.settings.ramp else _steps(report, history)
    return Outcome(
        verdict=report.verdict,
        right=right,
        exact=exact,
        wrong=wrong,
        held=not wrong if report.verdict in {"found", "range"} else right,
        confidence=report.confidence,
        builds=machine.builds,
        invocations=machine.invocations,
        ask_milliseconds=report.ask_milliseconds,
    )


def _steps(report: Report, history: History) -> tuple[bool, bool, bool]:
    """Whether the named steps are right, whether they are exact, and whether one is wrong."""
    named, truth = report.named, set(history.culprits)
    hits = [truth.intersection(candidates) for candidates in named]
    whole = set().union(*hits) == truth and len(named) == len(truth) and all(hits)
    right = whole and not report.ramps and (bool(truth) or report.verdict == "none")
    exact = bool(named) and all(history.broken[list(candidates[:-1])].all() for candidates in named)
    without = [candidates for candidates, hit in zip(named, hits, strict=True) if not hit]
    wrong = bool(report.ramps) or any(history.merge not in candidates for candidates in without)
    return right, exact, wrong


def _ramp(report: Report, history: History) -> tuple[bool, bool, bool]:
    """Whether the answer to a ramp is right, whether it is a ramp, and whether it is pinned."""
    truth = set(history.culprits)
    pinned = any(len(candidates) < len(truth) / PINNED for candidates in report.named)
    is_ramp = any(2 * len(truth.intersection(ramp)) >= len(truth) for ramp in report.ramps)
    return not pinned and report.verdict != "none", is_ramp, pinned
