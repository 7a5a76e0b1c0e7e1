"""The time of day, as it is written into the store."""

from __future__ import annotations

import datetime


def now() -> str:
    """The time in UTC to the millisecond, ISO 8601."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
