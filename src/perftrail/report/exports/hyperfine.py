"""hyperfine's JSON: seconds and bytes; each benchmark at a point is a command, each revision a file."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from perftrail.model.recipe import PLAIN
from perftrail.report.exports.revisions import each_revision

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftrail.model.exchange import Exported
    from perftrail.model.search_record import Json
    from perftrail.model.study import Study


def write(samples: Sequence[Exported], study: Study) -> dict[str, bytes]:  # noqa: ARG001 - every format has it
    """Write what has a time; other metrics than times and memory have no place there."""
    return each_revision(samples, _document)


def _document(samples: Sequence[Exported]) -> Json:
    by_command: dict[object, dict[str, Exported]] = {}
    for each in samples:
        name = (each.benchmark, each.point, each.subject.variant)
        by_command.setdefault(name, {})[each.metric] = each
    results: list[Json] = [_result(metrics) for metrics in by_command.values() if _time(metrics)]
    return {"results": results} if results else None


def _time(metrics: Mapping[str, Exported]) -> Exported | None:
    """The wall time, or the first metric that is a time."""
    times = (each for each in metrics.values() if each.unit == "s")
    return metrics.get("wall") or next(times, None)


def _result(metrics: Mapping[str, Exported]) -> Json:
    time = _time(metrics)
    assert time is not None
    times = time.numbers
    parameters: dict[str, Json] = {name: str(value) for name, value in time.point.values}
    memory = metrics.get("peak_memory")
    variant = "" if time.subject.variant == PLAIN else f" ({time.subject.variant})"
    return {
        "command": f"{time.benchmark}{variant}",
        "mean": statistics.fmean(times),
        "stddev": statistics.stdev(times) if len(times) > 1 else None,
        "median": statistics.median(times),
        "user": _mean(metrics.get("user")),
        "system": _mean(metrics.get("system")),
        "min": min(times),
        "max": max(times),
        "times": list(times),
        **({"memory_usage_byte": [round(each) for each in memory.numbers]} if memory else {}),
        "exit_codes": [0 for _ in times],
        **({"parameters": parameters} if parameters else {}),
    }


def _mean(metric: Exported | None) -> float | None:
    return None if metric is None else statistics.fmean(metric.numbers)
