"""Valid content with errors in many places, for which a reader may raise only perftrail's error."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from itertools import islice, product
from typing import Any

PIECES = (b"NaN", b"1e999", b"9" * 400, b"null", b"{}", b"[" * 5000, b'"', b"\0", b"\xff\xfe", b"")
VALUES: tuple[Any, ...] = (None, True, -1, 10**400, float("nan"), "", "x", [], {}, [None], ["x"], {"x": None})
MOST_PATHS = 150


def shortened(content: bytes, *, every: int = 1) -> Iterator[bytes]:
    """Content that ends in many places."""
    for end in range(0, len(content), every * max(1, len(content) // 40)):
        yield content[:end]


def overwritten(content: bytes, *, every: int = 1) -> Iterator[bytes]:
    """Content with hostile bytes in many places."""
    starts = range(0, len(content), max(1, len(content) // 20))
    for start, piece in islice(product(starts, PIECES), 0, None, every):
        yield content[:start] + piece + content[start + len(piece) % 7 :]


def with_other_json(content: bytes, *, every: int = 1) -> Iterator[bytes]:
    """JSON with one other value, in each of its places; nothing for content that is not JSON."""
    try:
        document = json.loads(content)
    except ValueError:
        return
    places = list(paths(document))[:MOST_PATHS]
    for path, value in islice(product(places, VALUES), 0, None, every):
        yield json.dumps(changed(copy.deepcopy(document), path, value)).encode()


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths to every value, without most elements of long lists."""
    yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, held in list(inside)[:6]:
        yield from paths(held, (*path, key))


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """The value with another one at a path."""
    if not path:
        return new
    value[path[0]] = changed(value[path[0]], path[1:], new)
    return value
