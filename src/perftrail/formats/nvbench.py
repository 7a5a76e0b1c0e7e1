"""nvbench's JSON (``--json``, ``--jsonbin``), in seconds and bytes."""

from __future__ import annotations

import math
import struct
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from perftrail.formats.document import NO_FILE, begins_with, parse
from perftrail.model.exchange import Series

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from perftrail.formats.document import FileContext, Node
    from perftrail.model.metrics import Better

_SAMPLES = ("nv/json/bin:nv/cold/sample_times", "nv/json/bin:nv/cpu_only/sample_times")
_WALL = (
    "nv/cold/time/gpu/median",
    "nv/cold/time/gpu/mean",
    "nv/cpu_only/time/cpu/median",
    "nv/cpu_only/time/cpu/mean",
)
"""Summaries of a benchmark's time: CUDA's events on the GPU, or the clock of a benchmark without GPU."""

_UNITS: Mapping[str, str] = {
    "duration": "s",
    "bytes": "B",
    "byte_rate": "B/s",
    "item_rate": "1/s",
    "frequency": "Hz",
}
_HIGHER = ("byte_rate", "item_rate", "frequency")
_NOT_METRICS = ("/sample_size", "/walltime", "/stdev/absolute", "/stdev/relative", "/scaling/percent")


def recognises(head: bytes, _name: str) -> bool:
    """Return whether nvbench wrote this."""
    return begins_with(head, rb'\{\s*"meta"\s*:') and b'"nvbench"' in head


def read(content: bytes, context: FileContext = NO_FILE) -> tuple[Series, ...]:
    """Read every state of a benchmark: its time, and its other summaries under their tags without ``nv/``.

    The time is that on the GPU, or of the CPU in a benchmark without GPU: every sample if ``--jsonbin`` wrote them
    next to the file, else the median or mean. Axes are parameters, and the device is the machine, because samples of
    two devices are never pooled. Skipped states are left out.
    """
    document = parse(content)
    devices = document.get("devices")
    names = {
        int(each["id"].number()): each["name"].text()
        for each in (() if devices is None else devices.elements())
    }
    return tuple(
        series
        for benchmark in document["benchmarks"].elements()
        for state in _list(benchmark, "states")
        if not _is_skipped(state)
        for series in _state(benchmark["name"].text(), state, names, context)
    )


def companions(content: bytes) -> tuple[str, ...]:
    """Return the files of samples that the content names, relative to its directory."""
    files = (
        _sample_file(summary)
        for benchmark in parse(content)["benchmarks"].elements()
        for state in _list(benchmark, "states")
        for summary in _list(state, "summaries")
        if summary["tag"].text() in _SAMPLES
    )
    return tuple(dict.fromkeys(filter(None, files)))


def _list(node: Node, key: str) -> tuple[Node, ...]:
    found = node.get(key)
    return () if found is None else found.elements()


def _is_skipped(state: Node) -> bool:
    skipped = state.get("is_skipped")
    return skipped is not None and skipped.value is True


def _state(benchmark: str, state: Node, devices: Mapping[int, str], context: FileContext) -> Iterator[Series]:
    point = tuple((each["name"].text(), each["value"].scalar()) for each in _list(state, "axis_values"))
    device = state.get("device")
    # A benchmark without GPU belongs to the machine of the only device.
    id = next(iter(devices), None) if device is None and len(devices) == 1 else None
    id = id if device is None else int(device.number())
    machine = None if id is None else devices.get(id)
    if machine is not None and list(devices.values()).count(machine) > 1:
        machine = f"{machine} #{id}"
    summaries = {each["tag"].text(): each for each in _list(state, "summaries")}

    def series(
        metric: str,
        values: tuple[float, ...],
        unit: str | None,
        *,
        note: str | None,
        better: Better = "lower",
    ) -> Series:
        return Series(
            benchmark=benchmark,
            point=point,
            metric=metric,
            unit=unit,
            better=better,
            values=values,
            machine=machine,
            summary=note is not None,
            note=note,
        )

    samples = next((each for tag in _SAMPLES if (each := summaries.get(tag)) is not None), None)
    values = () if samples is None else _samples(samples, context)
    tag = next((each for each in _WALL if each in summaries), None)
    if values:
        yield series("wall", values, "s", note=None)
    elif tag is not None:
        yield series("wall", (_number(summaries[tag]),), "s", note=tag.rpartition("/")[2])
    for other, summary in summaries.items():
        number = _entry(summary, "value")
        if other == tag or number is None or other.endswith(_NOT_METRICS):
            continue
        hint = summary.get("hint")
        kind = "" if hint is None else hint.text()
        value = _finite(number)
        if value is not None:
            yield series(
                other.removeprefix("nv/"),
                (value,),
                _UNITS.get(kind),
                note=other.rpartition("/")[2] if other.endswith(("/min", "/max", "/median")) else "mean",
                better="higher" if kind in _HIGHER or other.endswith("/utilization") else "lower",
            )


def _entry(summary: Node, name: str) -> Node | None:
    """Return a value of a summary's data."""
    return next((each["value"] for each in _list(summary, "data") if each["name"].text() == name), None)


def _finite(value: Node) -> float | None:
    """Return a number, which nvbench writes as a text; `None` if it is a text or not finite."""
    try:
        number = float(value.scalar())
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _number(summary: Node) -> float:
    value = _entry(summary, "value")
    number = None if value is None else _finite(value)
    if number is None:
        raise summary.error('has no finite number "value"')
    return number


def _sample_file(summary: Node) -> str | None:
    """Return the file of samples, relative to the file: ``out.json-bin/0.bin``, wherever nvbench ran."""
    name = _entry(summary, "filename")
    parts = () if name is None else PurePosixPath(name.text().replace("\\", "/")).parts[-2:]
    return "/".join(parts) if len(parts) == 2 and ".." not in parts and parts[0] != "/" else None


def _samples(summary: Node, context: FileContext) -> tuple[float, ...]:
    """Return the samples next to the file; none if their file is missing."""
    name, size = _sample_file(summary), _entry(summary, "size")
    content = None if name is None else context.read_relative(name)
    if content is None:
        return ()
    expected = None if size is None else _finite(size)
    if len(content) % 4 or expected not in (None, len(content) // 4):
        raise summary.error(
            f"{name} has {len(content)} bytes; {expected or 0:.0f} samples have {4 * (expected or 0):.0f}"
        )
    values = struct.unpack(f"<{len(content) // 4}f", content)
    if not all(map(math.isfinite, values)):
        raise summary.error(f"{name} has a sample that is not finite")
    return values
