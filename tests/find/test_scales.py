"""`find` compares values by their ratio, their difference or their rate, as the first samples or the study say."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perftrail.errors import NoAnswer
from perftrail.find.answer import FindAnswer, FindRequest
from perftrail.find.find import Find
from perftrail.model.benchmark import Benchmark
from perftrail.model.metrics import Metric, MetricScale
from perftrail.model.target import resolve_goal
from perftrail.present.answer_details import headline, print_find
from perftrail.present.next_find import FindCommand
from perftrail.search.budget import Budget
from tests.fakes.subject_builder import FakeSource, FakeStarter, number_of
from tests.find.test_merges_and_failures import merging
from tests.measure.fake_session import a_session, a_study, drain

REVISIONS = 24
CULPRIT = 9


def search(
    directory: Path,
    value: Callable[[int], float],
    *,
    threshold: float = 0.05,
    scale: MetricScale | None = None,
    better: str = "lower",
    unit: str = "",
    source: FakeSource | None = None,
) -> FindAnswer:
    """Search for a change of a printed number, which `value` returns for each run of a revision."""
    pattern = "value (-?[0-9.e-]+)"
    metric = Metric(
        pattern=pattern, scale=scale, better="higher" if better == "higher" else "lower", unit=unit
    )
    study = a_study(benchmarks={"work": Benchmark(command="{build}/work", metrics={"printed": metric})})
    starter = FakeStarter(seconds=lambda _: 0.1, prints=lambda words: f"value {value(number_of(words))}\n")
    session = a_session(study, directory, source=source or FakeSource(REVISIONS), starter=starter)
    request = FindRequest(
        goal=resolve_goal(study, ("printed",)),
        range=None,
        threshold=threshold,
        confidence=0.99,
        budget=Budget(invocations=600),
    )
    answer = drain(Find(session, request).events())[1]
    assert isinstance(answer, FindAnswer)
    return answer


def lines(answer: FindAnswer, capsys: pytest.CaptureFixture[str]) -> list[str]:
    print_find(answer, FindCommand(threshold=0.05, benchmarks={}))
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(("before", "after"), [(0.0, 5.0), (-3.0, 2.0), (-1.0, 0.0), (-4.0, -9.0)])
@pytest.mark.parametrize("spread", [0.0, 0.2])
def test_a_change_from_zero_or_of_a_negative_number_is_found(
    tmp_path: Path, before: float, after: float, spread: float
) -> None:
    rng = random.Random(5)
    answer = search(
        tmp_path,
        lambda number: (before if number < CULPRIT else after) + rng.gauss(0.0, spread),
        threshold=0.5,
    )
    assert (answer.answer.verdict, answer.unusable) == ("found", ())
    plain: Any = answer.as_json()
    [change] = plain["changes"]
    assert change["revisions"] == [f"r{CULPRIT}"]
    assert plain["scale"] == "difference"
    effect = change["effect"]
    assert effect["difference"] == pytest.approx(after - before, abs=0.4)
    assert plain["ends"]["difference"] == pytest.approx(after - before, abs=0.4)
    assert "ratio" not in plain["ends"]


def test_errors_that_begin_are_told_in_their_unit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = search(tmp_path, lambda number: 5.0 * (number >= CULPRIT), unit="errors")
    first, *others = lines(answer, capsys)
    assert first.startswith(f"found: r{CULPRIT}")
    assert "changed printed: 5.00 errors more (worse; 95 % interval +5.0" in first
    assert "  from end to end 5.00 errors more" in "\n".join(others)
    assert "  before 0 errors, after 5.00 errors" in others
    assert "Values are compared by their difference" in "\n".join(others)


def test_errors_that_a_branch_brings_are_found_inside_its_merge(tmp_path: Path) -> None:
    answer = search(
        tmp_path,
        lambda number: 5.0 * (number in (*range(20, 30), *range(1003, 1006))),
        source=merging(20, base=12, branch=range(1000, 1006)),
    )
    inside = answer.inside[0]
    assert (inside.origin, [each.id for each in inside.candidates]) == ("branch", ["r1003"])
    assert inside.change is not None
    assert inside.change.effect is not None
    assert (inside.change.effect.value, inside.change.effect.scale) == (5.0, "difference")


def test_errors_that_only_a_merge_has_come_from_the_combination(tmp_path: Path) -> None:
    answer = search(
        tmp_path,
        lambda number: 5.0 * (number in range(15, 30)),
        source=merging(15, base=12, branch=range(1000, 1004)),
    )
    assert answer.answer.changes[0].positions == (15,)
    assert answer.inside[0].origin == "combination"


def test_a_slope_that_begins_at_zero_is_gradual_and_not_unusable(tmp_path: Path) -> None:
    rng = random.Random(5)
    answer = search(
        tmp_path, lambda number: 0.1 * number + rng.gauss(0.0, 0.01) * bool(number), threshold=0.5
    )
    assert answer.unusable == ()
    assert answer.answer.verdict in ("range", "found")
    assert answer.answer.changes[0].kind == "ramp"
    assert answer.answer.changes[0].effect is not None
    assert answer.answer.changes[0].effect.value == pytest.approx(2.3, abs=0.1)


def test_a_printed_boolean_is_compared_by_its_rate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = random.Random(3)
    answer = search(
        tmp_path,
        lambda number: float(rng.random() < (1.0 if number < CULPRIT else 0.3)),
        threshold=0.1,
        better="higher",
    )
    plain: Any = answer.as_json()
    assert (plain["verdict"], plain["scale"]) == ("found", "rate")
    assert [change["revisions"] for change in plain["changes"]] == [[f"r{CULPRIT}"]]
    effect = plain["changes"][0]["effect"]
    assert -1.0 <= effect["difference"] < -0.4
    text = "\n".join(lines(answer, capsys))
    assert " points less (worse; 95 % interval -" in text
    assert "of the runs before" in text


def test_equal_zeros_are_equal_and_state_the_difference_that_would_have_shown(tmp_path: Path) -> None:
    answer = search(tmp_path, lambda _: 0.0, scale="difference")
    assert answer.answer.verdict == "none"
    assert answer.as_json()["scale"] == "difference"
    assert "printed by more than 0" not in headline(answer)


def test_equal_medians_name_a_share_of_runs_that_became_slower(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """30 % of the runs take twice as long: no median changes, and the samples scatter more."""
    rng = random.Random(1)
    answer = search(
        tmp_path,
        lambda number: 100.0 * (1.0 + (number >= CULPRIT and rng.random() < 0.3)) + rng.gauss(0.0, 1.0),
    )
    assert answer.answer.verdict == "none"
    text = "\n".join(lines(answer, capsys))
    assert "but samples of the newest build scatter" in text
    assert "times as much, which medians do not show" in text


def test_a_stated_scale_refuses_values_without_a_place_on_it(tmp_path: Path) -> None:
    with pytest.raises(NoAnswer, match="printed is 0: not a value for ratios, which need values above zero"):
        search(tmp_path, lambda _: 0.0, scale="ratio")
    with pytest.raises(NoAnswer, match="printed is 3: not a value for a rate, which needs 0 or 1"):
        search(tmp_path, lambda _: 3.0, scale="rate")


def test_a_stated_difference_applies_to_values_above_zero(tmp_path: Path) -> None:
    answer = search(
        tmp_path, lambda number: 100.0 + 3.0 * (number >= CULPRIT), scale="difference", threshold=2.0
    )
    assert answer.as_json()["changes"][0]["effect"] == {
        "difference": pytest.approx(3.0),
        "low": pytest.approx(3.0),
        "high": pytest.approx(3.0),
        "confidence": 0.95,
    }
