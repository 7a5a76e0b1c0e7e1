"""Date and machine of a benchmark, for its page."""

from __future__ import annotations

import os
from datetime import UTC, datetime

from perftrail.process.machine import read_machine
from perftrail.store.databases import open_snapshot

FACTS = ("cpu", "logical_cpus", "memory_gib", "kernel", "libc", "virtualisation")


def measured_on() -> str:
    """Return the date and the relevant facts of this machine, without a full stop."""
    facts = read_machine().facts
    machine = ", ".join(f"{name.replace('_', ' ')} {facts[name]}" for name in FACTS if name in facts)
    return f"Measured {datetime.now(tz=UTC).date().isoformat()} on: {machine}"


def load() -> float:
    """Return the load average of the last minute: other processes disturb what is measured."""
    return round(os.getloadavg()[0], 1)


def database(location: str) -> str:
    """Return the name and version of the database of a store; for a server, also its relevant settings."""
    with open_snapshot(location) as connection:
        version = ".".join(map(str, connection.dialect.server_version_info or ()))
        if connection.dialect.name == "sqlite":
            return f"SQLite {version}"
        settings = (
            f"{name} {connection.exec_driver_sql(f'SHOW {name}').scalar_one()}"
            for name in ("shared_buffers", "fsync")
        )
        return f"PostgreSQL {version} ({', '.join(settings)})"
