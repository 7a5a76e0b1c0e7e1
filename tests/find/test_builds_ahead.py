"""What is built along with what a search asks for, and which builds its answer rests on."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perftrail.find.journal import likely_next
from tests.fakes.subject_builder import FakeBuilder, FakeSource
from tests.find.test_find import STUDY, find, stepping_at
from tests.measure.fake_session import a_session


def test_the_other_end_comes_first_and_then_the_middles_of_what_is_left() -> None:
    assert list(islice(likely_next(0, set(), revisions=17), 4)) == [16, 8, 4, 12]
    assert list(islice(likely_next(8, {0, 16}, revisions=17), 4)) == [4, 12, 2, 6]


def test_only_what_the_search_has_not_ruled_out_by_what_it_tried_is_named() -> None:
    assert sorted(likely_next(10, {0, 8, 12, 16}, revisions=17)) == [9, 11]
    assert list(likely_next(1, {0, 2}, revisions=3)) == []


@given(st.data())
def test_no_position_is_named_twice_or_was_tried(data: st.DataObject) -> None:
    revisions = data.draw(st.integers(1, 40))
    position = data.draw(st.integers(0, revisions - 1))
    tried = data.draw(st.sets(st.integers(0, revisions - 1))) - {position}
    named = list(likely_next(position, tried, revisions=revisions))
    assert len(named) == len(set(named))
    assert not set(named) & (tried | {position})
    assert all(0 <= each < revisions for each in named)


@pytest.mark.parametrize("culprit", [1, 17, 39])
def test_a_search_that_builds_ahead_finds_the_same_and_its_answer_depends_on_the_builds_next_to_the_culprit(
    tmp_path: Path, culprit: int
) -> None:
    builders = []
    for hands in (1, 3):
        source = FakeSource(40)
        builder = FakeBuilder(source, parallel_builds=hands)
        session = a_session(
            STUDY, tmp_path / f"{hands}", source=source, starter=stepping_at(culprit), builder=builder
        )
        _, answer = find(session)
        (change,) = answer.answer.changes
        assert [each.id for each in answer.candidates(change)] == [f"r{culprit}"]
        builders.append(builder)
        assert answer.builds == len(set(builder.made))
    alone, leading = builders
    assert alone.begun == []
    assert {"r0", "r39"} <= set(leading.begun[:3])
    assert leading.decisive == alone.decisive == [f"r{culprit - 1}", f"r{culprit}"]
