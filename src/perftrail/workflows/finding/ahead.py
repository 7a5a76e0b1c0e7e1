"""Which revisions a search is likely to ask for next, so that they are built along with the one it asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator


def likely(position: int, tried: Collection[int], *, revisions: int) -> Iterator[int]:
    """Give the positions that may be asked for after one, the likeliest first; none of them was tried.

    That is the other end of the history where it was not tried yet, and then, whatever comes of the position,
    the middle of what is left on one of its sides, and the middles of what those leave.
    """
    before = max((each for each in tried if each < position), default=-1)
    after = min((each for each in tried if each > position), default=revisions)
    pieces = [(before, position), (position, after)]
    if before == -1 and position > 0:
        yield 0
        pieces[0] = (0, position)
    if after == revisions and position < revisions - 1:
        yield revisions - 1
        pieces[1] = (position, revisions - 1)
    while True:
        low, high = max(pieces, key=lambda piece: piece[1] - piece[0])
        if high - low < 2:
            return
        middle = (low + high) // 2
        yield middle
        pieces.remove((low, high))
        pieces += [(low, middle), (middle, high)]
