"""Let one perftrail process of each machine measure into a server's database, by an advisory lock.

The lock belongs to the connection that writes outcomes, so that one never exists without the other. It ends with its
holder in every case, and with the server. The connection's name is for people: the process and its start.
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
"""First half of the keys of perftrail's advisory locks; other programs may use such locks, too."""

POLL_SECONDS = 0.5
"""Time between two attempts of a waiting process, in seconds."""

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
    """Return the unique name of this process's connections in the server's lists."""
    started = datetime.now(UTC).isoformat(timespec="seconds")
    return f"perftrail {os.getpid()} since {started} {secrets.token_hex(4)}"


class Turn:
    """A machine's lock, which each new connection of its holder takes again.

    The first connection waits for the present holder and calls `on_wait` with it, or raises `StoreLocked`. A later
    one raises `StoreLocked` if another process took the lock while the server did not answer, because samples of
    both would be worthless.
    """

    def __init__(self, machine: str, *, where: str, wait: bool, on_wait: Callable[[Holder], None]) -> None:
        self.name = application_name()
        self._key = zlib.crc32(machine.encode()) & 0x7FFF_FFFF
        self._where = where
        self._wait = wait
        self._on_wait = on_wait
        self._had = False

    def take(self, connection: psycopg.Connection) -> None:
        """Take the lock, on a connection that commits each statement."""
        result: Holder | None = None
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
                    f"{self._where}: while the server was away, {holder} began to measure on this machine; "
                    "all samples so far are stored, and the same command resumes when that one has ended"
                )
            elif not self._wait:
                raise StoreLocked(
                    f"{self._where}: {holder} measures on this machine into the same results; wait for its end, "
                    "or name others with --store"
                )
            elif holder != result:
                result = holder
                self._on_wait(holder)
            time.sleep(POLL_SECONDS)
        self._had = True

    def _taken(self, connection: psycopg.Connection) -> bool:
        row = connection.execute(LOCK, (FAMILY, self._key)).fetchone()
        return row is not None and bool(row[0])

    def _holder(self, connection: psycopg.Connection) -> tuple[int, str] | None:
        """Return the server process of the lock's holder, and its connection's name."""
        row = connection.execute(HELD, (FAMILY, self._key)).fetchone()
        return None if row is None else (row[0], row[1] or "")


def _parse(name: str) -> Holder:
    found = NAMED.fullmatch(name)
    if found is None:
        return Holder(pid=0)
    return Holder(pid=int(found[1]), command=("perftrail",), started=found[2])
