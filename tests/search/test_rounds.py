"""Rounds: what they certify, what they divide, and how often they are wrong under any noise of the machine."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from perftrail.search import Batch, Built, Question, Sample
from perftrail.search.answer import Purpose
from perftrail.search.evidence import Evidence
from perftrail.search.rounds import MOST_ROUNDS, PART_LEVEL, SIZE_ROUNDS, Finding, Rounds
from perftrail.stats.comparison import Bounds
from tests.search.oracle import Oracle, batch, layouts, normal, step, steps
from tests.stats.test_bets import NOISES, bursts, few_or, heavy, white

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy.typing as npt

    from perftrail.search.rounds import Gap

    Floats = npt.NDArray[np.float64]
    Rng = np.random.Generator

SIGMA = 0.02


class Map:
    """The rounds over a map of builds, at first its ends, and their evidence."""

    def __init__(self, question: Question, positions: Iterable[int] = ()) -> None:
        self.evidence = Evidence(question)
        self.rounds = Rounds(question, self.evidence)
        self.rounds.add(positions or (0, question.revisions - 1))

    def finish(self, oracle: Oracle) -> list[Gap]:
        """Perform the rounds until nothing is open; return the gaps."""
        for _ in range(300):
            measure = self.rounds.ask()
            if measure is None:
                return self.rounds.gaps()
            for observation in oracle.perform(measure):
                oracle.observations.append(observation)
                self.evidence.add(observation)
        raise AssertionError("the rounds never end")

    def named(self) -> list[tuple[int, int]]:
        """The builds around each certain change of the threshold or more."""
        return [(each.first, each.last) for each in self.rounds.gaps() if each.finding is Finding.CHANGED]


def two_builds(
    size: float,
    sigma: float,
    *,
    seed: int = 1,
    threshold: float = 0.05,
    counted: bool = False,
    persist: bool = False,
) -> Gap:
    """Return the finished gap of a history of two revisions."""
    history = Map(Question(revisions=2, threshold=threshold, seed=seed, counted=counted))
    if persist:
        history.rounds.persist()
    (found,) = history.finish(Oracle(step(1, size), normal(seed, sigma)))
    return found


# What rounds say about two builds.


@few_or(5, 40)
def test_equal_builds_are_equal_in_few_rounds_mostly_without_a_build_between_them(trials: int) -> None:
    counts, builds = [], []
    for seed in range(trials):
        oracle = Oracle(lambda position: 1.0, normal(seed, SIGMA))
        history = Map(Question(revisions=100, seed=seed))
        history.finish(oracle)
        ends = history.rounds.compare(0, 99)
        assert ends.finding is Finding.EQUAL
        assert ends.limits.within(math.log1p(0.05))
        assert history.named() == []
        counts.append(len(ends.differences))
        builds.append(oracle.builds)
    assert np.mean(counts) < 14
    assert np.median(builds) == 2


@few_or(8, 60)
def test_a_change_of_three_sigma_takes_about_ten_rounds(trials: int) -> None:
    found = [two_builds(0.06, SIGMA, seed=seed, threshold=0.02) for seed in range(trials)]
    assert all(each.finding is Finding.CHANGED for each in found)
    assert all(each.evidence >= math.log(1 / 0.005) for each in found)
    assert np.mean([len(each.differences) for each in found]) < 14
    assert np.mean([each.size for each in found]) == pytest.approx(0.06, rel=0.2)
    covered = [abs(each.size - 0.06) <= 1.96 * each.error for each in found]
    assert np.mean(covered) >= 0.85


@few_or(4, 20)
def test_a_change_that_slows_half_of_the_invocations_is_certified(trials: int) -> None:
    found = 0
    for seed in range(trials):
        rng = np.random.default_rng(seed)

        def noise(position: int, rng: Rng = rng) -> float:
            return float(rng.normal(0, 0.01) + 0.26 * (position == 1 and rng.random() < 0.5))

        (one,) = Map(Question(revisions=2, seed=seed)).finish(Oracle(lambda position: 1.0, noise))
        found += one.evidence >= math.log(1 / 0.005)
    assert found >= trials - 1


@pytest.mark.parametrize("size", [0.043, -0.043])
def test_a_certain_change_below_the_threshold_is_below(size: float) -> None:
    found = two_builds(size, 0.003)
    assert found.finding is Finding.BELOW
    assert found.is_named
    assert found.size == pytest.approx(size, abs=0.005)


@pytest.mark.parametrize("beyond", [0.001, -0.001])
def test_a_certain_change_of_about_the_threshold_is_named_after_some_rounds(beyond: float) -> None:
    """Rounds cannot exclude one of two sizes around the threshold if the true size is between them."""
    found = [two_builds(math.log1p(0.05) + beyond, 0.02, seed=seed) for seed in range(8)]
    assert sum(each.finding is Finding.CHANGED for each in found) >= 7
    assert np.median([len(each.differences) for each in found]) == SIZE_ROUNDS


def test_the_forecast_of_equality_is_later_than_now_while_one_bound_exceeds_the_threshold() -> None:
    """The interval need not be around the estimate."""
    found = two_builds(0.0, SIGMA)
    open_gap = replace(found, size=-0.021, limits=Bounds(low=-0.051, high=-0.004), differences=np.zeros(152))
    assert open_gap.rounds_to_equality(math.log1p(0.05)) > 152
    unknown = replace(open_gap, limits=Bounds(low=-math.inf, high=math.inf))
    assert unknown.rounds_to_equality(math.log1p(0.05)) == math.inf


def measured(history: Map, first: int, last: int, sizes: Iterable[float]) -> None:
    """Add rounds of two builds with these differences."""
    for size in sizes:
        history.evidence.add(batch((first, 0.0), (last, size), certificate=True))


def test_builds_are_not_equal_if_their_estimated_difference_is_large() -> None:
    """Half of the invocations are slower: bets on a common shift contradict each other."""
    history = Map(Question(revisions=4))
    rng = np.random.default_rng(2)
    slower = [0.137 + 0.13 * (1 if number % 2 else -1) + float(rng.normal(0, 0.003)) for number in range(64)]
    measured(history, 0, 3, slower)
    found = history.rounds.compare(0, 3)
    assert abs(found.size) > math.log1p(0.05)
    assert found.finding is not Finding.EQUAL


def test_gaps_that_seem_equal_are_measured_again_if_their_ends_certainly_differ() -> None:
    history = Map(Question(revisions=90), (0, 30, 60, 89))
    rng = np.random.default_rng(1)
    few_slow = np.array([0, 0, 0, 0, 0, 0.26, -0.26, 0.25])
    for first, last in ((0, 30), (30, 60), (60, 89)):
        measured(history, first, last, (few_slow + rng.normal(0, 0.003, 8)).tolist())
    assert {each.finding for each in history.rounds.gaps()} == {Finding.EQUAL}
    measured(history, 0, 89, rng.normal(0.13, 0.12, 60).tolist())
    assert history.rounds.is_certain(history.rounds.compare(0, 89))
    measure = history.rounds.ask()
    assert measure is not None
    assert {0, 30, 60, 89} == set(measure.positions)


def test_a_comparison_goes_on_while_its_evidence_promises_a_decision() -> None:
    found = [two_builds(0.08, 0.2, seed=seed) for seed in range(6)]
    assert sum(each.finding is Finding.CHANGED for each in found) >= 3
    assert max(len(each.differences) for each in found) > MOST_ROUNDS


def test_equal_builds_are_certified_also_where_runs_scatter_by_more_than_twice_the_threshold() -> None:
    found = [two_builds(0.0, 0.12, seed=seed, persist=True) for seed in range(4)]
    assert [each.finding for each in found] == [Finding.EQUAL] * 4
    assert max(len(each.differences) for each in found) > 2 * MOST_ROUNDS


def test_a_difference_that_noise_hides_is_undecided_after_the_most_rounds() -> None:
    found = two_builds(0.05, 0.3)
    assert found.finding is Finding.UNDECIDED
    assert len(found.differences) == MOST_ROUNDS
    assert not found.is_named


def test_the_evidence_counts_the_direction_of_the_change() -> None:
    up, down = two_builds(0.1, 0.01), two_builds(-0.1, 0.01)
    assert up.finding is down.finding is Finding.CHANGED
    assert up.size > 0.08
    assert down.size < -0.08
    assert down.limits.high < 0 < up.limits.low


def test_differences_that_change_their_sign_are_no_evidence() -> None:
    history = Map(Question(revisions=2))
    for number in range(12):
        history.evidence.add(batch((0, 0.0), (1, 0.1 * (-1) ** number), certificate=True))
    (found,) = history.rounds.gaps()
    assert found.evidence < math.log(20)
    assert found.finding is Finding.OPEN


# Dividing.


@pytest.mark.parametrize("culprit", [1, 37, 99])
def test_a_change_is_divided_down_to_one_revision_in_about_log2_builds(culprit: int) -> None:
    oracle = Oracle(step(culprit, 0.2), normal(culprit, SIGMA))
    history = Map(Question(revisions=100))
    history.finish(oracle)
    assert history.named() == [(culprit - 1, culprit)]
    assert oracle.builds <= 12


def test_a_change_elsewhere_is_not_blamed_on_the_gap_that_was_suspected() -> None:
    for culprit in (10, 70):
        history = Map(Question(revisions=100), (0, 40, 41, 99))
        history.finish(Oracle(step(culprit, 0.2), normal(1, SIGMA)))
        assert history.named() == [(culprit - 1, culprit)]


def test_two_neighbouring_revisions_that_both_changed_are_both_named() -> None:
    for seed in range(3):
        history = Map(Question(revisions=60, seed=seed))
        history.finish(Oracle(steps((20, 0.1), (21, 0.15)), normal(seed, SIGMA)))
        assert history.named() == [(19, 20), (20, 21)]


def test_decided_builds_are_not_measured_again() -> None:
    history = Map(Question(revisions=101), (0, 50, 51, 100))
    oracle = Oracle(step(51, 0.12), normal(1, 0.03))
    history.finish(oracle)
    runs = [len(each.samples) for each in oracle.batches]
    assert runs[0] == 4
    assert runs[-1] == 2
    assert runs == sorted(runs, reverse=True)


def test_a_round_runs_each_build_once_in_a_random_order() -> None:
    rounds = Map(Question(revisions=101), range(0, 101, 10)).rounds
    evidence = Evidence(Question(revisions=101))
    measure = rounds.ask()
    assert measure is not None
    assert sorted(measure.order) == list(range(0, 101, 10))
    assert measure.certificate
    assert measure.purpose is Purpose.ROUND
    orders = set()
    for seed in range(40):
        small = Rounds(Question(revisions=101, seed=seed), evidence)
        orders.add(small.round_of((1, 2, 3), Purpose.ROUND).order)
    assert len(orders) == math.factorial(3)


# Builds that fail, and builds that are equal.


def test_unusable_builds_inside_leave_a_range() -> None:
    history = Map(Question(revisions=40))
    history.finish(Oracle(step(20, 0.2, frozenset(range(17, 23))), normal(1, SIGMA)))
    assert history.named() == [(16, 23)]


def test_unusable_builds_at_the_ends_are_left_out() -> None:
    history = Map(Question(revisions=40), (0, 3, 36, 39))
    history.finish(Oracle(step(20, 0.2, frozenset({0, 39})), normal(1, SIGMA)))
    assert history.rounds.positions[0] == 3
    assert history.rounds.positions[-1] == 36
    assert history.named() == [(19, 20)]


def test_a_long_broken_range_is_not_tried_one_by_one() -> None:
    oracle = Oracle(step(70, 0.3, frozenset(range(50, 150))), normal(1, SIGMA))
    history = Map(Question(revisions=200))
    history.finish(oracle)
    assert history.named() == [(49, 150)]
    assert oracle.builds < 40


def test_equal_artefacts_are_equal_without_a_round() -> None:
    history = Map(Question(revisions=40), (0, 39))
    history.evidence.add(Built(position=0))
    history.evidence.add(Built(position=39, same_as=0))
    assert history.rounds.ask() is None
    (found,) = history.rounds.gaps()
    assert found.finding is Finding.EQUAL
    assert (found.size, found.error) == (0.0, 0.0)


def test_a_change_between_equal_artefacts_is_named_by_its_first_revision() -> None:
    history = Map(Question(revisions=40))
    history.finish(Oracle(step(16, 0.2), normal(1, SIGMA), content=lambda position: position // 4))
    assert history.named() == [(15, 16)]


# Metrics.


def test_a_counted_metric_needs_three_rounds() -> None:
    found = two_builds(0.1, 0.0, counted=True)
    assert found.finding is Finding.CHANGED
    assert len(found.differences) == 3
    small = two_builds(0.01, 0.0, counted=True)
    assert small.finding is Finding.EQUAL or small.finding is Finding.BELOW


def test_a_counted_metric_of_two_values_is_not_taken_for_exact() -> None:
    wrong = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)

        def noise(position: int, rng: Rng = rng) -> float:
            return 0.06 * float(rng.random() < 0.5)

        answer = Oracle(lambda position: 1.0, noise).settle(Question(revisions=2, counted=True, seed=seed))
        assert answer.certificate is None or answer.certificate.blocks >= 3
        wrong += bool(answer.changes)
    assert wrong <= 1


def test_a_counted_metric_that_scatters_is_treated_like_a_time() -> None:
    found = two_builds(0.06, 0.02, counted=True)
    assert len(found.differences) > 5
    assert found.error > 0


def test_a_time_without_noise_is_not_taken_for_exact() -> None:
    found = two_builds(0.1, 0.0)
    assert found.finding is Finding.CHANGED
    assert len(found.differences) >= 7


def test_a_change_of_one_step_of_the_metric_is_not_certified() -> None:
    """A whole number of ticks changes by one tick if the true values differ by far less."""

    def finding(after: float) -> Finding:
        history = Map(Question(revisions=2, threshold=0.02))
        for _ in range(20):
            history.evidence.add(batch((0, math.log(11.0)), (1, math.log(after)), certificate=True))
        (found,) = history.rounds.gaps()
        return found.finding

    assert finding(12.0) is Finding.OPEN
    assert finding(17.0) is Finding.CHANGED


# Layouts.


def test_each_round_of_relinked_builds_has_a_new_layout() -> None:
    oracle = Oracle(step(1, 0.2), normal(1, 0.01), layouts(1, 0.02))
    Map(Question(revisions=2, relinks=True)).finish(oracle)
    drawn = [each.layout for each in oracle.batches]
    assert len(drawn) >= 8
    assert len(set(drawn)) == len(drawn)
    assert 0 not in drawn


@pytest.mark.parametrize(("seconds", "times"), [(0.5, 1), (30.0, 4)])
def test_expensive_relinks_are_sampled_several_times(seconds: float, times: int) -> None:
    oracle = Oracle(step(1, 0.2), normal(1, 0.01), layouts(1, 0.02), relink_seconds=seconds)
    Map(Question(revisions=2, relinks=True)).finish(oracle)
    assert len(oracle.batches) > 4
    for each in oracle.batches[1:]:
        runs = Counter(sample.position for sample in each.samples)
        assert set(runs.values()) == {times}


def test_several_samples_of_one_layout_are_one_difference() -> None:
    history = Map(Question(revisions=2, relinks=True))
    history.evidence.add(batch((0, 0.0), (1, 0.1), (0, 0.2), (1, 0.5), certificate=True, layout=3))
    assert history.rounds.differences(0, 1).tolist() == pytest.approx([0.2])


# Disturbed samples.


def test_noisy_and_failed_samples_cancel_the_pairs_of_their_build_only() -> None:
    history = Map(Question(revisions=100), (0, 40, 41, 99))
    for number in range(9):
        whole = batch((0, 0.0), (40, 0.0), (41, 0.1), (99, 0.1), certificate=True)
        spoilt = replace(whole.samples[0], noisy=True) if number % 2 else Sample(position=0, value=None)
        history.evidence.add(replace(whole, samples=(spoilt, *whole.samples[1:])))
    assert len(history.rounds.differences(0, 40)) == 0
    assert len(history.rounds.differences(40, 41)) == len(history.rounds.differences(41, 99)) == 9


def test_noisy_samples_count_where_hardly_any_sample_is_calm() -> None:
    history = Map(Question(revisions=2))
    for _ in range(9):
        samples = tuple(Sample(position=at, value=math.exp(0.1 * at), noisy=True) for at in (0, 1))
        history.evidence.add(Batch(samples=samples, certificate=True))
    assert len(history.rounds.differences(0, 1)) == 9


# Error rates.


def findings_of(
    noise: Callable[[Rng, int], Floats], size: float, *, trials: int, count: int, confidence: float
) -> list[Gap]:
    """Return two neighbouring builds after this number of rounds, for each trial."""
    rng, found = np.random.default_rng(11), []
    for seed in range(trials):
        history = Map(Question(revisions=2, confidence=confidence, threshold=0.05, seed=seed))
        values = SIGMA * noise(rng, 2 * count)
        for number in range(count):
            order = rng.permutation(2).tolist()
            pair = zip(order, values[2 * number : 2 * number + 2].tolist(), strict=True)
            samples = tuple(Sample(position=at, value=math.exp(size * at + value)) for at, value in pair)
            history.evidence.add(Batch(samples=samples, certificate=True))
        found += history.rounds.gaps()
    return found


@few_or(60, 1000)
@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.__name__)
def test_equal_builds_are_certified_as_different_no_more_often_than_allowed(
    noise: Callable[[Rng, int], Floats], trials: int
) -> None:
    found = findings_of(noise, 0.0, trials=trials, count=40, confidence=0.9)
    wrong = sum(each.evidence >= math.log(1 / 0.05) for each in found) / trials
    # The sign of the size is chosen after the data, so both directions count: at most 5 % each.
    assert wrong <= 0.1 + 3 * math.sqrt(0.1 * 0.9 / trials)


@few_or(50, 1000)
@pytest.mark.parametrize("noise", [white, heavy, bursts], ids=lambda noise: noise.__name__)
def test_builds_that_differ_by_the_threshold_are_rarely_called_equal(
    noise: Callable[[Rng, int], Floats], trials: int
) -> None:
    size = math.log1p(0.05)
    found = findings_of(noise, size, trials=trials, count=24, confidence=0.99)
    wrong = sum(each.finding is Finding.EQUAL for each in found) / trials
    assert wrong <= PART_LEVEL + 3 * math.sqrt(PART_LEVEL / trials)
    # A comparison that never ends would not be wrong either.
    assert sum(
        each.finding is Finding.EQUAL
        for each in findings_of(noise, 0.0, trials=20, count=40, confidence=0.99)
    )


@few_or(2, 60)
@pytest.mark.parametrize("noise", [white, bursts], ids=lambda noise: noise.__name__)
def test_whole_searches_by_rounds_name_nothing_if_nothing_changed(
    noise: Callable[[Rng, int], Floats], trials: int
) -> None:
    wrong = 0
    for seed in range(trials):
        values = iter(SIGMA * noise(np.random.default_rng(seed), 5000))
        history = Map(Question(revisions=60, seed=seed), range(0, 60, 10))
        history.finish(Oracle(lambda position: 1.0, lambda position, values=values: float(next(values))))  # type: ignore[misc]  # a value for each seed
        wrong += bool(history.named())
    assert wrong <= max(1, 0.03 * trials) - 1 + (trials > 20)


# Levels.


def test_the_levels_of_builds_are_those_of_all_rounds_however_far_apart_they_are() -> None:
    history = Map(Question(revisions=4), range(4))
    rng, true = np.random.default_rng(1), np.array([0.0, 0.01, 1.5, 1.51])
    for number in range(12):
        drift = float(rng.normal(0, 0.3))
        builds = [0, 1, 2, 3] if number % 2 else [1, 2]
        values = [(at, float(true[at] + drift + rng.normal(0, 0.002))) for at in builds]
        history.evidence.add(batch(*values, certificate=True))
    levels, errors = history.rounds.build_levels()
    np.testing.assert_allclose(levels - levels[0], true, atol=0.005)
    assert errors.max() < 0.002
    history.rounds.gaps()
    np.testing.assert_array_equal(levels, history.rounds.build_levels()[0])


def test_one_disturbed_sample_hardly_moves_a_level() -> None:
    history = Map(Question(revisions=4), range(4))
    rng = np.random.default_rng(1)
    for number in range(12):
        values = [(at, 0.7 * (at == 2 and number == 5) + float(rng.normal(0, 0.002))) for at in range(4)]
        history.evidence.add(batch(*values, certificate=True))
    levels, _ = history.rounds.build_levels()
    assert np.ptp(levels) < 0.005
