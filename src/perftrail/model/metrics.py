"""Metrics: read from a benchmark's output, derived from others, or measured for every invocation."""

# cattrs and the schema read the annotations at run time, so these imports must not be in TYPE_CHECKING.

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from perftrail.model.field import Key

Better = Literal["lower", "higher"]
MetricScale = Literal["ratio", "difference", "rate"]
"""How two values of a metric are compared."""
Pick = Literal["first", "last", "min", "max", "sum", "median"]
Counter = Literal["locks", "allocations", "instructions", "hardware"]
Printed = Literal[
    "hyperfine",
    "pyperf",
    "google-benchmark",
    "jmh",
    "pytest-benchmark",
    "criterion",
    "criterion-text",
    "divan",
    "gungraun",
    "benchmarkdotnet",
    "nvbench",
    "vitest",
    "mitata",
    "rebench",
    "tclbench",
    "go",
    "jsonl",
    "csv",
]
"""Formats of other benchmark tools that a benchmark may print."""


def improves(effect: float, better: Better, *, same: float = 1.0) -> bool:
    """Return whether an effect is better; that of equal values, `same`, is neither better nor worse.

    >>> improves(0.9, "lower"), improves(0.9, "higher"), improves(1.0, "higher"), improves(-3.0, "lower", same=0.0)
    (True, False, False, True)
    """
    return effect < same if better == "lower" else effect > same


