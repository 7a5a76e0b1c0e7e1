"""What a search has been told: readings of revisions, revisions that cannot be used, and what both cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from perftrail.search.question import Question


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """New values of one revision: natural logarithms of the metric, finite, at least one.

    `seconds` is what taking them cost, `build_seconds` what building cost, `None` when it was built before.
    """

    position: int
    values: tuple[float, ...]
    build_seconds: float | None = None
    seconds: float = 0.0

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


News = Readings | Unusable


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
    """The ledger of a search: everything told so far, in whatever order."""

    def __init__(self, question: Question) -> None:
        self._revisions = question.revisions
        self._per_reading = question.invocations_per_reading
        self._values: dict[int, list[float]] = {}
        self._sorted: dict[int, npt.NDArray[np.float64]] = {}
        self._build = _Mean(question.costs.build)
        self._reading = _Mean(question.costs.reading)
        self.unusable: set[int] = set()
        self.invocations = 0
        self.seconds = 0.0

    def add(self, news: News) -> None:
        """Take news in; raise `ValueError` for a position outside the history."""
        if not 0 <= news.position < self._revisions:
            raise ValueError(
                f"position {news.position}: the history has positions 0 to {self._revisions - 1}"
            )
        match news:
            case Readings():
                self._values.setdefault(news.position, []).extend(news.values)
                self._sorted.pop(news.position, None)
                self._reading.add(news.seconds, len(news.values))
                self.invocations += len(news.values) * self._per_reading
                self.seconds += news.seconds
                if news.build_seconds is not None:
                    self._build.add(news.build_seconds, 1)
                    self.seconds += news.build_seconds
            case Unusable():
                self.unusable.add(news.position)
                self._build.add(news.seconds, 1)
                self.seconds += news.seconds
            case _:
                assert_never(news)

    @property
    def positions(self) -> tuple[int, ...]:
        """The positions that have readings, ascending."""
        return tuple(sorted(self._values))

    @property
    def builds(self) -> int:
        """How many revisions were attempted, those that failed included."""
        return len(self.unusable | self._values.keys())

    @property
    def seconds_per_build(self) -> float:
        """What one more build costs, by what has been told; the question's guess before that."""
        return max(self._build.value, 1e-9)

    @property
    def seconds_per_reading(self) -> float:
        """What one more reading costs, by what has been told; the question's guess before that."""
        return max(self._reading.value, 1e-9)

    def count(self, position: int) -> int:
        """How many readings a position has."""
        return len(self._values.get(position, ()))

    def values(self, position: int) -> npt.NDArray[np.float64]:
        """The readings of a position, sorted, so that the order of telling cannot matter."""
        if position not in self._sorted:
            self._sorted[position] = np.sort(np.asarray(self._values[position], dtype=np.float64))
        return self._sorted[position]

    def is_attempted(self, position: int) -> bool:
        """Whether a position has readings or is known to be unusable."""
        return position in self._values or position in self.unusable
