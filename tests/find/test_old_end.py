"""Which old ends a search tries if only the new end is known."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perftrail.find.old_end import has_open_old_end, old_ends


@given(st.lists(st.integers(0, 4000), min_size=2, max_size=60), st.booleans())
def test_old_ends_are_older_and_older_and_end_at_the_beginning(days: list[int], by_number: bool) -> None:
    """Whatever the dates are: commits may have wrong ones, and lie in any order."""
    start = datetime(2020, 1, 1, tzinfo=UTC)
    times = [(start + timedelta(days=day)).isoformat() for day in days]
    found = old_ends(times, by_number=by_number)
    assert found[-1] == 0
    assert all(later < earlier for earlier, later in zip((len(times) - 1, *found), found, strict=False))


def test_the_steps_are_days_before_the_new_end() -> None:
    start = datetime(2020, 1, 1, tzinfo=UTC)
    times = [(start + timedelta(days=day)).isoformat() for day in range(201)]
    assert old_ends(times, by_number=False) == (199, 197, 193, 186, 170, 140, 80, 0)


def test_revisions_without_dates_are_counted() -> None:
    assert old_ends([""] * 20, by_number=False) == (18, 17, 15, 11, 3, 0)
    assert old_ends(["2020-01-01"], by_number=False) == ()


@pytest.mark.parametrize(
    ("text", "is_open"),
    [("..HEAD", True), ("..", False), ("v1..", False), ("v1..v2", False), ("last 5", False), ("...", False)],
)
def test_only_a_range_with_a_new_end_alone_has_an_open_old_end(text: str, is_open: bool) -> None:
    assert has_open_old_end(text) is is_open
    assert not has_open_old_end(None)
