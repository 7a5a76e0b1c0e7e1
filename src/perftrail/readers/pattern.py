"""Metrics read from what a benchmark printed, by pattern or in another tool's format."""

from __future__ import annotations

import math
import re
import statistics
from typing import TYPE_CHECKING

from perftrail.errors import FormatError
from perftrail.model.build import Failure
from perftrail.readers.reported import Reported

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from perftrail.model.metrics import Metric, Pick

_PICKS: Mapping[Pick, Callable[[Sequence[float]], float]] = {
    "first": lambda values: values[0],
    "last": lambda values: values[-1],
    "min": min,
    "max": max,
    "sum": math.fsum,
    "median": statistics.median,
}


def read_metrics(metrics: Mapping[str, Metric], output: str, *, log: str) -> dict[str, float] | Failure:
    """Read every metric from a benchmark's output, or say which one is not there."""
    values: dict[str, float] = {}
    reported = Reported(output)
    for name, metric in metrics.items():
        try:
            found = reported.figures(metric) if metric.reads else _matches(metric, output)
        except FormatError as error:
            return Failure(stage="metric", message=f"{name}: {error}", log=log)
        value = _PICKS[metric.pick](found)
        if not math.isfinite(value):
            return Failure(stage="metric", message=f"{name}: {value} is not finite", log=log)
        values[name] = value
    return values


def _matches(metric: Metric, output: str) -> Sequence[float]:
    """Give every number that the pattern finds. Raises `FormatError` where it finds none."""
    found = re.findall(metric.pattern, output, flags=re.MULTILINE)
    if not found:
        raise FormatError(f"the output has nothing like {metric.pattern!r}")
    try:
        return [float(text) for text in found]
    except ValueError:
        raise FormatError(f"{found[-1]!r} is no number") from None
