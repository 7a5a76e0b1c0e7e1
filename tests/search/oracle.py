"""A simulated history that performs the actions of a search."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from perftrail.search import Batch, Built, Measure, Sample, Search, Unusable
from perftrail.search.guide import Guide

if TYPE_CHECKING:
    from collections.abc import Callable

    from perftrail.search import Action, Answer, Observation, Question
    from perftrail.search.posterior import Posterior

    Level = Callable[[int], float | None]
    Noise = Callable[[int], float]


class Searching(Protocol):
    """A search: it gets results and asks for the next action."""

    def tell(self, observation: Observation) -> None: ...

    def ask(self) -> Action: ...


@dataclass
class Oracle:
    """Performs the actions of a search, and records its observations.

    `level` of a position, `None` for one that cannot be built; `noise` of the next sample of a position; `layout` of a
    position under a seed; `content` is equal for revisions whose artefacts are.
    """

    level: Level
    noise: Noise = lambda position: 0.0
    layout: Callable[[int, int], float] = lambda position, seed: 0.0
    content: Callable[[int], int] = lambda position: position
    relink_seconds: float = 0.5
    build_seconds: float = 10.0
    observations: list[Observation] = field(default_factory=list)
    built: dict[int, int] = field(default_factory=dict)

    def perform(self, action: Measure) -> list[Observation]:
        """Build missing revisions, then take all samples in order; stop at a build that fails."""
        observations: list[Observation] = []
        for position in action.positions:
            if self.level(position) is None:
                return [*observations, Unusable(position=position, seconds=self.build_seconds)]
            if position not in self.built:
                content = self.content(position)
                same = next((each for each, own in self.built.items() if own == content), None)
                self.built[position] = content
                observations.append(Built(position=position, seconds=self.build_seconds, same_as=same))
        samples = tuple(self.sample(position, action.layout) for position in action.order)
        return [
            *observations,
            Batch(
                samples=samples,
                seconds=float(len(samples)),
                layout=action.layout,
                relink_seconds=self.relink_seconds * len(action.positions) if action.layout else 0.0,
                certificate=action.certificate,
            ),
        ]

    def sample(self, position: int, layout: int = 0) -> Sample:
        level = self.level(position)
        assert level is not None
        return Sample(
            position=position, value=math.exp(level + self.layout(position, layout) + self.noise(position))
        )

    def settle(self, question: Question | Searching, most: int = 800) -> Answer:
        """Settle a search, or a new search for a question, and return its answer."""
        search: Searching = question if hasattr(question, "ask") else Search(question)  # type: ignore[assignment]  # one or the other
        for _ in range(most):
            action = search.ask()
            if not isinstance(action, Measure):
                return action.answer
            for observation in self.perform(action):
                self.observations.append(observation)
                search.tell(observation)
        raise AssertionError("the search never settles")

    @property
    def batches(self) -> list[Batch]:
        """The rounds."""
        return [each for each in self.observations if isinstance(each, Batch) and each.certificate]

    @property
    def builds(self) -> int:
        """The number of revisions whose build was tried."""
        return len(
            {
                observation.position
                for observation in self.observations
                if isinstance(observation, Built | Unusable)
            }
        )

    @property
    def sample_count(self) -> int:
        """The number of samples."""
        return sum(
            len(observation.samples) for observation in self.observations if isinstance(observation, Batch)
        )


def step(culprit: int, size: float, broken: frozenset[int] = frozenset()) -> Level:
    return steps((culprit, size), broken=broken)


def steps(*changes: tuple[int, float], broken: frozenset[int] = frozenset()) -> Level:
    def level(position: int) -> float | None:
        return None if position in broken else 1.0 + sum(size for at, size in changes if position >= at)

    return level


def normal(seed: int, sigma: float) -> Noise:
    rng = np.random.default_rng(seed)
    return lambda position: float(rng.normal(0, sigma))


def layouts(seed: int, tau: float) -> Callable[[int, int], float]:
    """Return a random effect of layout for each position and seed."""
    return lambda position, layout: float(np.random.default_rng([seed, position, layout]).normal(0, tau))


def batch(*samples: tuple[int, float], certificate: bool = False, layout: int = 0) -> Batch:
    all_samples = tuple(Sample(position=position, value=math.exp(value)) for position, value in samples)
    return Batch(samples=all_samples, seconds=float(len(all_samples)), certificate=certificate, layout=layout)


def posterior_of(search: Search) -> Posterior:
    """Return the belief of the guide, given the evidence of a search."""
    return Guide(search.question, search.evidence).posterior


def search_after(question: Question, *observations: Observation) -> Search:
    """Return a search with these observations."""
    search = Search(question)
    for each in observations:
        search.tell(each)
    return search
