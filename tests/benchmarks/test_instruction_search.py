"""The benchmark of searches that count instructions, at a size for a test."""

from __future__ import annotations

from benchmarks.instruction_search import run_trial, settings_of


def test_one_history_is_searched_with_each_kind_of_counts_and_right_counts_save_runs() -> None:
    trials = [run_trial(number, settings_of(0.08, 0.25, 0.3), seed=1) for number in range(3)]
    assert not any(each.wrong for trial in trials for each in trial.values())
    assert all(trial["right"].right for trial in trials)
    runs = {counted: sum(trial[counted].runs for trial in trials) for counted in ("none", "right")}
    assert runs["right"] < runs["none"]
    assert [trial["none"].counts for trial in trials] == [0, 0, 0]
