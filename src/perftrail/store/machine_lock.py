"""Which perftrail of a machine measures into a server's database: one at a time, told by an advisory lock.

The lock belongs to the connection that outcomes are written through, so that one is never had without the other. It
goes with its holder, however that ends, and with the server. What the connection is called is for people: which
process it is, and since when.
"""

from __future__ import annotations

import os
import re
import secrets
import time
import zlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from perftrail.errors import StoreLocked
from perftrail.store.lock import Holder

if TYPE_CHECKING:
    from collections.abc import Callable

    import psycopg

FAMILY = 0x7065_7266
"""The first half of the keys of perftrail's advisory locks: other programs of a database may use such locks too."""

POLL_SECONDS = 0.5
"""How often a waiting process asks whether it is its turn."""

NAMED = re.compile(r"perftrail (\d+) since (\S+) \S+")

LOCK = "SELECT pg_try_advisory_lock(%s, %s)"

HELD = """
SELECT activity.pid, activity.application_name
FROM pg_locks AS lock JOIN pg_stat_activity AS activity USING (pid)
WHERE lock.locktype = 'advisory' AND lock.granted AND lock.objsubid = 2
  AND lock.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND lock.classid = %s::bigint::oid AND lock.objid = %s::bigint::oid
"""


def application_name() -> str:
    """Give what this process's connections are called in the server's lists; no other's are called the same."""
    started = datetime.now(UTC).isoformat(timespec="seconds")
    return f"perftrail {os.getpid()} since {started} {secrets.token_hex(4)}"


class Turn:
    """A machine's turn to measure, which each new connection of its holder takes anew.

    The first one waits for whoever has it, having told `on_wait` who that is, or raises `StoreLocked`. A later one
    raises `StoreLocked` when another took the turn while the server was away: what both measure at once is
    worth nothing.
    """

    def __init__(self, machine: str, *, where: str, wait: bool, on_wait: Callable[[Holder], None]) -> None:
        self.name = application_name()
        self._key = zlib.crc32(machine.encode()) & 0x7FFF_FFFF
        self._where = where
        self._wait = wait
        self._on_wait = on_wait
        self._had = False

    def take(self, connection: psycopg.Connection) -> None:
        """Take the turn, on a connection that commits each statement."""
        told: Holder | None = None
        while not self._taken(connection):
            held = self._holder(connection)
            if held is None:  # whoever had it let go between the two questions
                time.sleep(POLL_SECONDS / 10)
                continue
            backend, name = held
            holder = _parse(name)
            if name == self.name:
                # Our own connection, which the server does not know to be dead yet.
                connection.execute("SELECT pg_terminate_backend(%s)", (backend,))
            elif self._had:
                raise StoreLocked(
                    f"{self._where}: while the server was away, {holder} has begun to measure on this machine; "
                    "everything up to here is kept, and the same command goes on once that one has ended"
                )
            elif not self._wait:
                raise StoreLocked(
                    f"{self._where}: {holder} measures on this machine into the same results; wait for its end, "
                    "or name others with --store"
                )
            elif holder != told:
                told = holder
                self._on_wait(holder)
            time.sleep(POLL_SECONDS)
        self._had = True

    def _taken(self, connection: psycopg.Connection) -> bool:
        row = connection.execute(LOCK, (FAMILY, self._key)).fetchone()
        return row is not None and bool(row[0])

    def _holder(self, connection: psycopg.Connection) -> tuple[int, str] | None:
        """Give the server's process that serves whoever has the turn, and what its connection is called."""
        row = connection.execute(HELD, (FAMILY, self._key)).fetchone()
        return None if row is None else (row[0], row[1] or "")


def _parse(name: str) -> Holder:
    found = NAMED.fullmatch(name)
    if found is None:
        return Holder(pid=0)
    return Holder(pid=int(found[1]), command=("perftrail",), started=found[2])
