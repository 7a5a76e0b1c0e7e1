"""Reads values out of manifests, whose authors may have written anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def table(within: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    """Give a table inside tables, an empty one when there is none.

    >>> table({"a": {"b": {"c": 1}}}, "a", "b"), table({"a": []}, "a", "b")
    ({'c': 1}, {})
    """
    found: object = within
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def text(value: object) -> str:
    """Give a value if it is text, else nothing."""
    return value if isinstance(value, str) else ""


def names(value: object) -> tuple[str, ...]:
    """Give the texts of a list, nothing when it is none."""
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()
