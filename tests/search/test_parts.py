"""The parts of the search, each against what is known otherwise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from perftrail.search import Question, Readings, Search, Unusable, words
from perftrail.search.breakage import Breakage
from perftrail.search.noise import Likelihoods, lay_lattice, noise_grid, pooled_sigma
from tests.search.oracle import Oracle, step


def test_pooled_sigma_is_unbiased_and_unmoved_by_outliers() -> None:
    rng = np.random.default_rng(1)
    builds = [np.sort(rng.normal(rng.normal(), 0.03, 3)) for _ in range(400)]
    assert pooled_sigma(builds)[0] == pytest.approx(0.03, rel=0.05)
    for build in builds[:40]:
        build[-1] += 0.7
    assert pooled_sigma(builds)[0] == pytest.approx(0.03, rel=0.25)
    assert pooled_sigma(builds)[1] == 800


def test_pooled_sigma_of_single_readings_is_unknown() -> None:
    assert pooled_sigma([np.array([1.0]), np.array([2.0])]) == (0.0, 0)


def test_the_side_level_likelihood_is_that_of_the_hierarchical_normal() -> None:
    values = np.array([-0.01, 0.0, 0.013])
    lattice = lay_lattice(np.array([0.0]), 0.02, 3)
    grid = noise_grid(0.02, 40, 0.05)
    likelihoods = Likelihoods(lattice, grid, 0.02)
    level = likelihoods.of(values)[1]
    row, column = 1, 2
    sigma, tau = grid.sigma[row], grid.tau[row, column]
    covariance = sigma**2 * np.eye(3) + tau**2
    inverse = np.linalg.inv(covariance)
    centre = np.abs(lattice.nodes) < 0.03
    exact = [-0.5 * (values - node) @ inverse @ (values - node) for node in lattice.nodes[centre]]
    got = level[row, column][centre]
    # Garbage is improbable here: only the shape of the logarithm is compared.
    np.testing.assert_allclose(got - got.max(), np.array(exact) - max(exact), atol=0.05)


def test_one_reading_is_capped() -> None:
    lattice = lay_lattice(np.array([0.0, 1.0]), 0.02, 1)
    own = Likelihoods(lattice, noise_grid(0.02, 40, 0.05), 0.02).of(np.array([0.0]))[0]
    assert math.exp(float(own[1].max() - own[1].min())) < 70


def test_breakage_knows_neighbours_of_broken_revisions() -> None:
    positions = np.array([0, 50, 99])
    known = Breakage(positions, np.array([False, True, False]))
    near, far, beside_good = known.probability(np.array([51, 75, 1])).tolist()
    assert near > far > beside_good


def test_breakage_learns_that_everything_breaks() -> None:
    positions = np.arange(0, 300, 10)
    broken = Breakage(positions, np.ones(30, dtype=bool))
    fine = Breakage(positions, np.zeros(30, dtype=bool))
    assert broken.probability(np.array([155]))[0] > 0.5
    assert fine.probability(np.array([155]))[0] < 0.1


def test_breakage_of_a_stretch_agrees_with_its_single_revision() -> None:
    known = Breakage(np.array([0, 10, 12, 99]), np.array([False, True, True, False]))
    assert known.all_between(10, 12) == pytest.approx(float(known.probability(np.array([11]))[0]))
    assert known.all_between(10, 11) == pytest.approx(1.0)


def test_no_belief_before_two_revisions_are_known() -> None:
    search = Search(Question(revisions=10))
    assert search.belief is None
    search.tell(Readings(position=0, values=(0.0, 0.0)))
    assert search.belief is None


def test_the_belief_tells_what_is_left() -> None:
    search = Search(Question(revisions=1000))
    for position, level in ((0, 1.0), (999, 1.3), (500, 1.3), (250, 1.0)):
        search.tell(Readings(position=position, values=(level, level, level)))
    belief = search.belief
    assert belief is not None
    assert belief.heaviest == (250, 500)
    assert belief.candidates == 250
    assert belief.no_change < 0.01
    assert belief.before == pytest.approx(math.exp(1.0), rel=0.01)
    assert belief.after == pytest.approx(math.exp(1.3), rel=0.01)
    assert belief.after_the_change(500) == pytest.approx(1.0, abs=0.01)
    assert belief.after_the_change(1) is None


def test_steps_are_told_in_words() -> None:
    search = Search(Question(revisions=1000))
    lines = []
    for position, level in ((0, 1.0), (999, 1.3), (512, 1.3), (511, None)):
        news = (
            Unusable(position=position)
            if level is None
            else Readings(position=position, values=(level, level, level, level))
        )
        search.tell(news)
        what = "build" if level is None else "3.67 s"
        lines.append(words.step(news, search.belief, "r{}".format, what=what))
    assert lines[0] == "measured r0 four times: 3.67 s"
    assert lines[2] == "measured r512 four times: 3.67 s, 99.99 % it is after the change; 512 candidates left"
    assert lines[3] == "r511 could not be used (build); 512 candidates left"


def test_verdicts_are_told_in_words() -> None:
    label = "r{}".format
    found = words.verdict(Oracle(step(40, 0.1)).settle(Question(revisions=100)), label)
    assert found.startswith("r40, 99.")
    none = words.verdict(Oracle(step(40, 0.0)).settle(Question(revisions=100)), label)
    assert none.startswith("no change of ")
    several = words.verdict(Oracle(step(40, 0.1, frozenset({39, 40}))).settle(Question(revisions=100)), label)
    assert several.startswith("one of 3, r39 to r41, 99.")
    unclear = words.verdict(Oracle(lambda position: None).settle(Question(revisions=5)), label)
    assert unclear == "unclear: none of the 5 revisions tried could be built and run"
