"""Several metrics over one history."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from perftrail.search import (
    AllSettled,
    Batch,
    BootSession,
    Budget,
    Built,
    ManySearch,
    Question,
    Search,
    Unusable,
    Verdict,
    Visit,
)
from tests.search.oracle import Oracle, batch, normal, step, steps

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perftrail.search import Answer, Observation
    from tests.search.oracle import Level


class World:
    """Does what a search for several metrics asks; `unfit` are positions where one metric's benchmark fails."""

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
        self.visits: list[Visit] = []
        self.told: list[tuple[tuple[str, ...] | None, Observation | Mapping[str, Batch]]] = []

    def settle(self, search: ManySearch, most: int = 600) -> Mapping[str, Answer]:
        for _ in range(most):
            action = search.ask()
            if isinstance(action, AllSettled):
                return action.answers
            self.visits.append(action)
            self._visit(search, action)
        raise AssertionError("the search never settles")

    def _visit(self, search: ManySearch, visit: Visit) -> None:
        for position in visit.measure.positions:
            if position in self.broken:
                self._tell(search, Unusable(position=position, seconds=10.0))
                return
            if position not in self.built:
                self.built.add(position)
                self._tell(search, Built(position=position, seconds=10.0))
        measure = visit.measure
        batches = {}
        for name in visit.names:
            unfit = [at for at in measure.positions if at in self.unfit.get(name, ())]
            for position in unfit:
                self._tell(search, Unusable(position=position), (name,))
            if not unfit:
                samples = tuple(self.oracles[name].sample(position) for position in measure.order)
                batches[name] = Batch(
                    samples=samples, seconds=float(len(samples)), certificate=measure.certificate
                )
        if batches:
            self.told.append((None, batches))
            search.tell_batch(batches)

    def _tell(
        self, search: ManySearch, observation: Built | Unusable, names: tuple[str, ...] | None = None
    ) -> None:
        self.told.append((names, observation))
        search.tell(observation, names)


def questions(names: str, question: Question) -> dict[str, Question]:
    return dict.fromkeys(names, question)


THOUSAND = Question(revisions=1000)


def test_each_metric_gets_its_own_answer() -> None:
    world = World({"a": step(300, 0.2), "b": step(700, -0.2), "c": lambda position: 3.0})
    answers = world.settle(ManySearch(questions("abc", THOUSAND)))
    assert answers["a"].changes[0].positions == (300,)
    assert answers["b"].changes[0].positions == (700,)
    assert answers["c"].verdict is Verdict.NONE


def test_a_shared_search_builds_far_less_than_separate_ones() -> None:
    levels = {name: step(300 + 2 * number, 0.2) for number, name in enumerate("abcd")}
    world = World(levels)
    search = ManySearch(questions("abcd", THOUSAND))
    answers = world.settle(search)
    assert [answers[name].changes[0].positions[0] for name in "abcd"] == [300, 302, 304, 306]
    separate = 0
    for seed, level in enumerate(levels.values()):
        oracle = Oracle(level, normal(20 + seed, 0.02))
        oracle.settle(THOUSAND)
        separate += oracle.builds
    assert len(world.built) <= 0.55 * separate
    assert search.builds == len(world.built)


def test_a_settled_metric_asks_for_nothing_more() -> None:
    world = World({"moves": step(600, 0.2), "stays": lambda position: 1.0}, scatter=0.001)
    world.settle(ManySearch({"moves": THOUSAND, "stays": THOUSAND}))
    asked = [visit.names for visit in world.visits]
    assert sum("stays" in names for names in asked) <= 20, (
        "its ends, three builds near each, and a certificate"
    )
    assert sum("moves" in names for names in asked) > 20
    assert world.built != {0, 999}


