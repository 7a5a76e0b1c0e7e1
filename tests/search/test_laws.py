"""Laws of the search that hold whatever the data."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perftrail.search import Batch, Budget, Measure, Question, Search, Settled, Unusable, Verdict
from tests.search.oracle import Oracle, batch, layouts, normal, posterior_of, step

if TYPE_CHECKING:
    from collections.abc import Callable

VALUES = st.floats(-0.3, 0.3, allow_nan=False)
BATCHES = st.lists(
    st.tuples(st.integers(0, 19), st.lists(VALUES, min_size=1, max_size=4)), min_size=2, max_size=8
).filter(lambda batches: len({position for position, _ in batches}) > 1)


def examples(few: int, many: int) -> pytest.MarkDecorator:
    """Run a test with a few examples, and a long one with many."""
    return pytest.mark.parametrize("examples", [few, pytest.param(many, marks=pytest.mark.long)])


def check(law: Callable[..., None], examples: int, **strategies: st.SearchStrategy[object]) -> None:
    """Check a law for this number of examples."""
    settings(max_examples=examples, deadline=None)(given(**strategies)(law))()


def search_of(batches: list[tuple[int, list[float]]], sign: float = 1.0) -> Search:
    """Return a search with these batches, without a reference, so that no correction depends on the order."""
    search = Search(Question(revisions=20))
    for position, values in batches:
        search.tell(batch(*((position, sign * value) for value in values)))
    return search


@examples(6, 30)
def test_mirrored_values_lead_to_the_mirrored_belief(examples: int) -> None:
    def law(batches: list[tuple[int, list[float]]]) -> None:
        one, other = posterior_of(search_of(batches)), posterior_of(search_of(batches, -1.0))
        np.testing.assert_allclose(one.counts, other.counts, atol=0.02)
        assert math.isclose(one.no_change, other.no_change, abs_tol=0.03)
        for change, mirrored in zip(one.guesses, other.guesses, strict=False):
            np.testing.assert_allclose(change.gaps, mirrored.gaps, atol=0.03)

    check(law, examples, batches=BATCHES)


@examples(6, 30)
def test_without_a_reference_the_order_of_batches_does_not_matter(examples: int) -> None:
    def law(batches: list[tuple[int, list[float]]], order: random.Random) -> None:
        shuffled = batches.copy()
        order.shuffle(shuffled)
        one, other = search_of(batches), search_of(shuffled)
        np.testing.assert_allclose(posterior_of(one).counts, posterior_of(other).counts, atol=1e-9)
        assert posterior_of(one).no_change == posterior_of(other).no_change

    check(law, examples, batches=BATCHES, order=st.randoms())


@examples(6, 30)
def test_an_unusable_revision_is_not_evidence(examples: int) -> None:
    def law(batches: list[tuple[int, list[float]]], broken: set[int]) -> None:
        one, other = search_of(batches), search_of(batches)
        for position in sorted(broken - {position for position, _ in batches}):
            other.tell(Unusable(position=position))
        np.testing.assert_array_equal(posterior_of(one).counts, posterior_of(other).counts)
        assert posterior_of(one).no_change == posterior_of(other).no_change

    check(law, examples, batches=BATCHES, broken=st.sets(st.integers(0, 19), max_size=6))


@examples(8, 30)
def test_probabilities_sum_to_one_and_are_finite(examples: int) -> None:
    def law(batches: list[tuple[int, list[float]]]) -> None:
        posterior = posterior_of(search_of(batches))
        assert math.isclose(posterior.counts.sum(), 1.0)
        assert math.isclose(posterior.noise.sum(), 1.0)
        assert 0 <= posterior.no_change <= 1
        for change in posterior.guesses:
            assert math.isclose(change.gaps.sum(), 1.0)
            assert (change.gaps >= 0).all()
            assert 0 <= change.reaches_threshold <= change.exists + 1e-9 <= 1 + 2e-9

    check(law, examples, batches=BATCHES)


@examples(8, 30)
def test_asking_twice_returns_the_same_action(examples: int) -> None:
    def law(batches: list[tuple[int, list[float]]]) -> None:
        search = search_of(batches)
        assert search.ask() == search.ask()

    check(law, examples, batches=BATCHES)


def noiseless_step_is_found(revisions: int, culprit: int, broken: frozenset[int], size: float) -> None:
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


@pytest.mark.parametrize(
    ("revisions", "culprit", "broken", "size"),
    [(2, 1, (), -0.7), (17, 5, (), 0.1), (23, 22, (1, 7), -0.1), (40, 30, (28, 29, 30, 11), 3.0)],
)
def test_a_noiseless_step_is_found_exactly(
    revisions: int, culprit: int, broken: tuple[int, ...], size: float
) -> None:
    noiseless_step_is_found(revisions, culprit, frozenset(broken), size)


@pytest.mark.long
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_any_noiseless_step_is_found_exactly(data: st.DataObject) -> None:
    revisions = data.draw(st.integers(2, 60))
    culprit = data.draw(st.integers(1, revisions - 1))
    inner = st.integers(1, max(1, revisions - 2))
    broken = frozenset(data.draw(st.sets(inner, max_size=revisions // 3))) - {revisions - 1, 0}
    # With only two builds, a small change cannot be distinguished from the layouts of both.
    sizes = [-0.7, -0.1, 0.1, 0.7, 3.0] if revisions - len(broken) > 2 else [-0.7, 0.7, 3.0]
    noiseless_step_is_found(revisions, culprit, broken, data.draw(st.sampled_from(sizes)))


@examples(6, 20)
def test_no_budget_is_exceeded_and_every_search_ends(examples: int) -> None:
    def law(seed: int, invocations: int, builds: int) -> None:
        oracle = Oracle(step(seed % 99 + 1, 0.06, frozenset({3, 4, 50})), normal(seed, 0.05))
        question = Question(
            revisions=100, budget=Budget(invocations=invocations, builds=builds), invocations_per_sample=2
        )
        search = Search(question)
        oracle.settle(search)
        assert search.evidence.invocations == 2 * oracle.sample_count <= invocations
        assert search.evidence.builds <= builds
        assert isinstance(search.ask(), Settled)

    check(
        law,
        examples,
        seed=st.integers(0, 10_000),
        invocations=st.integers(1, 90),
        builds=st.integers(1, 12),
    )


def interrupted_search_resumes(revisions: int, seed: int, *, relinks: bool) -> None:
    """Resume after each batch, and compare the action with that of the search without an interruption."""
    oracle = Oracle(
        step(seed % (revisions - 1) + 1, 0.2, frozenset({9})), normal(seed, 0.03), layouts(seed, 0.03)
    )
    question = Question(revisions=revisions, relinks=relinks, seed=seed)
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


@pytest.mark.parametrize(("seed", "relinks"), [(12, True), (4, False)])
def test_a_search_resumes_from_its_recorded_observations(seed: int, relinks: bool) -> None:
    interrupted_search_resumes(20, seed, relinks=relinks)


@pytest.mark.long
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 10_000), relinks=st.booleans())
def test_any_search_resumes_from_its_recorded_observations(seed: int, relinks: bool) -> None:
    interrupted_search_resumes(50, seed, relinks=relinks)


def observations_at_once_are_used(revisions: int, seed: int, cut: int) -> None:
    oracle = Oracle(step(seed % (revisions - 1) + 1, 0.2, frozenset({9})), normal(seed, 0.03))
    first = oracle.settle(Search(Question(revisions=revisions)))
    other = Search(Question(revisions=revisions))
    for observation in oracle.observations[:cut]:
        other.tell(observation)
    assert other.evidence.invocations == sum(
        len(observation.samples)
        for observation in oracle.observations[:cut]
        if isinstance(observation, Batch)
    )
    answer = oracle.settle(other)
    assert [change.positions for change in answer.changes] == [change.positions for change in first.changes]


def test_a_search_that_gets_many_observations_at_once_uses_all_of_them_and_ends() -> None:
    observations_at_once_are_used(20, seed=4, cut=17)


@pytest.mark.long
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 10_000), cut=st.integers(0, 40))
def test_a_search_that_gets_any_observations_at_once_ends(seed: int, cut: int) -> None:
    observations_at_once_are_used(50, seed, cut)
