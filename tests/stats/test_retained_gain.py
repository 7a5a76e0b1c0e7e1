"""Retained gain: exact without noise, and with noise in its interval as often as the confidence."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from perftrail.stats.comparison import excludes_zero
from perftrail.stats.retained_gain import RetainedGain, Share
from perftrail.stats.retained_gain import estimate_retained_gain as estimate

LEVEL = 0.05

Floats = npt.NDArray[np.float64]


def drawn(
    rng: np.random.Generator, *, share: float, gain: float, noise: float, units: int
) -> tuple[list[float], list[float]]:
    """Draw log-ratios of the patched and the fixed build to one old build, for units of three invocations."""
    old, patched, fixed = (rng.normal(0.0, noise, units) for _ in range(3))
    return list(share * gain + patched - old), list(gain + fixed - old)


@pytest.mark.parametrize(("share", "gain"), [(1.0, 0.7), (0.5, -0.3), (0.0, 0.2), (-0.4, 0.5)])
def test_values_without_noise_yield_the_exact_share(share: float, gain: float) -> None:
    found = estimate([share * gain] * 15, [gain] * 15, level=0.001)
    assert found is not None
    assert found.low == found.value == found.high == pytest.approx(share)


@pytest.mark.long
@pytest.mark.parametrize(("share", "gain"), [(1.0, 0.3), (0.5, -0.3), (0.0, 0.2), (0.9, 0.1)])
def test_the_interval_contains_the_share_as_often_as_its_confidence(share: float, gain: float) -> None:
    rng = np.random.default_rng(11)
    trials = [
        estimate(*drawn(rng, share=share, gain=gain, noise=0.03, units=14), level=LEVEL) for _ in range(250)
    ]
    estimates = [each for each in trials if each is not None]
    assert len(estimates) > 160, "a gain of 10 % is detected in most cases"
    # Six standard errors of a coverage of 95 % over 250 trials would be 0.083; the test requires 0.93.
    assert sum(each.low <= share <= each.high for each in estimates) / len(estimates) >= 0.93


@pytest.mark.long
def test_the_interval_covers_the_share_despite_heavy_tails() -> None:
    rng = np.random.default_rng(12)
    covered = 0
    for _ in range(200):
        noise = 0.02 * rng.standard_t(2.0, size=(3, 16))
        found = estimate(list(0.5 * 0.4 + noise[1] - noise[0]), list(0.4 + noise[2] - noise[0]), level=LEVEL)
        covered += found is None or found.low <= 0.5 <= found.high
    assert covered / 200 >= 0.93


@pytest.mark.long
def test_without_a_gain_no_share_is_claimed() -> None:
    rng = np.random.default_rng(13)
    found = [estimate(*drawn(rng, share=0.0, gain=0.0, noise=0.03, units=14), level=0.01) for _ in range(250)]
    assert sum(each is not None for each in found) / 250 <= 0.02


def test_the_interval_contains_the_shares_that_the_bets_do_not_reject() -> None:
    rng = np.random.default_rng(14)
    for _ in range(20):
        patched, fixed = (np.array(each) for each in drawn(rng, share=0.7, gain=0.4, noise=0.05, units=14))
        found = estimate(list(patched), list(fixed), level=LEVEL)
        assert found is not None

        def rejected(share: float, p: Floats = patched, f: Floats = fixed) -> bool:
            return excludes_zero(p - share * f, LEVEL / 2)

        assert not rejected(found.value)
        assert rejected(found.low - 1e-6)
        assert rejected(found.high + 1e-6)
        assert found.low < found.value < found.high


def test_the_share_is_the_same_for_a_gain_upwards_and_downwards() -> None:
    patched, fixed = drawn(np.random.default_rng(15), share=0.6, gain=0.5, noise=0.05, units=12)
    up = estimate(patched, fixed, level=LEVEL)
    down = estimate([-each for each in patched], [-each for each in fixed], level=LEVEL)
    assert up == down


def test_too_few_units_have_no_estimate() -> None:
    assert estimate([0.5] * 5, [0.5] * 5, level=0.01) is None


@pytest.mark.parametrize(
    ("low", "high", "share"),
    [
        (0.95, 1.05, Share.WHOLE),
        (0.4, 0.6, Share.PART),
        (-0.05, 0.05, Share.NOTHING),
        (0.5, 1.2, Share.UNCLEAR),
        (-0.2, 0.4, Share.UNCLEAR),
    ],
)
def test_an_interval_has_a_word_only_if_all_of_it_agrees(low: float, high: float, share: Share) -> None:
    assert RetainedGain(value=(low + high) / 2, low=low, high=high, confidence=0.99, units=20).share is share


def test_unpaired_values_are_refused() -> None:
    with pytest.raises(ValueError, match="each unit needs both"):
        estimate([0.1], [0.1, 0.2], level=LEVEL)
