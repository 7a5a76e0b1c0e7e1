"""Samples exchanged with other benchmark tools: `Series` for imported, `Exported` for exported ones."""

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
"""Flag of a value that is another tool's mean or median, without its samples."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Values of one metric of one benchmark at one point in one subject, imported from another tool.

    `point` contains the parameters in the tool's order, with values as the tool wrote them. `subject` is the
    revision, version or command in the tool's words. `metric` is perftrail's name if the meaning is the same
    (``wall``, ``cpu``), else the tool's. `values` are in SI units (seconds, bytes) if the tool's unit is known.
    `summary`: the tool stored no raw values, and the only value is a mean or median; `note` states which. Raises
    `ValueError` without values, and for a value that is not finite.
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
    """One value: its invocation number from 0, its start time (ISO 8601), and its flags."""

    value: float
    invocation: int
    started: str
    flags: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """Values of one metric of one subject at one point on one machine; at least one.

    Median and interval are those of `perftrail show`: of the values without noise flags, if these suffice.
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
        """The values as plain numbers."""
        return tuple(each.value for each in self.values)

    @property
    def started(self) -> str:
        """Start of the first invocation; empty if unknown."""
        return min((each.started for each in self.values if each.started), default="")

    @property
    def name(self) -> str:
        """Benchmark, point and variant (unless it is the plain one) in one text."""
        point = f" {self.point}" if self.point.values else ""
        variant = "" if self.subject.variant == PLAIN else f" ({self.subject.variant})"
        return f"{self.benchmark}{point}{variant}"
