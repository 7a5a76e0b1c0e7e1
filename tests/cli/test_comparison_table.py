"""Variants side by side: when perftrail prints this table, and its notes on each value."""

from __future__ import annotations

import re
import sys
from dataclasses import replace

import pytest
from rich.console import Console

from perftrail.model.benchmark import Point
from perftrail.model.source import NO_PINS, Pins
from perftrail.model.subject import Revision, Subject
from perftrail.present import tables
from perftrail.present.output_settings import settings
from perftrail.present.tables import fits, print_rows, side_by_side
from perftrail.results.changes import history_changes
from perftrail.results.rows import Row

ANSI = re.compile(r"\x1b\[[0-9;]*m")

ONE, TWO = (Revision(id=name * 40) for name in "ab")


def a_row(variant: str, *values: float, revision: Revision = ONE, failures: int = 0, threads: int = 2) -> Row:
    return Row(
        subject=Subject(revision=revision, variant=variant),
        benchmark="work",
        point=Point((("threads", threads),)),
        metric="wall",
        unit="s",
        failures=failures,
        values=values,
    )


def printed(capsys: pytest.CaptureFixture[str], *rows: Row, pins: Pins = NO_PINS) -> list[str]:
    print_rows(rows, pins=pins)
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


def test_variants_of_one_revision_are_next_to_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    head, line = printed(capsys, a_row("old", *[1.0] * 8), a_row("new", *[1.5] * 8))
    assert head.split() == ["point", "metric", "old", "new"]
    assert line.endswith(", 50 % more")


def test_values_whose_intervals_overlap_are_not_compared(capsys: pytest.CaptureFixture[str]) -> None:
    values = [1.0 + number / 10 for number in range(8)]
    lines = printed(capsys, a_row("old", *values), a_row("new", *[value + 0.05 for value in values]))
    assert not any("more" in line or "less" in line for line in lines)


def test_the_limit_of_a_value_is_printed_below_it(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, a_row("old", 1.0), a_row("new", failures=2))
    assert "no value" in lines[1]
    assert "one value, no interval" in lines[2]
    assert "2 failed invocations" in lines[2]


def test_a_missing_value_of_a_variant_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    rows = (a_row("old", *[1.0] * 8), a_row("new", *[1.5] * 8), a_row("old", *[2.0] * 8, threads=4))
    assert printed(capsys, *rows)[-1].endswith("not measured")


def test_several_revisions_have_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    rows = (a_row("old", *[1.0] * 8), a_row("new", *[1.5] * 8, revision=TWO))
    assert printed(capsys, *rows)[0].split()[:2] == ["revision", "variant"]


@pytest.mark.parametrize(("width", "does"), [(60, False), (400, True)])
def test_tables_are_side_by_side_only_where_they_fit(width: int, does: bool) -> None:
    table = side_by_side([a_row(f"alternative-{number}", *[1.0 + number] * 8) for number in range(6)])
    assert table is not None
    assert fits(table, Console(width=width)) is does


def test_a_table_names_its_searched_source(capsys: pytest.CaptureFixture[str]) -> None:
    pins = Pins(along="app", at={"main": Revision(id="1.2", label="1.2")})
    assert printed(capsys, a_row("plain", *[1.0] * 8), pins=pins)[0] == "along app, with main at 1.2"


def test_both_metrics_of_memory_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [replace(a_row("plain", 1.0, 1.1), metric=name) for name in ("peak_memory", "peak_memory_tree")]
    print_rows(rows)
    shown = " ".join(capsys.readouterr().out.split())
    assert "peak_memory: peak memory of the largest process; it includes shared libraries" in shown
    assert "so it can be smaller than peak_memory" in shown
    print_rows(rows[:1])
    assert "it includes shared libraries" not in capsys.readouterr().out


def test_a_terminal_shows_the_ends_and_the_changes_of_a_long_history_and_a_pipe_shows_all(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    history = [Revision(id=f"v{number}") for number in range(400)]
    levels = [1.0 if number < 300 else 1.5 for number in range(400)]
    values = [
        [level + 0.001 * (step % 7) for step in range(number, number + 5)]
        for number, level in enumerate(levels)
    ]
    rows = [
        replace(a_row("plain", *own, revision=revision), runnables=frozenset({revision.id}))
        for own, revision in zip(values, history, strict=True)
    ]
    changes = history_changes(history, rows).points
    assert [each.row.subject.revision.id for each in changes] == ["v300"]
    print_rows(rows, changes=changes)
    assert len(capsys.readouterr().out.splitlines()) == 401
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "200")
    print_rows(rows, changes=changes)
    shown = [line.strip() for line in ANSI.sub("", capsys.readouterr().out).splitlines()]
    assert [line.split()[0] if not line.startswith("…") else line for line in shown[1:-1]] == [
        "v0", "… 298 more", "v299", "v300", "… 98 more", "v399",
    ]  # fmt: skip
    assert shown[-1] == "Rows between changes are omitted. All 400 rows: perftrail show | less"
    print_rows(rows[:100])
    assert len(capsys.readouterr().out.splitlines()) == 101


def test_a_file_gets_the_lines_of_a_table(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    named = replace(ONE, label="\u6f22v1", summary="the first")
    rows = [
        a_row("plain", *[1.0] * 8, revision=named),
        a_row("\u6f22", 2.0, revision=named, failures=1),
        replace(a_row("plain", *[1e-3] * 12, revision=TWO), benchmark="other", outdated="older recipe"),
        replace(a_row("plain", 3.0, revision=TWO), point=Point()),
    ]
    for chosen in (rows, rows[:1], rows[2:], [replace(each, point=Point()) for each in rows[:2]]):
        print_rows(chosen)
        plain = capsys.readouterr().out
        with monkeypatch.context() as patched:
            patched.setattr(tables, "is_limited", lambda _: True)
            print_rows(chosen)
        assert plain == capsys.readouterr().out


def test_no_name_unit_or_message_reaches_the_terminal_unescaped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "color", "always")
    evil = "s\x1b[2K\x1b]0;owned\x07\u202e"
    row = replace(a_row("plain", *[1.0 + number / 10 for number in range(8)]), unit=evil, flags=(evil,))
    print_rows([row])
    shown = ANSI.sub("", capsys.readouterr().out)
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "\u202e" not in shown
    assert "s\\x1b[2K" in shown
