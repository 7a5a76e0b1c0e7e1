"""The numbers that stand for texts in a store that rows are copied into, and what such a copy did."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from perftrail.errors import StoreError
from perftrail.store import schema
from perftrail.store.content import TEXTS
from perftrail.store.names import Names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Connection

    from perftrail.model.search_record import Json

NAMED = (
    (schema.perftrail, "version"),
    (schema.runnable, "key"),
    (schema.metric, "name"),
    (schema.method, "name"),
    (schema.block, "name"),
)
"""The tables whose rows are a text and the number that stands for it."""

MOST_NAMED = 5
"""How many differences an error names."""


class Numbering:
    """The numbers that stand for texts in one store."""

    def __init__(self) -> None:
        self.names = {table.name: Names(table, column) for table, column in NAMED}
        self.names["machine"] = Names(schema.machine, "fingerprint")

    def row(self, connection: Connection, named: Mapping[str, Any]) -> dict[str, Any]:
        """Give a row as `named_rows` has it with numbers in place of its texts."""
        numbers = {
            column: self.names[table.name].find(connection, named[column])
            for column, (table, _) in TEXTS.items()
            if named.get(column) is not None
        }
        return {**named, **numbers}

    def find(self, connection: Connection, table: str, text: str | None) -> int | None:
        """Give the number of a text of a table; none for none."""
        return None if text is None else self.names[table].find(connection, text)

    def forget(self) -> None:
        """Remember nothing, after a transaction that was undone."""
        for names in self.names.values():
            names.forget()


@dataclass(slots=True)
class Copied:
    """What a copy did, by kind of row: how many it added, how many were there; and what differs, in words."""

    added: Counter[str] = field(default_factory=Counter)
    there: Counter[str] = field(default_factory=Counter)
    differs: list[str] = field(default_factory=list)

    def count(self, kind: str, *, added: int, of: int) -> None:
        """Note how many rows were added of those that should be there."""
        self.added[kind] += added
        self.there[kind] += of - added

    def include(self, other: Copied) -> None:
        """Note what another part of the same copy did."""
        self.added.update(other.added)
        self.there.update(other.there)
        self.differs += other.differs

    def refuse_differences(self, where: str) -> None:
        """Raise `StoreError` that names what differs, if anything does; all else has been copied."""
        if self.differs:
            more = len(self.differs) - MOST_NAMED
            raise StoreError(
                f"{where}: it holds something else already as {'; as '.join(self.differs[:MOST_NAMED])}"
                f"{f'; and {more} more' if more > 0 else ''}; that was left as it is, all else was copied"
            )

    def as_json(self) -> dict[str, Json]:
        """As `store copy --json` prints it."""
        return {"added": dict(self.added), "there": dict(self.there)}
