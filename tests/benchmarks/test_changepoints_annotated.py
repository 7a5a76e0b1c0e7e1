"""Real series with people's annotations: how they are read, and how a detector is scored against several people."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.changepoints.annotated import annotated_table, f1, read
from benchmarks.changepoints.peers import PEERS


def data_set(directory: Path) -> Path:
    """Two series that two people annotated: one with a step at 30, one without a change."""
    (directory / "series").mkdir(parents=True)
    step = [10.0 + 0.1 * (number % 3) + 5.0 * (number >= 30) for number in range(60)]
    level = [10.0 + 0.1 * (number * 7 % 5) for number in range(60)]
    for name, raw in (("step", [*step[:5], None, *step[6:]]), ("level", level), ("unknown", level)):
        (directory / "series" / f"{name}.json").write_text(json.dumps({"series": [{"raw": raw}]}))
    marked = {"step": {"one": [30], "other": [28, 50]}, "level": {"one": [], "other": []}}
    (directory / "annotations.json").write_text(json.dumps(marked))
    return directory


@pytest.mark.parametrize(
    ("marked", "reported", "score"),
    [
        ([{30}], [33], 1.0),
        ([{30}], [36], 0.5),
        ([{30}], [], 2 / 3),
        ([set()], [30], 2 / 3),
        ([{30}, set()], [30], 1.0),
        ([{30, 32}], [31], 0.8),
    ],
)
def test_points_are_scored_against_every_annotator(
    marked: list[set[int]], reported: list[int], score: float
) -> None:
    assert f1(map(frozenset, marked), reported) == pytest.approx(score)


def test_annotated_series_are_read_with_missing_values_filled(tmp_path: Path) -> None:
    level, step = read(data_set(tmp_path))
    assert (level.name, step.name) == ("level", "step")
    assert step.values[5] == step.values[4]
    assert step.marked == (frozenset({30}), frozenset({28, 50}))
    assert level.marked == (frozenset(), frozenset())


def test_every_detector_has_a_row_for_each_half(tmp_path: Path) -> None:
    own = [peer for peer in PEERS if not peer.package]
    reported = annotated_table(read(data_set(tmp_path)), own, tmp_path).splitlines()
    titles = [line.split("|")[1].strip() for line in reported[2:]]
    assert titles == [*(peer.title for peer in own), "no points", "one annotator against the rest"] * 2
