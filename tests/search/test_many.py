"""Search for changes of several metrics over one history."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from perftrail.search import (
    AllSettled,
    Batch,
    BatchRequest,
    BootSession,
    Budget,
    Built,
    ManySearch,
    Question,
    Search,
    Unusable,
    Verdict,
)
from tests.search.oracle import Oracle, batch, normal, step, steps

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perftrail.search import Answer, Observation
    from tests.search.oracle import Level


class World:
    """Performs the actions of a search for several metrics; `unfit` are positions where the benchmark of one fails."""

    def __init__(
        self,
        levels: Mapping[str, Level],
        *,
        broken: frozenset[int] = frozenset(),
        unfit: Mapping[str, frozenset[int]] | None = None,
        scatter: float = 0.02,
    ) -> None:
        self.oracles = {
            name: Oracle(level, normal(seed, scatter)) for seed, (name, level) in enumerate(levels.items())
        }
        self.broken = broken
        self.unfit = unfit or {}
        self.built: set[int] = set()
        self.requests: list[BatchRequest] = []
        self.observations: list[tuple[tuple[str, ...] | None, Observation | Mapping[str, Batch]]] = []

    def settle(self, search: ManySearch, most: int = 600) -> Mapping[str, Answer]:
        for _ in range(most):
            action = search.ask()
            if isinstance(action, AllSettled):
                return action.answers
            self.perform(search, action)
        raise AssertionError("the search never settles")

    def perform(self, search: ManySearch, batch_request: BatchRequest) -> None:
        self.requests.append(batch_request)
        for position in batch_request.measure.positions:
            if position in self.broken:
                self._tell(search, Unusable(position=position, seconds=10.0))
                return
            if position not in self.built:
                self.built.add(position)
                self._tell(search, Built(position=position, seconds=10.0))
        measure = batch_request.measure
        batches = {}
        for name in batch_request.names:
            unfit = [at for at in measure.positions if at in self.unfit.get(name, ())]
            for position in unfit:
                self._tell(search, Unusable(position=position), (name,))
            if not unfit:
                samples = tuple(self.oracles[name].sample(position) for position in measure.order)
                batches[name] = Batch(
                    samples=samples, seconds=float(len(samples)), certificate=measure.certificate
                )
        if batches:
            self.observations.append((None, batches))
            search.tell_batch(batches)

    def _tell(
        self, search: ManySearch, observation: Built | Unusable, names: tuple[str, ...] | None = None
    ) -> None:
        self.observations.append((names, observation))
        search.tell(observation, names)


def questions(names: str, question: Question) -> dict[str, Question]:
    return dict.fromkeys(names, question)


THOUSAND = Question(revisions=1000)
HUNDRED = Question(revisions=100)


def test_each_metric_gets_its_own_answer() -> None:
    world = World({"a": step(6, 0.2), "b": step(14, -0.2), "c": lambda position: 3.0}, scatter=0.005)
    answers = world.settle(ManySearch(questions("abc", Question(revisions=20))))
    assert answers["a"].changes[0].positions == (6,)
    assert answers["b"].changes[0].positions == (14,)
    assert answers["c"].verdict is Verdict.NONE


def test_a_shared_search_builds_far_less_than_separate_ones() -> None:
    levels = {name: step(30 + 2 * number, 0.2) for number, name in enumerate("ab")}
    world = World(levels, scatter=0.005)
    search = ManySearch(questions("ab", HUNDRED))
    answers = world.settle(search)
    assert [answers[name].changes[0].positions[0] for name in "ab"] == [30, 32]
    separate = 0
    for seed, level in enumerate(levels.values()):
        oracle = Oracle(level, normal(20 + seed, 0.005))
        oracle.settle(HUNDRED)
        separate += oracle.builds
    assert len(world.built) <= 0.7 * separate
    assert search.builds == len(world.built)


def test_a_settled_metric_is_not_measured_any_more() -> None:
    world = World({"changed": step(600, 0.2), "unchanged": lambda position: 1.0}, scatter=0.001)
    world.settle(ManySearch({"changed": THOUSAND, "unchanged": THOUSAND}))
    measured = [batch_request.names for batch_request in world.requests]
    assert sum("unchanged" in names for names in measured) <= 24, (
        "its ends, three builds between them, and their rounds"
    )
    assert sum("changed" in names for names in measured) > 20
    assert world.built != {0, 999}


def test_metrics_of_the_same_invocations_are_measured_together_and_counted_once() -> None:
    world = World({"time": step(12, 0.2), "memory": step(6, 0.2), "other": step(12, 0.2)}, scatter=0.005)
    search = ManySearch(
        dict.fromkeys(world.oracles, Question(revisions=20)), together=[frozenset({"time", "memory", "size"})]
    )
    answers = world.settle(search)
    assert answers["time"].changes[0].positions == (12,)
    assert answers["memory"].changes[0].positions == (6,)
    for batch_request in world.requests:
        assert ("time" in batch_request.names) == ("memory" in batch_request.names)
        assert len(batch_request.names) <= 2
    assert search.invocations == sum(len(batch_request.measure.order) for batch_request in world.requests)


def test_a_failed_build_is_unusable_for_all_metrics_and_a_crash_only_for_its_own() -> None:
    world = World(
        {"a": step(50, 0.2), "b": step(50, 0.2)},
        broken=frozenset({48, 49}),
        unfit={"b": frozenset({50, 51})},
    )
    answers = world.settle(ManySearch(questions("ab", HUNDRED)))
    assert answers["a"].changes[0].positions == (48, 49, 50)
    assert answers["b"].changes[0].positions == (48, 49, 50, 51, 52)


def test_observations_reach_only_the_named_metrics() -> None:
    search = ManySearch(questions("ab", Question(revisions=10)))
    search.tell(Unusable(position=3), ["a"])
    assert search.search("a").evidence.unusable == {3}
    assert search.search("b").evidence.unusable == set()
    search.tell(BootSession(name="second"))
    assert {search.search(name).evidence.session for name in "ab"} == {"second"}
    assert search.belief("a") is None


def test_all_metrics_share_one_budget() -> None:
    world = World({"a": step(300, 0.06), "b": step(700, 0.06)}, scatter=0.05)
    search = ManySearch(questions("ab", replace(THOUSAND, budget=Budget(invocations=60, builds=12))))
    answers = world.settle(search)
    assert search.invocations <= 60
    assert search.builds <= 12
    assert all(answer.reason for answer in answers.values())


def test_a_time_budget_ends_all_metrics_at_once() -> None:
    search = ManySearch(questions("ab", replace(THOUSAND, budget=Budget(seconds=100.0))))
    assert isinstance(search.ask(), BatchRequest)
    search.spend(99.0)
    assert isinstance(search.ask(), BatchRequest)
    search.spend(100.0)
    settled = search.ask()
    assert isinstance(settled, AllSettled)
    assert all("time budget" in answer.reason for answer in settled.answers.values())


def test_revisions_with_a_build_are_measured_first() -> None:
    search = ManySearch(questions("ab", THOUSAND))
    first = search.ask()
    assert isinstance(first, BatchRequest)
    search.tell(Built(position=0, seconds=10.0))
    search.tell_batch({first.names[0]: batch((0, 1.0))})
    second = search.ask()
    assert isinstance(second, BatchRequest)
    assert second.names != first.names
    assert second.measure.positions == (0,)


def test_builds_begin_ahead_for_the_metric_that_is_measured() -> None:
    search = ManySearch(questions("a", THOUSAND))
    assert search.builds_ahead({0}, 3) == (999,)


def test_a_search_resumes_from_its_recorded_observations() -> None:
    world = World({"a": step(30, 0.2), "b": steps((20, 0.1), (70, -0.2))})
    question = questions("ab", HUNDRED)
    original, resumed = ManySearch(question), ManySearch(question)
    asked = {}
    while len(world.observations) < 36:
        action = original.ask()
        assert isinstance(action, BatchRequest)
        asked[len(world.observations)] = action
        world.perform(original, action)
    # The resumed search is asked where the original one was, because asking chooses the reference.
    for number, (names, observation) in enumerate(world.observations):
        if number in asked:
            assert resumed.ask() == asked[number]
        if isinstance(observation, Built | Unusable):
            resumed.tell(observation, names)
        else:
            resumed.tell_batch(observation)  # type: ignore[arg-type]  # all other observations are batches
    assert original.ask() == resumed.ask()
    assert original.belief("a") == resumed.belief("a")


def test_a_single_metric_has_the_actions_of_its_own_search() -> None:
    alone, many = Search(THOUSAND), ManySearch({"a": THOUSAND})
    batch_request = many.ask()
    assert isinstance(batch_request, BatchRequest)
    assert batch_request.measure == alone.ask()


def test_metrics_over_different_histories_are_rejected() -> None:
    with pytest.raises(ValueError, match="same history"):
        ManySearch({"a": Question(revisions=10), "b": Question(revisions=11)})
    with pytest.raises(ValueError, match="one metric"):
        ManySearch({})
