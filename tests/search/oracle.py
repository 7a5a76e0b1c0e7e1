"""A world without surprises, to search in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from perftrail.search import Answer, Block, Measure, Readings, Search, Settled, Unusable

if TYPE_CHECKING:
    from collections.abc import Callable

    from perftrail.search import News, Question


@dataclass
class Oracle:
    """Answers a search: `level` of a position, `None` for one that cannot be built; keeps what it told."""

    level: Callable[[int], float | None]
    noise: Callable[[], float] = lambda: 0.0
    told: list[News] = field(default_factory=list)

    def news(self, action: Measure) -> News:
        level = self.level(action.position)
        if level is None:
            return Unusable(position=action.position, seconds=10.0)
        values = tuple(level + self.noise() for _ in range(action.readings))
        return Readings(
            position=action.position, values=values, build_seconds=10.0, seconds=float(action.readings)
        )

    def settle(self, question: Question, most: int = 2000) -> Answer:
        search = Search(question)
        for _ in range(most):
            action = search.ask()
            if isinstance(action, Settled):
                return action.answer
            news = self.news(action)
            self.told.append(news)
            search.tell(news)
        raise AssertionError("the search never settles")

    @property
    def builds(self) -> int:
        return len({news.position for news in self.told if not isinstance(news, Block)})


def step(culprit: int, size: float, broken: frozenset[int] = frozenset()) -> Callable[[int], float | None]:
    def level(position: int) -> float | None:
        if position in broken:
            return None
        return 1.0 + (size if position >= culprit else 0.0)

    return level
