"""Puts tagged revisions in order: by version, as far as ancestry leaves a choice."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def version_key(tag: str) -> list[tuple[int, str]]:
    """Give a key that sorts tags as versions: what is a number by its size.

    >>> sorted(["v1.10", "v1.9"], key=version_key)
    ['v1.9', 'v1.10']
    """
    return [(int(part) if part.isdecimal() else -1, part) for part in re.split(r"(\d+)", tag)]


def highest(tags: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Give each revision's tag, of several the one given last, in the order of these.

    >>> highest([("one", "v1"), ("two", "v2"), ("one", "v3")])
    {'two': 'v2', 'one': 'v3'}
    """
    found: dict[str, str] = {}
    for id_, tag in tags:
        found.pop(id_, None)
        found[id_] = tag
    return found


def by_ancestry(ids: Sequence[str], history: Iterable[tuple[str, Sequence[str]]]) -> list[str]:
    """Keep the order of ids, except that what contains another one comes after it.

    `history` is all that they contain, each revision with its parents and after them.

    >>> by_ancestry(["new", "side", "old"], [("old", []), ("new", ["old"]), ("side", ["old"])])
    ['old', 'new', 'side']
    """
    own = {id_: 1 << number for number, id_ in enumerate(ids)}
    contains: dict[str, int] = {}
    for id_, parents in history:
        held = own.get(id_, 0)
        for parent in parents:
            held |= contains.get(parent, 0)
        contains[id_] = held
    order, done, left = [], 0, list(own)
    while left:
        following = next(id_ for id_ in left if not contains[id_] & ~own[id_] & ~done)
        left.remove(following)
        order.append(following)
        done |= own[following]
    return order
