"""The axes of a benchmark and the points they span."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Value = int | float | str
"""What a parameter may be set to."""


@dataclass(frozen=True, slots=True)
class Point:
    """One value for each parameter of a benchmark, in the order the study names them."""

    values: tuple[tuple[str, Value], ...] = ()

    def __getitem__(self, parameter: str) -> Value:
        for name, value in self.values:
            if name == parameter:
                return value
        raise KeyError(parameter)

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters that this point sets."""
        return tuple(name for name, _ in self.values)

    def as_dict(self) -> dict[str, Value]:
        """The point as a plain mapping, for JSON and for placeholders."""
        return dict(self.values)

    def matches(self, wanted: Mapping[str, Value]) -> bool:
        """Whether each parameter in `wanted` that this point has stands at that value."""
        return all(value == wanted[name] for name, value in self.values if name in wanted)

    def with_values(self, values: Mapping[str, Value]) -> Point:
        """The same point with some of its parameters set otherwise."""
        return Point(tuple((name, values.get(name, value)) for name, value in self.values))

    def without(self, names: Sequence[str]) -> Point:
        """The point with some parameters left open, as a derived metric fixes them itself."""
        return Point(tuple((name, value) for name, value in self.values if name not in names))

    def exceeds(self, other: Point) -> bool:
        """Whether every number is at least as large, one larger, and every text the same."""
        return self != other and all(
            value >= than
            if isinstance(value, int | float) and isinstance(than, int | float)
            else value == than
            for (_, value), (_, than) in zip(self.values, other.values, strict=True)
        )

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.values)


def every_point(parameters: Mapping[str, Sequence[Value]]) -> Iterator[Point]:
    """Yield the product of all axes, the last axis changing fastest.

    >>> [str(point) for point in every_point({"threads": [1, 2], "size": [5]})]
    ['threads=1 size=5', 'threads=2 size=5']
    """
    for combination in itertools.product(*parameters.values()):
        yield Point(tuple(zip(parameters, combination, strict=True)))
