"""Changes that only the machine made: each of several has to show where its two sides are read in turns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from perftrail.search import Measure, Question, Survey, Verdict
from perftrail.search.blocks import Timed
from perftrail.search.evidence import Evidence
from perftrail.search.turns import MOST_TURNS, SHOWN, Turns, turns
from tests.search.oracle import Oracle, step

if TYPE_CHECKING:
    from collections.abc import Callable

SIGMA = 0.02


def sequence(*readings: tuple[int, float], block: str = "") -> list[Timed]:
    return [Timed(position=position, value=value, block=block, redraw=False) for position, value in readings]


def taken(*differences: float) -> Turns:
    return Turns(low=3, high=8, differences=differences, following=3)


def test_turns_are_neighbours_in_time_of_which_neither_is_a_builds_first_reading() -> None:
    told = sequence((3, 1.0), (8, 1.5), (3, 1.1), (8, 1.6), (8, 1.7), (3, 1.2), (5, 1.0), (3, 1.0))
    found = turns(told, 3, 8)
    assert found.differences == pytest.approx((0.5, 0.5))


def test_the_next_turn_begins_where_the_last_one_ended() -> None:
    read = sequence((3, 1.0), (3, 1.0), (8, 1.5), (8, 1.5))
    order = []
    for _ in range(8):
        following = turns(read, 3, 8).following
        order.append(following)
        read += sequence((following, 1.0))
    # The last reading before was the first half of a turn.
    assert order == [3, 3, 8, 8, 3, 3, 8, 8]
    assert len(turns(read, 3, 8).differences) == 4


def test_readings_of_two_blocks_are_no_turn() -> None:
    here = sequence((3, 1.0), (8, 1.5), (3, 1.0))
    there = sequence((8, 0.5), (3, 0.1), block="another boot")
    assert turns([*here, *there], 3, 8).differences == pytest.approx((0.4,))


def test_turns_decide_for_and_against_a_change() -> None:
    assert taken(0.21, 0.19).log_odds(0.2, SIGMA) > SHOWN
    assert taken(-0.01, 0.02).log_odds(0.2, SIGMA) < -SHOWN
    assert taken(-0.1, -0.12, -0.1).log_odds(0.2, SIGMA) < 0
    assert abs(taken().log_odds(0.2, SIGMA)) < 1e-9


def test_one_outlier_decides_nothing() -> None:
    assert abs(taken(0.7).log_odds(0.7, SIGMA)) < SHOWN + 2
    with_outlier = taken(0.0, 0.7, 0.01, -0.01).log_odds(0.2, SIGMA)
    assert with_outlier < -SHOWN


def jumping(at: int, size: float, seed: int) -> Callable[[], float]:
    rng = np.random.default_rng(seed)
    readings = iter(range(10**6))
    return lambda: float(rng.normal(0, SIGMA)) + (size if next(readings) >= at else 0.0)


@pytest.mark.parametrize("at", [9, 12, 16, 20, 26])
@pytest.mark.parametrize("size", [-0.22, 0.1])
def test_a_machine_that_jumps_is_no_further_change(at: int, size: float) -> None:
    survey = Survey(Question(revisions=60))
    oracle = Oracle(step(37, 0.47), jumping(at, size, at))
    while isinstance(action := survey.ask(), Measure):
        survey.tell(oracle.news(action))
    assert action.answer.verdict is Verdict.FOUND
    assert action.answer.changes[0].positions == (37,)
    assert survey.invocations < 80


def test_changes_of_the_program_do_show_in_turns() -> None:
    survey = Survey(Question(revisions=400))
    oracle = Oracle(
        lambda position: 0.3 * (position >= 100) - 0.2 * (position >= 250), jumping(10**5, 0.0, 1)
    )
    while isinstance(action := survey.ask(), Measure):
        oracle.told.append(oracle.news(action))
        survey.tell(oracle.told[-1])
    answer = action.answer
    assert [change.positions for change in answer.changes] == [(100,), (250,)]
    evidence = Evidence(survey.question)
    for news in oracle.told:
        evidence.add(news)
    for change in answer.changes:
        (culprit,) = change.positions
        below = max(position for position in evidence.positions if position < culprit)
        assert 1 < len(turns(evidence.sequence, below, culprit).differences) <= MOST_TURNS
