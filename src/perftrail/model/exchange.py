"""What other benchmark tools measured, in perftrail's words.

What is exported: samples with everything that says of what they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.model.recipe import PLAIN

if TYPE_CHECKING:
    from datetime import datetime

    from perftrail.model.benchmark import Point
    from perftrail.model.metrics import Better
    from perftrail.model.subject import Subject


SUMMARY = "summary"
"""Flags a value that is another tool's mean or median: its samples were not kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """What another tool measured of one benchmark at one point in one subject: values of one metric, as taken.

    `point` holds the parameters in the tool's order, their values as it wrote them. `subject` is the revision,
    version or command as the tool names it. `metric` is perftrail's name where the meaning is the same (``wall``,
    ``cpu``), else the tool's. `values` are in SI units (seconds, bytes) where the tool's unit is known. `summary`: the
    tool kept no raw values, and the only value is its mean or median; `note` says which. Raises `ValueError` for no
    values, or one that is not finite.
    """

    benchmark: str
    point: tuple[tuple[str, str], ...] = ()
    subject: str | None = None
    metric: str
    unit: str | None
    better: Better = "lower"
    values: tuple[float, ...]
    when: datetime | None = None
    machine: str | None = None
    summary: bool = False
    note: str | None = None

    def __post_init__(self) -> None:
        if not self.values or not all(map(math.isfinite, self.values)):
            raise ValueError(f"{self.benchmark}: {self.metric}: needs values, all of them finite")


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
