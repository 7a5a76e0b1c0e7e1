"""The guide's posterior against brute force over all sets of changes, and its noise model."""

from __future__ import annotations

import math
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest

from perftrail.search import Built, Observation, Question, Search
from perftrail.search.noise import SHAPES_PRIOR, Likelihoods, build_grid, build_lattice
from perftrail.search.posterior import ANOTHER, MOST_CHANGES, narrowest
from tests.search.oracle import Oracle, batch, normal, posterior_of, search_after, steps

if TYPE_CHECKING:
    from perftrail.search.posterior import LikelyChange, Posterior

QUESTION = Question(revisions=12)


def samples(
    levels: dict[int, float], *, seed: int = 1, sigma: float = 0.02, each: int = 3
) -> list[Observation]:
    """Return batches of builds at these levels, each with samples of the reference."""
    noise = normal(seed, sigma)
    first = min(levels)
    batches: list[Observation] = []
    for position, level in levels.items():
        own = [(position, level + noise(position)) for _ in range(each)]
        others = [] if position == first else [(first, levels[first] + noise(first)) for _ in range(2)]
        batches.append(batch(*own, *others))
    return batches


def search_of(
    levels: dict[int, float], question: Question = QUESTION, *more: Observation, seed: int = 1
) -> Search:
    search = search_after(question)
    search.evidence.reference = min(levels)
    for observation in (*samples(levels, seed=seed), *more):
        search.tell(observation)
    return search


def brute_force(posterior: Posterior, question: Question) -> tuple[np.ndarray, np.ndarray]:
    """Sum over every set of gaps that may hold changes: P(number of changes), and P(a change is in each gap)."""
    chain = posterior.chain
    builds = len(posterior.positions)
    lattice, grid = chain.lattice, chain.grid
    density = SHAPES_PRIOR[:, None] * (lattice.weights / lattice.reach)[None, :]
    mass = np.diff(np.cumsum(question.weights())[list(posterior.positions)])
    counts = np.zeros(MOST_CHANGES + 1)
    gaps = np.zeros(builds - 1)
    top = chain.levels.max(axis=(1, 2, 3)).sum()
    for number in range(min(MOST_CHANGES, builds - 1) + 1):
        prior = (
            question.no_change
            if not number
            else (1 - question.no_change) * (1 - ANOTHER) * ANOTHER ** (number - 1) * math.factorial(number)
        )
        for chosen in combinations(range(builds - 1), number):
            edges = [0, *(gap + 1 for gap in chosen), builds]
            evidence = np.full(len(grid.sigma), prior) * np.exp(grid.log_prior) * np.prod(mass[list(chosen)])
            logs = np.zeros(len(grid.sigma))
            for first, last in pairwise(edges):
                together = chain.levels[first:last].sum(axis=0)
                logs += np.log(np.einsum("sqg,qg->s", np.exp(together - together.max()), density))
                logs += together.max()
            weight = float((evidence * np.exp(logs - top)).sum())
            counts[number] += weight
            gaps[list(chosen)] += weight
    return counts / counts.sum(), gaps / counts.sum()


@pytest.mark.parametrize(
    "levels",
    [
        {0: 0.0, 3: 0.0, 5: 0.08, 9: 0.08, 11: 0.08},
        {0: 0.0, 2: 0.0, 5: 0.0, 9: 0.02, 11: 0.0},
        {0: 0.0, 2: 0.1, 5: 0.1, 9: 0.1, 11: 0.0},
        {0: 0.3, 2: 0.2, 5: 0.2, 9: 0.1, 11: 0.05},
    ],
)
def test_the_recursions_give_the_sum_over_all_sets_of_changes(levels: dict[int, float]) -> None:
    posterior = posterior_of(search_of(levels))
    counts, gaps = brute_force(posterior, QUESTION)
    np.testing.assert_allclose(posterior.counts, counts[: len(posterior.counts)], atol=1e-9)
    if posterior.counts[1] > 0.999:
        (change,) = posterior.changes
        np.testing.assert_allclose(change.gaps * change.exists, gaps, atol=1e-3)


