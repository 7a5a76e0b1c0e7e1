"""Copies one store into another, whatever each of them is in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import UsageError
from perftrail.store.copying import Copying
from perftrail.store.databases import looked_at, to_write
from perftrail.store.location import on_server, shown
from perftrail.store.upkeep import guarded

if TYPE_CHECKING:
    from collections.abc import Callable

    from perftrail.store.numbering import Copied


def copy_store(source: str, target: str, *, tell: Callable[[int, int], None] = lambda *_: None) -> Copied:
    """Copy what one store holds at this moment into another, which is made when need be.

    `tell` is told how many invocations are done, and of how many. What differs under the same key is noted in what is
    given back, and left as it is. Raises `NoAnswer` for a source where nothing is kept, `StoreHeld` while another
    perftrail writes to the target's file.
    """
    if _same(source, target):
        raise UsageError(f"{shown(target)}: A and B are the same store; name two")
    with looked_at(source) as connection, guarded(target):
        database = to_write(target)
        try:
            return Copying(connection, database, tell=tell).run()
        finally:
            database.close()


def _same(one: str, other: str) -> bool:
    """Whether two locations are one store, as far as can be told from their names."""
    if on_server(one) or on_server(other):
        return one == other
    return Path(one).resolve() == Path(other).resolve()
