"""Answers of a search: sizes, changes below the threshold, suspicions, outliers, and the basis of `none`."""

from __future__ import annotations

import math

import numpy as np
import pytest

from perftrail.search import Budget, Built, Question, Search, Verdict
from perftrail.search.answer import Suspicion
from perftrail.search.conclusion import outliers
from tests.search.oracle import Oracle, normal, step, steps
from tests.search.test_posterior import search_of

# Levels of a real history: one merge made the program faster, the next one slower by half, and the third reverted that.
# The other differences of up to 17 % are below the threshold.
REVERTED = {0: 85, 50: 97, 51: 84, 64: 99, 96: 102, 122: 98.5, 123: 48.7, 124: 70.5, 125: 49, 132: 49.3}
REVERTED |= {165: 50.5, 223: 50.0}


def test_a_build_that_no_change_explains_is_named_as_an_outlier() -> None:
    levels = {position: math.log(level) for position, level in REVERTED.items()}

    def level(position: int) -> float:
        return levels[min(levels, key=lambda each: (abs(each - position), each))]

    question = Question(revisions=224, threshold=0.2)
    search = search_of(levels, question)
    answer = Oracle(level, normal(3, 0.01)).settle(search)
    assert [change.positions for change in answer.changes] == [(123,)]
    (outlier,) = answer.outliers
    assert outlier.position == 124
    assert outlier.level == pytest.approx(70.5, rel=0.03)
    assert outlier.usual == pytest.approx(49.3, rel=0.03)


def test_builds_that_scatter_by_less_than_the_threshold_are_not_outliers() -> None:
    levels = {0: 100.0, 30: 108.0, 60: 97.0, 61: 101.0, 80: 95.0, 99: 99.0}
    question = Question(revisions=100, threshold=0.2)
    search = search_of({position: math.log(level) for position, level in levels.items()}, question)
    assert outliers(question, search.evidence, ()) == ()


@pytest.mark.parametrize(
    ("claimed", "levels"),
    [
        # The search ended without a claim: builds after the change look unlike the many before it.
        ((), {0: 100.0, 30: 101.0, 59: 100.0, 60: 130.0, 99: 131.0}),
        # The claim is one build too late, because the culprit's samples were noisy.
        ((61,), {0: 100.0, 30: 101.0, 59: 100.0, 60: 130.0, 61: 131.0, 80: 130.0, 99: 130.0}),
        # The claim is right, and the culprit is slower than the builds after it.
        ((60,), {0: 100.0, 30: 101.0, 59: 100.0, 60: 170.0, 61: 131.0, 80: 130.0, 99: 130.0}),
    ],
)
def test_a_culprit_is_not_an_outlier_whatever_the_search_claims(
    claimed: tuple[int, ...], levels: dict[int, float]
) -> None:
    question = Question(revisions=100, threshold=0.1)
    search = search_of({position: math.log(level) for position, level in levels.items()}, question)
    suspicion = Suspicion(
        positions=claimed, confidence=0.9, evidence=10.0, needed=200.0, blocks_left=None, possible=0.4
    )
    assert outliers(question, search.evidence, [suspicion] if claimed else []) == ()


def test_a_change_below_the_threshold_is_reported_as_such() -> None:
    answer = Oracle(step(15, -0.024), normal(1, 0.002)).settle(Question(revisions=30, threshold=0.05))
    assert answer.verdict is Verdict.NONE
    assert answer.changes == ()
    assert answer.below is not None
    assert answer.below.low <= math.exp(-0.024) <= answer.below.high
    assert answer.below.high < 1
    assert 0.024 < answer.minimum_detectable <= 0.05


def test_a_small_difference_of_the_only_two_builds_is_unclear_with_a_remedy() -> None:
    oracle = Oracle(step(5, 0.06), normal(1, 0.002), content=lambda position: int(position >= 5))
    answer = oracle.settle(Question(revisions=8, threshold=0.05))
    assert answer.verdict is Verdict.UNCLEAR
    [suspected] = answer.suspected
    assert suspected.positions == (5,)
    assert suspected.observed == pytest.approx(math.exp(0.06), rel=0.005)
    assert "their memory layouts may cause the difference; set [build] relink to find out" in answer.reason


