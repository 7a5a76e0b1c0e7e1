"""Several things at once of a survey: those of the search for one step, else one thing."""

from __future__ import annotations

import numpy as np

from perftrail.search import Question, Readings, Search, Survey


def told(search: Search | Survey, levels: dict[int, float]) -> None:
    for position, level in levels.items():
        search.tell(Readings(position=position, values=(level, level + 0.01, level - 0.01)))


def test_a_batch_of_a_survey_is_that_of_the_search_for_one_step() -> None:
    survey, search = Survey(Question(revisions=1000)), Search(Question(revisions=1000))
    assert {each.position for each in survey.batch(2)} == {0, 999}
    for each in (survey, search):
        told(each, {0: 0.0, 999: 0.3})
    assert survey.batch(4) == search.batch(4)
    assert len(survey.batch(4)) == 4
    assert survey.batch(1) == (survey.ask(),)


def test_idle_workers_find_two_changes_and_nothing_is_left_to_do_then() -> None:
    rng = np.random.default_rng(3)
    survey = Survey(Question(revisions=300))
    for _ in range(200):
        actions = survey.batch(3)
        if not actions:
            break
        for action in actions:
            level = 0.2 * (action.position >= 80) + 0.2 * (action.position >= 210)
            values = tuple(level + rng.normal(0, 0.01, action.readings))
            survey.tell(
                Readings(position=action.position, values=values, build_seconds=10.0, seconds=action.readings)
            )
    settled = survey.ask()
    assert survey.batch(3) == ()
    assert [change.positions for change in settled.answer.changes] == [(80,), (210,)]  # type: ignore[union-attr] # it is settled
