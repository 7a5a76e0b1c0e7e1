"""How searches and their steps go into the tables and come out of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import select, update

from perftrail.store import schema
from perftrail.store.accepted import identifier, storable, to_json, unknown_machine, unknown_search
from perftrail.store.inserting import insert_or_replace, insert_unless_there
from perftrail.store.rows import search_from_row, step_from_row

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import Connection

    from perftrail.model.search_record import Json, SearchRecord, StepRecord
    from perftrail.store.outcomes import Interned


def search_row(record: SearchRecord) -> dict[str, object]:
    """Give a search's own columns. Raises `StoreError` for what is not plain data."""
    key = identifier(record.key, "search")
    what = f"search {key}"
    return {
        "key": key,
        "question": to_json(dict(record.question), what),
        "started": storable(record.started),
        "answer": None if record.answer is None else to_json(dict(record.answer), what),
    }


def answer_text(key: str, answer: Mapping[str, Json]) -> str:
    """Give an answer as it is kept. Raises `StoreError` for what is not plain data."""
    return to_json(dict(answer), f"search {key}")


def step_row(key: str, step: StepRecord) -> dict[str, object]:
    """Give a step's own columns. Raises `StoreError` for what is not plain data."""
    where = f"search {key}, step {step.number}"
    return {
        "action": to_json(dict(step.action), where),
        "news": to_json(dict(step.news), where),
        "belief": to_json(dict(step.belief), where),
        "words": storable(step.words),
    }


class Searches:
    """The searches of a store; `where` names it in errors."""

    def __init__(self, interned: Interned, *, where: str) -> None:
        self._interned = interned
        self._where = where

    def begin(self, connection: Connection, row: Mapping[str, object], machine: str, version: int) -> None:
        """Insert a search unless it is there. Raises `StoreError` for an unknown machine."""
        machine_id = self._interned.machines.find(connection, machine)
        if machine_id is None:
            raise unknown_machine(machine, self._where)
        if self._find(connection, str(row["key"]), machine) is None:
            new = insert_unless_there(connection, schema.search)
            connection.execute(new.values(**row, machine_id=machine_id, perftrail_id=version))

    def answer(self, connection: Connection, key: str, machine: str, text: str) -> None:
        """Set a search's answer. Raises `StoreError` when it was never begun."""
        table = schema.search
        search = self._begun(connection, key, machine)
        connection.execute(update(table).where(table.c.id == search).values(answer=text))

    def step(
        self, connection: Connection, key: str, machine: str, number: int, row: Mapping[str, object]
    ) -> None:
        """Insert or replace a step. Raises `StoreError` when its search was never begun."""
        search = self._begun(connection, key, machine)
        new = insert_or_replace(connection, schema.step, row)
        connection.execute(new.values(**row, search_id=search, number=number))

    def every(self, connection: Connection) -> Sequence[SearchRecord]:
        """Give every search, the one begun last at the end."""
        table = schema.search
        wanted = select(table, schema.machine.c.fingerprint).join_from(table, schema.machine)
        rows = connection.execute(wanted.order_by(table.c.id)).all()
        return [search_from_row(row) for row in rows]

    def steps(self, connection: Connection, key: str, machine: str) -> Sequence[StepRecord]:
        """Give the steps of a search in order; none when there is no such search."""
        table = schema.step
        search = self._find(connection, key, machine)
        wanted = select(table).where(table.c.search_id == search).order_by(table.c.number)
        rows: Sequence[Any] = connection.execute(wanted).all()
        return [step_from_row(row) for row in rows]

    def _find(self, connection: Connection, key: str, machine: str) -> int | None:
        if key != storable(key):
            return None
        table = schema.search
        machine_id = self._interned.machines.find(connection, machine)
        return connection.scalar(
            select(table.c.id).where(table.c.key == key, table.c.machine_id == machine_id)
        )

    def _begun(self, connection: Connection, key: str, machine: str) -> int:
        found = self._find(connection, key, machine)
        if found is None:
            raise unknown_search(key, machine, self._where)
        return found
