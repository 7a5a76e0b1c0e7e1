"""What other benchmark tools measured, in perftrail's words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from perftrail.model.metrics import Better


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
