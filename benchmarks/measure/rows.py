"""The results: one row of values for each tool, and the goals with the values that were reached."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.measure.trial import median

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.measure.tools import ToolSample
    from benchmarks.measure.trial import Record, Truth

MEBIBYTE = 1 << 20
MICRO = 1e6
TOUCHED = {"touch2": 2, "touch20": 20, "touch200": 200, "fork200": 200, "two100": 200}
"""Mebibytes that all processes of each target touch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The values of one tool; None if it does not report one. Times in microseconds, sizes in KiB, errors in percent.

    `excess` is the wall time beyond that of the program's `main`, and `spread` half of its interquartile range.
    `cpu_bias` is that of the 5 ms program. `tree_cpu` is the error of the CPU time of four threads and two children
    relative to the cgroup's in the same run. `cost` is the time of a run beyond that of the program `nothing`.
    """

    tool: str
    excess5: float | None
    spread5: float | None
    excess50: float | None
    spread50: float | None
    cpu_bias: float | None
    floor: float | None
    memory: dict[str, float | None]
    grandchild_cpu: float | None
    threads_cpu: float | None
    tree_cpu: float | None
    cost: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """A goal, the value that was reached, and whether that is enough."""

    text: str
    reached: str
    met: bool


def rows(records: Sequence[Record]) -> list[Row]:
    """Return each tool's row."""
    return [_row(record, minimum=_minimum(records)) for record in records]


def _minimum(records: Sequence[Record]) -> float:
    """Return the time of the program that only exits: the shortest median of all tools."""
    medians = [value for record in records if (value := median(record.nothing)) is not None]
    return min(medians, default=0.0)


def _row(record: Record, *, minimum: float) -> Row:
    excess5, excess50 = _excess(record, "wall5"), _excess(record, "wall50")
    costs, own = median(record.costs), median(record.own)
    floor = median(record.floor)
    return Row(
        tool=record.tool,
        excess5=_scaled(median(excess5)),
        spread5=_scaled(_half_between_quartiles(excess5)),
        excess50=_scaled(median(excess50)),
        spread50=_scaled(_half_between_quartiles(excess50)),
        cpu_bias=_scaled(
            median([r.cpu - t.cpu for r, t in record.samples.get("wall5", ()) if r.cpu is not None])
        ),
        floor=None if floor is None else floor / 1024,
        memory={name: _memory_error(record, name, mebibytes) for name, mebibytes in TOUCHED.items()},
        grandchild_cpu=_percent(
            [r.cpu / 0.2 for r, _ in record.samples.get("daemon200", ()) if r.cpu is not None]
        ),
        threads_cpu=_percent(
            [r.cpu / t.cpu for r, t in record.samples.get("threads4", ()) if r.cpu is not None]
        ),
        tree_cpu=_percent(
            [
                r.cpu / r.tree_cpu
                for name in ("threads4", "two100", "fork200", "daemon200")
                for r, _ in record.samples.get(name, ())
                if r.cpu is not None and r.tree_cpu
            ]
        ),
        cost=_scaled(own) if own is not None else None if costs is None else (costs - minimum) * MICRO,
    )


def _excess(record: Record, target: str) -> list[float]:
    pairs: Sequence[tuple[ToolSample, Truth]] = record.samples.get(target, ())
    return [sample.wall - truth.wall for sample, truth in pairs if sample.wall is not None]


def _half_between_quartiles(values: Sequence[float]) -> float | None:
    if len(values) < 4:
        return None
    low, _, high = statistics.quantiles(values, n=4)
    return (high - low) / 2


def _memory_error(record: Record, target: str, mebibytes: int) -> float | None:
    """Return the error in KiB: of the sum over the tree if the tool reports it, otherwise of the largest process."""
    sizes = [
        size
        for sample, _ in record.samples.get(target, ())
        if (size := sample.memory if sample.tree_memory is None else sample.tree_memory) is not None
    ]
    found = median(sizes)
    return None if found is None else (found - mebibytes * MEBIBYTE) / 1024


def _percent(ratios: Sequence[float]) -> float | None:
    found = median(ratios)
    return None if found is None else (found - 1.0) * 100


def _scaled(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * MICRO


def goals(found: Sequence[Row], *, floor_goal_kib: float) -> list[Goal]:
    """Return each goal with the value that this run reached."""
    by_name = {row.tool: row for row in found}
    plain = by_name["perftrail"]
    cgroup = by_name.get("perftrail, cgroup")
    sampled = by_name["perftrail, sampled"]
    peer = next((row for row in found if row.tool.startswith("hyperfine") and "Debian" not in row.tool), None)
    result = []
    if peer is not None:
        for length in ("5", "50"):
            for kind, title in (("excess", "excess wall"), ("spread", "its spread")):
                ours, theirs = getattr(plain, kind + length), getattr(peer, kind + length)
                result.append(
                    _at_most(f"{title}, {length} ms: at or below {peer.tool}'s", ours, theirs, "µs")
                )
    alone = by_name["perftrail's launcher alone"]
    result.append(_at_most("the launcher's own cost of a run, without cgroup", alone.cost, 150.0, "µs"))
    result.append(_at_most("floor under peak memory", plain.floor, floor_goal_kib, "KiB"))
    result.append(_within("two children of 100 MiB, sampled", _relative(sampled, "two100"), 3.0, "%"))
    result.append(_within("a daemonised grandchild's CPU time", plain.grandchild_cpu, 2.0, "%"))
    if cgroup is not None:
        alone = by_name["perftrail's launcher alone, cgroup"]
        result.append(_at_most("the launcher's own cost of a run, with cgroup", alone.cost, 500.0, "µs"))
        error = cgroup.memory["two100"]
        result.append(
            _within("two children of 100 MiB, by cgroup", None if error is None else error / 1024, 2.0, "MiB")
        )
        result.append(_within("the tree's CPU time against the cgroup's", cgroup.tree_cpu, 1.0, "%"))
    return result


def _relative(row: Row, target: str) -> float | None:
    error = row.memory[target]
    return None if error is None else error / (TOUCHED[target] * 1024) * 100


def _at_most(text: str, value: float | None, limit: float | None, unit: str) -> Goal:
    if value is None or limit is None:
        return Goal(text=text, reached="not measured", met=False)
    return Goal(text=f"{text}: at most {limit:.0f} {unit}", reached=f"{value:.0f} {unit}", met=value <= limit)


def _within(text: str, value: float | None, bound: float, unit: str) -> Goal:
    if value is None:
        return Goal(text=text, reached="not measured", met=False)
    return Goal(
        text=f"{text}: within {bound:g} {unit}", reached=f"{value:+.2f} {unit}", met=abs(value) <= bound
    )
