"""What is exported: samples with everything that says of what they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.model.recipe import PLAIN

if TYPE_CHECKING:
    from perftrail.model.metrics import Better
    from perftrail.model.parameters import Point
    from perftrail.model.subject import Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One value: that of an invocation, by its number from 0, started then (ISO 8601), with its flags."""

    value: float
    invocation: int
    started: str
    flags: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """One metric of one subject at one point on one machine, with at least one value.

    Median and interval are those that `perftrail show` prints: of the values that no noise marks, if they are enough.
    """

    subject: Subject
    benchmark: str
    point: Point
    metric: str
    unit: str
    better: Better
    machine: str
    values: tuple[Value, ...]
    median: float
    low: float
    high: float

    @property
    def numbers(self) -> tuple[float, ...]:
        """The values alone."""
        return tuple(each.value for each in self.values)

    @property
    def started(self) -> str:
        """When the first was started; empty where nothing says so."""
        return min((each.started for each in self.values if each.started), default="")

    @property
    def name(self) -> str:
        """What is measured, in one text: benchmark, point, and the variant where it has a name of its own."""
        point = f" {self.point}" if self.point.values else ""
        variant = "" if self.subject.variant == PLAIN else f" ({self.subject.variant})"
        return f"{self.benchmark}{point}{variant}"
