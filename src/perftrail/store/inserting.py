"""How rows are inserted where SQL has no word for what every database can do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import ARRAY, bindparam, func, insert, select
from sqlalchemy.dialects import postgresql, sqlite

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sqlalchemy import Connection, Table

    Insert = postgresql.Insert | sqlite.Insert


def insert_unless_there(connection: Connection, table: Table) -> Insert:
    """Give an insert that does nothing where its row's key is there, once whoever is putting it there is done."""
    return _insert(connection, table).on_conflict_do_nothing()


def insert_or_replace(connection: Connection, table: Table, columns: Iterable[str]) -> Insert:
    """Give an insert that replaces some columns where its row's primary key is there."""
    new = _insert(connection, table)
    replaced = {name: new.excluded[name] for name in columns}
    return new.on_conflict_do_update(index_elements=list(table.primary_key), set_=replaced)


def insert_many(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows that all have the same columns: to a server as a list for each column, in one statement."""
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
    return postgresql.insert(table) if _on_server(connection) else sqlite.insert(table)


def _on_server(connection: Connection) -> bool:
    return connection.dialect.name == "postgresql"