def size_of(change: LikelyChange) -> float:
    """Return the mean size of a change, as a logarithm."""
    share = change.gaps[change.kept]
    return float(share @ (change.after.mean - change.before.mean) / share.sum())


def test_a_clear_change_has_its_gap_and_its_size() -> None:
    posterior = posterior_of(search_of({0: 0.0, 3: 0.0, 5: 0.2, 9: 0.2, 11: 0.2}))
    (change,) = posterior.changes
    assert change.gaps[1] > 0.99
    assert change.reaches_threshold > 0.99
    assert size_of(change) == pytest.approx(0.2, abs=0.03)
    assert posterior.no_change < 0.01


def test_a_change_below_the_threshold_does_not_reach_it() -> None:
    question = Question(revisions=12, threshold=0.2)
    levels = {0: 0.0, 3: 0.0, 5: 0.1, 9: 0.1, 11: 0.1}
    assert posterior_of(search_of(levels, question)).no_change > 0.95


def test_two_changes_that_cancel_are_found_once_a_build_between_them_is_measured() -> None:
    posterior = posterior_of(search_of({0: 0.0, 3: 0.0, 5: 0.2, 7: 0.2, 9: 0.0, 11: 0.0}))
    assert len(posterior.changes) == 2
    assert [int(np.argmax(change.gaps)) for change in posterior.changes] == [1, 3]
    assert [size_of(change) > 0 for change in posterior.changes] == [True, False]


def test_equal_artefacts_on_both_sides_exclude_a_single_change_between_them_but_not_two() -> None:
    one = posterior_of(
        search_of({0: 0.0, 11: 0.2}, QUESTION, Built(position=5), Built(position=5, same_as=0))
    )
    assert one.positions == (0, 5, 11)
    assert one.changes[0].gaps[0] == 0.0
    levels = {0: 0.0, 3: 0.0, 5: 0.2, 7: 0.2}
    two = posterior_of(search_of(levels, QUESTION, Built(position=11), Built(position=11, same_as=0)))
    assert len(two.changes) == 2
    assert two.no_change < 0.05


def test_layouts_as_large_as_the_difference_leave_the_change_open() -> None:
    rng = np.random.default_rng(3)
    levels = {position: float(rng.normal(0, 0.03)) for position in range(11)} | {11: 0.06}
    posterior = posterior_of(search_of(levels, Question(revisions=12, threshold=0.02)))
    assert posterior.tau > 0.015
    assert max((float(change.gaps.max()) for change in posterior.changes), default=0.0) < 0.97


def test_a_level_of_only_one_build_is_more_likely_an_odd_build_than_two_changes() -> None:
    levels = dict.fromkeys(range(12), 0.0) | {6: 0.1}
    posterior = posterior_of(search_of(levels))
    assert posterior.counts[0] > 5 * posterior.counts[2]
    alone = posterior_of(search_of(levels | {7: 0.1, 8: 0.1}))
    assert alone.counts[2] > 0.8


def test_a_prior_of_zero_excludes_a_gap() -> None:
    prior = tuple(float(position == 4) for position in range(12))
    posterior = posterior_of(search_of({0: 0.0, 6: 0.2, 11: 0.2}, Question(revisions=12, prior=prior)))
    assert posterior.changes[0].gaps.tolist() == [1.0, 0.0]


def test_the_belief_counts_the_candidates() -> None:
    search = search_of({0: 1.0, 250: 1.0, 500: 1.3, 999: 1.3}, Question(revisions=1000))
    belief = search.belief
    assert belief is not None
    assert belief.candidates == 250
    assert belief.no_change < 0.01
    assert belief.before == pytest.approx(math.exp(1.0), rel=0.02)
    assert belief.after == pytest.approx(math.exp(1.3), rel=0.02)
    assert belief.after_the_change(500) == pytest.approx(1.0, abs=0.01)
    assert belief.after_the_change(1) is None


