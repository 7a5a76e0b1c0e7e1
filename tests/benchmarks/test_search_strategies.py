"""The searches that perftrail's is compared with work as described."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.search.histories import History, Settings, draw
from benchmarks.search.outcome import judge
from benchmarks.search.simulator import Machine
from benchmarks.search.strategies import PEERS, STRATEGIES, asv, bisect, fitting, pinpoint

CLEAR = Settings(
    revisions=120,
    effect=0.5,
    cv=0.01,
    unbuildable=0.0,
    layout=0.0,
    outliers=0.0,
    drift=0.0,
    threshold=0.05,
    confidence=0.99,
    build_cost=10.0,
    most_invocations=1000,
    most_builds=80,
)


def world(settings: Settings, seed: int = 3) -> tuple[History, Machine]:
    history = draw(settings, np.random.default_rng(seed))
    return history, Machine(history, np.random.default_rng(seed + 1))


@pytest.mark.parametrize("name", ["perftrail", "perftrail, thorough", *sorted(PEERS.keys() - {"Pinpoint"})])
def test_every_search_finds_a_step_that_cannot_be_missed(name: str) -> None:
    history, machine = world(CLEAR)
    outcome = judge(STRATEGIES[name](machine), history, machine)
    assert outcome.right
    assert outcome.exact
    assert outcome.builds > 0
    assert outcome.invocations > 0


def test_asv_ends_at_the_first_build_that_fails_unless_it_is_passed_over() -> None:
    history, machine = world(replace(CLEAR, unbuildable=0.3))
    history.broken[len(history.broken) // 2 - 1] = True
    assert asv.find(machine).verdict == "error"
    history, machine = world(replace(CLEAR, unbuildable=0.3))
    assert asv.skipping_failed_builds(machine).verdict == "found"


def test_asv_names_a_revision_when_nothing_changed() -> None:
    _, machine = world(replace(CLEAR, effect=0.0))
    assert asv.find(machine).candidates


def test_pinpoint_tells_all_that_differ() -> None:
    history, machine = world(replace(CLEAR, changes=2, signs=(1, 1)))
    report = pinpoint.search(machine)
    assert report.verdict == "several"
    # With so many tests it sometimes names another revision too.
    assert {(culprit,) for culprit in history.culprits} <= set(report.named)


def test_pinpoint_takes_more_samples_only_of_unclear_subjects() -> None:
    _, machine = world(replace(CLEAR, effect=0.0), seed=5)
    pinpoint.search(machine)
    assert machine.invocations <= 60
    assert machine.builds == 2


def test_its_p_is_small_for_samples_apart_and_large_for_samples_alike() -> None:
    rng = np.random.default_rng(1)
    one, other = rng.normal(size=10), rng.normal(size=10)
    assert pinpoint.smaller_p(one, other + 10) < 0.001
    assert pinpoint.smaller_p(one, one + 1e-9) > 0.5


def test_the_number_of_runs_by_the_truth_grows_as_the_change_shrinks() -> None:
    ks = [bisect.samples_needed(replace(CLEAR, effect=effect, cv=0.03)) for effect in (1.0, 0.1, 0.05, 0.02)]
    assert ks == sorted(ks)
    assert ks[0] == bisect.FEWEST
    assert all(k % 2 for k in ks)


def test_bisect_walks_into_a_branch_and_the_others_name_its_merge() -> None:
    settings = replace(CLEAR, branch=20)
    history, machine = world(settings)
    assert judge(bisect.median_of(5)(machine), history, machine).right
    history, machine = world(settings)
    outcome = judge(asv.find(machine), history, machine)
    assert not outcome.right
    assert not outcome.wrong


def test_our_search_goes_inside_the_merge() -> None:
    settings = replace(CLEAR, branch=20)
    history, machine = world(settings)
    outcome = judge(STRATEGIES[fitting(settings)](machine), history, machine)
    assert outcome.right
    assert outcome.exact


@pytest.mark.parametrize("signs", [(1, 1), (1, -1)])
def test_our_search_finds_two_changes(signs: tuple[int, ...]) -> None:
    settings = replace(CLEAR, changes=2, signs=signs)
    history, machine = world(settings)
    assert judge(STRATEGIES[fitting(settings)](machine), history, machine).right
