"""Metrics read by pattern from what a benchmark printed."""

from __future__ import annotations

import math
import re
import statistics
from typing import TYPE_CHECKING

from perftrail.model.build import Failure

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
    for name, metric in metrics.items():
        found = re.findall(metric.pattern, output, flags=re.MULTILINE)
        if not found:
            return Failure(
                stage="metric", message=f"{name}: the output has nothing like {metric.pattern!r}", log=log
            )
        try:
            value = _PICKS[metric.pick]([float(text) for text in found])
        except ValueError:
            return Failure(stage="metric", message=f"{name}: {found[-1]!r} is no number", log=log)
        if not math.isfinite(value):
            return Failure(stage="metric", message=f"{name}: {value} is not finite", log=log)
        values[name] = value
    return values