def test_there_is_no_belief_before_two_revisions_are_measured() -> None:
    search = search_after(Question(revisions=10))
    assert search.belief is None
    search.tell(batch((0, 0.0), (0, 0.0)))
    assert search.belief is None


def test_the_likelihood_of_a_layout_is_that_of_the_hierarchical_normal() -> None:
    values = np.array([-0.01, 0.0, 0.013])
    search = search_of({0: 0.0, 11: 0.1})
    grid = build_grid(QUESTION, search.evidence)
    lattice = build_lattice(QUESTION, grid, [values])
    logs = Likelihoods(lattice, grid).of_segment([values])
    row = int(np.argmin(np.abs(grid.tau - 0.02)))
    covariance = grid.sigma[row] ** 2 * np.eye(3) + grid.tau[row] ** 2
    near = np.abs(lattice.nodes) < 0.03
    exact = [
        -0.5 * (values - node) @ np.linalg.solve(covariance, values - node) for node in lattice.nodes[near]
    ]
    got = logs[row, 0][near]
    # Garbage is improbable here: only the shape of the logarithm is compared.
    np.testing.assert_allclose(got - got.max(), np.array(exact) - max(exact), atol=0.08)


def test_the_noise_model_is_a_distribution_where_noise_is_far_above_the_threshold() -> None:
    noisy = search_after(QUESTION, *samples({0: 0.0, 11: 1.0}, sigma=2.0, each=6))
    grid = build_grid(QUESTION, noisy.evidence)
    assert grid.tau.min() > QUESTION.threshold_on_scale
    assert np.exp(grid.log_prior).sum() == pytest.approx(1.0)


def test_the_likelihood_ratio_of_one_sample_is_capped() -> None:
    search = search_of({0: 0.0, 11: 1.0})
    grid = build_grid(QUESTION, search.evidence)
    values = np.array([0.0])
    logs = Likelihoods(build_lattice(QUESTION, grid, [values, values + 1.0]), grid).of_segment([values])
    mixed = np.logaddexp.reduce(logs + np.log(SHAPES_PRIOR)[None, :, None], axis=1)
    assert np.exp(np.ptp(mixed, axis=1)).max() < 250


def test_the_narrowest_range_contains_the_probability_with_the_fewest_revisions() -> None:
    assert narrowest((0, 10, 12, 20), np.array([0.5, 0.45, 0.05]), 0.9) == range(2)
    assert narrowest((0, 10, 12, 20), np.array([0.5, 0.45, 0.05]), 0.4) == range(1, 2)
    assert narrowest((0, 10), np.array([0.5]), 0.9) is None


def test_the_posterior_of_a_settled_search_contains_both_changes() -> None:
    oracle = Oracle(steps((6, 0.3), (14, 0.2)), normal(5, 0.02))
    search = Search(Question(revisions=20))
    oracle.settle(search)
    assert [
        posterior_of(search).positions[int(np.argmax(change.gaps)) + 1]
        for change in posterior_of(search).changes
    ] == [6, 14]


def test_nothing_changed_if_all_builds_are_equal() -> None:
    same = [Built(position=position, same_as=0) for position in (4, 8, 11)]
    posterior = posterior_of(search_of({0: 0.0}, QUESTION, *same))
    assert posterior.positions == (0, 4, 8, 11)
    assert posterior.counts.tolist() == pytest.approx([1.0])
    assert posterior.changes == ()


def test_revisions_with_an_unchanged_build_leave_their_prior_to_the_others() -> None:
    search = search_of({0: 0.0, 11: 0.15}, QUESTION, *(Built(position=at, same_as=0) for at in range(1, 11)))
    assert posterior_of(search).no_change < 0.03
    assert int(np.argmax(posterior_of(search).changes[0].gaps)) == 10
