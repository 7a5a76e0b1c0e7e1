"""Where and when figures were taken, for the benchmarks' pages."""

from __future__ import annotations

from datetime import UTC, datetime

from perftrail.machine import read_machine

FACTS = ("cpu", "logical_cpus", "memory_gib", "kernel", "libc", "virtualisation")


def taken() -> str:
    """Say the day and what matters of this machine: half a sentence, without a full stop."""
    facts = read_machine().facts
    machine = ", ".join(f"{name.replace('_', ' ')} {facts[name]}" for name in FACTS if name in facts)
    return f"Taken {datetime.now(tz=UTC).date().isoformat()} on: {machine}"
