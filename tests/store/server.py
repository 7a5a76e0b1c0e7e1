"""A PostgreSQL server for the tests: started where it is installed, and removed after them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self
from urllib.parse import quote

import psycopg

if TYPE_CHECKING:
    from collections.abc import Iterator

NOBODY = 65534
"""The server refuses to run as root."""

PASSWORD = "se cret/@:%?"
"""The password of ada, who owns the databases: no output may contain a part of it."""

START_SECONDS = 30.0


def programs() -> Path | None:
    """Give the directory with the newest server's programs, `None` where none is installed."""
    found = shutil.which("postgres")
    installed = [Path(found).resolve()] if found else []
    installed += Path("/usr/lib/postgresql").glob("*/bin/postgres")
    newest = max(
        installed, key=lambda path: [int(part) for part in path.parts if part.isdigit()], default=None
    )
    return None if newest is None else newest.parent


class Server:
    """A server that listens on a socket in its directory, and can be stopped as in a crash."""

    def __init__(self, programs: Path, directory: Path, *, durable: bool) -> None:
        self._programs = programs
        self._directory = directory
        self._durable = durable
        self._process: subprocess.Popen[bytes] | None = None
        self._made = 0
        self._shared = ""

    def make(self) -> Self:
        """Create its files: user ada needs a password, postgres none."""
        self._directory.chmod(0o755)
        own = self._directory / "own"
        own.mkdir()
        if os.geteuid() == 0:
            os.chown(own, NOBODY, NOBODY)
        data = own / "data"
        self._run(
            "initdb", "--no-sync", "-D", data, "-U", "postgres", "-E", "UTF8", "--locale=C", "-A", "trust"
        )
        (data / "pg_hba.conf").write_text("local all ada scram-sha-256\nlocal all postgres trust\n")
        return self

    @property
    def socket(self) -> Path:
        """The directory of the socket that it listens on."""
        return self._directory / "own"

    def start(self) -> None:
        """Start it; it answers when this returns."""
        own = self._directory / "own"
        fsync = f"fsync={'on' if self._durable else 'off'}"
        settings = ("listen_addresses=", "max_connections=60", "shared_buffers=32MB", "autovacuum=off", fsync)
        words = [word for setting in settings for word in ("-c", setting)]
        with (self._directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self._as_nobody("postgres", "-D", own / "data", "-k", own, *words),
                stdout=log,
                stderr=log,
                cwd=own,
            )
        deadline = time.monotonic() + START_SECONDS
        while not self.answers():
            assert self._process.poll() is None, (self._directory / "log").read_text()
            assert time.monotonic() < deadline, (self._directory / "log").read_text()
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop it at once, as `pg_ctl stop -m immediate`: nothing that is not committed is kept."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(START_SECONDS)
            self._process = None

    def answers(self) -> bool:
        """Whether it answers now."""
        try:
            psycopg.connect(self.url("postgres", user="postgres")).close()
        except psycopg.OperationalError:
            return False
        return True

    def url(self, database: str, *, user: str = "ada") -> str:
        """Return a database's address; that of ada contains the password."""
        who = f"{user}:{quote(PASSWORD, safe='')}" if user == "ada" else user
        return f"postgresql://{who}@/{database}?host={self._directory / 'own'}"

    def database(self, *, encoding: str = "UTF8") -> str:
        """Create a database of ada; return its address."""
        self._made += 1
        name = f"t{self._made}"
        if self._made == 1:
            password = psycopg.sql.quote(PASSWORD)
            self.execute(f"CREATE ROLE ada LOGIN PASSWORD {password}")
        self.execute(f"CREATE DATABASE {name} OWNER ada ENCODING '{encoding}' TEMPLATE template0")
        return self.url(name)

    def schema(self) -> str:
        """Create a schema of ada in a shared database, which is faster; return its address."""
        self._shared = self._shared or self.database()
        self._made += 1
        name = f"s{self._made}"
        with psycopg.connect(self._shared, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}".encode())
        return f"{self._shared}&options=-csearch_path%3D{name}"

    def execute(self, statement: str, *, database: str = "postgres") -> list[tuple[object, ...]]:
        """Execute a statement as the server's administrator; return its rows."""
        with psycopg.connect(self.url(database, user="postgres"), autocommit=True) as connection:
            found = connection.execute(statement.encode())
            return found.fetchall() if found.description else []

    def _run(self, program: str, *words: str | Path) -> None:
        done = subprocess.run(self._as_nobody(program, *words), capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()

    def _as_nobody(self, program: str, *words: str | Path) -> list[str]:
        """Return the arguments that start a program as an unprivileged user; it ends with its parent."""
        nobody = ["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"] if os.geteuid() == 0 else []
        return [
            "setpriv",
            *map(str, nobody),
            "--pdeathsig",
            "QUIT",
            str(self._programs / program),
            *map(str, words),
        ]


def until_waiting(url: str, thread: threading.Thread) -> None:
    """Wait until a transaction of a database waits for another one, or a thread has ended."""
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    deadline = time.monotonic() + START_SECONDS
    with psycopg.connect(url, autocommit=True) as connection:
        while thread.is_alive() and connection.execute(waiting).fetchone() == (0,):
            assert time.monotonic() < deadline, "nobody came to wait"
            time.sleep(0.02)


@contextmanager
def running(*, durable: bool = False) -> Iterator[Server | None]:
    """Yield a running server, and remove its files afterwards; `None` where none is installed.

    Unless `durable`, it leaves it to the system when to write to the disk, which only a crash of the machine shows.
    """
    installed = programs()
    if installed is None:
        yield None
        return
    # What the server starts may write for a moment longer than itself.
    with tempfile.TemporaryDirectory(prefix="perftrail-pg-", ignore_cleanup_errors=True) as directory:
        server = Server(installed, Path(directory), durable=durable).make()
        server.start()
        try:
            yield server
        finally:
            server.stop()