SCALE = (
    "How values are compared: by their ratio; by their difference, with thresholds in the metric's unit; or as the "
    "rate of runs that print 1 instead of 0, with thresholds in percentage points. Default: ratio; with zeros or "
    "negative values difference, or rate if all values are 0 or 1."
)


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
    item_metric: Annotated[
        str, Key("With reads: which metric of the item; times are in seconds, sizes in bytes.")
    ] = "wall"
    unit: Annotated[str, Key("The metric's unit; s and B are scaled for people.")] = ""
    better: Annotated[Better, Key("Which direction is an improvement.")] = "lower"
    scale: Annotated[MetricScale | None, Key(SCALE)] = None
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
    scale: Annotated[MetricScale | None, Key(SCALE)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredMetric:
    """A metric that the launcher measures for every invocation: its unit, its meaning and its better direction."""

    unit: str
    meaning: str
    better: Better = "lower"


MEASURED: Mapping[str, MeasuredMetric] = {
    "wall": MeasuredMetric(unit="s", meaning="from the start of the program to its end"),
    "cpu": MeasuredMetric(unit="s", meaning="user and system time of all processes"),
    "user": MeasuredMetric(unit="s", meaning="the part of `cpu` in user mode; not meaningful below 0.1 s"),
    "system": MeasuredMetric(unit="s", meaning="the part of `cpu` in the kernel; not meaningful below 0.1 s"),
    "peak_memory": MeasuredMetric(
        unit="B", meaning="peak memory of the largest process; it includes shared libraries"
    ),
    "peak_memory_tree": MeasuredMetric(
        unit="B",
        meaning="peak memory of all processes together; a cgroup counts only pages that these processes touched first, "
        "so it can be smaller than `peak_memory`",
    ),
    "voluntary_switches": MeasuredMetric(unit="", meaning="context switches because a thread waited"),
    "involuntary_switches": MeasuredMetric(
        unit="", meaning="context switches because another thread needed the CPU"
    ),
    "page_faults": MeasuredMetric(unit="", meaning="page faults, with and without disk access"),
    "foreign_cpu": MeasuredMetric(unit="CPUs", meaning="CPUs that other programs used during the invocation"),
    "stolen_cpu": MeasuredMetric(
        unit="CPUs", meaning="CPUs that the hypervisor used for other machines during the invocation"
    ),
    "cpu_pressure": MeasuredMetric(unit="", meaning="share of the time in which a process waited for a CPU"),
    "memory_pressure": MeasuredMetric(
        unit="", meaning="share of the time in which a process waited for memory"
    ),
    "io_pressure": MeasuredMetric(unit="", meaning="share of the time in which a process waited for a disk"),
    "cpu_frequency": MeasuredMetric(unit="Hz", meaning="highest frequency of a CPU", better="higher"),
    "cpu_temperature": MeasuredMetric(unit="°C", meaning="highest temperature of a sensor"),
}

OF_THE_COMMAND = (
    "user",
    "system",
    "peak_memory",
    "voluntary_switches",
    "involuntary_switches",
    "page_faults",
)
"""Metrics that are not measured if a benchmark measures its services instead of its command."""
"""Metrics of every benchmark that need no declaration, unless it counts instructions."""

COUNTED: Mapping[Counter, Mapping[str, MeasuredMetric]] = {
    "locks": {
        "locks": MeasuredMetric(unit="", meaning="acquired mutexes and read-write locks"),
        "contended_locks": MeasuredMetric(unit="", meaning="attempts that found a lock in use"),
        "lock_wait": MeasuredMetric(
            unit="s", meaning="time waiting for mutexes and read-write locks, summed over all threads"
        ),
        "conditions": MeasuredMetric(unit="", meaning="waits for condition variables"),
        "condition_wait": MeasuredMetric(
            unit="s", meaning="time waiting for condition variables, summed over all threads"
        ),
        "barriers": MeasuredMetric(unit="", meaning="waits for barriers"),
        "barrier_wait": MeasuredMetric(
            unit="s", meaning="time waiting for barriers, summed over all threads"
        ),
        "semaphores": MeasuredMetric(unit="", meaning="waits for semaphores"),
        "semaphore_wait": MeasuredMetric(
            unit="s", meaning="time waiting for semaphores, summed over all threads"
        ),
        "joins": MeasuredMetric(unit="", meaning="waits for ends of other threads"),
        "join_wait": MeasuredMetric(
            unit="s", meaning="time waiting for ends of other threads, summed over all threads"
        ),
        "spins": MeasuredMetric(unit="", meaning="waits for spin locks"),
        "spin_wait": MeasuredMetric(unit="s", meaning="time waiting for spin locks, summed over all threads"),
        "counted_processes": MeasuredMetric(unit="", meaning="processes in which locks were counted"),
    },
    "allocations": {
        "allocations": MeasuredMetric(
            unit="", meaning="heap allocations of all processes; each realloc is an allocation"
        ),
        "allocated_bytes": MeasuredMetric(unit="B", meaning="bytes that these allocations requested"),
        "heap_peak": MeasuredMetric(
            unit="B",
            meaning="peak of the bytes in use on the heap, as rounded by the allocator, of the process with the "
            "largest one",
        ),
        "mappings": MeasuredMetric(
            unit="", meaning="anonymous memory mappings that the program requested itself, not through malloc"
        ),
        "mapped_bytes": MeasuredMetric(unit="B", meaning="bytes of these mappings"),
    },
    "instructions": {
        "instructions": MeasuredMetric(unit="", meaning="instructions in user mode, of all processes")
    },
    "hardware": {
        "cycles": MeasuredMetric(unit="", meaning="cycles of the processors in user mode, of all processes"),
        "user_instructions": MeasuredMetric(
            unit="",
            meaning="instructions in user mode, of all processes; unlike `instructions`, measured together with time, "
            "so they include what differs between invocations",
        ),
        "cache_misses": MeasuredMetric(
            unit="", meaning="misses of the last cache level in user mode, as the processor counts them"
        ),
        "branch_misses": MeasuredMetric(unit="", meaning="mispredicted branches in user mode"),
    },
}
"""Additional metrics of a benchmark with `counters`."""

COUNTED_ALONE: tuple[Counter, ...] = ("allocations", "instructions")
"""Counters of invocations that measure nothing else, so that all counts of a deterministic program are equal."""

AMOUNTS = frozenset(name for each in COUNTED_ALONE for name in COUNTED[each])
"""Counts that other processes do not change."""

OWN_METRICS: Mapping[str, MeasuredMetric] = {
    **MEASURED,
    **{name: metric for each in COUNTED.values() for name, metric in each.items()},
}
"""Reserved names: a study cannot declare a metric with one of them."""
