"""Laws of the search that hold whatever the data."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from perftrail.search import Block, Budget, Measure, Question, Readings, Search, Settled, Unusable, Verdict
from perftrail.search.timeline import SHOWN
from tests.search.oracle import Oracle, step

VALUES = st.floats(-0.3, 0.3, allow_nan=False)
TELLS = st.lists(
    st.tuples(st.integers(0, 19), st.lists(VALUES, min_size=1, max_size=4)), min_size=2, max_size=8
).filter(lambda tells: len({position for position, _ in tells}) > 1)
FEW = settings(max_examples=40, deadline=None)


def told(tells: list[tuple[int, list[float]]], sign: float = 1.0) -> Search:
    search = Search(Question(revisions=20))
    for position, values in tells:
        search.tell(Readings(position=position, values=tuple(sign * value for value in values)))
    return search


@FEW
@given(tells=TELLS)
def test_mirrored_values_give_the_mirrored_belief(tells: list[tuple[int, list[float]]]) -> None:
    one, other = told(tells).posterior, told(tells, -1.0).posterior
    np.testing.assert_allclose(one.gaps, other.gaps, atol=1e-6)
    assert math.isclose(one.nothing, other.nothing, abs_tol=1e-6)
    assert math.isclose(one.before[0], -other.before[0], abs_tol=1e-6)
    assert math.isclose(one.after[0], -other.after[0], abs_tol=1e-6)


@FEW
@given(tells=TELLS, order=st.randoms())
def test_the_order_of_telling_changes_nothing_while_no_drift_is_seen(
    tells: list[tuple[int, list[float]]], order: object
) -> None:
    shuffled = tells.copy()
    order.shuffle(shuffled)  # type: ignore[attr-defined]  # Hypothesis does not name the type of its randoms
    one, other = told(tells), told(shuffled)
    assume(max(one.posterior.drift, other.posterior.drift) < SHOWN)
    np.testing.assert_allclose(one.posterior.gaps, other.posterior.gaps, atol=1e-9)
    assert one.ask() == other.ask()


@FEW
@given(tells=TELLS, broken=st.sets(st.integers(0, 19), max_size=6))
def test_an_unusable_revision_carries_no_evidence(
    tells: list[tuple[int, list[float]]], broken: set[int]
) -> None:
    one, other = told(tells), told(tells)
    for position in sorted(broken - {position for position, _ in tells}):
        other.tell(Unusable(position=position))
    np.testing.assert_array_equal(one.posterior.gaps, other.posterior.gaps)
    assert one.posterior.nothing == other.posterior.nothing


@FEW
@given(tells=TELLS)
def test_probabilities_sum_to_one_and_are_finite(tells: list[tuple[int, list[float]]]) -> None:
    posterior = told(tells).posterior
    assert np.isfinite(posterior.gaps).all()
    assert (posterior.gaps >= 0).all()
    assert math.isclose(posterior.gaps.sum() + posterior.nothing + posterior.outside, 1.0)
    assert 0 <= posterior.small <= 1 + 1e-9


@FEW
@given(tells=TELLS)
def test_asking_twice_asks_the_same(tells: list[tuple[int, list[float]]]) -> None:
    search = told(tells)
    assert search.ask() == search.ask()


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_noiseless_step_is_always_found_exactly(data: st.DataObject) -> None:
    revisions = data.draw(st.integers(2, 60))
    culprit = data.draw(st.integers(1, revisions - 1))
    inner = st.integers(1, max(1, revisions - 2))
    broken = frozenset(data.draw(st.sets(inner, max_size=revisions // 3))) - {revisions - 1, 0}
    size = data.draw(st.sampled_from([-0.7, -0.1, 0.1, 0.7, 3.0]))
    answer = Oracle(step(culprit, size, broken)).settle(Question(revisions=revisions))

    low = max(position for position in range(culprit) if position not in broken)
    high = min(position for position in range(culprit, revisions) if position not in broken)
    change = answer.changes[0]
    assert change.positions == tuple(range(low + 1, high + 1))
    assert answer.verdict is (Verdict.FOUND if high == low + 1 else Verdict.RANGE)
    assert change.effect is not None
    assert change.effect.low <= math.exp(size) <= change.effect.high


@FEW
@given(seed=st.integers(0, 10_000), invocations=st.integers(1, 60), builds=st.integers(1, 12))
def test_no_budget_is_overdrawn_and_every_search_ends(seed: int, invocations: int, builds: int) -> None:
    rng = np.random.default_rng(seed)
    oracle = Oracle(
        step(seed % 99 + 1, 0.06, frozenset({3, 4, 50})), noise=lambda: float(rng.normal(0, 0.05))
    )
    question = Question(
        revisions=100, budget=Budget(invocations=invocations, builds=builds), invocations_per_reading=2
    )
    oracle.settle(question)
    search = Search(question)
    for news in oracle.told:
        search.tell(news)
    assert search.invocations <= invocations
    assert search.builds <= builds
    assert isinstance(search.ask(), Settled)


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10_000), cut=st.integers(0, 30))
def test_a_search_resumes_from_what_was_told(seed: int, cut: int) -> None:
    rng = np.random.default_rng(seed)
    oracle = Oracle(step(seed % 49 + 1, 0.2, frozenset({9})), noise=lambda: float(rng.normal(0, 0.03)))
    question = Question(revisions=50)
    oracle.settle(question)
    first, resumed = Search(question), Search(question)
    for news in oracle.told[:cut]:
        first.ask()
        first.tell(news)
        resumed.tell(news)
    assert resumed.ask() == first.ask()
    if cut < len(oracle.told):
        action = resumed.ask()
        assert isinstance(action, Measure)
        told_next = oracle.told[cut]
        assert not isinstance(told_next, Block)
        assert action.position == told_next.position
