"""The benchmark of contention reports: which reports are wrong, and that finished runs are stored."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.contention.programs import CLEAN, FAULTY, PROGRAMS, SOURCE, programs_named
from benchmarks.contention.runs import Series

PROGRAM = {each.name: each for each in PROGRAMS}


@pytest.mark.parametrize(
    ("name", "reports", "wrong"),
    [
        ("mutex", "lock", False),
        ("mutex", "handover", True),
        ("mutex", "lock or handover", False),
        ("mutex", "serial or handover", True),
        ("arena", "lock", True),
        ("arena", "lock or handover", False),
        ("mutex", "scales", False),
        ("mutex", "cannot tell", False),
        ("none", "lock", True),
        ("none", "memory or false sharing", False),
        ("none", "scales", False),
    ],
)
def test_a_cause_that_is_not_there_is_wrong_and_so_are_several_without_the_one_that_is(
    name: str, reports: str, wrong: bool
) -> None:
    assert PROGRAM[name].is_wrong(reports) == wrong


def test_each_program_of_the_source_has_its_truth() -> None:
    table = SOURCE.read_text(encoding="utf-8").partition("} faults[] = {")[2]
    assert set(re.findall(r'\{"([a-z-]+)"', table)) == set(PROGRAM)
    assert len(FAULTY) >= 12


def test_programs_are_chosen_by_name_or_by_whether_anything_limits_them() -> None:
    assert programs_named([]) == PROGRAMS
    assert [each.name for each in programs_named(["clean"])] == [*CLEAN]
    assert [each.name for each in programs_named(["none", "mutex"])] == ["mutex", "none"]
    with pytest.raises(ValueError, match="no program mutexes"):
        programs_named(["mutexes"])


@pytest.mark.slow("processor")
def test_a_run_is_stored_with_its_description(tmp_path: Path) -> None:
    series = Series(into=tmp_path, invocations=5, counted=True)
    assert [*series.reports()] == []
    series.run(["none"])
    [reports] = series.reports()
    assert set(reports) == {"none"}
    assert not PROGRAM["none"].is_wrong(reports["none"])
    again = Series(into=tmp_path, invocations=5, counted=True)
    assert [*again.reports()] == [reports]
    assert [*Series(into=tmp_path, invocations=6, counted=True).reports()] == []
