"""The certificate: its error rates under any noise of the machine, its power, and its statements on other changes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

from perftrail.search.certificate import Certificate, State, blocks_left
from perftrail.stats.comparison import bounds, centre, current_log_wealth, log_wealth

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Rng = np.random.Generator

LEVEL = 0.05
MOST = 64
THRESHOLD = math.log1p(0.05)


def normal(rng: Rng, count: int) -> Floats:
    return rng.normal(size=count)


def heavy(rng: Rng, count: int) -> Floats:
    return rng.standard_t(1.5, count)


def bimodal(rng: Rng, count: int) -> Floats:
    return rng.normal(size=count) + 30.0 * (rng.random(count) < 0.5)


def autocorrelated(rng: Rng, count: int) -> Floats:
    """AR(1) with a correlation of 0.5."""
    values = rng.normal(size=count)
    for at in range(1, count):
        values[at] += 0.5 * values[at - 1]
    return values


def bursts(rng: Rng, count: int) -> Floats:
    """Other load of 3 to 9 samples at a time, in 15 % of the time."""
    values = rng.normal(size=count)
    at = int(rng.integers(40))
    while at < count:
        length = int(rng.integers(3, 10))
        values[at : at + length] += 10.0
        at += length + int(rng.geometric(1 / 34))
    return values


def drifting(rng: Rng, count: int) -> Floats:
    return rng.normal(size=count) + np.linspace(0.0, 20.0, count)


NOISES = [normal, heavy, bimodal, autocorrelated, bursts, drifting]


def few_or(few: int, many: int) -> pytest.MarkDecorator:
    """Run a test with a few trials, and a long one with many."""
    return pytest.mark.parametrize("trials", [few, pytest.param(many, marks=pytest.mark.long)])


def test_bets_have_the_wealth_of_their_formula() -> None:
    """W(c) = mean of prod(1 + s tanh(r (d - c) / scale)), and the largest so far counts."""
    differences, scale = [0.5, 1.5, -3.0], 2.0
    for shift in (0.0, 0.4):
        products = [1.0] * 6
        wealth = []
        for difference in differences:
            for at, (stake, rate) in enumerate(
                [(0.99, 0.1), (0.99, 0.25), (0.99, 0.5), (0.99, 1.0), (0.99, 2.0), (0.5, 1.0)]
            ):
                products[at] *= 1.0 + stake * math.tanh(rate * (difference - shift) / scale)
            wealth.append(sum(products) / 6)
        found = log_wealth(np.array(differences), scale, np.array([shift]))[0]
        assert found == pytest.approx(math.log(max(1.0, *wealth)))
        assert current_log_wealth(np.array(differences) - shift, scale) == pytest.approx(math.log(wealth[-1]))


def test_bounds_are_the_shifts_at_which_the_wealth_reaches_its_limit() -> None:
    differences = 2.0 + np.array([0.3, -1.1, 0.7, 0.1, -0.4, 1.2, -0.2, 0.5, -0.9, 0.6, 0.0, -0.3])
    found = bounds(differences, 1.0, LEVEL)
    limit = math.log(1 / LEVEL)
    # Wealth falls as the shift grows; a bound is exact to a small part of the scale.
    at_low = log_wealth(differences, 1.0, np.array([found.low, found.low + 0.001]))
    at_high = log_wealth(-differences, 1.0, np.array([-found.high, -found.high + 0.001]))
    for reached, missed in (at_low, at_high):
        assert reached >= limit > missed
    assert found.low < 2.0 < found.high
    assert math.isfinite(bounds(np.full(8, 5.0), 1.0, 0.005).low)
    assert bounds(np.full(7, 5.0), 1.0, 0.005).low == -math.inf, "seven bets cannot gain enough"


@few_or(300, 3000)
@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.__name__)
def test_equal_builds_are_called_different_no_more_often_than_allowed(
    noise: Callable[[Rng, int], Floats], trials: int
) -> None:
    rng = np.random.default_rng(7)
    wrong = 0
    for _ in range(trials):
        pairs = noise(rng, 2 * MOST).reshape(MOST, 2)
        signs = rng.choice([-1.0, 1.0], MOST)
        evidence = log_wealth(signs * (pairs[:, 1] - pairs[:, 0]), 1.0, np.zeros(1))[0]
        wrong += evidence >= math.log(1 / LEVEL)
    # By Ville's inequality the share is at most LEVEL, plus three standard errors for chance.
    assert wrong / trials <= LEVEL + 3 * math.sqrt(LEVEL * (1 - LEVEL) / trials)
    # A test that never rejects would have no power.
    assert wrong / trials > LEVEL / 20


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.__name__)
def test_bounds_contain_the_true_shift(noise: Callable[[Rng, int], Floats]) -> None:
    rng, trials = np.random.default_rng(8), 200
    missed = 0
    for _ in range(trials):
        pairs = noise(rng, 2 * 24).reshape(24, 2)
        signs = rng.choice([-1.0, 1.0], 24)
        found = bounds(2.0 + signs * (pairs[:, 1] - pairs[:, 0]), 1.0, LEVEL)
        missed += not found.low <= 2.0 <= found.high
    assert missed / trials <= 2 * LEVEL


def run_certificate(
    levels: tuple[float, ...],
    *,
    seed: int,
    noise: Callable[[Rng, int], Floats] = normal,
    sigma: float = 0.02,
    threshold: float = THRESHOLD,
    level: float = 0.005,
) -> Certificate:
    """Run a certificate of builds with these levels to its end, its blocks in random order."""
    rng = np.random.default_rng(seed)
    builds = (0, 40, 41, 99) if len(levels) == 4 else (0, 99)
    level_of = dict(zip(builds, levels, strict=True))
    certificate = Certificate(builds, direction=1, level=level, threshold=threshold, scale=sigma)
    while certificate.state is State.OPEN:
        order = rng.permutation(certificate.needed)
        values = sigma * noise(rng, len(order))
        block = {int(build): level_of[int(build)] + value for build, value in zip(order, values, strict=True)}
        certificate.tell(block, invocations=len(order))
    return certificate


@few_or(15, 60)
def test_a_change_of_three_sigma_takes_about_ten_blocks(trials: int) -> None:
    certificates = [
        run_certificate((0.0, 0.0, 0.06, 0.06), seed=seed, threshold=0.06) for seed in range(trials)
    ]
    assert all(certificate.state is State.CONFIRMED for certificate in certificates)
    assert np.mean([certificate.blocks for certificate in certificates]) < 11
    assert np.mean([certificate.summary().invocations for certificate in certificates]) < 37
    assert all(certificate.summary().error <= 0.005 for certificate in certificates)
    assert sum(certificate.summary().is_only_change for certificate in certificates) >= trials - 2
    covered = [certificate.change.low <= 0.06 <= certificate.change.high for certificate in certificates]
    assert np.mean(covered) >= 0.9
    assert np.mean([certificate.size for certificate in certificates]) == pytest.approx(0.06, rel=0.05)


@few_or(5, 20)
def test_a_change_that_slows_half_of_the_invocations_is_confirmed(trials: int) -> None:
    rng = np.random.default_rng(1)
    confirmed = 0
    for _ in range(trials):
        certificate = Certificate((0, 4, 5, 9), direction=1, level=0.005, threshold=0.05, scale=0.01)
        while certificate.state is State.OPEN:
            slow = {build: 0.26 * float(build >= 5 and rng.random() < 0.5) for build in certificate.needed}
            certificate.tell({build: value + rng.normal(0, 0.01) for build, value in slow.items()})
        confirmed += certificate.state is State.CONFIRMED
    assert confirmed >= trials - 1


@few_or(12, 80)
@pytest.mark.parametrize("noise", [normal, heavy, bursts], ids=lambda noise: noise.__name__)
def test_certificates_of_equal_builds_are_rarely_confirmed(
    noise: Callable[[Rng, int], Floats], trials: int
) -> None:
    certificates = [
        run_certificate((0.0,) * 4, seed=seed, noise=noise, level=LEVEL) for seed in range(trials)
    ]
    # Of a few trials, one may be wrong.
    confirmed = sum(certificate.state is State.CONFIRMED for certificate in certificates)
    assert confirmed <= max(1, (LEVEL + 0.03) * trials)
    assert not any(certificate.state is State.OPEN for certificate in certificates)


@few_or(8, 40)
@pytest.mark.parametrize("levels", [(0.0, 0.06, 0.06, 0.06), (0.0, 0.0, 0.0, 0.06)])
def test_a_change_at_another_position_rejects_the_claim(levels: tuple[float, ...], trials: int) -> None:
    certificates = [run_certificate(levels, seed=seed, threshold=0.06) for seed in range(trials)]
    assert np.mean([certificate.state is State.REJECTED for certificate in certificates]) >= 0.97


@few_or(8, 40)
def test_a_second_change_next_to_the_claimed_one_is_not_overlooked(trials: int) -> None:
    certificates = [
        run_certificate((0.0, 0.06, 0.12, 0.12), seed=seed, threshold=0.06) for seed in range(trials)
    ]
    assert not any(certificate.summary().is_only_change for certificate in certificates)


def test_equal_ends_are_confirmed_as_equal() -> None:
    certificates = [run_certificate((0.0, 0.0), seed=seed, threshold=0.06) for seed in range(15)]
    assert all(certificate.state is State.CONFIRMED for certificate in certificates)
    assert np.mean([certificate.blocks for certificate in certificates]) < 11
    assert all(certificate.bounds_at_level().within(0.06) for certificate in certificates)


@few_or(16, 80)
def test_ends_that_differ_by_the_threshold_are_rarely_confirmed_as_equal(trials: int) -> None:
    certificates = [
        run_certificate((0.0, 0.06), seed=seed, threshold=0.06, level=LEVEL) for seed in range(trials)
    ]
    # Of a few trials, one may be wrong.
    confirmed = sum(certificate.state is State.CONFIRMED for certificate in certificates)
    assert confirmed <= max(1, (LEVEL + 0.03) * trials)


def test_closed_pairs_are_not_measured_again() -> None:
    certificate = Certificate((0, 40, 41, 99), direction=1, level=0.005, threshold=0.05, scale=0.01)
    assert certificate.needed == (0, 40, 41, 99)
    needed: list[tuple[int, ...]] = []
    while certificate.state is State.OPEN:
        needed.append(certificate.needed)
        wobble = 0.001 * (-1) ** certificate.blocks
        values = {0: wobble, 40: -wobble, 41: 0.1, 99: 0.1 + wobble}
        certificate.tell({build: values[build] for build in certificate.needed})
    # Outer pairs, at an error of 5 %, close before the inner one, at 0.5 %.
    assert needed[0] == (0, 40, 41, 99)
    assert needed[-1] == (40, 41)
    assert not certificate.needed


def test_a_failed_sample_cancels_its_pairs_only() -> None:
    certificate = Certificate((0, 40, 41, 99), direction=1, level=0.005, threshold=0.05, scale=0.01)
    for _ in range(12):
        certificate.tell({40: 0.0, 41: 0.1, 99: 0.1})
    assert certificate.evidence >= 200
    assert certificate.outside().low == -math.inf


def test_a_build_at_an_end_needs_no_outer_pair() -> None:
    certificate = Certificate((0, 0, 1, 1), direction=-1, level=0.005, threshold=0.05, scale=0.01)
    while certificate.state is State.OPEN:
        assert certificate.needed == (0, 1)
        certificate.tell({0: 0.1, 1: 0.0})
    assert certificate.summary().is_only_change
    assert certificate.summary().possible == 0.0
    assert certificate.change.high < 0


def test_a_counted_metric_needs_three_blocks() -> None:
    certificate = Certificate(
        (0, 4, 5, 9), direction=1, level=0.005, threshold=0.05, scale=1e-4, counted=True
    )
    while certificate.state is State.OPEN:
        certificate.tell({0: 0.0, 4: 0.0, 5: 0.1, 9: 0.1})
    assert certificate.state is State.CONFIRMED
    assert certificate.blocks == 3


def test_a_change_of_one_step_of_the_metric_is_not_shown() -> None:
    def state(step: float) -> State:
        certificate = Certificate(
            (0, 4, 5, 9), direction=1, level=0.005, threshold=0.02, scale=0.01, resolution=0.1
        )
        for _ in range(20):
            certificate.tell({0: 0.0, 4: 0.0, 5: step, 9: step})
        return certificate.state

    assert state(0.1) is not State.CONFIRMED
    assert state(0.3) is State.CONFIRMED


def test_a_futile_claim_ends_early_with_the_number_of_missing_blocks() -> None:
    certificate = run_certificate((0.0, 0.0, 0.004, 0.004), seed=3, threshold=0.004)
    assert certificate.state is State.FUTILE
    assert certificate.blocks < MOST
    left = blocks_left(certificate.evidence, certificate.blocks, certificate.level)
    assert left is None or left > MOST
    assert blocks_left(150.0, 10, 0.005) == 1


def test_a_certificate_reports_the_larger_scatter_of_the_new_build() -> None:
    rng = np.random.default_rng(4)
    certificate = Certificate((0, 4, 5, 9), direction=1, level=0.005, threshold=0.05, scale=0.01)
    for _ in range(60):
        certificate.tell({4: rng.normal(0, 0.01), 5: 0.1 + rng.normal(0, 0.05)})
    assert certificate.summary().spread == pytest.approx(5.0, rel=0.4)


@few_or(50, 200)
def test_a_difference_of_scatter_is_rarely_reported_if_there_is_none(trials: int) -> None:
    """The ratio of two estimates exceeds 2 in about a third of these cases."""
    rng = np.random.default_rng(4)
    claimed = 0
    for _ in range(trials):
        certificate = Certificate((0, 4, 5, 9), direction=1, level=0.005, threshold=0.05, scale=0.01)
        for _ in range(8):
            certificate.tell({4: rng.normal(0, 0.01), 5: 0.1 + rng.normal(0, 0.01)})
        claimed += certificate.summary().spread is not None
    assert claimed <= trials // 25


def test_a_certificate_shows_that_a_small_change_is_small() -> None:
    certificate = run_certificate((0.0, 0.0, 0.02, 0.02), seed=1, sigma=0.004)
    assert certificate.state is State.CONFIRMED
    assert certificate.shows_small_change()
    assert not run_certificate((0.0, 0.0, 0.1, 0.1), seed=1, sigma=0.004).shows_small_change()


def test_layouts_are_counted() -> None:
    certificate = Certificate((0, 4, 5, 9), direction=1, level=0.005, threshold=0.05, scale=0.01)
    for layout in (5, 6, 6, 7):
        certificate.tell({4: 0.0, 5: 0.1}, layout=layout)
    assert certificate.summary().layouts == 3


def test_the_size_is_the_median_of_the_averages_of_all_pairs_of_values() -> None:
    assert centre(np.array([1.0, 2.0, 30.0])) == pytest.approx(np.median([1, 1.5, 2, 15.5, 16, 30]))


def test_a_certificate_needs_two_or_four_builds() -> None:
    with pytest.raises(ValueError, match="two ends"):
        Certificate((1, 2, 3), direction=1, level=0.005, threshold=0.05, scale=0.01)


def test_the_levels_differ_by_exactly_the_size() -> None:
    for seed in range(5):
        certificate = run_certificate((0.0, 0.0, 0.06, 0.06), seed=seed, threshold=0.06)
        before, after = certificate.levels
        assert after - before == pytest.approx(certificate.size)
