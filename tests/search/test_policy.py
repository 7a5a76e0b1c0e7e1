"""Choice of the next action, and its expected cost."""

from __future__ import annotations

import numpy as np
import pytest

from perftrail.search import Built, Measure, Question, Search, Unusable, policy
from perftrail.search.evidence import Evidence
from perftrail.search.policy import Breakage, CostModel
from tests.search.oracle import batch, posterior_of
from tests.search.test_posterior import search_of

QUESTION = Question(revisions=1000)
CLEAR = {0: 0.0, 400: 0.0, 600: 0.3, 999: 0.3}


def cumulative(question: Question) -> np.ndarray:
    total: np.ndarray = np.cumsum(question.weights())
    total /= total[-1]
    return total


def builds(search: Search, question: Question = QUESTION) -> policy.Options:
    (change,) = posterior_of(search).changes
    costs = CostModel(question, search.evidence)
    return policy.new_builds(search.evidence, posterior_of(search), change, cumulative(question), costs)


def test_the_middle_of_the_gap_with_the_change_is_most_informative() -> None:
    choice = builds(search_of(CLEAR, QUESTION)).best()
    assert choice is not None
    assert abs(choice.position - 500) < 15
    assert choice.bits == pytest.approx(1.0, abs=0.1)
    assert choice.rate == choice.bits / choice.seconds


def test_a_position_that_is_likely_broken_is_less_informative() -> None:
    broken = [Unusable(position=position) for position in range(490, 511, 4)]
    options = builds(search_of(CLEAR, QUESTION, *broken))
    bits = dict(zip(options.positions.tolist(), options.bits.tolist(), strict=True))
    middle = min(bits, key=lambda position: abs(position - 500))
    off = min(bits, key=lambda position: abs(position - 460))
    assert bits[middle] < bits[off]


def test_more_samples_are_informative_only_for_builds_in_doubt() -> None:
    doubtful = {0: 0.0, 400: 0.03, 600: 0.06, 999: 0.06}

    def most_bits(levels: dict[int, float]) -> float:
        search = search_of(levels, QUESTION)
        (change,) = posterior_of(search).guesses
        options = policy.more_samples(
            search.evidence, posterior_of(search), change, CostModel(QUESTION, search.evidence)
        )
        return float(options.bits.max())

    assert most_bits(doubtful) > 3 * most_bits(CLEAR)


def test_a_build_that_began_in_the_gap_leaves_less_information_near_it() -> None:
    search = search_of(CLEAR, QUESTION)
    options = builds(search)
    left = policy.remaining_share(options, {500}, posterior_of(search), cumulative(QUESTION))
    share = dict(zip(options.positions.tolist(), left.tolist(), strict=True))
    near = min(share, key=lambda position: abs(position - 503))
    quarter = min(share, key=lambda position: abs(position - 450))
    assert share[near] < 0.2 < share[quarter] < 1


def test_parallel_builds_divide_the_gap_evenly() -> None:
    search = search_of(CLEAR, QUESTION)
    action = search.ask()
    assert isinstance(action, Measure)
    ahead = search.builds_ahead(set(action.positions), 3)
    assert len(ahead) == 3
    cuts = sorted({400, 600, *ahead, *action.positions} - {0})
    assert max(np.diff(cuts)) < 80


def test_a_build_that_exists_costs_nothing_and_is_preferred() -> None:
    known = Question(revisions=1000, built=frozenset({470}))
    choice = builds(search_of(CLEAR, known), known).best()
    assert choice is not None
    assert choice.position == 470
    search = search_of(CLEAR, known)
    search.tell(Built(position=530))
    costs = CostModel(known, search.evidence)
    free = costs.build(np.array([470, 530, 500]))
    assert free[0] == free[1] < 0.01 < free[2]


def test_the_cost_of_an_incremental_build_is_learnt_from_its_distance() -> None:
    distance = tuple(float(position) for position in range(1000))
    question = Question(revisions=1000, distance=distance)
    evidence = Evidence(question)
    for earlier, position in ((0, 0), (0, 999), (999, 500), (500, 250), (250, 375), (375, 310)):
        evidence.add(Built(position=position, seconds=5.0 + 0.1 * abs(position - earlier)))
    near, far = CostModel(question, evidence).build(np.array([320, 800])).tolist()
    assert near == pytest.approx(6.0, rel=0.5)
    assert far == pytest.approx(54.0, rel=0.2)
    unknown = CostModel(Question(revisions=1000), evidence).build(np.array([320, 800]))
    assert unknown[0] == unknown[1] == pytest.approx(evidence.seconds_per_build)


def test_expensive_builds_lead_to_more_samples_and_fewer_builds() -> None:
    levels = {0: 0.0, 400: 0.02, 600: 0.05, 999: 0.06}

    def rates(build: float) -> tuple[float, float]:
        search = search_of(levels, QUESTION)
        search.tell(Built(position=700, seconds=build))
        (change,) = posterior_of(search).guesses
        costs = CostModel(QUESTION, search.evidence)
        again = policy.more_samples(search.evidence, posterior_of(search), change, costs).best()
        fresh = policy.new_builds(
            search.evidence, posterior_of(search), change, cumulative(QUESTION), costs
        ).best()
        assert again is not None
        assert fresh is not None
        return again.rate, fresh.rate

    again, fresh = rates(0.5)
    assert again < fresh
    again, fresh = rates(1000.0)
    assert again > fresh


def test_neighbours_of_broken_revisions_are_likely_broken() -> None:
    breakage = Breakage(np.array([0, 50, 99]), np.array([False, True, False]))
    near, far, beside_good = breakage.probability(np.array([51, 75, 1])).tolist()
    assert near > far > beside_good


def test_the_probability_of_breakage_is_learnt_from_the_history() -> None:
    positions = np.arange(0, 300, 10)
    broken = Breakage(positions, np.ones(30, dtype=np.bool_))
    fine = Breakage(positions, np.zeros(30, dtype=np.bool_))
    assert broken.probability(np.array([155]))[0] > 0.5
    assert fine.probability(np.array([155]))[0] < 0.1


def test_the_breakage_of_a_range_agrees_with_that_of_its_single_revision() -> None:
    breakage = Breakage(np.array([0, 10, 12, 99]), np.array([False, True, True, False]))
    assert breakage.all_between(10, 12) == pytest.approx(float(breakage.probability(np.array([11]))[0]))
    assert breakage.all_between(10, 11) == pytest.approx(1.0)


def test_more_samples_of_an_odd_build_are_not_informative_but_another_build_is() -> None:
    # Few revisions are left before the change, many after it: either it is there, or the build at 500 is odd.
    levels = {0: 0.0, 250: 0.0, 439: 0.0, 485: 0.0, 497: 0.0, 500: 0.2, 999: 0.2}
    broken = [Unusable(position=position) for position in (498, 499)]
    more = [batch((0, 0.0), (500, 0.19), (500, 0.2), (500, 0.21), (0, 0.0)) for _ in range(3)]
    search = search_of(levels, QUESTION, *broken, *more)
    (change,) = posterior_of(search).changes
    costs = CostModel(QUESTION, search.evidence)
    again = policy.more_samples(search.evidence, posterior_of(search), change, costs)
    row = again.positions.tolist().index(500)
    assert again.most[row] < 0.01 < builds(search).bits.max()
