"""Which worker builds which subject next: each once, neighbours in the same tree."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perftrail.builds.workers import BuildQueue


def test_each_of_two_workers_builds_its_own_half() -> None:
    queue = _queue(10)
    taken: dict[int, list[int]] = {0: [], 1: []}
    for _ in range(5):
        for worker in (0, 1):
            taken[worker].append(queue.take(worker))
    assert taken == {0: [0, 1, 2, 3, 4], 1: [5, 6, 7, 8, 9]}


def test_a_worker_without_work_takes_from_the_middle_of_the_largest_rest() -> None:
    queue = _queue(12)
    first = [queue.take(0), queue.take(1)]
    quick = [queue.take(1) for _ in range(6)]
    assert first == [0, 6]
    assert quick == [7, 8, 9, 10, 11, 3]
    assert queue.take(0) == 1


def test_a_subject_that_is_added_later_is_built_last() -> None:
    queue = _queue(1)
    assert queue.take(0) == 0
    with pytest.raises(LookupError):
        queue.take(0)
    queue.add(1)
    assert queue.take(0) == 1


@given(st.integers(1, 30), st.lists(st.integers(0, 3), min_size=30, max_size=30))
def test_in_any_order_of_workers_every_subject_is_built_once(count: int, workers: list[int]) -> None:
    queue = _queue(count)
    assert sorted(queue.take(worker) for worker in workers[:count]) == list(range(count))


def _queue(count: int) -> BuildQueue[int]:
    queue: BuildQueue[int] = BuildQueue()
    for number in range(count):
        queue.add(number)
    return queue
