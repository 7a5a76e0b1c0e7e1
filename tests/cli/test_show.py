"""Output of `show` on changes along a history."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from perftrail.model.benchmark import Point
from perftrail.model.subject import Revision, Subject
from perftrail.present import tables
from perftrail.present.console import SafeConsole
from perftrail.present.tables import print_changes, row_notes
from perftrail.results.changes import CorrelatedSeries, HistoryChange, HistoryChanges
from perftrail.results.rows import Row
from perftrail.stats.changepoints import ChangePoint
from perftrail.stats.series_noise import Correlation

HISTORY = tuple(Revision(id=f"r{number}", summary=f"change {number}") for number in range(8))

POINT = ChangePoint(
    position=5,
    previous=4,
    earliest=5,
    latest=5,
    before=0.100,
    after=0.112,
    effect=1.1234,
    low=1.1012,
    high=1.1456,
    p_value=1e-9,
    size=4.0,
    size_low=3.25,
    size_high=4.75,
    alert=True,
)


def a_change(point: ChangePoint = POINT, *, revision: Revision = HISTORY[5]) -> HistoryChange:
    row = Row(
        subject=Subject(revision=revision, variant="plain"),
        benchmark="work",
        point=Point((("threads", 2),)),
        metric="wall",
        unit="s",
        failures=0,
    )
    return HistoryChange(
        row=row,
        previous=HISTORY[point.previous],
        candidates=(*HISTORY[point.previous + 1 : point.position], revision),
        earliest=HISTORY[point.earliest],
        latest=HISTORY[point.latest],
        point=point,
    )


def printed(capsys: pytest.CaptureFixture[str], *changes: HistoryChange) -> str:
    print_changes(HistoryChanges(points=changes))
    return capsys.readouterr().out


def test_nothing_is_printed_without_a_change(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys) == ""


def test_a_change_names_metric_effect_and_revision(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, a_change()) == (
        "\nChanges along the history, by size compared with the noise:\n"
        "   1. work.wall at threads=2: 12 % more (× 1.123, 95 % interval 1.101 to 1.146) at r5 “change 5”; "
        "4.0 [3.2, 4.8] times the noise of one revision\n"
    )


def test_unmeasured_revisions_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    output = printed(capsys, a_change(replace(POINT, previous=2, earliest=3)))
    assert "between r2 and r5 “change 5”, one of 3 revisions; 4.0" in output


def test_an_uncertain_position_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    output = printed(capsys, a_change(replace(POINT, earliest=4, latest=7)))
    assert "at r5 “change 5”, or from r4 to r7 (95 %); 4.0" in output


def test_changes_are_ranked_and_those_below_the_alert_level_are_separate(
    capsys: pytest.CaptureFixture[str],
) -> None:
    small = a_change(replace(POINT, size=1.5, alert=False), revision=HISTORY[2])
    large = a_change(replace(POINT, size=9.0), revision=HISTORY[6])
    output = printed(capsys, small, a_change(), large)
    assert [line[:5] for line in output.splitlines() if ". work" in line] == ["   1.", "   2.", "   3."]
    assert (
        output.index("at r6")
        < output.index("at r5")
        < output.index("small, shown by one build")
        < output.index("at r2")
    )


def test_correlated_neighbours_are_reported_even_without_a_change(capsys: pytest.CaptureFixture[str]) -> None:
    series = CorrelatedSeries(row=a_change().row, correlation=Correlation(value=0.52, low=0.41, high=0.63))
    print_changes(HistoryChanges(correlated=(series,)))
    assert capsys.readouterr().out == (
        "\nCorrelated noise:\n"
        "  work.wall at threads=2: neighbouring revisions resemble each other: correlation 0.52 [0.41, 0.63]. "
        "Small changes cannot be separated from such noise.\n"
    )


def test_a_hostile_message_is_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    hostile = Revision(id="r5", summary="\x1b[31mred [bold]x[/bold]")
    output = printed(capsys, a_change(revision=hostile))
    assert "\x1b" not in output
    assert "[bold]x[/bold]" in output


@pytest.mark.parametrize("width", [60, 80, 120])
def test_messages_fit_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setattr(tables, "output", lambda: SafeConsole(file=sys.stdout, soft_wrap=True, width=width))
    long = replace(HISTORY[1], summary="a subject line that explains more than fits into any terminal " * 3)
    rows = [
        replace(a_change(revision=revision).row, runnables=frozenset({"one"}), values=(1.0, 2.0, 3.0))
        for revision in (HISTORY[0], long)
    ]
    tables.print_rows(rows)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= width
    assert any("change 0" in line for line in lines)
    assert any("a subject line that" in line and line.rstrip().endswith("…") for line in lines)
    assert " ".join(" ".join(lines).split()).count("same build") == 1


def test_a_revision_that_was_only_tried_is_noted_as_one_without_samples() -> None:
    tried = a_change().row
    assert row_notes(tried) == ["no samples yet"]
    assert row_notes(replace(tried, failures=2)) == ["2 failed invocations"]
    assert row_notes(replace(tried, values=(0.1, 0.2))) == []
