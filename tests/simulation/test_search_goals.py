"""The goals of the search, in simulation. The seeds are fixed; the margins leave room for few trials."""

from __future__ import annotations

import pytest

from benchmarks.search.simulator import Settings
from benchmarks.search.trials import run_trials

DEFAULTS = {
    "revisions": 1000,
    "effect": 0.10,
    "cv": 0.03,
    "unbuildable": 0.15,
    "layout": 0.3,
    "outliers": 0.03,
    "drift": 0.0,
    "smallest": 0.05,
    "confidence": 0.99,
    "build_cost": 10.0,
    "most_invocations": 1000,
    "most_builds": 80,
}


def settings(**changes: float) -> Settings:
    return Settings(**DEFAULTS | changes)  # type: ignore[arg-type]  # all are numbers, some whole


def test_a_step_of_three_sigma_is_found_with_few_builds_and_runs() -> None:
    perftrail, bisect = run_trials(settings(), 71, 30, ["perftrail", "bisect, median of 5"])
    assert perftrail.correct >= 0.97
    assert perftrail.exact_correct >= 0.92
    assert perftrail.builds <= 15.5
    assert perftrail.invocations <= 47
    assert perftrail.correct >= bisect.correct
    assert perftrail.invocations < bisect.invocations


def test_nobody_is_accused_when_nothing_changed() -> None:
    (perftrail,) = run_trials(settings(effect=0.0), 72, 60, ["perftrail"])
    assert perftrail.wrongly_accused == 0
    assert perftrail.verdicts.get("none", 0) >= 57


def test_a_large_step_needs_hardly_more_than_its_bits() -> None:
    (perftrail,) = run_trials(settings(effect=0.5), 73, 20, ["perftrail"])
    assert perftrail.correct == 1
    assert perftrail.builds <= 15
    assert perftrail.invocations <= 32


def test_drift_costs_readings_but_not_the_answer() -> None:
    (perftrail,) = run_trials(settings(drift=0.3), 77, 8, ["perftrail"])
    assert perftrail.correct == 1
    assert perftrail.invocations <= 75


@pytest.mark.slow
def test_drift_is_borne_over_more_trials() -> None:
    (perftrail,) = run_trials(settings(drift=0.3), 78, 15, ["perftrail"])
    assert perftrail.correct >= 0.93
    assert perftrail.wrongly_accused <= 0.07
    assert perftrail.invocations <= 70


@pytest.mark.slow
def test_the_goals_hold_over_more_trials() -> None:
    (perftrail,) = run_trials(settings(), 74, 60, ["perftrail"])
    assert perftrail.correct >= 0.98
    assert perftrail.builds <= 15
    assert perftrail.invocations <= 45
    assert perftrail.held is not None
    assert perftrail.held >= 0.98


@pytest.mark.slow
def test_a_small_step_is_found_or_ranged_rightly() -> None:
    (perftrail,) = run_trials(settings(effect=0.05, smallest=0.025), 75, 30, ["perftrail"])
    assert perftrail.correct >= 0.95
    # Of this seed's first 180 three are accused: one in a hundred is claimed.
    assert perftrail.wrongly_accused <= 0.034
    assert perftrail.invocations <= 350


@pytest.mark.slow
def test_a_hundred_thousand_revisions_are_searched() -> None:
    (perftrail,) = run_trials(settings(revisions=100_000, effect=0.15), 76, 15, ["perftrail"])
    assert perftrail.correct >= 0.93
    assert perftrail.builds <= 25
