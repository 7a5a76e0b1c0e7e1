"""Pairs of starts of one program, alternately outside and inside a sandbox."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.measure.invocation import OUTPUT_CAP_BYTES
from perftrail.model.process import Command, Exited
from perftrail.stats.comparison import Rule, compare_once

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftrail.model.process import Ran
    from perftrail.ports import Starter
    from perftrail.stats.comparison import Comparison

METRICS = ("wall", "cpu", "peak_memory", "peak_memory_tree", "overhead")
"""The compared metrics; the last is the time of a start beyond that of the program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A program: its name on the page, its arguments, and the seconds of one start."""

    name: str
    arguments: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One metric of one target: its median outside, and the ratio inside/outside."""

    target: str
    metric: str
    outside: float
    ratio: Comparison


def calibrate_targets(starter: Starter, program: str, *, logs: str) -> tuple[Target, ...]:
    """Return the targets, each with an amount of work that takes about the time in its name."""

    def of(kind: str, probe: int, seconds: float) -> Target:
        took = sorted(_start(starter, (program, kind, str(probe)), logs).cpu_seconds for _ in range(5))
        amount = max(1, round(probe * seconds / took[2]))
        name = f"{kind}, {seconds * 1e3:.0f} ms"
        return Target(name=name, arguments=(program, kind, str(amount)), seconds=seconds)

    return (
        of("count", 10_000_000, 0.005),
        of("count", 10_000_000, 0.050),
        of("files", 5_000, 0.050),
        of("memory", 50, 0.050),
    )


def measure_pairs(
    outside: Starter, inside: Starter, target: Target, *, pairs: int, logs: str
) -> tuple[Row, ...]:
    """Start a target outside and inside, in alternating order (ABBA); return the compared metrics."""
    found: dict[Starter, list[Mapping[str, float]]] = {outside: [], inside: []}
    for number in range(pairs + 1):
        for starter in (outside, inside) if number % 2 else (inside, outside):
            values = _values(starter, target, logs)
            if number:  # the first pair warms both up
                found[starter].append(values)
    rule = Rule(most=pairs, comparisons=1)
    return tuple(
        Row(
            target=target.name,
            metric=name,
            outside=sorted(before)[pairs // 2],
            ratio=compare_once(before, after, rule),
        )
        for name in METRICS
        for before, after in [_both(found[outside], found[inside], name)]
        if before
    )


def _both(
    outside: Sequence[Mapping[str, float]], inside: Sequence[Mapping[str, float]], name: str
) -> tuple[list[float], list[float]]:
    pairs = [(one[name], other[name]) for one, other in zip(outside, inside, strict=True) if name in one]
    return [one for one, _ in pairs], [other for _, other in pairs]


def _values(starter: Starter, target: Target, logs: str) -> dict[str, float]:
    began = time.perf_counter()
    ran = _start(starter, target.arguments, logs)
    seconds = time.perf_counter() - began
    found = {
        "wall": ran.wall_seconds,
        "cpu": ran.cpu_seconds,
        "peak_memory": float(ran.max_rss_bytes),
        "overhead": seconds - ran.wall_seconds,
    }
    return found if ran.tree_memory is None else {**found, "peak_memory_tree": float(ran.tree_memory.bytes)}


def _start(starter: Starter, arguments: tuple[str, ...], logs: str) -> Ran:
    """Start a program like a benchmark of a study."""
    log = f"{logs}/output"
    command = Command(
        arguments=arguments,
        environment={},
        directory="/",
        stdout=log,
        stderr=log,
        output_cap_bytes=OUTPUT_CAP_BYTES,
        timeout_seconds=60.0,
    )
    ran = starter.run(command)
    if ran.ended != Exited(code=0):
        raise RuntimeError(f"{arguments}: {ran.ended} {ran.refused}")
    return ran
