"""The searches that are compared. A new one is a module with a `search(machine)`, entered here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.search.strategies import bisect, linear, perftrail

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.search.outcome import Report
    from benchmarks.search.simulator import Machine

STRATEGIES: dict[str, Callable[[Machine], Report]] = {
    "perftrail": perftrail.search,
    "bisect, median of 5": bisect.median_of(5),
    "linear scan": linear.largest_jump(3),
}
