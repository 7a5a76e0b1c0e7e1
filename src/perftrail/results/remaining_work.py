"""Estimate the remaining work of a plan: the invocations of its cells, and their time."""

from __future__ import annotations

import statistics
from bisect import bisect_left, insort
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from perftrail.model.plan import larger

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from collections.abc import Set as AbstractSet

    from perftrail.measure.invocation_runner import RunnableOutcomes
    from perftrail.model.benchmark import Benchmark, Point
    from perftrail.model.plan import Cell
    from perftrail.model.subject import Subject

    CellKind = tuple[str, str, Point]
    """Key of similar cells of different revisions: the variant, the benchmark and the point."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A minimum and a maximum."""

    least: float
    most: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RemainingWork:
    """Completed and remaining invocations, and the remaining time; `None` if it is unknown.

    `unseen` is the number of points that never ran at any revision. Their time is estimated from smaller points,
    from other points of the benchmark, or from other benchmarks.
    """

    done: int
    starts: Span
    seconds: Span | None
    unseen: int


class PlanProgress:
    """The state of a plan's cells, with running sums: an update of a cell does not compute the others again."""

    def __init__(self, benchmarks: Mapping[str, Benchmark]) -> None:
        self._benchmarks = benchmarks
        self._states: dict[Cell, _CellState] = {}
        self._siblings: dict[tuple[Subject, str], list[Cell]] = {}
        self._skipped_cells: set[Cell] = set()
        self._seen = _Sum()
        self._unseen: dict[CellKind, _Sum] = {}
        self._usual = _UsualSeconds()

    @property
    def skipped_cells(self) -> AbstractSet[Cell]:
        """The cells that are not started because smaller ones reached a limit."""
        return self._skipped_cells

    def set_outcomes(self, cell: Cell, outcomes: RunnableOutcomes) -> None:
        """Set the state of a cell, for the first time or again."""
        if cell not in self._states:
            self._siblings.setdefault((cell.subject, cell.benchmark), []).append(cell)
        least, most = (0, 0) if cell in self._skipped_cells else outcomes.left
        state = _CellState(
            done=outcomes.done,
            least=least,
            most=most,
            seconds=outcomes.seconds_each or None,
            gave_up=outcomes.gave_up,
        )
        self._change(cell, state)

    def add_unbuilt(self, kind: CellKind, cells: int, *, least: int, most: int) -> None:
        """Add similar cells of several revisions that are not built, with the invocations of each."""
        self._unseen.setdefault(kind, _Sum()).add(
            _CellState(done=0, least=least, most=most, seconds=None, gave_up=False), cells
        )

    def has_work_left(self, cell: Cell) -> bool:
        """Whether a cell has invocations left."""
        return self._states[cell].most > 0

    def give_up(self, cell: Cell) -> tuple[Cell, ...]:
        """Skip the cells larger than a cell that reached a limit, if the study has `give_up`; return them."""
        if not (self._benchmarks[cell.benchmark].give_up and self._states[cell].gave_up):
            return ()
        siblings = self._siblings[cell.subject, cell.benchmark]
        beyond = tuple(each for each in siblings if each not in self._skipped_cells and larger(each, cell))
        self._skipped_cells.update(beyond)
        for each in beyond:
            self._change(each, replace(self._states[each], least=0, most=0))
        return beyond

    def left(self) -> RemainingWork:
        """Return the remaining work of all cells."""
        open_kinds = {kind: each for kind, each in self._unseen.items() if each.most}
        usual = self._usual.seconds(open_kinds)
        every = (self._seen, *open_kinds.values())
        starts = Span(least=sum(each.least for each in every), most=sum(each.most for each in every))
        return RemainingWork(
            done=self._seen.done,
            starts=starts,
            seconds=self._seconds(open_kinds, usual) if starts.most else Span(least=0.0, most=0.0),
            unseen=sum(each.unfinished for kind, each in open_kinds.items() if kind not in self._usual),
        )

    def _seconds(self, unseen: Mapping[CellKind, _Sum], usual: Mapping[CellKind, float]) -> Span | None:
        if unseen.keys() - usual.keys():
            return None
        return Span(
            least=self._seen.seconds_least + sum(each.least * usual[kind] for kind, each in unseen.items()),
            most=self._seen.seconds_most + sum(each.most * usual[kind] for kind, each in unseen.items()),
        )

    def _change(self, cell: Cell, state: _CellState) -> None:
        kind = kind_of(cell)
        if (before := self._states.get(cell)) is not None:
            self._sum(kind, before).add(before, -1)
            if before.seconds is not None:
                self._usual.remove(kind, before.seconds)
        self._states[cell] = state
        self._sum(kind, state).add(state, 1)
        if state.seconds is not None:
            self._usual.add(kind, state.seconds)

    def _sum(self, kind: CellKind, state: _CellState) -> _Sum:
        return self._unseen.setdefault(kind, _Sum()) if state.seconds is None else self._seen


@dataclass(frozen=True, slots=True, kw_only=True)
class _CellState:
    """A cell's invocations, done and left, and the seconds of one invocation, `None` before the first."""

    done: int
    least: int
    most: int
    seconds: float | None
    gave_up: bool


@dataclass(slots=True)
class _Sum:
    """The invocations and the time of several cells; `unfinished` is the number of cells with invocations left."""

    done: int = 0
    unfinished: int = 0
    least: int = 0
    most: int = 0
    seconds_least: float = 0.0
    seconds_most: float = 0.0

    def add(self, state: _CellState, times: int) -> None:
        seconds = state.seconds or 0.0
        self.done += times * state.done
        self.unfinished += times * (state.most > 0)
        self.least += times * state.least
        self.most += times * state.most
        self.seconds_least += times * state.least * seconds
        self.seconds_most += times * state.most * seconds


class _UsualSeconds:
    """Usual seconds of an invocation: medians over similar cells."""

    def __init__(self) -> None:
        self._known: dict[CellKind, list[float]] = {}

    def __contains__(self, kind: CellKind) -> bool:
        return bool(self._known.get(kind))

    def add(self, kind: CellKind, seconds: float) -> None:
        insort(self._known.setdefault(kind, []), seconds)

    def remove(self, kind: CellKind, seconds: float) -> None:
        own = self._known[kind]
        del own[bisect_left(own, seconds)]

    def seconds(self, wanted: Iterable[CellKind]) -> Mapping[CellKind, float]:
        """Return the usual seconds of each kind: its own, the longest of smaller points, of its benchmark, or of all.

        Empty if nothing ran.
        """
        medians = {kind: own[len(own) // 2] for kind, own in self._known.items() if own}
        if not medians:
            return {}
        siblings: dict[tuple[str, str], list[tuple[Point, float]]] = {}
        benchmarks: dict[str, list[float]] = {}
        for (variant, benchmark, point), seconds in medians.items():
            siblings.setdefault((variant, benchmark), []).append((point, seconds))
            benchmarks.setdefault(benchmark, []).append(seconds)
        typical = {name: statistics.median(each) for name, each in benchmarks.items()}
        every = statistics.median(medians.values())

        def usual(kind: CellKind) -> float:
            variant, benchmark, point = kind
            smaller = [
                seconds for than, seconds in siblings.get((variant, benchmark), ()) if point.exceeds(than)
            ]
            return max(smaller) if smaller else typical.get(benchmark, every)

        return {kind: medians[kind] if kind in medians else usual(kind) for kind in wanted}


def kind_of(cell: Cell) -> CellKind:
    """Return the key of similar cells."""
    return cell.subject.variant, cell.benchmark, cell.point
