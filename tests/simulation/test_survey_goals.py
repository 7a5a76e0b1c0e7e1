"""The goals of several changes, merges and metrics, in simulation; the seeds are fixed, with margins for few trials."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pytest

from perftrail.search import (
    AllSettled,
    Answer,
    Batch,
    Built,
    Kind,
    ManySearch,
    Measure,
    MergeSearch,
    Origin,
    Question,
    Sample,
    Search,
    Unusable,
    Verdict,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    from perftrail.search import Observation

SIGMA = 0.03
STEP = math.log(1.15)


@dataclass(frozen=True)
class World:
    """Levels and unbuildable positions, with random skewed noise, layout of 0.3 sigma and 3 % outliers."""

    levels: npt.NDArray[np.floating]
    broken: npt.NDArray[np.bool_]
    rng: np.random.Generator
    built: set[int] = field(default_factory=set)

    def batch(self, order: tuple[int, ...], *, certificate: bool = False) -> Batch:
        noise = SIGMA * (self.rng.gamma(4, size=len(order)) - 4) / 2
        slow = np.where(self.rng.random(len(order)) < 0.03, math.log(2), 0.0)
        values = (self.levels[list(order)] + noise + slow).tolist()
        samples = tuple(
            Sample(position=at, value=math.exp(value)) for at, value in zip(order, values, strict=True)
        )
        return Batch(samples=samples, seconds=float(len(order)), certificate=certificate)

    def builds(self, measure: Measure) -> list[Built | Unusable]:
        """Build the missing revisions; the last one is unusable if a build fails."""
        events: list[Built | Unusable] = []
        for position in measure.positions:
            if self.broken[position]:
                return [*events, Unusable(position=position, seconds=10.0)]
            if position not in self.built:
                self.built.add(position)
                events.append(Built(position=position, seconds=10.0))
        return events

    def observation(self, measure: Measure) -> list[Observation]:
        reported: list[Observation] = [*self.builds(measure)]
        if any(isinstance(each, Unusable) for each in reported):
            return reported
        return [*reported, self.batch(measure.order, certificate=measure.certificate)]

    def settle(self, search: Search | MergeSearch, most: int = 1500) -> Answer:
        for _ in range(most):
            action = search.ask()
            if not isinstance(action, Measure):
                return action.answer
            for observation in self.observation(action):
                search.tell(observation)
        raise AssertionError("the search never settles")


def world(seed: int, number: int, levels: npt.NDArray[np.floating], *fit: int) -> World:
    rng = np.random.default_rng([seed, number])
    broken = np.zeros(len(levels), dtype=np.bool_)
    state = False
    for position, chance in enumerate(rng.random(len(levels))):
        broken[position] = state
        state = chance >= 1 / 3 if state else chance < 0.06
    broken[[0, -1, *fit]] = False
    return World(levels + rng.normal(0, 0.3 * SIGMA, len(levels)), broken, rng)


def culprits(rng: np.random.Generator, revisions: int, count: int) -> list[int]:
    while True:
        drawn = np.sort(rng.integers(1, revisions, count))
        if count == 1 or np.diff(drawn).min() >= revisions / 20:
            return [int(culprit) for culprit in drawn]


def named_rightly(answer: Answer, truth: list[int]) -> bool:
    return len(answer.changes) == len(truth) and all(
        change.kind is Kind.STEP and culprit in change.positions
        for change, culprit in zip(answer.changes, truth, strict=True)
    )


def steps_found(seed: int, trials: int, count: int, revisions: int = 1000) -> float:
    right = 0
    for number in range(trials):
        truth = culprits(np.random.default_rng([seed, number, 1]), revisions, count)
        levels = STEP * np.searchsorted(truth, np.arange(revisions), side="right")
        answer = world(seed, number, levels).settle(Search(Question(revisions=revisions)))
        right += named_rightly(answer, truth)
    return right / trials


def test_two_changes_are_both_found_and_none_invented() -> None:
    assert steps_found(81, 4, 2) == 1


def test_a_ramp_is_not_pinned_on_a_revision() -> None:
    for number in range(2):
        begin = int(np.random.default_rng([82, number, 1]).integers(0, 800))
        levels = math.log(1.3) * np.clip((np.arange(1000) - begin) / 200, 0, 1)
        answer = world(82, number, levels).settle(Search(Question(revisions=1000)))
        assert [change.kind for change in answer.changes] == [Kind.RAMP]


def test_a_single_step_is_no_ramp() -> None:
    assert steps_found(83, 6, 1) == 1


def test_the_commit_inside_a_merge_of_fifty_is_found() -> None:
    for number in range(5):
        culprit = int(np.random.default_rng([84, number, 1]).integers(2, 52))
        here = world(84, number, STEP * (np.arange(53) >= culprit), 1, 51)
        inside = MergeSearch(Question(revisions=53), branches=(50,))
        inside.tell(here.batch((0, 52) * 5))
        answer = here.settle(inside)
        assert inside.found is not None
        assert inside.found.origin is Origin.BRANCH
        assert named_rightly(answer, [culprit])


def test_ten_metrics_share_their_builds() -> None:
    truth = {"a": 210, "b": 480, "c": 830}
    names = [*truth, *"defghij"]
    broken = world(85, 0, np.zeros(1000)).broken
    here = {
        name: World(
            STEP * (np.arange(1000) >= truth.get(name, 1000)), broken, np.random.default_rng([85, number])
        )
        for number, name in enumerate(names)
    }
    search = ManySearch(dict.fromkeys(names, Question(revisions=1000)))
    shared = here["a"]
    while not isinstance(action := search.ask(), AllSettled):
        built = shared.builds(action.measure)
        for observation in built:
            search.tell(observation)
        if not any(isinstance(observation, Unusable) for observation in built):
            order, certificate = action.measure.order, action.measure.certificate
            search.tell_batch(
                {name: here[name].batch(order, certificate=certificate) for name in action.names}
            )
    for name in names:
        answer = action.answers[name]
        if name in truth:
            assert named_rightly(answer, [truth[name]])
        else:
            assert answer.verdict is Verdict.NONE
    separate = [Search(Question(revisions=1000)) for _ in names]
    for name, each in zip(names, separate, strict=True):
        here[name].built.clear()
        here[name].settle(each)
    assert search.builds <= 0.7 * sum(each.evidence.builds for each in separate)


@pytest.mark.slow("simulation")
@pytest.mark.parametrize("count", [2, 3])
def test_several_changes_are_found_over_more_trials(count: int) -> None:
    assert steps_found(86 + count, 3, count) >= 0.6
