"""Look up the integer ids of texts once, and cache them.

Also build insert statements that are the same for every database.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import ARRAY, bindparam, func, insert, select
from sqlalchemy.dialects import sqlite

from perftrail.store.rows import storable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from sqlalchemy import ColumnElement, Connection, Table
    from sqlalchemy.dialects import postgresql

    Insert = postgresql.Insert | sqlite.Insert


def insert_unless_exists(connection: Connection, table: Table) -> Insert:
    """Return an insert that does nothing if the row's key exists; it waits for a concurrent insert."""
    return _insert(connection, table).on_conflict_do_nothing()


def insert_or_replace(connection: Connection, table: Table, columns: Iterable[str]) -> Insert:
    """Return an insert that updates some columns if the row's primary key exists."""
    new = _insert(connection, table)
    replaced = {name: new.excluded[name] for name in columns}
    return new.on_conflict_do_update(index_elements=list(table.primary_key), set_=replaced)


def insert_many(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows with the same columns; on a server, in one statement with a list for each column."""
    if not rows:
        return
    if not _on_server(connection):
        connection.execute(insert(table), rows)
        return
    names = list(rows[0])
    lists = (func.unnest(bindparam(name, type_=ARRAY(table.c[name].type))) for name in names)
    connection.execute(
        insert(table).from_select(names, select(*lists)),
        {name: [row[name] for row in rows] for name in names},
    )


def _insert(connection: Connection, table: Table) -> Insert:
    if not _on_server(connection):
        return sqlite.insert(table)
    from sqlalchemy.dialects import postgresql  # noqa: PLC0415 - 0.1 s, for users of a server only

    return postgresql.insert(table)


def _on_server(connection: Connection) -> bool:
    return connection.dialect.name == "postgresql"


Item = TypeVar("Item")

CHUNK = 500
"""Number of texts or ids in one statement, within every database's limit of parameters."""


class TextIds:
    """The ids of one table's texts, cached until `forget` after a failed transaction."""

    def __init__(self, table: Table, text: ColumnElement[str]) -> None:
        self._table = table
        self._text = text
        self._known: dict[str, int] = {}

    def find(self, connection: Connection, text: str) -> int | None:
        """Return the id of a text; `None` if the table lacks it."""
        known = self._known.get(text)
        return self.find_all(connection, [text]).get(text) if known is None else known

    def find_all(self, connection: Connection, texts: Collection[str]) -> dict[str, int]:
        """Return the ids of those texts that the table has."""
        # A database rejects queries for texts that it cannot store.
        for chunk in chunks([text for text in texts if text not in self._known and text == storable(text)]):
            rows = connection.execute(select(self._text, self._table.c.id).where(self._text.in_(chunk)))
            self._known.update((text, number) for text, number in rows)
        return {text: self._known[text] for text in texts if text in self._known}

    def intern(self, connection: Connection, text: str) -> int:
        """Return the id of a text, and insert the text if necessary."""
        found = self.find(connection, text)
        if found is not None:
            return found
        added = insert_unless_exists(connection, self._table).values({self._text: text})
        id = connection.scalars(added.returning(self._table.c.id)).one_or_none()
        if id is None:  # another writer has just inserted it
            id = self.find_all(connection, [text])[text]
        self._known[text] = id
        return id

    def intern_all(self, connection: Connection, texts: Iterable[str]) -> None:
        """Insert missing texts, always in the same order, so that two writers never wait for each other."""
        wanted = sorted(set(texts))
        self.find_all(connection, wanted)
        for text in wanted:
            self.intern(connection, text)

    def by_id(self, connection: Connection) -> dict[int, str]:
        """Return every text of the table by its id."""
        return dict(connection.execute(select(self._table.c.id, self._text)).all())

    def forget_beyond(self, most: int) -> None:
        """Clear the cache if it has more than `most` ids, for texts that are rarely looked up again."""
        if len(self._known) > most:
            self.forget()

    def forget(self) -> None:
        """Clear the cache, because ids of a rolled back transaction are invalid."""
        self._known.clear()


def chunks(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """Split a sequence into pieces for one statement each."""
    for first in range(0, len(items), CHUNK):
        yield items[first : first + CHUNK]
