"""Version 4: stored questions and answers get the present keys of `find --json`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from sqlalchemy import Column, Integer, MetaData, Table, Text, select, update

if TYPE_CHECKING:
    from sqlalchemy import Connection

SEARCH = Table(
    "search",
    MetaData(),
    Column("id", Integer, primary_key=True),
    Column("question", Text, nullable=False),
    Column("answer", Text),
)

OF_QUESTIONS = {"smallest": "threshold"}
OF_ANSWERS = {
    "smallest_seen": "minimum_detectable",
    "strays": "outliers",
    "set_aside": "discarded",
    "marked": "noisy",
    "broke": "broken_ranges",
    "elsewhere": "other_machines",
}


def apply(connection: Connection) -> None:
    """Rename the keys in every search."""
    for row in connection.execute(select(SEARCH)).all():
        values = {"question": _renamed(row.question, OF_QUESTIONS)}
        if row.answer is not None:
            values["answer"] = _renamed(row.answer, OF_ANSWERS)
        connection.execute(update(SEARCH).where(SEARCH.c.id == row.id).values(values))


def _renamed(text: str, names: dict[str, str]) -> str:
    """Rename keys everywhere in a JSON document."""
    return json.dumps(
        json.loads(text, object_hook=lambda found: {names.get(key, key): each for key, each in found.items()})
    )
