"""Metrics: read from a benchmark's output, derived from others, or measured for every invocation."""

# cattrs and the schema read the annotations at run time, so these imports must not be in TYPE_CHECKING.

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
"""Formats of other benchmark tools that a benchmark may print."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A metric read from a benchmark's output: the only group of a pattern, or an item in a tool's format."""

    pattern: Annotated[str, Key("A regular expression, line by line, whose only group is the number.")] = ""
    reads: Annotated[
        Printed | None,
        Key(
            "Instead of a pattern: the tool format of the benchmark's output, which must contain nothing else."
        ),
    ] = None
    item: Annotated[
        str,
        Key(
            "With reads: the item of the output, as name or name[parameter=value, …]; not needed if there is one."
        ),
    ] = ""
    figure: Annotated[
        str, Key("With reads: which metric of the item; times are in seconds, sizes in bytes.")
    ] = "wall"
    unit: Annotated[str, Key("The metric's unit; s and B are scaled for people.")] = ""
    better: Annotated[Better, Key("Which direction is an improvement.")] = "lower"
    pick: Annotated[
        Pick | None,
        Key(
            "Which number to use if the pattern or the item occurs several times; by default last, with a warning."
        ),
    ] = None
    same: Annotated[
        bool,
        Key(
            "true: a result to check, not to compare: at a point it must be equal in every variant and revision."
        ),
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """A metric computed from others of one benchmark, for example ``real[threads=2] / real[threads=8]``."""

    value: Annotated[
        str,
        Key("An expression over metrics, for example real[threads=2] / real[threads=8].", stand_in="1"),
    ]
    benchmark: Annotated[str, Key("The benchmark of the metrics; optional if there is only one.")] = ""
    unit: Annotated[str, Key("The metric's unit; empty for a ratio.")] = ""
    better: Annotated[Better, Key("Which direction is an improvement.")] = "lower"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredMetric:
    """A metric that the launcher measures for every invocation: its unit and its better direction."""

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
"""Metrics of every benchmark that need no declaration, unless it counts instructions."""

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
"""Additional metrics of a benchmark with `counters`."""

OWN_METRICS: Mapping[str, MeasuredMetric] = {
    **MEASURED,
    **{name: metric for each in COUNTED.values() for name, metric in each.items()},
}
"""Reserved names: a study cannot declare a metric with one of them."""
