"""What a search has been told: readings of revisions, revisions that cannot be used, and what they cost."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, assert_never

import numpy as np

from perftrail.search.blocks import Timed, offsets

if TYPE_CHECKING:
    import numpy.typing as npt

    from perftrail.search.question import Question

    Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """New values of one revision: natural logarithms of the metric, finite, at least one, in order of time.

    `seconds` is what taking them cost, `build_seconds` what building cost, `None` when it was built before.
    `redraw` says that each value was taken in a layout drawn anew (another link order, another size of the
    environment), so that the build's own luck is averaged with the rest.
    """

    position: int
    values: tuple[float, ...]
    build_seconds: float | None = None
    seconds: float = 0.0
    redraw: bool = False

    def __post_init__(self) -> None:
        _check_seconds(self.position, self.seconds)
        _check_seconds(self.position, self.build_seconds or 0.0)
        if not self.values:
            raise ValueError(f"readings of position {self.position}: no values; tell `Unusable` instead")
        for value in self.values:
            if not math.isfinite(value):
                raise ValueError(
                    f"readings of position {self.position}: {value!r} is no finite logarithm; "
                    "the metric must be finite and above zero"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Unusable:
    """A revision that could not be built or run. It says nothing about which side of the change it is on."""

    position: int
    seconds: float = 0.0

    def __post_init__(self) -> None:
        _check_seconds(self.position, self.seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Same:
    """A revision whose artefact equals that of another, `like`: one build with one level, read as one.

    What is told of either is told of both, so it is no second draw of a layout; and as a single step lies
    on one side of both, the culprit is not between them. `seconds` is what building it cost.
    """

    position: int
    like: int
    seconds: float = 0.0

    def __post_init__(self) -> None:
        _check_seconds(self.position, self.seconds)
        if self.position == self.like:
            raise ValueError(f"position {self.position}: is told to be the same as itself")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """What is told from here on was read in this block: another machine, kernel or boot, by its name.

    Levels of two blocks differ by what is not known, until a build has been read in both. What was told
    before the first `Block` is in the block without a name.
    """

    name: str


News = Readings | Unusable | Same | Block


def _check_seconds(position: int, seconds: float) -> None:
    if not 0 <= seconds < math.inf:
        raise ValueError(f"position {position}: {seconds!r} seconds; must be finite, zero or more")


class _Mean:
    """A running mean that starts from a guess, which the first observation replaces."""

    def __init__(self, guess: float) -> None:
        self._guess = guess
        self._total = 0.0
        self._count = 0

    def add(self, total: float, count: int) -> None:
        self._total += total
        self._count += count

    @property
    def value(self) -> float:
        return self._total / self._count if self._count and self._total > 0 else self._guess


class Evidence:
    """The ledger of a search: everything told so far. Only drift makes the order of telling matter."""

    def __init__(self, question: Question) -> None:
        self._revisions = question.revisions
        self._per_reading = question.invocations_per_reading
        self._told: list[Timed] = []
        self._alike: dict[int, int] = {}
        self._twins: set[int] = set()
        self._layouts: dict[int, tuple[Floats, ...]] | None = None
        self._build = _Mean(question.costs.build)
        self._reading = _Mean(question.costs.reading)
        self.unusable: set[int] = set()
        self.block = ""
        self.invocations = 0
        self.seconds = 0.0

    def add(self, news: News) -> None:
        """Take news in; raise `ValueError` for a position outside the history."""
        match news:
            case Readings():
                self._check(news.position)
                self._told += [
                    Timed(position=news.position, value=value, block=self.block, redraw=news.redraw)
                    for value in news.values
                ]
                self._layouts = None
                self._reading.add(news.seconds, len(news.values))
                self.invocations += len(news.values) * self._per_reading
                self.seconds += news.seconds
                if news.build_seconds is not None:
                    self._spend_on_build(news.build_seconds)
            case Unusable():
                self._check(news.position)
                self.unusable.add(news.position)
                self._spend_on_build(news.seconds)
            case Same():
                self._check(news.position)
                self._check(news.like)
                self._join(news.position, news.like)
                self._spend_on_build(news.seconds)
            case Block():
                self.block = news.name
            case _:
                assert_never(news)

    def _check(self, position: int) -> None:
        if not 0 <= position < self._revisions:
            raise ValueError(f"position {position}: the history has positions 0 to {self._revisions - 1}")

    def _spend_on_build(self, seconds: float) -> None:
        self._build.add(seconds, 1)
        self.seconds += seconds

    def _join(self, one: int, other: int) -> None:
        first, second = sorted((self.representative(one), self.representative(other)))
        self._twins |= {one, other}
        for position in {*self._alike, one, other}:
            if self.representative(position) == second:
                self._alike[position] = first
        self._layouts = None

    def representative(self, position: int) -> int:
        """Return the first of the positions whose artefact equals a position's; most often itself."""
        return self._alike.get(position, position)

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """First and last position of each group of equal artefacts: no culprit is after one up to the other."""
        last: dict[int, int] = {}
        for position in self._twins:
            first = self.representative(position)
            last[first] = max(last.get(first, first), position)
        return tuple(sorted(last.items()))

    @property
    def sequence(self) -> tuple[Timed, ...]:
        """Every reading in the order of telling, each under its `representative`."""
        return tuple(
            reading
            if (first := self.representative(reading.position)) == reading.position
            else replace(reading, position=first)
            for reading in self._told
        )

    @property
    def positions(self) -> tuple[int, ...]:
        """The positions that have readings, their own or those of an equal artefact, ascending."""
        read = self._read()
        return tuple(
            sorted(read.keys() | {twin for twin in self._twins if self.representative(twin) in read})
        )

    @property
    def builds(self) -> int:
        """How many revisions were attempted, those that failed included."""
        return len(self.unusable | self._twins | {reading.position for reading in self._told})

    @property
    def seconds_per_build(self) -> float:
        """What one more build costs, by what has been told; the question's guess before that."""
        return max(self._build.value, 1e-9)

    @property
    def seconds_per_reading(self) -> float:
        """What one more reading costs, by what has been told; the question's guess before that."""
        return max(self._reading.value, 1e-9)

    def count(self, position: int) -> int:
        """How many readings a position has, those of equal artefacts included."""
        return sum(len(values) for values in self.layouts(position))

    def layouts(self, position: int) -> tuple[Floats, ...]:
        """The readings of a position in each layout they were taken in, sorted; the build's own comes first.

        Those of other blocks are shifted to the first block's level, see `offsets`.
        """
        return self._read().get(self.representative(position), ())

    def values(self, position: int) -> Floats:
        """All readings of a position, sorted, so that the order of telling cannot matter."""
        layouts = self.layouts(position)
        return layouts[0] if len(layouts) == 1 else np.sort(np.concatenate(layouts))

    def is_attempted(self, position: int) -> bool:
        """Whether a position has readings or is known to be unusable."""
        return position in self.unusable or position in self._twins or position in self._read()

    @property
    def attempted(self) -> npt.NDArray[np.int64]:
        """All positions that have readings or are known to be unusable, in no order."""
        return np.array([*self.unusable, *self._twins, *self._read()], dtype=np.int64)

    @property
    def offsets(self) -> dict[str, float | None]:
        """How far each block's level lies from the first one's; `None` where no build was read in both."""
        return offsets(self.sequence)

    def is_linked(self, block: str) -> bool:
        """Whether a block's level is known beside the first's: it is that one, or shares a build with it."""
        blocks = self.offsets
        return not blocks or blocks.get(block) is not None

    def _read(self) -> dict[int, tuple[Floats, ...]]:
        if self._layouts is None:
            shift = self.offsets
            own: dict[int, list[float]] = {}
            drawn: dict[int, list[float]] = {}
            for reading in self.sequence:
                kept = drawn if reading.redraw else own
                kept.setdefault(reading.position, []).append(reading.value - (shift[reading.block] or 0.0))
            self._layouts = {
                position: (
                    *((np.sort(np.asarray(own[position])),) if position in own else ()),
                    *(np.asarray([value]) for value in sorted(drawn.get(position, ()))),
                )
                for position in own.keys() | drawn.keys()
            }
        return self._layouts