def test_metrics_of_the_same_invocations_are_asked_for_together_and_count_once() -> None:
    world = World({"time": step(600, 0.2), "memory": step(200, 0.2), "other": step(600, 0.2)})
    search = ManySearch(
        dict.fromkeys(world.oracles, THOUSAND), together=[frozenset({"time", "memory", "size"})]
    )
    answers = world.settle(search)
    assert answers["time"].changes[0].positions == (600,)
    assert answers["memory"].changes[0].positions == (200,)
    for visit in world.visits:
        assert ("time" in visit.names) == ("memory" in visit.names)
        assert len(visit.names) <= 2
    assert search.invocations == sum(len(visit.measure.order) for visit in world.visits)


def test_what_cannot_be_built_is_unusable_for_all_and_what_crashes_for_one_only() -> None:
    world = World(
        {"a": step(500, 0.2), "b": step(500, 0.2)},
        broken=frozenset({498, 499}),
        unfit={"b": frozenset({500, 501})},
    )
    answers = world.settle(ManySearch(questions("ab", THOUSAND)))
    assert answers["a"].changes[0].positions == (498, 499, 500)
    assert answers["b"].changes[0].positions == (498, 499, 500, 501, 502)


def test_results_reach_the_named_metrics() -> None:
    search = ManySearch(questions("ab", Question(revisions=10)))
    search.tell(Unusable(position=3), ["a"])
    assert search.search("a").evidence.unusable == {3}
    assert search.search("b").evidence.unusable == set()
    search.tell(BootSession(name="second"))
    assert {search.search(name).evidence.session for name in "ab"} == {"second"}
    assert search.belief("a") is None


def test_a_budget_is_one_for_all_metrics() -> None:
    world = World({"a": step(300, 0.06), "b": step(700, 0.06)}, scatter=0.05)
    search = ManySearch(questions("ab", replace(THOUSAND, budget=Budget(invocations=60, builds=12))))
    answers = world.settle(search)
    assert search.invocations <= 60
    assert search.builds <= 12
    assert all(answer.reason for answer in answers.values())


def test_a_time_budget_ends_all_metrics_at_once() -> None:
    search = ManySearch(questions("ab", replace(THOUSAND, budget=Budget(seconds=100.0))))
    assert isinstance(search.ask(), Visit)
    search.spend(99.0)
    assert isinstance(search.ask(), Visit)
    search.spend(100.0)
    settled = search.ask()
    assert isinstance(settled, AllSettled)
    assert all("time budget" in answer.reason for answer in settled.answers.values())


def test_what_needs_no_build_is_measured_first() -> None:
    search = ManySearch(questions("ab", THOUSAND))
    first = search.ask()
    assert isinstance(first, Visit)
    search.tell(Built(position=0, seconds=10.0))
    search.tell_batch({first.names[0]: batch((0, 1.0))})
    second = search.ask()
    assert isinstance(second, Visit)
    assert second.names != first.names
    assert second.measure.positions == (0,)


def test_builds_are_begun_ahead_for_the_metric_that_is_asked_for() -> None:
    search = ManySearch(questions("a", THOUSAND))
    assert search.builds_ahead({0}, 3) == (999,)


def test_the_search_is_resumed_by_telling_everything_again() -> None:
    world = World({"a": step(300, 0.2), "b": steps((200, 0.1), (700, -0.2))})
    question = questions("ab", THOUSAND)
    world.settle(ManySearch(question))
    asked, resumed = ManySearch(question), ManySearch(question)
    for names, observation in world.told[:45]:
        asked.ask()
        for search in (asked, resumed):
            if isinstance(observation, Built | Unusable):
                search.tell(observation, names)
            else:
                search.tell_batch(observation)  # type: ignore[arg-type]  # nothing else is told here
    assert asked.ask() == resumed.ask()
    assert asked.belief("a") == resumed.belief("a")


def test_one_metric_asks_what_its_own_search_asks() -> None:
    alone, many = Search(THOUSAND), ManySearch({"a": THOUSAND})
    visit = many.ask()
    assert isinstance(visit, Visit)
    assert visit.measure == alone.ask()


def test_metrics_over_different_histories_are_rejected() -> None:
    with pytest.raises(ValueError, match="same history"):
        ManySearch({"a": Question(revisions=10), "b": Question(revisions=11)})
    with pytest.raises(ValueError, match="one metric"):
        ManySearch({})
