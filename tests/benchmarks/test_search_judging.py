"""Simulations have the stated properties, and answers are judged by them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.search.bound import fewest_runs, most_isolated
from benchmarks.search.histories import History, draw
from benchmarks.search.outcome import Outcome, Report, judge
from benchmarks.search.simulator import Machine
from tests.benchmarks.test_search_strategies import CLEAR, world


def judged(history: History, verdict: str = "found", **options: object) -> Outcome:
    report = Report(verdict=verdict, **{"candidates": (), "confidence": 0.99} | options)  # type: ignore[arg-type]
    return judge(report, history, Machine(history, np.random.default_rng(0)))


def test_steps_are_apart_and_of_the_size_asked_for() -> None:
    for seed in range(20):
        history = draw(replace(CLEAR, changes=3, signs=(1, 1, -1)), np.random.default_rng(seed))
        assert np.diff(history.culprits).min() >= CLEAR.revisions / 20
        jumps = np.diff(history.level)[np.array(history.culprits) - 1]
        assert jumps == pytest.approx(CLEAR.step * np.array([1, 1, -1]))


def test_a_ramp_rises_evenly_over_its_revisions() -> None:
    history = draw(replace(CLEAR, ramp=50), np.random.default_rng(2))
    rises = np.diff(history.level)
    assert np.flatnonzero(rises).tolist() == [culprit - 1 for culprit in history.culprits]
    assert rises[rises > 0] == pytest.approx(CLEAR.step / 50)
    assert len(history.culprits) == 50


def test_the_inside_of_a_merge_runs_from_its_first_parent_by_its_base_to_itself() -> None:
    history, machine = world(replace(CLEAR, branch=20))
    assert history.merge is not None
    view = machine.inside(history.merge)
    assert view.ids.tolist() == [history.merge - 1, history.base, *history.branch.tolist(), history.merge]
    levels = history.level[view.ids]
    assert levels[0] == levels[1] == 0
    assert levels[-1] == levels[-2] == pytest.approx(CLEAR.step)
    with pytest.raises(ValueError, match="not a merge"):
        machine.inside(0 if history.merge != 0 else 1)


def test_all_views_of_a_machine_count_together() -> None:
    history, machine = world(replace(CLEAR, branch=20))
    assert history.merge is not None
    machine.build(history.merge)
    view = machine.inside(history.merge)
    view.build(view.revisions - 1)
    view.build(3)
    view.run(3, 4)
    assert machine.builds == 2
    assert machine.invocations == 4


def test_a_layout_stays_with_a_build_unless_it_is_relinked() -> None:
    _, machine = world(replace(CLEAR, cv=0.02, layout=1.0))
    twice = [machine.run(5, 400).mean() for _ in range(2)]
    assert abs(twice[0] - twice[1]) < 0.005
    relinked = [machine.run_each(np.full(400, 5), layout=seed).mean() for seed in range(1, 40)]
    assert np.std(relinked) > 0.01
    again = machine.run_each(np.full(400, 5), layout=1).mean()
    assert abs(relinked[0] - again) < 0.005


def test_one_change_is_right_when_it_is_among_the_candidates() -> None:
    history, _ = world(CLEAR)
    (culprit,) = history.culprits
    assert judged(history, candidates=(culprit,)).right
    assert judged(history, candidates=(culprit - 1, culprit)).held
    wrong = judged(history, candidates=(culprit - 1,))
    assert wrong.wrong
    assert not wrong.right
    assert not judged(history, "none").right


def test_of_several_changes_all_are_to_be_found_and_none_invented() -> None:
    history, _ = world(replace(CLEAR, changes=2, signs=(1, 1)))
    one, two = history.culprits
    assert judged(history, "several", candidates=(one,), others=((two,),)).right
    missed = judged(history, candidates=(one,))
    assert not missed.right
    assert missed.held
    invented = judged(history, "several", candidates=(one,), others=((two,), (two + 1,)))
    assert invented.wrong
    assert not invented.right
    assert not invented.held


def test_a_ramp_is_not_to_be_pinned() -> None:
    history, _ = world(replace(CLEAR, ramp=50))
    pinned = judged(history, candidates=(history.culprits[25],))
    assert pinned.wrong
    assert not pinned.right
    reported = judged(history, ramps=(history.culprits[5:45],))
    assert reported.right
    assert reported.exact
    assert not judged(history, "none").right
    step, _ = world(CLEAR)
    assert judged(step, ramps=(tuple(range(40)),)).wrong


def test_silence_is_right_when_nothing_changed() -> None:
    history, _ = world(replace(CLEAR, effect=0.0))
    assert judged(history, "none").right
    assert not judged(history, "unclear").right
    assert judged(history, candidates=(4,)).wrong


def test_the_bound_grows_with_the_noise_and_the_number_of_changes() -> None:
    clear, noisy = fewest_runs(CLEAR), fewest_runs(replace(CLEAR, cv=0.5))
    twice = fewest_runs(replace(CLEAR, changes=2))
    assert clear is not None
    assert noisy is not None
    assert twice is not None
    assert np.log2(CLEAR.revisions) <= clear < noisy
    assert twice == pytest.approx(2 * clear)
    assert fewest_runs(replace(CLEAR, effect=0.0)) is None


def test_layout_bounds_how_often_one_revision_can_be_named() -> None:
    scattered = replace(CLEAR, effect=0.05, cv=0.03, layout=0.3)
    ratio = scattered.distance / scattered.layout
    drawn = np.random.default_rng(3).normal(ratio**2 / 2, ratio, (2, 200_000))
    isolated = np.mean(1 / (1 + np.exp(-drawn).sum(axis=0)) >= scattered.confidence)
    assert most_isolated(scattered) == pytest.approx(isolated, abs=0.003)
    assert most_isolated(replace(scattered, layout=0.0)) is None
    assert most_isolated(replace(scattered, relinks=True)) is None
