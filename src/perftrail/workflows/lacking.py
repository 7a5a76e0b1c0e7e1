"""What a study still lacks of each thing that it measures, and how long that takes by what was measured so far."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from perftrail.model.plan import larger

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from perftrail.model.benchmark import Benchmark
    from perftrail.model.parameters import Point
    from perftrail.model.plan import Cell
    from perftrail.model.subject import Subject
    from perftrail.workflows.measuring import Standing

Kind = TypeVar("Kind")


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """At least, and at most."""

    least: float
    most: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Lack:
    """What a cell lacks: how many starts are `left`, and about how long each takes; `None` as long as nothing says.

    `unseen`: its point was never started, at no revision, and its time is that of others, if need be smaller ones.
    """

    left: Span
    seconds: float | None
    unseen: bool


def lacking(standings: Mapping[Cell, Standing], benchmarks: Mapping[str, Benchmark]) -> tuple[Lack, ...]:
    """Say what cells lack by where they stand: what `run` would start, nothing beyond what was given up."""
    ended: dict[tuple[Subject, str], list[Cell]] = {}
    for cell, standing in standings.items():
        if standing.gave_up and benchmarks[cell.benchmark].give_up:
            ended.setdefault((cell.subject, cell.benchmark), []).append(cell)
    usual = _Usual((cell, each.seconds_each) for cell, each in standings.items() if each.known)

    def left(cell: Cell, standing: Standing) -> Span:
        beyond = any(larger(cell, than) for than in ended.get((cell.subject, cell.benchmark), ()))
        least, most = (0, 0) if beyond else standing.left
        return Span(least=least, most=most)

    return tuple(
        Lack(
            left=left(cell, standing),
            seconds=standing.seconds_each if standing.known else usual.seconds(cell),
            unseen=not standing.known and not usual.knows(cell),
        )
        for cell, standing in standings.items()
    )


class _Usual:
    """How long starts take, by those of any revision: medians of the cells of which something is known."""

    def __init__(self, known: Iterable[tuple[Cell, float]]) -> None:
        pairs = tuple(known)
        self._points = _medians((_like(cell, cell.point), seconds) for cell, seconds in pairs)
        self._own = _medians((cell.benchmark, seconds) for cell, seconds in pairs)
        self._all = statistics.median(seconds for _, seconds in pairs) if pairs else None
        self._seen: dict[tuple[str, str], list[Point]] = {}
        for variant, benchmark, point in self._points:
            self._seen.setdefault((variant, benchmark), []).append(point)

    def knows(self, cell: Cell) -> bool:
        """Whether its point was started at any revision."""
        return _like(cell, cell.point) in self._points

    def seconds(self, cell: Cell) -> float | None:
        """Give its point's, else the longest of those it is larger than, else what is usual for its benchmark."""
        if self.knows(cell):
            return self._points[_like(cell, cell.point)]
        seen = self._seen.get((cell.subject.variant, cell.benchmark), ())
        smaller = [
            self._points[_like(cell, point)] for point in seen if larger(cell, replace(cell, point=point))
        ]
        return max(smaller) if smaller else self._own.get(cell.benchmark, self._all)


def _like(cell: Cell, point: Point) -> tuple[str, str, Point]:
    """What cells of different revisions have in common."""
    return cell.subject.variant, cell.benchmark, point


def _medians(pairs: Iterable[tuple[Kind, float]]) -> Mapping[Kind, float]:
    grouped: dict[Kind, list[float]] = {}
    for kind, value in pairs:
        grouped.setdefault(kind, []).append(value)
    return {kind: statistics.median(values) for kind, values in grouped.items()}
