"""Finds the place of a date in a history, whose own dates need not be in order."""

from __future__ import annotations

import re
from datetime import UTC, datetime, time
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

Edge = Literal["start", "end"]

_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:Z|[+-]\d\d:\d\d)?)?")
_DAY_LETTERS = len("2024-06-30")


def moment(text: str, *, edge: Edge) -> datetime | None:
    """Read a day, of which `edge` is meant, or a day and a time; UTC unless it says otherwise.

    >>> str(moment("2024-06-30", edge="end")), moment("v2024-06-30", edge="end")
    ('2024-06-30 23:59:59.999999+00:00', None)
    """
    if _DATE.fullmatch(text) is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    if len(text) == _DAY_LETTERS and edge == "end":
        found = datetime.combine(found, time.max)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def so_many_by(at: datetime, times: Sequence[str]) -> int:
    """Say how many of a line's revisions, oldest first, there were at a moment, by their ISO 8601 times.

    Some clocks were wrong: the line is cut where the fewest are on the side that their date contradicts.

    >>> so_many_by(datetime(2024, 1, 2, tzinfo=UTC), ["2024-01-01", "1970-01-01", "2024-01-03", "1970-01-01"])
    2
    """
    best = so_far = place = 0
    for number, each in enumerate(times, start=1):
        date = moment(each, edge="start")
        so_far += -1 if date is None or date <= at else 1
        if so_far < best:
            best, place = so_far, number
    return place
