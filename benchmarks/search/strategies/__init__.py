"""The compared searches. A new one is a module with a function `search(machine)`, which is listed here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.search.strategies import asv, bayesect, bisect, inside, linear, perftrail, pinpoint

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.search.histories import Settings
    from benchmarks.search.outcome import Report
    from benchmarks.search.simulator import Machine

PEERS: dict[str, Callable[[Machine], Report]] = {
    "linear scan, largest jump": linear.largest_jump(3),
    "linear scan, best split": linear.best_split(3),
    "bisect, one run": bisect.median_of(1),
    "bisect, median of 3": bisect.median_of(3),
    "bisect, median of 5": bisect.median_of(5),
    "bisect, median of 11": bisect.median_of(11),
    "bisect, k by the truth": bisect.with_known_truth,
    "asv find": asv.find,
    "asv find, passing over": asv.skipping_failed_builds,
    "Pinpoint": pinpoint.search,
} | ({"git_bayesect": bayesect.search} if bayesect.is_installed() else {})

OURS: dict[str, Callable[[Machine], Report]] = {
    "perftrail": perftrail.search,
    "perftrail, thorough": perftrail.thorough,
    "perftrail inside": inside.search,
}

STRATEGIES = OURS | PEERS


def fitting(settings: Settings) -> str:
    """Return the name of perftrail's search that fits the simulation."""
    if settings.branch:
        return "perftrail inside"
    if settings.changes > 1:
        cancels = bool(settings.signs) and sum(settings.signs) == 0
        return "perftrail, thorough" if cancels else "perftrail"
    return "perftrail"
