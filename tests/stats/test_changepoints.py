"""Change points along a measured history, and the prior weights of a search."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perftrail.stats.changepoints import (
    ALERT_SIZE,
    FALSE_ALARMS,
    GAMMA,
    PENALTY,
    SHORT,
    ChangePoint,
    change_points,
    changes_of,
    likely_splits,
    search_weights,
)
from perftrail.stats.series_noise import FEWEST, by_columns

Floats = npt.NDArray[np.float64]
Levels = list[tuple[int, tuple[float, ...]]]


def history(
    levels: Sequence[float], *, seed: int = 1, samples: int = 1, cv: float = 0.03, layout: float = 0.01
) -> Levels:
    """Return samples of revisions with these levels, with noise of each sample and of each build."""
    rng = np.random.default_rng(seed)
    builds = np.log(levels) + rng.normal(size=len(levels)) * layout
    noise = rng.normal(size=(len(levels), samples)) * cv
    return [(position, tuple(row)) for position, row in enumerate((builds[:, None] + noise).tolist())]


def positions(points: Sequence[ChangePoint]) -> list[int]:
    return [point.position for point in points]


@pytest.mark.parametrize("length", [SHORT, 20 * SHORT])
def test_steps_are_found_at_their_positions_with_their_effects(length: int) -> None:
    first, second = length // 3, 2 * length // 3
    levels = [1.0] * first + [1.3] * (second - first) + [0.9] * (length - second)
    up, down = change_points(history(levels))
    assert (up.position, down.position) == (first, second)
    assert (up.previous, down.previous) == (first - 1, second - 1)
    assert up.low < 1.3 < up.high
    assert down.low < 0.9 / 1.3 < down.high
    assert up.high - up.low < 0.1
    assert up.before == pytest.approx(1.0, abs=0.03)
    assert up.after == pytest.approx(1.3, abs=0.03)
    assert max(up.p_value, down.p_value) < FALSE_ALARMS


def cost_of(part: Floats) -> float:
    """The squared distance of a part's levels from their mean in the space of the kernel, by its definition."""
    likeness = np.exp(-GAMMA * np.subtract.outer(part, part) ** 2)
    return len(part) - float(likeness.sum()) / len(part)


def partitions(length: int) -> Iterator[tuple[int, ...]]:
    """All ascending splits into parts of at least two levels."""
    for number in range(length // 2):
        for splits in combinations(range(2, length - 1), number):
            if all(right - left >= 2 for left, right in pairwise(splits)):
                yield splits


def test_the_detector_returns_the_partition_of_least_cost() -> None:
    rng = np.random.default_rng(1)
    blocks = rng.normal(size=(20, 10)) + 4.0 * rng.integers(0, 2, size=(20, 10)).cumsum(axis=1)
    numbers = set()
    for block in blocks:
        found = tuple(sorted(likely_splits(block[None], [0])))
        numbers.add(len(found))

        def cost(splits: tuple[int, ...], block: Floats = block) -> float:
            return sum(cost_of(part) + PENALTY for part in np.split(block, splits))

        assert cost(found) == pytest.approx(min(map(cost, partitions(len(block)))))
    assert len(numbers) > 1
    together = likely_splits(blocks, range(0, 200, 10))
    alone = (split for row, block in enumerate(blocks) for split in likely_splits(block[None], [10 * row]))
    assert list(together) == list(alone)


def test_a_flat_history_has_no_change_points() -> None:
    assert change_points(history([1.0] * 1000)) == ()


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4])
def test_up_to_four_single_samples_show_no_change_point(count: int) -> None:
    assert change_points(history([1.0, 1.5, 1.0, 2.0][:count])) == ()


def test_three_revisions_with_many_samples_show_a_large_step() -> None:
    assert positions(change_points(history([1.0, 1.0, 1.5], samples=30))) == [2]
    assert change_points(history([1.0, 1.0, 1.02], samples=30)) == ()


def test_the_newest_revision_is_a_change_point_only_with_many_samples() -> None:
    levels = [1.0] * 29 + [1.5]
    assert positions(change_points(history(levels, samples=10))) == [29]
    assert change_points(history(levels)) == (), "one sample never decides"


@pytest.mark.parametrize("factor", [2.0, 0.5, 1e9])
def test_outliers_on_either_side_are_not_change_points(factor: float) -> None:
    levels = [1.0] * 400
    for position in (3, 50, 51, 200, 201, 202, 398):
        levels[position] *= factor
    assert change_points(history(levels)) == ()


def test_outliers_do_not_hide_a_step() -> None:
    levels = [1.0] * 100 + [1.15] * 100
    for position in (10, 40, 60, 90, 98, 101, 120, 160):
        levels[position] *= 2.0 if position % 20 else 0.5
    [point] = change_points(history(levels))
    assert point.earliest <= 100 <= point.latest
    assert point.low < 1.15 < point.high


