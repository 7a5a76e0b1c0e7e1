"""Laws of the search that hold whatever the data."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from perftrail.search import Batch, Budget, Measure, Question, Search, Settled, Unusable, Verdict
from tests.search.oracle import Oracle, batch, layouts, normal, step

VALUES = st.floats(-0.3, 0.3, allow_nan=False)
BATCHES = st.lists(
    st.tuples(st.integers(0, 19), st.lists(VALUES, min_size=1, max_size=4)), min_size=2, max_size=8
).filter(lambda batches: len({position for position, _ in batches}) > 1)
FEW = settings(max_examples=30, deadline=None)


def search_of(batches: list[tuple[int, list[float]]], sign: float = 1.0) -> Search:
    """Return a search with these batches, without a reference, so that no correction depends on the order."""
    search = Search(Question(revisions=20))
    for position, values in batches:
        search.tell(batch(*((position, sign * value) for value in values)))
    return search


@FEW
@given(batches=BATCHES)
def test_mirrored_values_lead_to_the_mirrored_belief(batches: list[tuple[int, list[float]]]) -> None:
    one, other = search_of(batches).posterior, search_of(batches, -1.0).posterior
    np.testing.assert_allclose(one.counts, other.counts, atol=0.02)
    assert math.isclose(one.no_change, other.no_change, abs_tol=0.03)
    for change, mirrored in zip(one.guesses, other.guesses, strict=False):
        np.testing.assert_allclose(change.gaps, mirrored.gaps, atol=0.03)


@FEW
@given(batches=BATCHES, order=st.randoms())
def test_without_a_reference_the_order_of_batches_does_not_matter(
    batches: list[tuple[int, list[float]]], order: object
) -> None:
    shuffled = batches.copy()
    order.shuffle(shuffled)  # type: ignore[attr-defined]  # Hypothesis does not name the type of its randoms
    one, other = search_of(batches), search_of(shuffled)
    np.testing.assert_allclose(one.posterior.counts, other.posterior.counts, atol=1e-9)
    assert one.posterior.no_change == other.posterior.no_change


@FEW
@given(batches=BATCHES, broken=st.sets(st.integers(0, 19), max_size=6))
def test_an_unusable_revision_is_not_evidence(
    batches: list[tuple[int, list[float]]], broken: set[int]
) -> None:
    one, other = search_of(batches), search_of(batches)
    for position in sorted(broken - {position for position, _ in batches}):
        other.tell(Unusable(position=position))
    np.testing.assert_array_equal(one.posterior.counts, other.posterior.counts)
    assert one.posterior.no_change == other.posterior.no_change


@FEW
@given(batches=BATCHES)
def test_probabilities_sum_to_one_and_are_finite(batches: list[tuple[int, list[float]]]) -> None:
    posterior = search_of(batches).posterior
    assert math.isclose(posterior.counts.sum(), 1.0)
    assert math.isclose(posterior.noise.sum(), 1.0)
    assert 0 <= posterior.no_change <= 1
    for change in posterior.guesses:
        assert math.isclose(change.gaps.sum(), 1.0)
        assert (change.gaps >= 0).all()
        assert 0 <= change.reaches_threshold <= change.exists + 1e-9 <= 1 + 2e-9


@FEW
@given(batches=BATCHES)
def test_asking_twice_returns_the_same_action(batches: list[tuple[int, list[float]]]) -> None:
    search = search_of(batches)
    assert search.ask() == search.ask()


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_a_noiseless_step_is_always_found_exactly(data: st.DataObject) -> None:
    revisions = data.draw(st.integers(2, 60))
    culprit = data.draw(st.integers(1, revisions - 1))
    inner = st.integers(1, max(1, revisions - 2))
    broken = frozenset(data.draw(st.sets(inner, max_size=revisions // 3))) - {revisions - 1, 0}
    # With only two builds, a small change cannot be distinguished from the layouts of both.
    sizes = [-0.7, -0.1, 0.1, 0.7, 3.0] if revisions - len(broken) > 2 else [-0.7, 0.7, 3.0]
    size = data.draw(st.sampled_from(sizes))
    answer = Oracle(step(culprit, size, broken)).settle(Question(revisions=revisions))

    low = max(position for position in range(culprit) if position not in broken)
    high = min(position for position in range(culprit, revisions) if position not in broken)
    (change,) = answer.changes
    assert change.positions == tuple(range(low + 1, high + 1))
    assert answer.verdict is (Verdict.FOUND if high == low + 1 else Verdict.RANGE)
    assert change.certificate is not None
    assert change.effect is not None
    assert change.effect.low <= math.exp(size) * (1 + 1e-9)
    assert change.effect.high >= math.exp(size) * (1 - 1e-9)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), invocations=st.integers(1, 90), builds=st.integers(1, 12))
def test_no_budget_is_exceeded_and_every_search_ends(seed: int, invocations: int, builds: int) -> None:
    oracle = Oracle(step(seed % 99 + 1, 0.06, frozenset({3, 4, 50})), normal(seed, 0.05))
    question = Question(
        revisions=100, budget=Budget(invocations=invocations, builds=builds), invocations_per_sample=2
    )
    search = Search(question)
    oracle.settle(search)
    assert search.evidence.invocations == 2 * oracle.sample_count <= invocations
    assert search.evidence.builds <= builds
    assert isinstance(search.ask(), Settled)


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 10_000), relinks=st.booleans())
def test_a_search_resumes_from_its_recorded_observations_wherever_it_was_interrupted(
    seed: int, relinks: bool
) -> None:
    oracle = Oracle(step(seed % 49 + 1, 0.2, frozenset({9})), normal(seed, 0.03), layouts(seed, 0.03))
    question = Question(revisions=50, relinks=relinks, seed=seed)
    first = Search(question)
    actions = []
    while isinstance(action := first.ask(), Measure):
        actions.append((len(oracle.observations), action))
        for observation in oracle.perform(action):
            oracle.observations.append(observation)
            first.tell(observation)
    # The test asks before each batch, as the first search did, because asking chooses the reference.
    resumed = Search(question)
    for number, observation in enumerate(oracle.observations):
        expected = [action for at, action in actions if at == number]
        if expected:
            assert resumed.ask() == expected[0]
        resumed.tell(observation)
    assert resumed.ask() == action


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 10_000), cut=st.integers(0, 40))
def test_a_search_that_gets_many_observations_at_once_uses_all_of_them_and_ends(seed: int, cut: int) -> None:
    oracle = Oracle(step(seed % 49 + 1, 0.2, frozenset({9})), normal(seed, 0.03))
    first = oracle.settle(Search(Question(revisions=50)))
    other = Search(Question(revisions=50))
    for observation in oracle.observations[:cut]:
        other.tell(observation)
    assert other.evidence.invocations == sum(
        len(observation.samples)
        for observation in oracle.observations[:cut]
        if isinstance(observation, Batch)
    )
    answer = oracle.settle(other)
    assert [change.positions for change in answer.changes] == [change.positions for change in first.changes]
