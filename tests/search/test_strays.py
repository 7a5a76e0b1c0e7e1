"""What an answer says of builds that its changes do not explain, and of changes below what was asked for."""

from __future__ import annotations

import math

import numpy as np
import pytest

from perftrail.search import Block, Question, Readings, Settled, Survey, Verdict
from perftrail.search.answer import Answer


def settled(question: Question, levels: dict[int, float], scatter: float = 0.01) -> Answer:
    """Tell a survey four readings of each level, in the metric's own unit, and take what it answers."""
    survey, rng = Survey(question), np.random.default_rng(3)
    for position, level in levels.items():
        values = tuple((math.log(level) + rng.normal(0, scatter, 4)).tolist())
        survey.tell(Readings(position=position, values=values))
    action = survey.ask()
    assert isinstance(action, Settled)
    return action.answer


# As measured in a real history: one merge made it faster, the next one half as slow again, and the third took
# that back; what is left of 17 % on the way is less than asked for.
THERE_AND_BACK = {0: 85, 50: 97, 51: 84, 64: 99, 96: 102, 122: 98.5, 123: 48.7, 124: 70.5, 125: 49, 132: 49.3}
THERE_AND_BACK |= {165: 50.5, 223: 50.0}


def test_a_build_that_no_change_explains_is_named() -> None:
    answer = settled(Question(revisions=224, smallest=0.2), THERE_AND_BACK)
    assert [change.positions for change in answer.changes] == [(123,)]
    (stray,) = answer.strays
    assert stray.position == 124
    assert stray.level == pytest.approx(70.5, rel=0.02)
    assert stray.beside == pytest.approx(49.3, rel=0.03)


def test_builds_that_scatter_by_less_than_was_asked_for_are_no_strays() -> None:
    levels = {0: 100.0, 30: 108.0, 60: 97.0, 61: 51.0, 80: 55.0, 99: 49.0}
    assert settled(Question(revisions=100, smallest=0.2), levels).strays == ()


def test_none_does_not_rule_out_what_the_ends_show() -> None:
    # Exact figures that differ by 2.4 %: less than was asked for, but there.
    answer = settled(Question(revisions=30, smallest=0.05), {0: 84.10, 29: 82.07}, scatter=1e-5)
    assert answer.verdict is Verdict.NONE
    assert 0.024 < answer.smallest_seen <= 0.05
    assert answer.confidence <= 1.0


def test_none_of_equal_ends_rules_out_little_changes() -> None:
    answer = settled(Question(revisions=30, smallest=0.05), {0: 84.10, 29: 84.10}, scatter=1e-4)
    assert answer.verdict is Verdict.NONE
    assert answer.smallest_seen < 0.01


def test_another_machine_state_does_not_change_the_size_of_a_change() -> None:
    survey, rng = Survey(Question(revisions=100, smallest=0.05)), np.random.default_rng(5)

    def tell(levels: dict[int, float]) -> None:
        for position, level in levels.items():
            values = tuple((math.log(level) + rng.normal(0, 0.005, 4)).tolist())
            survey.tell(Readings(position=position, values=values))

    tell({0: 100.0, 99: 113.0, 50: 100.0, 75: 113.0})
    survey.tell(Block(name="second"))
    tell({0: 120.0, 60: 120.0, 62: 135.6, 61: 120.0})
    action = survey.ask()
    assert isinstance(action, Settled)
    (change,) = action.answer.changes
    assert change.positions == (62,)
    assert change.effect is not None
    assert change.effect.low < 1.13 < change.effect.high
    assert change.effect.high - change.effect.low < 0.06
