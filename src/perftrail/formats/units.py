"""Units of other tools, converted to perftrail's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_SECONDS: Mapping[str, float] = {
    "ps": 1e12,
    "ns": 1e9,
    "us": 1e6,
    "µs": 1e6,
    "μs": 1e6,
    "ms": 1e3,
    "s": 1,
    "sec": 1,
    "second": 1,
    "seconds": 1,
    "min": 1 / 60,
}
"""Number of each unit in a second. Times are divided by a whole number, which rounds only once."""

_BYTES: Mapping[str, float] = {
    "B": 1,
    "byte": 1,
    "bytes": 1,
    "kB": 1 / 1000,
    "KiB": 1 / 1024,
    "MB": 1 / 1000**2,
    "MiB": 1 / 1024**2,
    "GB": 1 / 1000**3,
    "GiB": 1 / 1024**3,
}
"""Number of each unit in a byte."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A unit of perftrail; `per` is the number of the tool's units in one of it."""

    name: str | None
    per: float = 1

    def scaled(self, values: Iterable[float]) -> tuple[float, ...]:
        """Convert values to perftrail's unit."""
        return tuple(value / self.per for value in values)


def unit(text: str) -> Unit:
    """Return a known unit; unknown ones do not change.

    >>> unit("us"), unit("MB").scaled([2]), unit("allocs")
    (Unit(name='s', per=1000000.0), (2000000.0,), Unit(name='allocs', per=1))
    """
    if text in _SECONDS:
        return Unit(name="s", per=_SECONDS[text])
    if text in _BYTES:
        return Unit(name="B", per=_BYTES[text])
    return Unit(name=text or None)
