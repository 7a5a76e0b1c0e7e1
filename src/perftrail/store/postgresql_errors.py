"""Translate errors of a PostgreSQL server for people, and recognise an unreachable server."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

import psycopg
from sqlalchemy.exc import DBAPIError

from perftrail.errors import StoreError, StoreUnreachable
from perftrail.store.transactions import Contended

if TYPE_CHECKING:
    from collections.abc import Iterator

REFUSALS = {
    "password": (
        "give the right one in PGPASSWORD, or in ~/.pgpass, which only you may be able to read (chmod 600); "
        "is the user right?"
    ),
    "no pg_hba.conf entry": "the server lets this user in from elsewhere only; its pg_hba.conf says who may",
    "authentication": "the server does not know you as this user; name another, or see its pg_hba.conf",
    "database .* does not exist": "make it (createdb NAME), or name another with --store",
    "role .* does not exist": "name a user that the server knows: postgresql://USER@HOST/DATABASE",
    "role .* is not permitted to log in": "name another user: postgresql://USER@HOST/DATABASE",
    "SSL|certificate|sslmode": "see what sslmode and sslrootcert in the address ask for, and what the server has",
    "permission denied for database": "have its owner run GRANT CONNECT ON DATABASE for you, or name another",
    "^invalid": "correct it in the address, or in the variables whose names begin with PG",
}
"""Texts of errors that waiting does not cure, with remedies; the first match counts."""

ABSENCES = {
    "failed to resolve host": "is the host's name right, and is there a network?",
    "too many|remaining connection slots": "wait for others to end, or raise the server's max_connections",
    "starting up|shutting down|recovery mode|not yet accepting": "wait until it has started, and try again",
    "": "is the server running, and is its address right?",
}
"""Texts of errors of an unreachable server, with remedies; the first match counts."""

REMEDIES = {
    "42501": (
        "you may not do that there; have the database's owner run GRANT CREATE, USAGE ON SCHEMA public, or name a "
        "database of your own (createdb -O USER NAME)"
    ),
    "25006": "this server can only be read, it follows another: name that one with --store",
    "53100": "the server's disk is full; make room and start again, everything up to here is kept",
    "53200": "the server is out of memory; start again when it is not, everything up to here is kept",
    "54000": "a name or the values of a point are longer than its indexes take, 2700 bytes; shorten them",
    "55P03": "another program keeps the tables locked; wait for it, or stop it",
    "57014": "the server's statement_timeout or its administrator ended this; raise that time for this user",
    "XX001": "the store is damaged; restore a backup (perftrail store restore)",
    "XX002": "the store is damaged; restore a backup (perftrail store restore)",
    "58": "the server's disk answered with an error; see its log",
}
"""Remedies for errors of the server, by the beginning of their codes."""

GONE = ("08", "57P01", "57P02", "57P03", "53300")
"""Beginnings of the codes of errors that mean an unreachable server."""

CONTENDED = ("40001", "40P01")
"""Codes of a transaction that was undone because of another one."""


@contextmanager
def translate_errors(where: str) -> Iterator[None]:
    """Return a server's error as a `StoreError` with the location, the reason and the remedy."""
    try:
        yield
    except DBAPIError as error:
        if not isinstance(error.orig, psycopg.Error):  # of a file that is copied from
            raise
        raise _explained(where, error.orig) from error
    except psycopg.Error as error:
        raise _explained(where, error) from error


def _explained(where: str, error: BaseException | None) -> StoreError:
    code = getattr(error, "sqlstate", None) or ""
    why = _first_line(error)
    if code in CONTENDED:
        return Contended(f"{where}: {why}: others write at the same time; start again")
    if isinstance(error, psycopg.OperationalError) and (not code or code.startswith(GONE)):
        refused = _fitting(why, REFUSALS)
        if refused is not None:
            return StoreError(f"{where}: {why}: {refused}")
        return StoreUnreachable(f"{where}: {why}: {_fitting(why, ABSENCES)}", why=why)
    known = next((remedy for prefix, remedy in REMEDIES.items() if code.startswith(prefix)), None)
    kind = code or type(error).__name__
    return StoreError(
        f"{where}: {why}: {known or f'this is a defect of perftrail ({kind}); please report it'}"
    )


def _fitting(why: str, remedies: dict[str, str]) -> str | None:
    return next((remedy for pattern, remedy in remedies.items() if re.search(pattern, why)), None)


def _first_line(error: BaseException | None) -> str:
    """Return the server's own text, without psycopg's prefix."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return re.sub(r"^connection (failed|is bad): |FATAL:  ", "", lines[0])
