"""What else the search is told and asks: equal artefacts, layouts drawn anew, batches, priors."""

from __future__ import annotations

import numpy as np
import pytest

from perftrail.search import Budget, Measure, Question, Readings, Same, Search, Settled, Verdict
from tests.search.oracle import Oracle, step


def told(search: Search, levels: dict[int, float]) -> Search:
    for position, level in levels.items():
        search.tell(Readings(position=position, values=(level, level + 0.01, level - 0.01)))
    return search


def test_equal_artefacts_hold_no_culprit_between_them() -> None:
    search = told(Search(Question(revisions=100)), {0: 0.0, 99: 0.3, 60: 0.3})
    search.tell(Same(position=30, like=0))
    posterior = search.posterior
    assert posterior.positions == (0, 30, 60, 99)
    assert posterior.gaps[0] == 0
    assert posterior.gaps[1] > 0.9
    action = search.ask()
    assert isinstance(action, Measure)
    assert 30 < action.position < 60
    assert search.builds == 4
    assert search.invocations == 9


def test_equal_artefacts_share_their_readings_and_are_one_draw_of_the_layout() -> None:
    apart = told(Search(Question(revisions=100)), {0: 0.0, 99: 0.3})
    shared = told(Search(Question(revisions=100)), {0: 0.0})
    shared.tell(Same(position=98, like=99))
    shared = told(shared, {98: 0.3})
    assert shared.posterior.nothing == pytest.approx(apart.posterior.nothing, rel=0.05)
    assert shared.posterior.tau == pytest.approx(apart.posterior.tau)
    np.testing.assert_array_equal(shared.posterior.own[1], shared.posterior.own[2])


def test_equal_ends_are_no_change_at_once() -> None:
    search = told(Search(Question(revisions=100)), {0: 0.0})
    search.tell(Same(position=99, like=0))
    action = search.ask()
    assert isinstance(action, Settled)
    assert action.answer.verdict is Verdict.NONE


def test_a_history_in_which_most_commits_change_nothing_needs_no_reading_of_them() -> None:
    # Only every tenth revision differs from the one before it: the others are the same build.
    search, rng, readings = Search(Question(revisions=400)), np.random.default_rng(2), 0
    built: dict[int, int] = {}
    tried: set[int] = set()
    while not isinstance(action := search.ask(), Settled):
        position, content = action.position, action.position // 10
        if content in built and position not in tried:
            tried.add(position)
            search.tell(Same(position=position, like=built[content], seconds=10.0))
            continue
        built.setdefault(content, position)
        tried.add(position)
        values = tuple(0.1 * (content >= 23) + rng.normal(0, 0.01, action.readings))
        readings += action.readings
        search.tell(Readings(position=position, values=values, build_seconds=10.0))
    assert action.answer.changes[0].positions == (230,)
    assert readings == search.invocations


def test_a_position_cannot_be_the_same_as_itself_or_as_one_outside() -> None:
    with pytest.raises(ValueError, match="same as itself"):
        Same(position=3, like=3)
    with pytest.raises(ValueError, match="positions 0 to 9"):
        Search(Question(revisions=10)).tell(Same(position=3, like=10))


def layouts(seed: int, *, redraws: bool) -> tuple[tuple[int, ...], int]:
    """Search a history whose builds scatter by a third of the change; the candidates, and readings redrawn."""
    rng = np.random.default_rng(seed)
    own = rng.normal(0, 0.02, 60)
    search, drawn = Search(Question(revisions=60, redraws=redraws, budget=Budget(invocations=250))), 0
    while not isinstance(action := search.ask(), Settled):
        count = action.readings
        layout = rng.normal(0, 0.02, count) if action.redraw else np.full(count, own[action.position])
        drawn += count * action.redraw
        values = tuple(0.06 * (action.position >= 37) + layout + rng.normal(0, 0.005, count))
        search.tell(
            Readings(
                position=action.position,
                values=values,
                build_seconds=1.0,
                seconds=count,
                redraw=action.redraw,
            )
        )
    changes = action.answer.changes
    return changes[0].positions if changes else tuple(range(1, 60)), drawn


def test_layouts_are_drawn_anew_where_builds_scatter_too_much_and_only_if_that_is_allowed() -> None:
    for seed in (4, 8):
        as_built, none = layouts(seed, redraws=False)
        named, drawn = layouts(seed, redraws=True)
        assert none == 0
        assert drawn > 0
        assert 37 in as_built
        assert named == (37,) != as_built


def test_every_reading_drawn_anew_is_a_draw_of_the_layout() -> None:
    rng = np.random.default_rng(1)
    search = Search(Question(revisions=60, redraws=True))
    for position in (0, 59):
        values = tuple(0.5 * (position > 0) + rng.normal(0, 0.02, 16))
        search.tell(Readings(position=position, values=values, redraw=True))
    # One build alone leaves its level as uncertain as tau, whatever the readings; sixteen draws a quarter.
    assert search.posterior.before[1] == pytest.approx(0.02 / 4, rel=0.5)
    assert search.posterior.after[1] == pytest.approx(0.02 / 4, rel=0.5)


@pytest.mark.parametrize(("workers", "most"), [(1, 30), (2, 16), (4, 12)])
def test_idle_workers_shorten_the_search(workers: int, most: int) -> None:
    rng = np.random.default_rng(1)
    search, rounds = Search(Question(revisions=1000)), 0
    while actions := search.batch(workers):
        rounds += 1
        assert len({action.position for action in actions}) == len(actions) <= workers
        for action in actions:
            values = tuple(0.3 * (action.position >= 640) + rng.normal(0, 0.01, action.readings))
            search.tell(
                Readings(position=action.position, values=values, build_seconds=10.0, seconds=action.readings)
            )
    settled = search.ask()
    assert isinstance(settled, Settled)
    assert settled.answer.changes[0].positions == (640,)
    assert rounds <= most


def test_a_batch_of_one_is_what_is_asked_and_a_batch_keeps_the_budget() -> None:
    search = told(Search(Question(revisions=1000)), {0: 0.0, 999: 0.3})
    assert search.batch(1) == (search.ask(),)
    poor = told(Search(Question(revisions=1000, budget=Budget(invocations=9, builds=3))), {0: 0.0, 999: 0.3})
    actions = poor.batch(8)
    assert sum(action.readings for action in actions) <= 3
    assert len([action for action in actions if action.position not in (0, 999)]) <= 1


@pytest.mark.parametrize("seed", range(4))
def test_a_wrong_prior_costs_readings_but_not_the_answer(seed: int) -> None:
    rng = np.random.default_rng(seed)
    prior = tuple(1.0 if 600 <= position < 900 else 0.02 for position in range(1000))
    oracle = Oracle(step(123, 0.1), lambda: float(rng.normal(0, 0.02)))
    answer = oracle.settle(Question(revisions=1000, prior=prior))
    assert answer.changes[0].positions == (123,)
    assert answer.confidence >= 0.99
    assert oracle.builds < 22


def test_a_prior_of_zero_excludes_and_any_other_does_not() -> None:
    weights = Question(revisions=4, prior=(5.0, 1.0, 0.0, 1e-12)).weights()
    assert weights.tolist() == pytest.approx([0.0, 0.95, 0.0, 0.05])
