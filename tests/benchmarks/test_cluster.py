"""The benchmark of several machines, on searches small enough for a test."""

from __future__ import annotations

from benchmarks.cluster.rounds import table


def test_more_builds_at_once_need_fewer_rounds_of_builds_and_less_time() -> None:
    head, _, *lines = table([60], [1, 4], trials=1, seed=2).splitlines()
    assert "rounds" in head
    one, four = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    assert float(four[3]) < float(one[3])
    assert float(four[5]) < float(one[5]) == 1.0
    assert (one[6], four[6]) == ("1 of 1", "1 of 1")
