"""Ranks from pairwise orders: each range contains the true rank, and no range is narrower than the orders show."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perftrail.stats.ranking import RankRange, rank_ranges


def test_without_an_order_every_rank_is_possible() -> None:
    assert rank_ranges(3, set()) == (RankRange(1, 3),) * 3


def test_with_every_order_each_rank_is_certain() -> None:
    assert [str(each) for each in rank_ranges(3, {(1, 0), (1, 2), (0, 2)})] == ["2", "1", "3"]


@given(st.permutations(range(7)), st.sets(st.sampled_from(list(itertools.combinations(range(7), 2)))))
def test_the_true_rank_is_in_its_range_and_each_end_is_reached(
    truth: list[int], shown: set[tuple[int, int]]
) -> None:
    """`truth` lists the subjects, the best one first; only some of its orders are shown."""
    orders = {(truth[first], truth[second]) for first, second in shown}
    found = rank_ranges(7, orders)
    for place, subject in enumerate(truth, 1):
        better = sum(second == subject for _, second in orders)
        worse = sum(first == subject for first, _ in orders)
        assert found[subject].first <= place <= found[subject].last
        assert (found[subject].first, found[subject].last) == (1 + better, 7 - worse)


@pytest.mark.parametrize("orders", [{(0, 1), (1, 0)}, {(1, 1)}, {(0, 2)}, {(-1, 0)}])
def test_orders_that_cannot_be_true_are_refused(orders: set[tuple[int, int]]) -> None:
    with pytest.raises(ValueError, match="not an order of 2 subjects"):
        rank_ranges(2, orders)
