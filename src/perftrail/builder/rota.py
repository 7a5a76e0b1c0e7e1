"""Which of the subjects that wait each hand makes next: neighbours in one tree, where little is to be made again."""

from __future__ import annotations

from typing import Generic, TypeVar

Work = TypeVar("Work")


class Rota(Generic[Work]):
    """Work in the order it came, given out to hands in stretches: each goes on where it was.

    A hand that cannot takes the beginning of the longest stretch that waits, or its middle where another hand is
    about to come to the beginning.
    """

    def __init__(self) -> None:
        self._waiting: dict[int, Work] = {}
        self._came = 0
        self._at: dict[int, int] = {}

    def add(self, work: Work) -> None:
        """Let work wait, after all that came before."""
        self._waiting[self._came] = work
        self._came += 1

    def take(self, hand: int) -> Work:
        """Give a hand, by its number, what it makes next. Raises `LookupError` when nothing waits."""
        following = self._at.get(hand, self._came) + 1
        place = following if following in self._waiting else self._elsewhere()
        self._at[hand] = place
        return self._waiting.pop(place)

    def _elsewhere(self) -> int:
        if not self._waiting:
            raise LookupError("nothing waits")
        stretches: list[list[int]] = []
        for place in self._waiting:
            if stretches and place == stretches[-1][-1] + 1:
                stretches[-1].append(place)
            else:
                stretches.append([place])
        longest = max(stretches, key=len)
        return longest[len(longest) // 2 if longest[0] - 1 in self._at.values() else 0]
