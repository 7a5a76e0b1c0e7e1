"""Programs with a known scaling fault, run with threads: no finding names another cause."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.contention.programs import PROGRAMS, SOURCE
from tests.e2e.printing import perftrail, perftrail_here

pytestmark = pytest.mark.slow("starts")

STUDY = """\
[source]
kind = "directory"
location = "source"

[build]
steps = ["cc -O2 -pthread faults.c -o program"]
pin = false
outputs = ["program"]

[benchmark.work]
command = "{{build}}/program {fault} {{threads}}"
parameters = {{ threads = [1, 2, 4, 8] }}
counters = [{counters}]

[measure]
warmups = 0
invocations = 6
"""

LIMITS = {each.name: each.limits for each in PROGRAMS}
"""The causes that may be called likely, for each program."""

PLAIN = ("mutex", "spin", "sharing", "memory", "none")
COUNTED = ("mutex", "spin", "handover", "arena")


def often(chosen: bool) -> tuple[pytest.MarkDecorator, ...]:
    """Mark all programs as `long` but the chosen ones."""
    return () if chosen else (pytest.mark.long,)


@pytest.mark.parametrize(
    ("fault", "counters"),
    [
        *(pytest.param(fault, "", marks=often(fault == "none")) for fault in PLAIN),
        *(pytest.param(fault, '"locks"', marks=often(fault == "mutex")) for fault in COUNTED),
    ],
)
def test_no_finding_names_an_absent_cause(fault: str, counters: str, tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "faults.c").write_bytes(SOURCE.read_bytes())
    (tmp_path / "perftrail.toml").write_text(STUDY.format(fault=fault, counters=counters), encoding="utf-8")
    perftrail("run", tmp_path)
    rows = json.loads(perftrail_here("show", tmp_path, "--json").stdout)
    scalings = [row["scaling"] for row in rows if row["scaling"] is not None]
    assert [row["point"]["threads"] for row in rows if row["scaling"] is not None] == [1]
    [scaling] = scalings
    processors = scaling["processors"]["count"]
    assert [point["threads"] for point in scaling["points"]] == [1, 2, 4, 8]
    assert [point["beyond"] for point in scaling["points"]] == [n > processors for n in (1, 2, 4, 8)]
    contention = scaling["contention"]
    if contention["outcome"] == "likely":
        assert set(contention["candidates"]) <= LIMITS[fault], contention
    elif contention["outcome"] == "cannot tell":
        assert contention["reason"]
        assert contention["next_step"]
    words = perftrail_here("show", tmp_path).stdout
    assert "Scaling of work.wall with threads" in words
    assert ("more threads than processors" in words) == (processors < 8)
    if processors < 4:  # at most three thread counts do not exceed the processors
        assert scaling["fits"]["chosen"] is None
        assert "are too few for a fit" in words