def test_unmeasured_revisions_between_two_levels_are_all_candidates() -> None:
    measured = [each for each in history([1.0] * 500 + [1.5] * 500, seed=2) if each[0] % 20 == 3]
    [point] = change_points(measured)
    assert (point.previous, point.position) == (483, 503)
    assert (point.earliest, point.latest) == (484, 503)


def test_a_long_gap_is_likelier_to_contain_the_change_than_a_short_one() -> None:
    levels = [0.0, 0.01, -0.01] * 10
    logs = [*levels, 0.06, *(0.12 + level for level in levels)]
    even = [(position, (log,)) for position, log in enumerate(logs)]
    uneven = [(position if position <= 30 else position + 10_000, log) for position, log in even]
    assert positions(change_points(even)) in ([30], [31])
    assert positions(change_points(uneven)) == [10_031]


def test_revisions_may_have_any_number_of_samples() -> None:
    rng = np.random.default_rng(5)
    whole = history([1.0] * 60 + [1.1] * 60, samples=30)
    measured = [(position, logs[: rng.choice([1, 1, 2, 5, 30])]) for position, logs in whole]
    [point] = change_points(measured)
    assert point.earliest <= 60 <= point.latest


def test_one_odd_build_with_many_samples_is_not_a_change_point() -> None:
    whole = history([1.0] * 600 + [1.5] + [1.0] * 600)
    whole[600] = history([1.0] * 600 + [1.5], samples=40)[600]
    assert change_points(whole) == ()


def test_values_that_are_not_finite_are_ignored() -> None:
    measured = history([1.0] * 50 + [1.5] * 50)
    measured[10] = (10, (math.nan,))
    measured[70] = (70, (math.inf, *measured[70][1]))
    measured[50] = (50, ())
    [point] = change_points(measured)
    assert (point.previous, point.position) == (49, 51)


def test_counts_without_noise_show_every_step() -> None:
    logs = [math.log(1_000_000)] * 40 + [math.log(1_010_000)] * 40
    exact = [(position, (log,)) for position, log in enumerate(logs)]
    [point] = change_points(exact)
    assert point.position == 40
    assert point.high - point.low < 0.001
    assert change_points(exact[:40]) == ()
    assert positions(change_points(exact[34:46])) == [40]


def test_counts_that_jump_between_two_values_show_no_change_point() -> None:
    rng = np.random.default_rng(3)
    logs = np.log(np.where(rng.random(300) < 0.2, 104.0, 100.0))
    assert change_points([(position, (log,)) for position, log in enumerate(logs.tolist())]) == ()


def two_levels(levels: Sequence[float], share: float, *, seed: int, samples: int) -> Levels:
    """Return samples of revisions of which this share is 40 % larger, as memory is if a collector starts or not."""
    rng = np.random.default_rng(seed)
    larger = rng.random((len(levels), samples)) < share
    logs = np.log(levels)[:, None] + math.log(1.4) * larger + rng.normal(size=larger.shape) * 0.005
    return [(position, tuple(row)) for position, row in enumerate(logs.tolist())]


FEW_OR_MANY = pytest.mark.parametrize(
    ("series_drawn", "most_wrong"), [(8, 1), pytest.param(40, 2, marks=pytest.mark.long)]
)


@FEW_OR_MANY
@pytest.mark.parametrize("share", [0.1, 0.3, 0.5])
@pytest.mark.parametrize(("samples", "length"), [(5, 20), (5, 45), (10, 20), (10, 45), (20, 20), (20, 45)])
def test_samples_with_two_levels_are_rarely_reported_as_a_change(
    share: float, samples: int, length: int, series_drawn: int, most_wrong: int
) -> None:
    drawn = [two_levels([1.0] * length, share, seed=seed, samples=samples) for seed in range(series_drawn)]
    assert sum(bool(change_points(series)) for series in drawn) <= most_wrong


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_a_step_of_both_levels_is_found(share: float) -> None:
    [point] = change_points(two_levels([1.0] * 25 + [1.6] * 25, share, seed=1, samples=10))
    assert point.earliest <= 25 <= point.latest
    assert point.low < 1.6 < point.high


def test_a_step_below_the_noise_is_found_between_long_segments() -> None:
    [point] = change_points(history([1.0] * 2000 + [1.02] * 2000, layout=0.0))
    assert point.earliest <= 2000 <= point.latest
    assert point.low < 1.02 < point.high


def correlated(
    length: int,
    correlation: float,
    seed: int,
    *,
    steps: dict[int, float] | None = None,
    outliers: float = 0.0,
) -> Levels:
    """One sample of each revision, with noise of 3 % in which neighbours are correlated, and steps in logarithms."""
    rng = np.random.default_rng([seed, length])
    noise = rng.normal(size=length)
    for at in range(1, length):
        noise[at] = correlation * noise[at - 1] + math.sqrt(1.0 - correlation**2) * noise[at]
    logs = 0.03 * noise + math.log(2.0) * (rng.random(length) < outliers)
    for first, step in (steps or {}).items():
        logs[first:] += step
    return [(position, (log,)) for position, log in enumerate(logs.tolist())]


