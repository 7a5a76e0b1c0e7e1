"""The time of day, as the store keeps it."""

from __future__ import annotations

import datetime


def now() -> str:
    """Return the current UTC time to the millisecond, ISO 8601."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
