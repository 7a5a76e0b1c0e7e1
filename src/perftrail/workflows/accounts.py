"""What the launcher's account of a process gives: figures by the names of their metrics, and how each was got."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.model.metrics import COUNTED

if TYPE_CHECKING:
    from perftrail.model.process import LockCounts, Ran


def measured(ran: Ran) -> dict[str, float]:
    """Name the figures of a process: seconds, bytes, counts."""
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
        values |= counted(ran.locks)
        values["counted_processes"] = float(ran.locks.processes)
    return values


def counted(locks: LockCounts) -> dict[str, float]:
    """Name the figures of counted locks and waits: counts, seconds."""
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


def methods(ran: Ran) -> dict[str, str]:
    """Say how figures were got, where several ways exist."""
    found = {"peak_memory": "rusage", "cpu": "rusage"}
    if ran.tree_memory is not None:
        found["peak_memory_tree"] = ran.tree_memory.method
    if ran.locks is not None:
        found |= dict.fromkeys(COUNTED["locks"], ran.locks.method)
    return found
