"""Estimate the remaining work of a plan: cells, invocations of each, and their time."""

from __future__ import annotations

import statistics
from bisect import bisect_left, insort
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from perftrail.model.plan import larger

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from collections.abc import Set as AbstractSet

    from perftrail.measure.bench import RunnableOutcomes
    from perftrail.model.benchmark import Benchmark, Point
    from perftrail.model.plan import Cell
    from perftrail.model.subject import Subject

    Like = tuple[str, str, Point]
    """Key of similar cells of different revisions: the variant, the benchmark and the point."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A minimum and a maximum."""

    least: float
    most: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """Completed and remaining invocations, and the remaining time; `None` if nothing is known about it.

    `unseen` points were not started at any revision. Their time is that of other points, if necessary of
    smaller ones.
    """

    done: int
    starts: Span
    seconds: Span | None
    unseen: int


class Outlook:
    """The state of a plan's cells. Updating a cell recomputes only what it changes."""

    def __init__(self, benchmarks: Mapping[str, Benchmark]) -> None:
        self._benchmarks = benchmarks
        self._shares: dict[Cell, _Share] = {}
        self._siblings: dict[tuple[Subject, str], list[Cell]] = {}
        self._left_out: set[Cell] = set()
        self._seen = _Sum()
        self._unseen: dict[Like, _Sum] = {}
        self._usual = _Usual()

    @property
    def left_out(self) -> AbstractSet[Cell]:
        """The cells that are not started because smaller ones reached a limit."""
        return self._left_out

    def put(self, cell: Cell, standing: RunnableOutcomes) -> None:
        """Set the state of a cell, for the first time or again."""
        if cell not in self._shares:
            self._siblings.setdefault((cell.subject, cell.benchmark), []).append(cell)
        least, most = (0, 0) if cell in self._left_out else standing.left
        share = _Share(
            done=len(standing.known),
            least=least,
            most=most,
            seconds=standing.seconds_each or None,
            gave_up=standing.gave_up,
        )
        self._change(cell, share)

    def wants(self, cell: Cell) -> bool:
        """Whether a cell is to be started."""
        return self._shares[cell].most > 0

    def give_up(self, cell: Cell) -> tuple[Cell, ...]:
        """Skip the cells larger than one that reached a limit, where the study says so; return them."""
        if not (self._benchmarks[cell.benchmark].give_up and self._shares[cell].gave_up):
            return ()
        siblings = self._siblings[cell.subject, cell.benchmark]
        beyond = tuple(each for each in siblings if each not in self._left_out and larger(each, cell))
        self._left_out.update(beyond)
        for each in beyond:
            self._change(each, replace(self._shares[each], least=0, most=0))
        return beyond

    def left(self) -> Left:
        """Return the remaining work of all cells."""
        open_likes = {like: each for like, each in self._unseen.items() if each.most}
        usual = self._usual.seconds(open_likes)
        every = (self._seen, *open_likes.values())
        starts = Span(least=sum(each.least for each in every), most=sum(each.most for each in every))
        return Left(
            done=self._seen.done,
            starts=starts,
            seconds=self._seconds(open_likes, usual) if starts.most else Span(least=0.0, most=0.0),
            unseen=sum(each.open for like, each in open_likes.items() if like not in self._usual),
        )

    def _seconds(self, unseen: Mapping[Like, _Sum], usual: Mapping[Like, float]) -> Span | None:
        if unseen.keys() - usual.keys():
            return None
        return Span(
            least=self._seen.seconds_least + sum(each.least * usual[like] for like, each in unseen.items()),
            most=self._seen.seconds_most + sum(each.most * usual[like] for like, each in unseen.items()),
        )

    def _change(self, cell: Cell, share: _Share) -> None:
        like = _like(cell)
        if (before := self._shares.get(cell)) is not None:
            self._sum(like, before).add(before, -1)
            if before.seconds is not None:
                self._usual.remove(like, before.seconds)
        self._shares[cell] = share
        self._sum(like, share).add(share, 1)
        if share.seconds is not None:
            self._usual.add(like, share.seconds)

    def _sum(self, like: Like, share: _Share) -> _Sum:
        return self._unseen.setdefault(like, _Sum()) if share.seconds is None else self._seen


@dataclass(frozen=True, slots=True, kw_only=True)
class _Share:
    """One cell's invocations, done and left, and the seconds of one, `None` before the first."""

    done: int
    least: int
    most: int
    seconds: float | None
    gave_up: bool


@dataclass(slots=True)
class _Sum:
    """The invocations and the time of several cells; `open` is the number of cells with invocations left."""

    done: int = 0
    open: int = 0
    least: int = 0
    most: int = 0
    seconds_least: float = 0.0
    seconds_most: float = 0.0

    def add(self, share: _Share, times: int) -> None:
        seconds = share.seconds or 0.0
        self.done += times * share.done
        self.open += times * (share.most > 0)
        self.least += times * share.least
        self.most += times * share.most
        self.seconds_least += times * share.least * seconds
        self.seconds_most += times * share.most * seconds


class _Usual:
    """Usual seconds of an invocation: medians over similar cells."""

    def __init__(self) -> None:
        self._known: dict[Like, list[float]] = {}

    def __contains__(self, like: Like) -> bool:
        return bool(self._known.get(like))

    def add(self, like: Like, seconds: float) -> None:
        insort(self._known.setdefault(like, []), seconds)

    def remove(self, like: Like, seconds: float) -> None:
        own = self._known[like]
        del own[bisect_left(own, seconds)]

    def seconds(self, wanted: Iterable[Like]) -> Mapping[Like, float]:
        """Return the usual seconds: of the cell, else the longest of smaller ones, else of its benchmark.

        A key is missing if nothing of its benchmark was started.
        """
        medians = {like: own[len(own) // 2] for like, own in self._known.items() if own}
        if not medians:
            return {}
        siblings: dict[tuple[str, str], list[tuple[Point, float]]] = {}
        benchmarks: dict[str, list[float]] = {}
        for (variant, benchmark, point), seconds in medians.items():
            siblings.setdefault((variant, benchmark), []).append((point, seconds))
            benchmarks.setdefault(benchmark, []).append(seconds)
        typical = {name: statistics.median(each) for name, each in benchmarks.items()}
        every = statistics.median(medians.values())

        def usual(like: Like) -> float:
            variant, benchmark, point = like
            smaller = [
                seconds for than, seconds in siblings.get((variant, benchmark), ()) if point.exceeds(than)
            ]
            return max(smaller) if smaller else typical.get(benchmark, every)

        return {like: medians[like] if like in medians else usual(like) for like in wanted}


def _like(cell: Cell) -> Like:
    return cell.subject.variant, cell.benchmark, cell.point
