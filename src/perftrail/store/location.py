"""Locations of stores: a file, or a database of a PostgreSQL server, whose secrets are never shown."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote, urlencode

from perftrail.errors import UsageError

SERVERS = ("postgresql://", "postgres://")

HARMLESS = {
    *("host", "hostaddr", "port", "dbname", "user", "options", "service", "passfile", "connect_timeout"),
    *("target_session_attrs", "load_balance_hosts", "channel_binding", "gssencmode"),
    *("sslmode", "sslcert", "sslkey", "sslrootcert", "sslcrl", "sslcrldir"),
}
"""Parameters of an address that messages may contain; a misspelt one could contain a password."""

HIDDEN = "postgresql://…"
"""Text for an address whose password cannot be separated."""

ADDRESS = re.compile(
    r"postgres(?:ql)?://(?:(?P<user>[^:@/?]*)(?::(?P<password>[^@/]*))?@)?"
    r"(?P<hosts>[^/?@]*)(?:/(?P<database>[^?@]*))?(?:\?(?P<query>[^@]*))?"
)
"""Addresses that libpq accepts, except those in which an @ or a / is ambiguous."""

HOST = re.compile(r"(?:\[[0-9A-Fa-f:.%]*\]|[^:\[\]]*)(?::[0-9]*)?")

SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def on_server(location: str) -> bool:
    """Return whether a store is in a server's database."""
    return location.startswith(SERVERS)


def parse_server(named: str | None) -> str | None:
    """Return the server's address in `--store`; `None` for a directory or nothing.

    Raises `UsageError` for another kind of address, and for one that cannot be parsed.
    """
    if named is None or not SCHEME.match(named):
        return None
    if not on_server(named):
        scheme = named.partition("://")[0]
        raise UsageError(
            f"--store {scheme}://…: results are in a directory, or in PostgreSQL: "
            "postgresql://USER@HOST/DATABASE"
        )
    if _parts(named) is None:
        raise UsageError(
            f"--store {HIDDEN}: this is not an address such as postgresql://USER@HOST:5432/DATABASE; in a user name "
            "or a password, write %40 for @, %2F for / and %3A for : (or better, use ~/.pgpass for the password)"
        )
    return named


def shown(location: str) -> str:
    """Return the location of a store for people and files: the address of a server without password.

    >>> shown("postgresql://ada:secret@db:5433/tcl?sslmode=require&password=secret")
    'postgresql://ada@db:5433/tcl?sslmode=require'
    >>> shown("postgresql:///tcl?host=/run/postgresql&options=-csearch_path%3Dold&passwrd=secret")
    'postgresql:///tcl?host=/run/postgresql&options=-csearch_path%3Dold'
    >>> shown("postgresql://ada:sec/ret@db/tcl")
    'postgresql://…'
    >>> shown("/srv/tcl/results.db")
    '/srv/tcl/results.db'
    """
    if not on_server(location):
        return location
    parts = _parts(location)
    if parts is None:
        return HIDDEN
    user = f"{parts['user']}@" if parts["user"] else ""
    database = f"/{parts['database']}" if parts["database"] else ""
    kept = [(name, value) for name, value in parameters(location) if name in HARMLESS]
    query = f"?{urlencode(kept, safe='/:,', quote_via=quote)}" if kept else ""
    return f"postgresql://{user}{parts['hosts']}{database}{query}"


def parameters(location: str) -> list[tuple[str, str]]:
    """Return the parameters after the question mark of a server's address."""
    parts = _parts(location)
    query = (parts or {}).get("query") or ""
    named = (each.partition("=") for each in query.split("&") if each)
    return [(unquote(name), unquote(value)) for name, _, value in named]


def without_secrets(word: str) -> str:
    """Return a word of a command line with the server's address as `shown` returns it.

    >>> without_secrets("--store=postgresql://ada:secret@db/tcl")
    '--store=postgresql://ada@db/tcl'
    """
    before, scheme, rest = word.partition(next((each for each in SERVERS if each in word), "://"))
    return before + shown(scheme + rest) if scheme in SERVERS else word


def _parts(location: str) -> dict[str, str | None] | None:
    """Split an address; `None` if a part of its password could be mistaken for another part."""
    found = ADDRESS.fullmatch(location)
    if found is None or not location.isprintable():
        return None
    parts: dict[str, str | None] = found.groupdict()
    hosts = (parts["hosts"] or "").split(",")
    return parts if all(HOST.fullmatch(host) for host in hosts) else None
