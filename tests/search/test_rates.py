"""Search for a change of a rate: outcomes of 0 and 1, for example of a program that fails in some of its runs."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

import numpy as np
import pytest

from perftrail.search import Answer, Batch, Budget, Built, Measure, Question, Sample, Search
from perftrail.search.answer import Verdict
from perftrail.search.evidence import Evidence
from perftrail.search.rounds import Rounds
from perftrail.stats.rates import rate_bounds, rate_evidence
from perftrail.stats.scale import Scale

if TYPE_CHECKING:
    from collections.abc import Iterable


def question(
    *, revisions: int = 100, runs: int | None = 300, threshold: float = 0.1, seed: int = 0
) -> Question:
    return Question(
        revisions=revisions,
        scale=Scale.RATE,
        threshold=threshold,
        budget=Budget(invocations=runs),
        seed=seed,
    )


def settle(
    asked: Question, *, culprit: int, before: float, after: float, seed: int = 1
) -> tuple[Answer, Search, list[Measure]]:
    """Let runs fail by chance, at one rate before the culprit and at another from it on."""
    rng, search, actions = random.Random(seed), Search(asked), list[Measure]()
    while isinstance(action := search.ask(), Measure):
        actions.append(action)
        for position in action.positions:
            if position not in search.evidence.built:
                search.tell(Built(position=position, seconds=10.0))
        samples = tuple(
            Sample(position=each, value=float(rng.random() >= (before if each < culprit else after)))
            for each in action.order
        )
        search.tell(Batch(samples=samples, seconds=len(samples), certificate=action.certificate))
    return action.answer, search, actions


@pytest.mark.parametrize("culprit", [1, 2, 500, 998, 999])
def test_a_failure_without_flakiness_is_found_in_few_builds(culprit: int) -> None:
    answer, search, _ = settle(question(revisions=1000), culprit=culprit, before=0, after=1)
    assert answer.changes[0].positions == (culprit,)
    assert answer.confidence >= 0.99
    assert search.evidence.builds <= 14
    assert search.evidence.invocations <= 48


def test_a_failure_in_every_run_is_certain_after_few_rounds() -> None:
    answer, _, _ = settle(question(), culprit=42, before=0, after=1)
    [change] = answer.changes
    assert change.certificate is not None
    assert change.certificate.blocks <= 9
    assert change.certificate.error <= 0.01


def test_rounds_begin_before_the_guide_is_certain_and_end_where_the_change_is_not() -> None:
    """Rounds of two builds locate a change as well as single runs do, and they certify it."""
    found = [
        settle(question(seed=seed), culprit=42, before=0.2, after=0.5, seed=seed)[0] for seed in range(8)
    ]
    named = [answer.changes[0].positions for answer in found if answer.verdict is Verdict.FOUND]
    assert set(named) == {(42,)}
    assert len(named) >= 2


def test_all_gaps_that_the_guide_proposes_share_the_error_of_one_claim() -> None:
    asked = question()
    evidence = Evidence(asked)
    rounds = Rounds(asked, evidence)
    rounds.add([0, 10, 11, 20, 21, 30, 31, 99])
    for first in (10, 20, 30):
        rounds.focus_on(first, first + 1, direction=-1.0, chance=0.8)
        rounds.ask()
        for _ in range(12):
            samples = (Sample(position=first, value=1.0), Sample(position=first + 1, value=0.0))
            evidence.add(Batch(samples=samples, certificate=True))
    errors = [2 * math.exp(-gap.evidence) for gap in rounds.gaps() if gap.first in (10, 20, 30)]
    assert errors == sorted(errors)
    alone = math.exp(-rate_evidence(np.ones(12)))
    assert sum(alone / error for error in errors) <= 1.0
    assert errors[0] == pytest.approx(alone / 0.8)


def test_bets_on_equal_rates_hardly_ever_reach_their_level() -> None:
    rng, level, reached = np.random.default_rng(3), 0.05, 0
    for rate in (0.05, 0.3, 0.5):
        for _ in range(300):
            pairs = (rng.random(80) < rate).astype(float) - (rng.random(80) < rate)
            reached += rate_evidence(pairs) >= math.log(1 / level)
    assert reached <= level * 900 + 20


def test_the_revision_that_repaired_the_program_is_found_too() -> None:
    answer, _, _ = settle(question(), culprit=77, before=1, after=0)
    [change] = answer.changes
    assert change.positions == (77,)
    assert change.before is not None
    assert change.after is not None
    assert 0.0 < change.before < 0.1
    assert 0.9 < change.after < 1.0


@pytest.mark.parametrize(
    ("before", "after"),
    [(0, 0.03), (0.02, 0.1), (0.05, 0.2), (0.2, 0.5), (0.05, 0.4), (1, 0.6), (0.03, 0.03), (0.5, 0.5)],
)
@pytest.mark.parametrize("trials", [3, pytest.param(20, marks=pytest.mark.long)])
def test_a_claim_about_flaky_programs_is_right(before: float, after: float, trials: int) -> None:
    for seed in range(trials):
        culprit = random.Random(100 + seed).randrange(1, 100)
        answer, _, _ = settle(question(seed=seed), culprit=culprit, before=before, after=after, seed=seed)
        if answer.verdict is Verdict.NONE:
            assert abs(before - after) < answer.minimum_detectable
        for change in answer.changes:
            assert before != after
            assert culprit in change.positions


def test_large_changes_of_a_rate_are_found_within_the_usual_budget() -> None:
    found = 0
    for seed in range(5):
        answer, _, _ = settle(question(seed=seed), culprit=40, before=0.0, after=0.5, seed=seed)
        found += answer.verdict is Verdict.FOUND and answer.changes[0].positions == (40,)
    assert found >= 4


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_equal_rates_are_certified_with_the_difference_that_would_have_been_seen(rate: float) -> None:
    answer, search, _ = settle(question(), culprit=50, before=rate, after=rate)
    assert answer.verdict is Verdict.NONE
    assert search.evidence.builds == 2
    assert 0.08 < answer.minimum_detectable < 0.1
    assert answer.reason == f"the ends are equal within {100 * answer.minimum_detectable:.2g} points"


def test_a_small_rise_from_zero_is_never_said_to_be_no_change() -> None:
    """A model of at least 14 points called 0 to 3 % equal; now the answer states what it can exclude."""
    for seed in range(5):
        asked = question(threshold=0.02, seed=seed)
        answer, _, _ = settle(asked, culprit=50, before=0.0, after=0.03, seed=seed)
        assert answer.verdict is not Verdict.NONE


@pytest.mark.parametrize("single", [10, 24, 31, 40])
def test_a_single_failing_revision_does_not_hide_the_one_that_lasts(single: int) -> None:
    """At 24 and 31 the guide meets it, and rounds name what broke, what repaired it, and the change that lasts."""
    search = Search(question(revisions=64))
    while isinstance(action := search.ask(), Measure):
        for position in action.positions:
            if position not in search.evidence.built:
                search.tell(Built(position=position, seconds=10.0))
        samples = tuple(
            Sample(position=each, value=float(each != single and each < 50)) for each in action.order
        )
        search.tell(Batch(samples=samples, seconds=len(samples), certificate=action.certificate))
    assert (50,) in [change.positions for change in action.answer.changes]
    assert len(action.answer.changes) == 1 or single in (24, 31)


def test_a_scale_that_the_samples_choose_is_fixed_before_the_rounds_that_certify() -> None:
    """The value 5 comes late, in a round of outcomes 0 and 1: the rounds before it certify nothing."""
    search = Search(Question(revisions=40, adapts=True, threshold=0.5, linked=False))
    scales, later = [], 0
    while isinstance(action := search.ask(), Measure):
        for position in action.positions:
            if position not in search.evidence.built:
                search.tell(Built(position=position, seconds=10.0))
        scales.append(search.question.scale)
        high = 5.0 if scales.count(Scale.RATE) > 12 else 1.0
        samples = tuple(Sample(position=each, value=high * (each >= 17)) for each in action.order)
        search.tell(Batch(samples=samples, seconds=len(samples), certificate=action.certificate))
        later += action.certificate and search.question.scale is Scale.DIFFERENCE
    assert list(dict.fromkeys(scales)) == [Scale.RATIO, Scale.RATE, Scale.DIFFERENCE]
    [change] = action.answer.changes
    assert (change.positions, action.answer.scale) == ((17,), Scale.DIFFERENCE)
    assert change.certificate is not None
    assert change.certificate.blocks <= later


def test_earlier_samples_are_read_again_only_when_a_value_has_no_place_on_the_scale(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[Scale] = []
    suited = Scale.suited

    def counted(scale: Scale, values: Iterable[float]) -> Scale:
        calls.append(scale)
        return suited(scale, values)

    monkeypatch.setattr(Scale, "suited", counted)
    search = Search(Question(revisions=4, adapts=True))
    for value in (1.0, 2.0, 3.0, 0.0, -1.0):
        search.tell(Batch(samples=(Sample(position=0, value=value),)))
    assert (calls, search.question.scale) == ([Scale.RATIO], Scale.DIFFERENCE)


def test_equal_observations_lead_to_equal_actions() -> None:
    first = settle(question(), culprit=30, before=0.05, after=0.8)
    again = settle(question(), culprit=30, before=0.05, after=0.8)
    assert (first[0], first[2]) == (again[0], again[2])


def test_a_spent_budget_ends_the_search_unclear() -> None:
    answer, search, _ = settle(question(revisions=1000, runs=6), culprit=400, before=0, after=1)
    assert search.evidence.invocations <= 6
    assert answer.verdict is Verdict.UNCLEAR
    assert "budget" in answer.reason


def test_a_search_ends_without_a_budget_even_if_the_rates_hardly_differ() -> None:
    answer, search, _ = settle(question(revisions=30, runs=None), culprit=15, before=0.45, after=0.55)
    assert search.evidence.invocations <= 1500
    assert answer.reason


def test_a_run_of_a_position_outside_the_history_is_refused() -> None:
    with pytest.raises(ValueError, match="positions 0 to 9"):
        Search(question(revisions=10)).tell(Batch(samples=(Sample(position=10, value=1.0),)))


@pytest.mark.parametrize(("one", "other"), [(0.0, 0.0), (0.1, 0.1), (0.5, 0.5), (0.05, 0.2), (0.9, 0.4)])
def test_bounds_of_a_difference_of_rates_hold_at_every_round(one: float, other: float) -> None:
    rng, wrong, trials = np.random.default_rng(7), 0, 100
    for _ in range(trials):
        pairs = (rng.random(120) < other).astype(float) - (rng.random(120) < one)
        found = rate_bounds(pairs, 0.05)
        wrong += not found.low <= other - one <= found.high
    assert wrong <= 0.1 * trials + 8


def test_bounds_of_a_difference_shrink_with_the_number_of_equal_outcomes() -> None:
    few, many = rate_bounds(np.zeros(20), 0.01), rate_bounds(np.zeros(100), 0.01)
    assert -1 < few.low < many.low < 0 < many.high < few.high < 1
    assert many.high < 0.07
    assert rate_bounds(np.empty(0), 0.01).low == -1.0


@pytest.mark.parametrize("linked", [False, True])
def test_a_difference_is_found_whatever_the_unit_of_its_metric(linked: bool) -> None:
    """Layout noise is a share of the values: a fixed one would hide each change of a metric in a large unit."""
    for unit in (1e-6, 1.0, 1e6):
        rng = np.random.default_rng(3)
        search = Search(
            Question(revisions=30, scale=Scale.DIFFERENCE, threshold=0.5 * unit, linked=linked, seed=4)
        )
        while isinstance(action := search.ask(), Measure):
            samples = tuple(
                Sample(position=each, value=unit * (float(each > 17) + 0.15 * float(rng.normal())))
                for each in action.order
            )
            search.tell(Batch(samples=samples, certificate=action.certificate, layout=action.layout))
        assert [change.positions for change in action.answer.changes] == [(18,)]


@pytest.mark.parametrize(("before", "after"), [(0.0, 5.0), (-3.0, 2.0), (2.0, 0.0)])
@pytest.mark.parametrize("spread", [0.0, 0.3])
def test_zeros_and_negative_values_are_compared_by_their_difference(
    before: float, after: float, spread: float
) -> None:
    rng, search = (
        np.random.default_rng(3),
        Search(Question(revisions=60, scale=Scale.DIFFERENCE, threshold=1.0, linked=False)),
    )
    while isinstance(action := search.ask(), Measure):
        for position in action.positions:
            if position not in search.evidence.built:
                search.tell(Built(position=position, seconds=10.0))
        samples = tuple(
            Sample(position=each, value=(before if each < 21 else after) + spread * float(rng.normal()))
            for each in action.order
        )
        search.tell(Batch(samples=samples, seconds=len(samples), certificate=action.certificate))
    [change] = action.answer.changes
    assert (action.answer.verdict, change.positions) == (Verdict.FOUND, (21,))
    assert change.effect is not None
    assert change.effect.low - 1e-9 <= after - before <= change.effect.high + 1e-9
