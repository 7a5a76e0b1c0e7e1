"""Read and write a database, each in one transaction; wait for a server that stops answering."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from perftrail.errors import StoreError, StoreUnreachable
from perftrail.model.wording import duration
from perftrail.store.damage import translate_damage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from sqlalchemy import Connection, Engine


LIMIT_SECONDS = 600.0
"""Time limit for an unreachable server: a restart takes seconds, an upgrade of the machine minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerUnreachable:
    """A server does not answer; perftrail waits up to this number of seconds."""

    where: str
    why: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerBack:
    """A server answers again, after this number of seconds."""

    where: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerWait:
    """Time limit for a server that does not answer, and the callback for its states."""

    on_change: Callable[[ServerUnreachable | ServerBack], None]
    seconds: float = LIMIT_SECONDS


Result = TypeVar("Result")

POLL_SECONDS = 0.5
"""Time between two attempts to reach a server, in seconds."""

MOST_ATTEMPTS = 5
"""Maximum number of attempts of a transaction that conflicts with others."""


class TransactionConflict(StoreError):
    """Another transaction conflicted, and this one was rolled back: it can be repeated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """The database of a store.

    `where` names it in errors. A transaction of `reading` sees one state throughout; one of `writing` is on disk
    when it has ended. `translate_errors` turns the database's errors into a `StoreError`: `StoreUnreachable` if a
    server does not answer, `TransactionConflict` if the transaction can be repeated.
    """

    where: str
    reading: Engine
    writing: Engine
    translate_errors: Callable[[str], AbstractContextManager[None]]

    def close(self) -> None:
        """Close every connection."""
        self.writing.dispose()
        self.reading.dispose()


@contextmanager
def disposing(engine: Engine) -> Iterator[None]:
    """Close an engine's connections when opening fails."""
    try:
        yield
    except BaseException:
        engine.dispose()
        raise


class Transactions:
    """The transactions of a store, in one database.

    With a `refusal`, every attempt to write raises `StoreError` with that text. `on_rollback` is called after each
    failed transaction. Without `server_wait`, an unreachable server is an error at once.
    """

    def __init__(
        self,
        database: Database,
        *,
        on_rollback: Callable[[], None],
        refusal: str = "",
        server_wait: ServerWait | None = None,
    ) -> None:
        self._database = database
        self._on_rollback = on_rollback
        self._refusal = refusal
        self._server_wait = server_wait

    @property
    def where(self) -> str:
        """Name of the store in errors."""
        return self._database.where

    def close(self) -> None:
        """Close every connection."""
        self._database.close()

    def read(self, work: Callable[[Connection], Result]) -> Result:
        """Return the result of some reads, all of one state of the store."""
        return self._with_retries(lambda _: self._read(work))

    def write(
        self, work: Callable[[Connection], None], *, is_stored: Callable[[Connection], bool] | None = None
    ) -> None:
        """Write in one transaction: on disk when this returns, or rolled back.

        If a server stops answering during the commit, its outcome is unknown. `is_stored` then returns whether the
        rows exist; without it, `work` must be repeatable without effect.
        """
        if self._refusal:
            raise StoreError(self._refusal)

        def attempt(again: bool) -> None:
            unsure = is_stored if again else None
            if unsure is not None and self._read(unsure):
                return
            try:
                self._write(work)
            except StoreError as error:
                # An earlier commit may have succeeded without an answer: then its keys conflict with these.
                from sqlalchemy.exc import IntegrityError  # noqa: PLC0415 - heavy, and the package imports this module

                conflict = isinstance(error.__cause__, IntegrityError)
                if not conflict or unsure is None or not self._read(unsure):
                    raise

        self._with_retries(attempt)

    def _read(self, work: Callable[[Connection], Result]) -> Result:
        with (
            translate_damage(self.where),
            self._database.translate_errors(self.where),
            self._database.reading.connect() as connection,
        ):
            return work(connection)

    def _write(self, work: Callable[[Connection], None]) -> None:
        for left in reversed(range(MOST_ATTEMPTS)):
            try:
                with (
                    self._database.translate_errors(self.where),
                    self._database.writing.begin() as connection,
                ):
                    work(connection)
            except TransactionConflict:
                self._on_rollback()
                if not left:
                    raise
            except BaseException:
                self._on_rollback()
                raise
            else:
                return

    def _with_retries(self, attempt: Callable[[bool], Result]) -> Result:
        """Call `attempt` with whether this is a repetition; repeat it if the connection was dead."""
        failures = 0
        since = time.monotonic()
        while True:
            try:
                done = attempt(failures > 0)
            except StoreUnreachable as error:
                failures += 1
                if failures > 1:
                    self._wait(error, since, first=failures == 2)
            else:
                if failures > 1 and self._server_wait is not None:
                    self._server_wait.on_change(
                        ServerBack(where=self.where, seconds=time.monotonic() - since)
                    )
                return done

    def _wait(self, error: StoreUnreachable, since: float, *, first: bool) -> None:
        if self._server_wait is None:
            raise error
        if first:
            self._server_wait.on_change(
                ServerUnreachable(where=self.where, why=error.why, seconds=self._server_wait.seconds)
            )
        if time.monotonic() - since >= self._server_wait.seconds:
            raise StoreError(
                f"{self.where}: the server has not answered for {duration(self._server_wait.seconds)} ({error.why}); "
                "start it and repeat the command, which then resumes"
            ) from error
        time.sleep(POLL_SECONDS)
