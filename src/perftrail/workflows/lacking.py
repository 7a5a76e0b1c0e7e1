"""What a study still lacks of each thing that it measures, and how long that takes by what was measured so far."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.model.measurement import FailedInvocation
from perftrail.model.plan import larger

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from perftrail.model.benchmark import Benchmark
    from perftrail.model.measurement import Outcome
    from perftrail.model.plan import Cell
    from perftrail.model.policies import MeasurePolicy
    from perftrail.model.subject import Subject

GIVEN_UP = ("timeout", "memory")
"""Of what failed so, larger points are left out where the study says `give_up`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """At least, and at most."""

    least: float
    most: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Lack:
    """What a cell lacks: how many starts are `left`, and about how long each takes; `None` as long as nothing says.

    `unseen`: it was never started, and its time is that of others, if need be smaller ones.
    """

    left: Span
    seconds: float | None
    unseen: bool


def lacking(
    held: Mapping[Cell, Sequence[Outcome]], policy: MeasurePolicy, benchmarks: Mapping[str, Benchmark]
) -> tuple[Lack, ...]:
    """Say what cells lack by the outcomes that they have.

    Nothing where starting it again is pointless, or a smaller point was given up.
    """
    pointless = {cell for cell, outcomes in held.items() if _broken(outcomes)}
    ended = _beside(cell for cell in pointless if benchmarks[cell.benchmark].give_up and _gave_up(held[cell]))
    usual = _Usual({cell: _mean(outcomes) for cell, outcomes in held.items() if outcomes})

    def left(cell: Cell, count: int) -> Span:
        beyond = any(larger(cell, than) for than in ended.get((cell.subject, cell.benchmark), ()))
        return Span(least=0, most=0) if cell in pointless or beyond else _left(count, policy)

    return tuple(
        Lack(left=left(cell, len(outcomes)), seconds=usual.seconds(cell), unseen=not outcomes)
        for cell, outcomes in held.items()
    )


class _Usual:
    """How long starts take, by the means of the cells of which any is known."""

    def __init__(self, known: Mapping[Cell, float]) -> None:
        self._known = known
        self._beside = _beside(known)
        own: dict[str, list[float]] = {}
        for cell, seconds in known.items():
            own.setdefault(cell.benchmark, []).append(seconds)
        self._own = {name: statistics.median(each) for name, each in own.items()}
        self._all = statistics.median(known.values()) if known else None

    def seconds(self, cell: Cell) -> float | None:
        """Give its own mean, else the longest of those it is larger than, else what is usual for its benchmark."""
        if cell in self._known:
            return self._known[cell]
        others = self._beside.get((cell.subject, cell.benchmark), ())
        smaller = [self._known[than] for than in others if larger(cell, than)]
        return max(smaller) if smaller else self._own.get(cell.benchmark, self._all)


def _beside(cells: Iterable[Cell]) -> Mapping[tuple[Subject, str], Sequence[Cell]]:
    """Put the cells of a subject and a benchmark together."""
    found: dict[tuple[Subject, str], list[Cell]] = {}
    for cell in cells:
        found.setdefault((cell.subject, cell.benchmark), []).append(cell)
    return found


def _left(count: int, policy: MeasurePolicy) -> Span:
    least, most = policy.warmups + policy.invocations.least, policy.warmups + policy.invocations.most
    return Span(least=max(0, least - count), most=most - count if count < least else 0)


def _broken(outcomes: Sequence[Outcome]) -> bool:
    """Whether `run` would not start it again: most of its starts failed."""
    return 2 * sum(isinstance(each, FailedInvocation) for each in outcomes) > len(outcomes)


def _gave_up(outcomes: Iterable[Outcome]) -> bool:
    return any(isinstance(each, FailedInvocation) and each.failure.stage in GIVEN_UP for each in outcomes)


def _mean(outcomes: Sequence[Outcome]) -> float:
    return statistics.fmean(each.seconds for each in outcomes)
