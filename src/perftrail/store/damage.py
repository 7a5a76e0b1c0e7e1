"""Errors for stores whose content perftrail cannot read."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from perftrail.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator

DAMAGED = "the store is damaged; restore a copy, or move it away and measure again"
"""Remedy for a store whose content cannot be read."""

REPORT = "if nothing can have damaged it, please report this error"
"""Ending of an error that a wrong conversion could also cause."""

UNREADABLE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""Errors of code that converts rows with unexpected content."""


@contextmanager
def translate_damage(where: str) -> Iterator[None]:
    """Raise the error of a row with unexpected content as a `StoreError` with the location and the remedy."""
    try:
        yield
    except UNREADABLE as error:
        reason = f"{error} does not exist" if isinstance(error, KeyError) else str(error)
        raise StoreError(
            f"{where}: some of its rows cannot be read ({reason}): {DAMAGED}; {REPORT}"
        ) from error
