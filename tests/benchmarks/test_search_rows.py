"""The rows: each goal is judged by the values, done work is kept, and the page takes the tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.search import campaign, goals, page
from benchmarks.search.cases_with_goals import ROWS, chosen
from benchmarks.search.outcome import Outcome
from benchmarks.search.strategies import STRATEGIES
from benchmarks.search.summary import Summary, summarise


def outcomes(right: int, wrong: int, invocations: int = 20) -> list[Outcome]:
    good = Outcome(
        verdict="found",
        right=True,
        exact=True,
        wrong=False,
        held=True,
        confidence=0.995,
        builds=10,
        invocations=invocations,
        ask_milliseconds=(1.0, 2.0),
    )
    return [good] * right + [replace(good, right=False, wrong=True, held=False)] * wrong


def summary(right: int, wrong: int, invocations: int = 20) -> Summary:
    return summarise("perftrail", outcomes(right, wrong, invocations), 0.99)


def test_a_goal_is_met_only_when_every_case_meets_it() -> None:
    goal = goals.right_at_least(0.9)
    assert goal.judge([summary(95, 5), summary(92, 8)]).met
    assert not goal.judge([summary(95, 5), summary(88, 12)]).met
    assert goals.wrong_at_most(0.05).judge([summary(95, 5)]).met
    assert not goals.wrong_at_most(0.04).judge([summary(95, 5)]).met


def test_drift_is_compared_with_the_case_without() -> None:
    goal = goals.run_ratio_at_most(1.5)
    assert goal.judge([summary(9, 1, 40), summary(9, 1, 60)]).met
    assert not goal.judge([summary(9, 1, 40), summary(9, 1, 61)]).met


def test_only_answers_that_claim_the_confidence_are_calibrated() -> None:
    assert goals.calibrated(0.985).judge([summary(99, 1)]).met
    assert not goals.calibrated(0.985).judge([summary(98, 2)]).met
    modest = summarise("perftrail", [replace(one, confidence=0.9) for one in outcomes(1, 9)], 0.99)
    assert goals.calibrated(0.985).judge([modest]).text == "no such claim"


def test_every_case_names_a_strategy_that_there_is() -> None:
    assert {cell.strategy for row in ROWS for cell in row.cells} <= STRATEGIES.keys()


def test_an_unknown_row_is_reported_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="no row 'larg'; the names are large, small"):
        chosen(["larg"])


def test_what_is_done_is_not_run_again_but_another_seed_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--only-row", "merge", "--trials", "1", "--into", str(tmp_path)]
    campaign.main(arguments)
    first = capsys.readouterr()
    assert "merge-1-ours: " in first.err
    campaign.main(arguments)
    second = capsys.readouterr()
    assert second.out == first.out
    assert "merge-1-ours" not in second.err
    campaign.main([*arguments, "--seed", "2"])
    assert "merge-1-ours: " in capsys.readouterr().err


def test_the_tables_are_between_the_markers_and_replace_older_ones(tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    file.write_text(f"before\n{page.BEGIN}\nold\n{page.END}\nafter\n")
    page.write("| new |", file)
    page.write("| newer |", file)
    assert file.read_text() == f"before\n{page.BEGIN}\n\n| newer |\n\n{page.END}\nafter\n"
    file.write_text("no markers")
    with pytest.raises(ValueError, match="no place for the tables"):
        page.write("| new |", file)


def test_the_page_of_the_docs_has_its_markers() -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    assert text.index(page.BEGIN) < text.index(page.END)
