"""The goals of the search, in simulation. The seeds are fixed; the margins leave room for few trials.

Numbers of runs include the certificate's. A goal that is not reached yet is expected to fail, with what was reached.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest

from benchmarks.search.simulator import Settings
from benchmarks.search.trials import run_trials

if TYPE_CHECKING:
    from benchmarks.search.summary import Summary

DEFAULTS = {
    "revisions": 1000,
    "effect": 0.10,
    "cv": 0.03,
    "unbuildable": 0.15,
    "layout": 0.3,
    "outliers": 0.03,
    "drift": 0.0,
    "threshold": 0.05,
    "confidence": 0.99,
    "build_cost": 10.0,
    "most_invocations": 1000,
    "most_builds": 80,
}


def settings(**changes: float) -> Settings:
    return Settings(**DEFAULTS | changes)  # type: ignore[arg-type]  # all are numbers, some whole


@cache
def of_ours(seed: int, trials: int, **changes: float) -> Summary:
    (perftrail,) = run_trials(settings(**changes), seed, trials, ["perftrail"])
    return perftrail


def not_reached(reached: str) -> pytest.MarkDecorator:
    return pytest.mark.xfail(raises=AssertionError, strict=True, reason=f"reached: {reached}")


def test_a_step_of_three_sigma_is_found() -> None:
    (bisect,) = run_trials(settings(), 71, 70, ["bisect, median of 5"])
    perftrail = of_ours(71, 70)
    assert perftrail.correct >= 0.98
    assert perftrail.exact_correct >= 0.92
    assert perftrail.wrong == 0
    assert perftrail.correct >= bisect.correct


def test_a_claimed_confidence_is_right_as_often() -> None:
    perftrail = of_ours(71, 70)
    assert perftrail.held is not None
    assert perftrail.held >= 0.97
    assert perftrail.sure_held is not None
    assert perftrail.sure_held >= 0.985


@not_reached("16.0 builds: two of them are beside the change, against layouts")
def test_a_step_of_three_sigma_needs_few_builds() -> None:
    assert of_ours(71, 70).builds <= 15.5


@not_reached("245 runs")
def test_a_step_of_three_sigma_needs_few_runs() -> None:
    assert of_ours(71, 70).invocations <= 100


def test_no_culprit_is_named_when_nothing_changed() -> None:
    perftrail = of_ours(72, 60, effect=0.0)
    assert perftrail.wrong == 0
    assert perftrail.verdicts.get("unclear", 0) + perftrail.verdicts.get("none", 0) == 60


def test_the_answer_is_none_when_nothing_changed() -> None:
    assert of_ours(72, 60, effect=0.0).verdicts.get("none", 0) >= 57


def test_a_large_step_needs_hardly_more_builds_than_its_bits() -> None:
    perftrail = of_ours(73, 20, effect=0.5)
    assert perftrail.correct == 1
    assert perftrail.builds <= 15


@not_reached("170 runs")
def test_a_large_step_needs_few_runs() -> None:
    assert of_ours(73, 20, effect=0.5).invocations <= 100


def test_drift_costs_samples_but_not_the_answer() -> None:
    perftrail = of_ours(78, 18, drift=0.3)
    assert perftrail.correct == 1
    assert perftrail.wrong == 0


@not_reached("325 runs")
def test_drift_costs_few_samples() -> None:
    assert of_ours(78, 18, drift=0.3).invocations <= 75


@pytest.mark.slow("simulation")
def test_a_small_step_has_no_wrong_culprit() -> None:
    perftrail = of_ours(75, 12, effect=0.05, threshold=0.025)
    assert perftrail.wrong <= 1 / 12
    assert perftrail.sure_held == 1, "what is claimed at the confidence asked for is right"


@pytest.mark.slow("simulation")
def test_a_hundred_thousand_revisions_are_searched() -> None:
    perftrail = of_ours(76, 8, revisions=100_000, effect=0.15)
    assert perftrail.correct >= 0.87
    assert perftrail.builds <= 25
