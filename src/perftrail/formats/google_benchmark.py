"""Google Benchmark's JSON (``--benchmark_format=json``)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from perftrail.formats.document import NO_FILE, begins_with, parse
from perftrail.formats.units import unit
from perftrail.model.exchange import Series

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from perftrail.formats.document import FileContext, Node

_RUN_OPTIONS = ("min_time", "min_warmup_time", "iterations", "repeats")
_TIMES = {"real_time": "wall", "cpu_time": "cpu"}
_NOT_METRICS = {
    *_TIMES,
    "family_index",
    "per_family_instance_index",
    "repetitions",
    "repetition_index",
    "threads",
    "iterations",
}
_AGGREGATES = ("median", "mean")
_OLD_AGGREGATE = re.compile(r"(.*)_(mean|median|stddev|cv|BigO|RMS)")


def recognises(head: bytes, _name: str) -> bool:
    """Return whether Google Benchmark wrote this."""
    return begins_with(head, rb'\{\s*"context"\s*:\s*\{') and (
        b'"host_name"' in head or b'"library_build_type"' in head or b'"num_cpus"' in head
    )


def read(content: bytes, _context: FileContext = NO_FILE) -> tuple[Series, ...]:
    """Read every benchmark's metrics for one iteration: of all repetitions, or else of their aggregate.

    Fits of complexity, and benchmarks that ended in an error, are left out.
    """
    document = parse(content)
    context = document.get("context")
    when = machine = None
    if context is not None:
        date, host = context.get("date"), context.get("host_name")
        when = None if date is None else date.time()
        machine = None if host is None else host.text()
    by_name: dict[str, list[Node]] = {}
    for entry in document["benchmarks"].elements():
        by_name.setdefault(run_name(entry), []).append(entry)
    return tuple(
        series
        for name, entries in by_name.items()
        for series in _benchmark(name, entries, when=when, machine=machine)
    )


def run_name(entry: Node) -> str:
    """Return the name of a benchmark as the program lists it, without the name of an aggregate."""
    name = entry.get("run_name")
    if name is not None:
        return name.text()
    whole = entry["name"].text()
    found = None if entry.get("run_type") else _OLD_AGGREGATE.fullmatch(whole)
    return found[1] if found else whole


def _benchmark(
    name: str, entries: Iterable[Node], *, when: datetime | None, machine: str | None
) -> Iterator[Series]:
    successful = [entry for entry in entries if not _failed(entry)]
    aggregates = {aggregate: entry for entry in successful if (aggregate := _aggregate(entry))}
    chosen, note = [entry for entry in successful if not _aggregate(entry)], None
    if not chosen:
        note = next((each for each in _AGGREGATES if each in aggregates), None)
        if note is None:
            return
        chosen = [aggregates[note]]
    benchmark, point = _split(name)
    for metric, (metric_unit, values) in _metrics(chosen).items():
        yield Series(
            benchmark=benchmark,
            point=point,
            metric=metric,
            unit=metric_unit,
            better="higher" if metric.endswith("_per_second") else "lower",
            values=tuple(values),
            when=when,
            machine=machine,
            summary=note is not None,
            note=note,
        )


def _failed(entry: Node) -> bool:
    """Whether a benchmark stopped itself, with or without an error."""
    return any(
        (flag := entry.get(key)) is not None and bool(flag.value) for key in ("error_occurred", "skipped")
    )


def _aggregate(entry: Node) -> str:
    """Return the aggregate of an entry; empty for a repetition."""
    kind = entry.get("run_type")
    if kind is not None:
        return entry["aggregate_name"].text() if kind.text() == "aggregate" else ""
    found = _OLD_AGGREGATE.fullmatch(entry["name"].text())
    return found[2] if found else ""


def _metrics(entries: Iterable[Node]) -> dict[str, tuple[str | None, list[float]]]:
    metrics: dict[str, tuple[str | None, list[float]]] = {}
    for entry in entries:
        time_unit = entry.get("time_unit")
        time = unit("ns" if time_unit is None else time_unit.text())
        for key, metric in _TIMES.items():
            metrics.setdefault(metric, (time.name, []))[1].extend(time.scaled((entry[key].number(),)))
        for key, value in entry.members():
            if (
                isinstance(value.value, int | float)
                and not isinstance(value.value, bool)
                and key not in _NOT_METRICS
            ):
                metrics.setdefault(key, (_rate(key), []))[1].append(value.number())
    return metrics


def _rate(counter: str) -> str | None:
    return {"bytes_per_second": "B/s", "items_per_second": "1/s"}.get(counter)


def _split(name: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Split a name into benchmark and point: `n:64`, or `64` without a name.

    >>> _split("BM_Sort/64/n:8/real_time/threads:2")
    ('BM_Sort/real_time', (('arg', '64'), ('n', '8'), ('threads', '2')))
    >>> _split("BM_Copy/8/16")
    ('BM_Copy', (('arg', '8'), ('arg2', '16')))
    """
    benchmark: list[str] = []
    point: dict[str, str] = {}
    unnamed = 0
    for part in name.split("/"):
        key, colon, value = part.partition(":")
        if benchmark and colon and re.fullmatch(r"\w+", key) and value and not value.startswith(":"):
            if key not in _RUN_OPTIONS:
                point[key] = value
        elif benchmark and re.fullmatch(r"-?\d+", part):
            unnamed += 1
            point["arg" if unnamed == 1 else f"arg{unnamed}"] = part
        else:
            benchmark.append(part)
    return "/".join(benchmark), tuple(point.items())
