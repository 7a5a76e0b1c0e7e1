"""`find` over fakes: on a drifting machine, and on histories with a ramp and a step."""

from __future__ import annotations

import math
import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from perftrail.find.answer import FindAnswer, FindRequest
from perftrail.find.find import Find
from perftrail.model.target import resolve
from perftrail.search.answer import Verdict
from perftrail.search.budget import Budget
from tests.fakes.subject_builder import FakeSource, FakeStarter, number_of
from tests.measure.fake_session import a_session, a_study, drain

SIGMA = 0.015
REVISIONS = 200
STUDY = a_study()


def still(_: random.Random) -> float:
    return 0.0


def drifting(chance: random.Random) -> float:
    """A machine whose level changes randomly by a third of the noise at each invocation."""
    return chance.gauss(0.0, SIGMA / 3)


@dataclass
class World:
    """Logarithms of levels by position, and a machine that drifts from invocation to invocation."""

    level: Callable[[int], float]
    seed: int
    moves: Callable[[random.Random], float] = still
    sigma: float = SIGMA
    tau: float = 0.3 * SIGMA
    _machine: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)
        self._layout = [self._chance.gauss(0.0, self.tau) for _ in range(REVISIONS)]

    def seconds(self, arguments: tuple[str, ...]) -> float:
        position = number_of(arguments)
        self._machine += self.moves(self._chance)
        return math.exp(self.level(position) + self._layout[position] + self._machine)

    def found(self) -> FindAnswer:
        starter = FakeStarter(seconds=self.seconds, noise=self.sigma, chance=random.Random(self.seed + 1000))
        with tempfile.TemporaryDirectory() as directory:
            session = a_session(STUDY, Path(directory), source=FakeSource(REVISIONS), starter=starter)
            request = FindRequest(
                goal=(resolve(STUDY, "wall"),),
                range=None,
                threshold=0.05,
                confidence=0.99,
                budget=Budget(invocations=600),
            )
            answer = drain(Find(session, request).events())[1]
        assert isinstance(answer, FindAnswer)
        return answer


def step(size: float, *, at: int) -> Callable[[int], float]:
    return lambda position: math.log(size) * (position >= at)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_step_is_found_on_a_machine_that_drifts(seed: int) -> None:
    answer = World(step(1.10, at=102), seed, drifting).found().answer
    assert [change.positions for change in answer.changes] == [(102,)]


@pytest.mark.parametrize("seed", [1, 2])
def test_a_machine_that_drifts_is_no_change(seed: int) -> None:
    assert World(step(1.0, at=102), seed, drifting).found().answer.verdict is Verdict.NONE


@pytest.mark.parametrize("seed", [13, 14])
def test_a_step_that_is_small_compared_with_layout_noise_is_never_a_wrong_claim(seed: int) -> None:
    answer = World(step(1.08, at=100), seed, sigma=0.003, tau=0.02).found().answer
    assert answer.verdict is not Verdict.NONE
    assert all(100 in change.positions for change in answer.changes)
