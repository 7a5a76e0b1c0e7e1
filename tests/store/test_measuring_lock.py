"""The measuring lock of a machine when its holder releases it at the same moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from perftrail.store.lock import TRY_LOCK, MachineLock

if TYPE_CHECKING:
    from collections.abc import Sequence

    import psycopg

    from perftrail.store.lock import Holder


class FakeConnection:
    """A server that grants the lock at the last of some attempts and reports no holder before."""

    def __init__(self, taken: Sequence[bool]) -> None:
        self._taken = list(taken)
        self._row: tuple[Any, ...] | None = None

    def execute(self, statement: str, _: Sequence[object]) -> FakeConnection:
        self._row = (self._taken.pop(0),) if statement == TRY_LOCK else None
        return self

    def fetchone(self) -> tuple[Any, ...] | None:
        return self._row


@pytest.mark.parametrize("again", [False, True])
def test_a_lock_that_was_just_released_has_no_holder(again: bool) -> None:
    events: list[Holder] = []
    turn = MachineLock("0123456789abcdef", where="postgresql://db/x", wait=False, on_wait=events.append)
    if again:
        take(turn, [True])
    take(turn, [False, False, True])
    assert events == []


def take(turn: MachineLock, taken: Sequence[bool]) -> None:
    turn.acquire(cast("psycopg.Connection", FakeConnection(taken)))
