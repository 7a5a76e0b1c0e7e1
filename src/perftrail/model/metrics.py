"""Metrics: read from what a benchmark prints, computed from others, or taken of every invocation."""

# The annotations are read when the program runs (cattrs, the schema), so their names are imported for real.

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from perftrail.model.field import Key

Better = Literal["lower", "higher"]
Pick = Literal["first", "last", "min", "max", "sum", "median"]
Counter = Literal["locks", "instructions"]
Printed = Literal[
    "hyperfine",
    "pyperf",
    "google-benchmark",
    "jmh",
    "pytest-benchmark",
    "criterion",
    "criterion-text",
    "rebench",
    "tclbench",
    "go",
    "jsonl",
    "csv",
]
"""The formats of other tools in which a benchmark may print what it measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A figure read from what a benchmark prints: the pattern's only group, or one of an item in a tool's format."""

    pattern: Annotated[str, Key("A regular expression, by lines, whose only group is the number.")] = ""
    reads: Annotated[
        Printed | None,
        Key(
            "Instead of a pattern: the other tool's format that the benchmark prints, and nothing else beside."
        ),
    ] = None
    item: Annotated[
        str,
        Key(
            "With reads: which of the things printed, as name or name[parameter=value, …]; not needed of one."
        ),
    ] = ""
    figure: Annotated[
        str, Key("With reads: which figure of the item; in seconds or bytes where it is a time or a size.")
    ] = "wall"
    unit: Annotated[str, Key("The metric's unit; s and B are scaled for people.")] = ""
    better: Annotated[Better, Key("Which direction is an improvement.")] = "lower"
    pick: Annotated[
        Pick, Key("Which number counts when the pattern, or the item, is found several times.")
    ] = "last"
    same: Annotated[
        bool,
        Key(
            "true: an answer, not a figure to compare: at a point it must be the same in every variant and revision."
        ),
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """A metric computed from others of one benchmark, for instance ``real[threads=2] / real[threads=8]``."""

    value: Annotated[
        str,
        Key(
            "An expression over the benchmark's metrics, as real[threads=2] / real[threads=8].", stand_in="1"
        ),
    ]
    benchmark: Annotated[str, Key("The benchmark it belongs to; may be left out when there is one.")] = ""
    unit: Annotated[str, Key("The metric's unit; empty for a ratio.")] = ""
    better: Annotated[Better, Key("Which direction is an improvement.")] = "lower"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredMetric:
    """A metric that the launcher takes of every invocation: its unit and which way is better."""

    unit: str
    better: Better = "lower"


MEASURED: Mapping[str, MeasuredMetric] = {
    "wall": MeasuredMetric(unit="s"),
    "cpu": MeasuredMetric(unit="s"),
    "user": MeasuredMetric(unit="s"),
    "system": MeasuredMetric(unit="s"),
    "peak_memory": MeasuredMetric(unit="B"),
    "peak_memory_tree": MeasuredMetric(unit="B"),
    "voluntary_switches": MeasuredMetric(unit=""),
    "involuntary_switches": MeasuredMetric(unit=""),
    "page_faults": MeasuredMetric(unit=""),
    "foreign_cpu": MeasuredMetric(unit="CPUs"),
    "stolen_cpu": MeasuredMetric(unit="CPUs"),
    "cpu_pressure": MeasuredMetric(unit=""),
    "memory_pressure": MeasuredMetric(unit=""),
    "io_pressure": MeasuredMetric(unit=""),
    "cpu_frequency": MeasuredMetric(unit="Hz", better="higher"),
    "cpu_temperature": MeasuredMetric(unit="°C"),
}
"""Every metric of every benchmark that needs no declaration, unless it counts instructions."""

COUNTED: Mapping[Counter, Mapping[str, MeasuredMetric]] = {
    "locks": {
        "locks": MeasuredMetric(unit=""),
        "contended_locks": MeasuredMetric(unit=""),
        "lock_wait": MeasuredMetric(unit="s"),
        "conditions": MeasuredMetric(unit=""),
        "condition_wait": MeasuredMetric(unit="s"),
        "barriers": MeasuredMetric(unit=""),
        "barrier_wait": MeasuredMetric(unit="s"),
        "semaphores": MeasuredMetric(unit=""),
        "semaphore_wait": MeasuredMetric(unit="s"),
        "joins": MeasuredMetric(unit=""),
        "join_wait": MeasuredMetric(unit="s"),
        "spins": MeasuredMetric(unit=""),
        "spin_wait": MeasuredMetric(unit="s"),
        "counted_processes": MeasuredMetric(unit=""),
    },
    "instructions": {"instructions": MeasuredMetric(unit="")},
}
"""The metrics that a benchmark has when its `counters` ask for them."""

OWN_METRICS: Mapping[str, MeasuredMetric] = {
    **MEASURED,
    **{name: metric for each in COUNTED.values() for name, metric in each.items()},
}
"""Every name that no metric of a study may have."""
