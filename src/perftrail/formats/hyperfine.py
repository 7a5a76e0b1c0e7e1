"""hyperfine's JSON (``--export-json``), in seconds and bytes.

For the export, each benchmark at a point is a command, each revision a file.
"""

from __future__ import annotations

import re
import statistics
from collections import Counter
from typing import TYPE_CHECKING

from perftrail.formats.document import NO_FILE, begins_with, parse
from perftrail.formats.rows import revision_files
from perftrail.model.exchange import Series
from perftrail.model.recipe import PLAIN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from perftrail.formats.document import FileContext, Node
    from perftrail.model.exchange import Exported
    from perftrail.model.json_data import Json
    from perftrail.model.study import Study


MEMORY_NOTE = "hyperfine's: a command's peak memory is never below that of earlier commands"

_CPU_TIMES = ("user", "system")


def recognises(head: bytes, _name: str) -> bool:
    """Return whether hyperfine wrote this."""
    return begins_with(head, rb'\{\s*"results"\s*:\s*\[\s*(\]|\{\s*"command"\s*:)')


def read(content: bytes, _context: FileContext = NO_FILE) -> tuple[Series, ...]:
    """Read the times of every command. The subject is the command, with its parameters' names where possible."""
    results = parse(content)["results"].elements()
    subjects = _subjects(results)
    return tuple(
        each for result, subject in zip(results, subjects, strict=True) for each in _series(result, subject)
    )


def _series(result: Node, subject: str) -> Iterator[Series]:
    point = _point(result)
    times = result.get("times")
    raw = times is not None and bool(times.elements())

    def series(
        metric: str,
        values: tuple[float, ...],
        *,
        unit: str = "s",
        summary: bool = False,
        note: str | None = None,
    ) -> Series:
        return Series(
            benchmark="command",
            point=point,
            subject=subject,
            metric=metric,
            unit=unit,
            values=values,
            summary=summary,
            note=note,
        )

    if raw and times is not None:
        yield series("wall", times.numbers())
    else:
        yield series("wall", (result["mean"].number(),), summary=True, note="mean")
    for name in _CPU_TIMES:
        if (mean := result.get(name)) is not None:
            yield series(name, (mean.number(),), summary=True, note="mean")
    memory = result.get("memory_usage_byte")
    if memory is not None and memory.elements():
        yield series("peak_memory", memory.numbers(), unit="B", note=MEMORY_NOTE)


def _point(result: Node) -> tuple[tuple[str, str], ...]:
    parameters = result.get("parameters")
    return () if parameters is None else tuple((name, each.scalar()) for name, each in parameters.members())


def _subjects(results: tuple[Node, ...]) -> list[str]:
    """Return the commands with parameters' names instead of values, if several agree on them."""
    commands = [result["command"].text() for result in results]
    patterns = [_pattern(command, _point(result)) for command, result in zip(commands, results, strict=True)]
    shared = Counter(patterns)
    return [
        pattern if shared[pattern] > 1 else command
        for pattern, command in zip(patterns, commands, strict=True)
    ]


def _pattern(command: str, point: tuple[tuple[str, str], ...]) -> str:
    names = {value: name for name, value in point if value}
    if not names:
        return command
    words = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    return re.sub(rf"(?<!\w)(?:{words})(?!\w)", lambda found: f"{{{names[found[0]]}}}", command)


def write(samples: Sequence[Exported], study: Study) -> dict[str, bytes]:  # noqa: ARG001 - every format has it
    """Return the metrics that are times, and memory; hyperfine's format has no others."""
    return revision_files(samples, _document)


def missing_metrics(samples: Sequence[Exported]) -> frozenset[str]:
    """Return the metrics that are not in every result: neither its time, nor user and system time, nor memory."""
    missing: set[str] = set()
    for metrics in _by_command(samples):
        time = _time(metrics)
        missing |= metrics.keys() - ({time.metric, *_CPU_TIMES, "peak_memory"} if time else set())
    return frozenset(missing)


def _document(samples: Sequence[Exported]) -> Json:
    results: list[Json] = [_result(metrics) for metrics in _by_command(samples) if _time(metrics)]
    return {"results": results} if results else None


def _by_command(samples: Sequence[Exported]) -> Iterable[Mapping[str, Exported]]:
    """Return the metrics of each command: of a benchmark at a point in a subject."""
    by_command: dict[object, dict[str, Exported]] = {}
    for each in samples:
        name = (each.subject, each.benchmark, each.point)
        by_command.setdefault(name, {})[each.metric] = each
    return by_command.values()


def _time(metrics: Mapping[str, Exported]) -> Exported | None:
    """Return the wall time, or the first metric that is a time."""
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