def test_no_change_below_the_threshold_is_reported_if_nothing_changed() -> None:
    for seed in range(2):
        answer = Oracle(lambda position: 1.0, normal(seed, 0.01)).settle(Question(revisions=30))
        assert answer.verdict is Verdict.NONE
        assert answer.below is None


def test_none_has_a_certificate_and_the_largest_possible_change() -> None:
    answer = Oracle(lambda position: 1.0, normal(1, 0.01)).settle(Question(revisions=30))
    largest = 100 * answer.minimum_detectable
    assert answer.reason == f"the ends are equal within {largest:.2g} %"
    assert answer.certificate is not None
    assert answer.certificate.blocks >= 8
    assert answer.certificate.error <= 0.005
    assert answer.certificate.invocations == 2 * answer.certificate.blocks


def test_equal_builds_at_both_ends_are_none_without_a_block() -> None:
    oracle = Oracle(lambda position: 1.0, normal(1, 0.01), content=lambda position: position % 29)
    answer = oracle.settle(Question(revisions=30))
    assert answer.verdict is Verdict.NONE
    assert answer.reason == "the ends are the same build"
    assert answer.certificate is not None
    assert answer.certificate.blocks == 0


@pytest.mark.parametrize(("trials", "fewest"), [(2, 2), pytest.param(12, 10, marks=pytest.mark.long)])
def test_the_size_and_its_interval_are_those_of_the_certificate(trials: int, fewest: int) -> None:
    covered = 0
    for seed in range(trials):
        answer = Oracle(step(10, math.log(1.1)), normal(seed, 0.02)).settle(Question(revisions=30, seed=seed))
        (change,) = answer.changes
        assert change.effect is not None
        assert change.before is not None
        assert change.after is not None
        assert change.effect.low <= change.effect.value <= change.effect.high
        assert change.after / change.before == pytest.approx(change.effect.value, rel=0.03)
        covered += change.effect.low <= 1.1 <= change.effect.high
    assert covered >= fewest


def test_a_change_that_cannot_be_certified_is_suspected_with_the_needed_evidence() -> None:
    question = Question(revisions=100, budget=Budget(invocations=75))
    search = Search(question)
    answer = Oracle(step(40, 0.07), normal(2, 0.03)).settle(search)
    assert answer.verdict is Verdict.UNCLEAR
    assert answer.reason == "the budget of invocations is spent"
    (suspected,) = answer.suspected
    assert 40 in suspected.positions
    assert suspected.needed == pytest.approx(200)
    assert suspected.evidence < suspected.needed
    assert suspected.confidence <= 1


def test_two_certified_changes_share_the_permitted_error() -> None:
    answer = Oracle(steps((6, 0.3), (14, 0.2)), normal(1, 0.02)).settle(Question(revisions=20))
    errors = [change.certificate.error for change in answer.changes if change.certificate is not None]
    assert len(errors) == 2
    assert sum(errors) <= 0.01
    assert max(errors) <= 0.005


def test_the_minimum_detectable_change_falls_with_the_noise() -> None:
    detectable = []
    for sigma in (0.002, 0.01, 0.03):
        answer = Oracle(lambda position: 1.0, normal(1, sigma)).settle(Question(revisions=30))
        detectable.append(answer.minimum_detectable)
    assert detectable[0] < 0.05
    assert np.isfinite(detectable).all()


def test_equal_artefacts_around_a_change_leave_only_the_revisions_between_them() -> None:
    oracle = Oracle(step(16, 0.2), normal(1, 0.02), content=lambda position: position // 4)
    search = Search(Question(revisions=40))
    answer = oracle.settle(search)
    assert answer.changes[0].positions == (16,)
    assert any(
        isinstance(observation, Built) and observation.same_as is not None
        for observation in oracle.observations
    )
