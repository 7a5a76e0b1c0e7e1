"""Many series in one walk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from perftrail.search import AllSettled, Budget, Matrix, Question, Readings, Survey, Unusable, Verdict
from tests.search.oracle import Oracle, step
from tests.search.test_survey import settle

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from perftrail.search import Answer


class World:
    """Does what a matrix asks; `unfit` are the series whose benchmark fails at some positions."""

    def __init__(
        self,
        levels: Mapping[str, Callable[[int], float | None]],
        *,
        broken: frozenset[int] = frozenset(),
        unfit: Mapping[str, frozenset[int]] | None = None,
        scatter: float = 0.02,
    ) -> None:
        self.levels = levels
        self.broken = broken
        self.unfit = unfit or {}
        self.rng = np.random.default_rng(1)
        self.scatter = scatter
        self.built: set[int] = set()
        self.visits: list[dict[str, int]] = []

    def settle(self, matrix: Matrix, most: int = 500) -> Mapping[str, Answer]:
        for _ in range(most):
            action = matrix.ask()
            if isinstance(action, AllSettled):
                return action.answers
            position = action.position
            cost = None if position in self.built else 10.0
            self.built.add(position)
            self.visits.append(dict(action.readings))
            for name in self.levels if position in self.broken else action.readings:
                level = self.levels[name](position)
                if position in self.broken or position in self.unfit.get(name, ()) or level is None:
                    matrix.tell(name, Unusable(position=position, seconds=cost or 0.0))
                    continue
                count = action.readings[name]
                values = tuple(level + float(self.rng.normal(0, self.scatter)) for _ in range(count))
                matrix.tell(
                    name,
                    Readings(position=position, values=values, build_seconds=cost, seconds=float(count)),
                )
        raise AssertionError("the matrix never settles")


def questions(names: str, question: Question) -> dict[str, Question]:
    return dict.fromkeys(names, question)


def test_each_series_gets_its_own_answer() -> None:
    world = World({"a": step(300, 0.2), "b": step(700, -0.2), "c": lambda position: 3.0})
    answers = world.settle(Matrix(questions("abc", Question(revisions=1000))))
    assert answers["a"].changes[0].positions == (300,)
    assert answers["b"].changes[0].positions == (700,)
    assert answers["c"].verdict is Verdict.NONE


def test_a_shared_walk_builds_far_less_than_separate_ones() -> None:
    levels = {name: step(300 + 2 * number, 0.2) for number, name in enumerate("abcd")}
    world = World(levels)
    matrix = Matrix(questions("abcd", Question(revisions=1000)))
    answers = world.settle(matrix)
    assert [answers[name].changes[0].positions[0] for name in "abcd"] == [300, 302, 304, 306]
    separate = 0
    for name in "abcd":
        oracle = Oracle(levels[name], lambda: float(world.rng.normal(0, 0.02)))
        settle(Survey(Question(revisions=1000)), oracle)
        separate += oracle.builds
    assert len(world.built) <= separate / 2
    assert matrix.builds == len(world.built)


def test_a_settled_series_asks_nothing_more() -> None:
    world = World({"moves": step(600, 0.2), "stays": lambda position: 1.0}, scatter=0.001)
    world.settle(Matrix({"moves": Question(revisions=1000), "stays": Question(revisions=1000)}))
    assert all("stays" not in visit for visit in world.visits[4:])


def test_series_read_together_are_asked_for_together_and_count_once() -> None:
    world = World({"time": step(600, 0.2), "memory": step(200, 0.2), "other": step(600, 0.2)})
    matrix = Matrix(
        dict.fromkeys(world.levels, Question(revisions=1000)), together=[frozenset({"time", "memory"})]
    )
    answers = world.settle(matrix)
    assert answers["time"].changes[0].positions == (600,)
    assert answers["memory"].changes[0].positions == (200,)
    for visit in world.visits:
        assert visit.get("time") == visit.get("memory")
    counted = sum(visit.get("time", 0) + visit.get("other", 0) for visit in world.visits)
    assert matrix.invocations == counted


def test_what_cannot_be_built_is_unusable_for_all_and_what_crashes_for_one_only() -> None:
    world = World(
        {"a": step(500, 0.2), "b": step(500, 0.2)},
        broken=frozenset({498, 499}),
        unfit={"b": frozenset({500, 501})},
    )
    answers = world.settle(Matrix(questions("ab", Question(revisions=1000))))
    assert answers["a"].changes[0].positions == (498, 499, 500)
    assert answers["b"].changes[0].positions == (498, 499, 500, 501, 502)


def test_a_budget_is_one_for_all_series() -> None:
    world = World({"a": step(300, 0.2), "b": step(700, 0.2), "c": step(100, 0.2)})
    question = Question(revisions=1000, budget=Budget(invocations=40, builds=12))
    matrix = Matrix(questions("abc", question))
    answers = world.settle(matrix)
    assert matrix.invocations <= 40 + 3 * 3
    assert matrix.builds <= 12
    assert all(answer.reason for answer in answers.values())


def test_the_walk_is_resumed_by_telling_everything_again() -> None:
    world = World({"a": step(300, 0.2), "b": step(700, -0.2)})
    told: list[tuple[str, Readings | Unusable]] = []

    class Listening(Matrix):
        def tell(self, name: str, news: Readings | Unusable) -> None:  # type: ignore[override]  # no other news here
            told.append((name, news))
            super().tell(name, news)

    question = questions("ab", Question(revisions=1000))
    world.settle(Listening(question))
    asked, resumed = Matrix(question), Matrix(question)
    for name, news in told[:15]:
        asked.ask()
        asked.tell(name, news)
        resumed.tell(name, news)
    assert asked.ask() == resumed.ask()
    assert asked.belief("a") == resumed.belief("a")


def test_series_over_different_histories_are_rejected() -> None:
    with pytest.raises(ValueError, match="same history"):
        Matrix({"a": Question(revisions=10), "b": Question(revisions=11)})
    with pytest.raises(ValueError, match="one series"):
        Matrix({})