@FEW_OR_MANY
@pytest.mark.parametrize("outliers", [0.0, 0.03])
@pytest.mark.parametrize("correlation", [0.3, 0.5, 0.7])
def test_correlated_noise_is_rarely_reported_as_a_change(
    correlation: float, outliers: float, series_drawn: int, most_wrong: int
) -> None:
    drawn = [correlated(200, correlation, seed, outliers=outliers) for seed in range(series_drawn)]
    assert sum(bool(change_points(series)) for series in drawn) <= most_wrong


@pytest.mark.parametrize("series_drawn", [5, pytest.param(20, marks=pytest.mark.long)])
def test_the_correlation_of_neighbours_is_reported_with_its_interval(series_drawn: int) -> None:
    for correlation in (0.0, 0.5):
        found = [
            changes_of(by_columns(correlated(400, correlation, seed, steps={200: 0.2}))).correlation
            for seed in range(series_drawn)
        ]
        covered = sum(each is not None and each.low <= correlation <= each.high for each in found)
        assert covered >= 0.9 * series_drawn - 1
        certain = sum(each is not None and each.is_certain for each in found)
        assert certain == series_drawn if correlation else certain <= 1


def test_a_series_without_any_candidate_needs_no_correlation() -> None:
    assert changes_of(by_columns(correlated(100, 0.0, 1))).correlation is None


def test_steps_are_not_taken_for_correlation() -> None:
    steps = {40: 0.1, 80: -0.15, 120: 0.1, 160: 0.08}
    found = changes_of(by_columns(correlated(200, 0.0, 1, steps=steps)))
    assert found.correlation is not None
    assert not found.correlation.is_certain
    assert [point.position for point in found.points] == pytest.approx(list(steps), abs=3)


def test_a_step_between_correlated_neighbours_is_found_with_a_wider_interval() -> None:
    [point] = change_points(correlated(200, 0.5, 1, steps={100: 0.2}))
    [plain] = change_points(correlated(200, 0.0, 1, steps={100: 0.2}))
    assert point.earliest <= 100 <= point.latest
    assert point.low < math.exp(0.2) < point.high
    assert math.log(point.high / point.low) > 1.4 * math.log(plain.high / plain.low)


def test_few_levels_do_not_show_a_correlation() -> None:
    assert changes_of(by_columns(correlated(FEWEST - 1, 0.5, 1))).correlation is None


def test_a_size_is_the_step_over_the_noise_of_one_level() -> None:
    [point] = change_points(correlated(400, 0.0, 3, steps={200: 0.12}))
    assert point.size == pytest.approx(4.0, rel=0.2)
    assert point.size_low < 4.0 < point.size_high
    assert point.alert


def test_a_small_step_is_a_change_point_but_not_an_alert() -> None:
    [point] = change_points(correlated(1000, 0.0, 3, steps={500: 0.03}))
    assert point.size_low < ALERT_SIZE
    assert not point.alert


def test_one_odd_build_is_not_an_alert_but_three_are() -> None:
    [newest] = change_points(history([1.0] * 29 + [1.5], samples=10))
    [confirmed] = change_points(history([1.0] * 29 + [1.5] * 3, samples=10))
    assert not newest.alert
    assert confirmed.alert


def test_a_short_reverted_burst_is_not_an_alert() -> None:
    burst = correlated(300, 0.0, 4, steps={150: 0.2, 158: -0.2})
    lasting = correlated(300, 0.0, 4, steps={150: 0.2, 158: -0.1})
    assert [point.alert for point in change_points(burst)] == [False, False]
    assert [point.alert for point in change_points(lasting)] == [True, True]


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 3), st.floats(0.6, 1.6))
def test_reciprocals_change_at_the_same_places_by_the_reciprocal(
    seed: int, samples: int, step: float
) -> None:
    measured = history([1.0] * 15 + [step] * 15, seed=seed, samples=samples)
    mirrored = [(position, tuple(-log for log in logs)) for position, logs in measured]
    points, others = change_points(measured), change_points(mirrored)
    assert positions(points) == positions(others)
    for point, other in zip(points, others, strict=True):
        assert other.effect == pytest.approx(1 / point.effect)
        assert (other.earliest, other.latest) == (point.earliest, point.latest)


def test_search_weights_are_large_near_change_points_and_positive_everywhere() -> None:
    weights = search_weights(history([1.0] * 300 + [1.2] * 700), 1000)
    assert weights is not None
    assert len(weights) == 1000
    assert sum(weights) == pytest.approx(1.0)
    assert min(weights) > 0.0
    assert sum(weights[295:306]) > 0.4
    assert weights.index(max(weights)) in range(297, 304)


def test_unmeasured_revisions_of_a_change_have_equal_weights() -> None:
    measured = [each for each in history([1.0] * 300 + [1.2] * 700) if each[0] % 50 == 0]
    weights = search_weights(measured, 1000)
    assert weights is not None
    assert min(weights[251:301]) == max(weights)


def test_a_flat_history_has_no_search_weights() -> None:
    assert search_weights(history([1.0] * 100), 100) is None
    assert search_weights([], 100) is None
