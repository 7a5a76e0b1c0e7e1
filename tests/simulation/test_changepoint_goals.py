"""The goals of change points, in simulation. The seeds are fixed; the margins leave room for few trials."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest

from benchmarks.changepoints.scoring import Score, score
from benchmarks.changepoints.series import Series, Settings, draw
from perftrail.stats.changepoints import ChangePoint, change_points


def found(settings: Settings, seed: int, trials: int) -> list[tuple[Series, tuple[ChangePoint, ...]]]:
    """Draw histories and give each with its change points."""
    drawn = [draw(settings, np.random.default_rng([seed, number])) for number in range(trials)]
    return [(series, change_points(samples(series))) for series in drawn]


def samples(series: Series) -> list[tuple[int, tuple[float]]]:
    return [(position, (math.log(value),)) for position, value in enumerate(series.values.tolist())]


def total(results: list[tuple[Series, tuple[ChangePoint, ...]]]) -> Score:
    return sum(
        (score(series.changes, [point.position for point in points], margin=5) for series, points in results),
        Score(),
    )


@pytest.mark.parametrize(
    ("true", "reported", "matched"),
    [
        ((10, 50), (8, 12, 90), 1),
        ((10, 14), (9, 15), 2),
        ((10,), (16,), 0),
        ((10, 20), (15,), 1),
        ((), (3,), 0),
    ],
)
def test_each_true_point_is_matched_once(
    true: tuple[int, ...], reported: tuple[int, ...], matched: int
) -> None:
    assert score(true, reported, margin=5) == Score(true=len(true), reported=len(reported), matched=matched)


def test_steps_are_found_and_hardly_any_invented() -> None:
    assert total(found(Settings(length=1000, changes=4), 81, 20)).f1 >= 0.97


def test_a_level_history_hardly_ever_shows_a_point() -> None:
    for length, two_sided in ((12, True), (40, False), (300, True)):
        results = found(Settings(length=length, changes=0, two_sided=two_sided), 82, 40)
        assert sum(bool(points) for _, points in results) <= 2


@pytest.mark.slow("simulation")
def test_intervals_contain_the_truth_as_often_as_their_confidence() -> None:
    placed = sized = reported = 0
    for series, points in found(Settings(length=200, changes=1, threshold=0.08, apart=60), 83, 100):
        [change], [step] = series.changes, series.steps
        if len(points) == 1:
            [point] = points
            reported += 1
            placed += point.earliest <= change <= point.latest
            sized += math.log(point.low) <= step <= math.log(point.high)
    assert reported >= 95
    assert placed >= 0.9 * reported
    assert sized >= 0.9 * reported


@pytest.mark.slow("simulation")
def test_the_goals_are_reached_over_more_trials() -> None:
    assert total(found(Settings(length=1000, changes=4), 84, 30)).f1 >= 0.98
    assert total(found(Settings(length=10_000, changes=40), 85, 2)).f1 >= 0.98
    assert sum(bool(points) for _, points in found(Settings(length=1000, changes=0), 86, 100)) <= 2


@pytest.mark.slow("simulation")
@pytest.mark.parametrize(("length", "trials"), [(50, 100), (200, 60), (1000, 20)])
def test_at_most_five_percent_of_series_with_correlated_noise_show_a_point(length: int, trials: int) -> None:
    for correlation in (0.0, 0.3, 0.5, 0.7):
        settings = Settings(length=length, changes=0, correlation=correlation)
        assert sum(bool(points) for _, points in found(settings, 88, trials)) <= 0.05 * trials


@pytest.mark.slow("simulation")
def test_steps_in_correlated_noise_are_found_and_few_invented() -> None:
    for correlation, least in ((0.3, 0.95), (0.5, 0.9), (0.7, 0.75)):
        score = total(found(Settings(length=1000, changes=4, correlation=correlation), 89, 15))
        assert score.precision >= 0.9
        assert score.f1 >= least


@pytest.mark.slow("simulation")
def test_short_bursts_that_return_are_seldom_alerts() -> None:
    results = found(Settings(length=1000, changes=0, bursts=3), 90, 30)
    assert sum(len(points) for _, points in results) >= 30, "they are points"
    assert sum(point.alert for _, points in results for point in points) <= 15


@pytest.mark.slow("simulation")
@pytest.mark.parametrize("changes", [0, 400])
def test_a_hundred_thousand_revisions_take_seconds(changes: int) -> None:
    series = draw(Settings(length=100_000, changes=changes), np.random.default_rng(87))
    began = time.process_time()
    change_points(samples(series))
    assert time.process_time() - began < 5.0
