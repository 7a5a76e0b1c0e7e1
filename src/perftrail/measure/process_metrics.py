"""The metrics of a process that has ended, and how each was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.model.metrics import COUNTED

if TYPE_CHECKING:
    from perftrail.model.process import AllocationCounts, LockCounts, Ran
    from perftrail.process.tree_usage import Usage

_HARDWARE = {
    "cycles": "cycles_user",
    "user_instructions": "instructions_user",
    "cache_misses": "cache_misses_user",
    "branch_misses": "branch_misses_user",
}
"""Names of the metrics of `counters = ["hardware"]`, and the launcher's names of the counters."""


def process_metrics(ran: Ran, of_services: Usage | None = None) -> dict[str, float]:
    """Return the metrics of a process: seconds, bytes, counts; those of services instead, where they are measured."""
    if of_services is not None:
        return {
            "wall": ran.wall_seconds,
            "cpu": of_services.cpu_seconds,
            "peak_memory_tree": float(of_services.peak_bytes),
        }
    values = {
        "wall": ran.wall_seconds,
        "cpu": ran.cpu_seconds,
        "user": ran.user_seconds,
        "system": ran.system_seconds,
        "peak_memory": float(ran.max_rss_bytes),
        "voluntary_switches": float(ran.voluntary_switches),
        "involuntary_switches": float(ran.involuntary_switches),
        "page_faults": float(ran.minor_faults + ran.major_faults),
    }
    if ran.tree_memory is not None:
        values["peak_memory_tree"] = float(ran.tree_memory.bytes)
    if ran.locks is not None:
        values |= lock_metrics(ran.locks)
        values["counted_processes"] = float(ran.locks.processes)
    return values | {
        name: ran.counters[counter] for name, counter in _HARDWARE.items() if counter in ran.counters
    }


def allocation_metrics(counts: AllocationCounts) -> dict[str, float]:
    """Return the metrics of counted allocations: counts, bytes."""
    return {
        "allocations": float(counts.allocations),
        "allocated_bytes": float(counts.bytes),
        "heap_peak": float(counts.heap_peak_bytes),
        "mappings": float(counts.mappings),
        "mapped_bytes": float(counts.mapped_bytes),
    }


def lock_metrics(locks: LockCounts) -> dict[str, float]:
    """Return the metrics of counted locks and waits: counts, seconds."""
    values = {
        "locks": float(locks.locks),
        "contended_locks": float(locks.contended),
        "lock_wait": locks.wait_seconds,
    }
    kinds = {
        "condition": locks.conditions,
        "barrier": locks.barriers,
        "semaphore": locks.semaphores,
        "join": locks.joins,
        "spin": locks.spins,
    }
    for kind, waits in kinds.items():
        values |= {f"{kind}s": float(waits.number), f"{kind}_wait": waits.seconds}
    return values


def process_methods(ran: Ran, of_services: Usage | None = None) -> dict[str, str]:
    """Return how the metrics of a process were measured, where several methods exist."""
    if of_services is not None:
        return {"cpu": of_services.cpu_method, "peak_memory_tree": of_services.peak_method}
    found = {"peak_memory": "rusage", "cpu": "rusage"}
    if ran.tree_memory is not None:
        found["peak_memory_tree"] = ran.tree_memory.method
    if ran.locks is not None:
        found |= dict.fromkeys(COUNTED["locks"], ran.locks.method)
    found |= {name: "perf_event" for name, counter in _HARDWARE.items() if counter in ran.counters}
    return found
