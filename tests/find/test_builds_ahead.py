"""Builds that begin before a search asks for them, and the builds that decide its answer."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perftrail.search.rate_guide import likely_next
from tests.fakes.subject_builder import FakeBuilder, FakeSource
from tests.find.test_find import STUDY, find, stepping_at
from tests.measure.fake_session import a_session


def test_the_other_end_comes_first_and_then_the_middles_of_the_remaining_ranges() -> None:
    assert list(islice(likely_next(0, set(), revisions=17), 4)) == [16, 8, 4, 12]
    assert list(islice(likely_next(8, {0, 16}, revisions=17), 4)) == [4, 12, 2, 6]


def test_only_positions_that_no_tried_one_excludes_are_likely_next() -> None:
    assert sorted(likely_next(10, {0, 8, 12, 16}, revisions=17)) == [9, 11]
    assert list(likely_next(1, {0, 2}, revisions=3)) == []


@given(st.data())
def test_likely_positions_are_distinct_and_were_not_tried(data: st.DataObject) -> None:
    revisions = data.draw(st.integers(1, 40))
    position = data.draw(st.integers(0, revisions - 1))
    tried = data.draw(st.sets(st.integers(0, revisions - 1))) - {position}
    positions = list(likely_next(position, tried, revisions=revisions))
    assert len(positions) == len(set(positions))
    assert not set(positions) & (tried | {position})
    assert all(0 <= each < revisions for each in positions)


@pytest.mark.parametrize(
    "culprit", [pytest.param(1, marks=pytest.mark.long), 17, pytest.param(39, marks=pytest.mark.long)]
)
def test_a_search_with_builds_ahead_has_the_same_culprit_and_the_same_decisive_builds(
    tmp_path: Path, culprit: int
) -> None:
    builders = []
    for workers in (1, 3):
        source = FakeSource(40)
        builder = FakeBuilder(source, parallel_builds=workers)
        session = a_session(
            STUDY, tmp_path / f"{workers}", source=source, starter=stepping_at(culprit), builder=builder
        )
        _, answer = find(session)
        (change,) = answer.answer.changes
        assert [each.id for each in answer.candidates(change)] == [f"r{culprit}"]
        builders.append(builder)
        assert answer.builds == len(set(builder.built_ids))
    serial, parallel = builders
    assert serial.begun == []
    assert {"r0", "r39"} <= set(parallel.begun[:3])
    assert parallel.decisive == serial.decisive == [f"r{culprit - 1}", f"r{culprit}"]
