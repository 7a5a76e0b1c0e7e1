"""Reads and writes of a database, each one transaction; a server that went away meanwhile is waited for."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy.exc import IntegrityError

from perftrail.errors import StoreError, StoreUnreachable
from perftrail.model.wording import duration
from perftrail.store.server_outage import Back, Patience, ServerUnreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from sqlalchemy import Connection, Engine


Result = TypeVar("Result")

POLL_SECONDS = 0.5
"""How often a server that is away is asked again."""

TRIES = 5
"""How often a transaction is tried that others' transactions get in the way of."""


class Contended(StoreError):
    """Another transaction got in the way, and this one was undone: it may be tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """A database that holds a store.

    `where` names it in errors. A transaction of `reading` sees one state throughout; one of `writing` is on disk
    when it has ended. `translate_errors` turns the database's errors into a `StoreError`: `StoreUnreachable`
    where a server does not answer, `Contended` where it helps to try again.
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

    With a `refusal` nothing can be written: every attempt raises `StoreError` with that text. `undone` is called
    after each transaction that failed. Without `patience`, a server that is away is an error at once.
    """

    def __init__(
        self,
        database: Database,
        *,
        undone: Callable[[], None],
        refusal: str = "",
        patience: Patience | None = None,
    ) -> None:
        self._database = database
        self._undone = undone
        self._refusal = refusal
        self._patience = patience

    @property
    def where(self) -> str:
        """What the store is called in errors."""
        return self._database.where

    def close(self) -> None:
        """Close every connection."""
        self._database.close()

    def read(self, work: Callable[[Connection], Result]) -> Result:
        """Give what comes of some reads, all of one state of the store."""
        return self._patiently(lambda _: self._read(work))

    def write(
        self, work: Callable[[Connection], None], *, settled: Callable[[Connection], bool] | None = None
    ) -> None:
        """Do some writes, on disk when this returns, or undone.

        A server that goes away during the commit leaves open whether it took place. `settled` says whether what
        was to be written is there; without it, `work` changes nothing when done twice.
        """
        if self._refusal:
            raise StoreError(self._refusal)

        def attempt(again: bool) -> None:
            unsure = settled if again else None
            if unsure is not None and self._read(unsure):
                return
            try:
                self._write(work)
            except StoreError as error:
                # What was committed unseen may come to light only now, by its keys.
                conflict = isinstance(error.__cause__, IntegrityError)
                if not conflict or unsure is None or not self._read(unsure):
                    raise

        self._patiently(attempt)

    def _read(self, work: Callable[[Connection], Result]) -> Result:
        with self._database.translate_errors(self.where), self._database.reading.connect() as connection:
            return work(connection)

    def _write(self, work: Callable[[Connection], None]) -> None:
        for left in reversed(range(TRIES)):
            try:
                with (
                    self._database.translate_errors(self.where),
                    self._database.writing.begin() as connection,
                ):
                    work(connection)
            except Contended:
                self._undone()
                if not left:
                    raise
            except BaseException:
                self._undone()
                raise
            else:
                return

    def _patiently(self, attempt: Callable[[bool], Result]) -> Result:
        """Call `attempt` with whether it was begun before; repeat it if the connection was dead."""
        failures = 0
        since = time.monotonic()
        while True:
            try:
                done = attempt(failures > 0)
            except StoreUnreachable as away:
                failures += 1
                if failures > 1:
                    self._wait(away, since, first=failures == 2)
            else:
                if failures > 1 and self._patience is not None:
                    self._patience.tell(Back(where=self.where, seconds=time.monotonic() - since))
                return done

    def _wait(self, away: StoreUnreachable, since: float, *, first: bool) -> None:
        if self._patience is None:
            raise away
        if first:
            self._patience.tell(
                ServerUnreachable(where=self.where, why=away.why, seconds=self._patience.seconds)
            )
        if time.monotonic() - since >= self._patience.seconds:
            raise StoreError(
                f"{self.where}: the server has not answered for {duration(self._patience.seconds)} ({away.why}); "
                "start it; the same command then resumes"
            ) from away
        time.sleep(POLL_SECONDS)
