"""Who makes what next: every subject once, and neighbours in one tree."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perftrail.builds.workers import Rota


def test_each_of_two_hands_goes_along_a_half_of_its_own() -> None:
    rota = _rota(10)
    taken: dict[int, list[int]] = {0: [], 1: []}
    for _ in range(5):
        for hand in (0, 1):
            taken[hand].append(rota.take(hand))
    assert taken == {0: [0, 1, 2, 3, 4], 1: [5, 6, 7, 8, 9]}


def test_a_hand_that_is_done_helps_in_the_middle_of_what_is_left() -> None:
    rota = _rota(12)
    first = [rota.take(0), rota.take(1)]
    quick = [rota.take(1) for _ in range(6)]
    assert first == [0, 6]
    assert quick == [7, 8, 9, 10, 11, 3]
    assert rota.take(0) == 1


def test_one_that_comes_later_waits_behind_the_others() -> None:
    rota = _rota(1)
    assert rota.take(0) == 0
    with pytest.raises(LookupError):
        rota.take(0)
    rota.add(1)
    assert rota.take(0) == 1


@given(st.integers(1, 30), st.lists(st.integers(0, 3), min_size=30, max_size=30))
def test_whoever_comes_when_everything_is_made_once(count: int, hands: list[int]) -> None:
    rota = _rota(count)
    assert sorted(rota.take(hand) for hand in hands[:count]) == list(range(count))


def _rota(count: int) -> Rota[int]:
    rota: Rota[int] = Rota()
    for number in range(count):
        rota.add(number)
    return rota
