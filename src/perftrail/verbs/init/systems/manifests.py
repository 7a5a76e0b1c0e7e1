"""Read values out of manifests, which may contain anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def table(within: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    """Return a table inside tables, an empty one if there is none.

    >>> table({"a": {"b": {"c": 1}}}, "a", "b"), table({"a": []}, "a", "b")
    ({'c': 1}, {})
    """
    found: object = within
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def text(value: object) -> str:
    """Return a value if it is text, else empty text."""
    return value if isinstance(value, str) else ""


def names(value: object) -> tuple[str, ...]:
    """Return the texts of a list, empty for other values."""
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()
