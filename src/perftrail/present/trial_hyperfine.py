"""What a trial found in hyperfine's shapes, so that whatever reads its JSON or CSV reads ours."""

from __future__ import annotations

import csv
import io
import json
import statistics
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.model.search_record import Json
    from perftrail.stats.trial import Finding, Findings

_COLUMNS = ("command", "mean", "stddev", "median", "user", "system", "min", "max")


def to_json(found: Findings) -> str:
    """Write hyperfine's JSON: seconds and bytes, warm-ups left out. Commands without a run are left out too."""
    results = [_result(result) for result in found.results if result.runs]
    return json.dumps({"results": results}, indent=2, ensure_ascii=False) + "\n"


def to_csv(found: Findings) -> str:
    """Write hyperfine's CSV, in seconds, with one column for each parameter."""
    names = list(dict.fromkeys(name for result in found.results for name in result.entry.point.names))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*_COLUMNS, *(f"parameter_{name}" for name in names)])
    for result in found.results:
        if result.runs:
            row, point = _summary(result), result.entry.point.as_dict()
            writer.writerow([*(row[name] for name in _COLUMNS), *(point.get(name, "") for name in names)])
    return text.getvalue()


def _result(result: Finding) -> dict[str, Json]:
    parameters = {name: str(value) for name, value in result.entry.point.values}
    return {
        **_summary(result),
        "times": list(_values(result, "wall")),
        "memory_usage_byte": [round(value) for value in _values(result, "peak_memory")],
        "exit_codes": list(result.exit_codes),
        **({"parameters": dict(parameters)} if parameters else {}),
    }


def _summary(result: Finding) -> dict[str, Json]:
    times = _values(result, "wall")
    return {
        "command": result.entry.name,
        "mean": statistics.fmean(times),
        "stddev": statistics.stdev(times) if len(times) > 1 else None,
        "median": statistics.median(times),
        "user": statistics.fmean(_values(result, "user")),
        "system": statistics.fmean(_values(result, "system")),
        "min": min(times),
        "max": max(times),
    }


def _values(result: Finding, metric: str) -> Sequence[float]:
    return result.figures[metric].values
