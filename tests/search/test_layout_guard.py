"""Layouts of builds: their noise, the changes that they may explain, and the builds that separate both."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pytest

from perftrail.search import Budget, Built, Costs, Question, Search, Verdict
from perftrail.search.evidence import Evidence
from perftrail.search.layout_guard import (
    CLEAR,
    HOPELESS,
    MOST_BESIDE,
    USUAL_TAU,
    LayoutGuard,
    Separation,
    chance_for_gradual,
)
from perftrail.search.rounds import Rounds
from perftrail.search.words import reservations
from tests.search.oracle import Oracle, batch, layouts, normal, step

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perftrail.search.rounds import Gap


class Map:
    """Rounds of builds with these levels."""

    def __init__(
        self, levels: Mapping[int, float], *, sigma: float = 0.002, rounds: int = 12, **more: float
    ) -> None:
        self.question = Question(revisions=max(levels) + 1, **more)  # type: ignore[arg-type]  # a Question checks them
        self.evidence = Evidence(self.question)
        self.rounds = Rounds(self.question, self.evidence)
        self.guard = LayoutGuard(self.question, self.evidence, self.rounds)
        self._rng, self._sigma = np.random.default_rng(3), sigma
        self.measure(levels, rounds)

    def measure(self, levels: Mapping[int, float], rounds: int = 12) -> None:
        self.rounds.add(levels)
        for _ in range(rounds):
            values = [(at, level + float(self._rng.normal(0, self._sigma))) for at, level in levels.items()]
            self.evidence.add(batch(*values, certificate=True))

    def separation(self) -> Separation:
        return Separation(self.rounds)

    def gap(self, last: int) -> Gap:
        return next(each for each in self.rounds.gaps() if each.last == last)


def levels(
    count: int, tau: float, *, seed: int = 1, culprit: int = 10**6, size: float = 0.0
) -> dict[int, float]:
    """Return levels of neighbouring builds with layouts of this standard deviation, and a change."""
    rng = np.random.default_rng(seed)
    return {at: float(rng.normal(0, tau)) + size * (at >= culprit) for at in range(count)}


@pytest.mark.parametrize(
    ("question", "doubted"),
    [
        (Question(revisions=9), True),
        (Question(revisions=9, linked=False), False),
        (Question(revisions=9, counted=True), False),
        (Question(revisions=9, relinks=True), False),
    ],
)
def test_layouts_are_doubted_only_where_they_matter_and_cannot_be_drawn_again(
    question: Question, doubted: bool
) -> None:
    evidence = Evidence(question)
    assert LayoutGuard(question, evidence, Rounds(question, evidence)).is_needed is doubted


def test_the_layout_noise_is_the_usual_one_before_equal_builds_were_compared() -> None:
    assert Map({0: 0.0, 1: 0.4}).separation().tau == pytest.approx(USUAL_TAU)


@pytest.mark.parametrize("tau", [0.003, 0.02, 0.06])
def test_the_layout_noise_is_estimated_from_the_builds(tau: float) -> None:
    assert Map(levels(40, tau)).separation().tau == pytest.approx(tau, rel=0.35)


def test_changes_hardly_raise_the_layout_noise() -> None:
    changed = [Map(levels(30, 0.02, seed=seed, culprit=12, size=0.5)).separation().tau for seed in range(4)]
    assert np.mean(changed) == pytest.approx(0.02, rel=0.35)


def test_noise_of_samples_is_not_taken_for_layouts() -> None:
    assert Map(levels(30, 0.0), sigma=0.03).separation().tau < 0.012


def test_a_change_is_between_the_builds_of_its_sides() -> None:
    history = Map(levels(20, 0.002, culprit=10, size=0.2))
    before, after = history.separation().groups(10)
    assert before == tuple(range(10 - MOST_BESIDE, 10))
    assert after == tuple(range(10, 10 + MOST_BESIDE))
    assert history.separation().chances[10] < 0.01


def test_equal_artefacts_are_one_layout() -> None:
    """Two builds of eight revisions show no more of layouts than two builds of two."""
    answers = []
    for revisions, culprit in ((2, 1), (8, 5)):
        oracle = Oracle(step(culprit, 0.06), normal(1, 0.002), content=partial(int.__le__, culprit))
        answers.append(oracle.settle(Question(revisions=revisions)))
    assert [answer.verdict for answer in answers] == [Verdict.UNCLEAR, Verdict.UNCLEAR]
    assert all(answer.layouts_hide for answer in answers)


def test_two_changes_are_both_separated_from_layouts() -> None:
    found = levels(20, 0.002, culprit=7, size=0.2)
    history = Map({at: level + 0.1 * (at >= 14) for at, level in found.items()})
    assert {last for last, chance in history.separation().chances.items() if chance < 0.01} == {7, 14}


def test_layouts_explain_a_change_less_the_larger_it_is_and_the_calmer_the_builds() -> None:
    def chance(size: float, tau: float) -> float:
        return Map(levels(20, tau, culprit=10, size=size)).separation().chances[10]

    assert chance(0.5, 0.01) < chance(0.15, 0.01)
    assert chance(0.15, 0.01) < chance(0.15, 0.04)
    assert chance(0.5, 0.01) < 0.01


def test_only_certain_and_likely_changes_have_a_chance() -> None:
    history = Map(levels(20, 0.001, culprit=10, size=0.2))
    likely = {each.last for each in history.rounds.gaps() if each.is_named or each.is_likely}
    assert 10 in likely
    assert set(history.separation().chances) <= likely
    assert Map(dict.fromkeys(range(8), 0.0)).separation().chances == {}


def test_a_change_that_is_not_certain_yet_is_no_layout_noise() -> None:
    """A search would end, because its builds seem to differ, before its rounds certify the change."""
    history = Map(levels(40, 0.002, culprit=20, size=0.3), rounds=2)
    assert not any(each.is_named for each in history.rounds.gaps())
    assert history.separation().tau < 0.02
    assert history.guard.hidden == 0


def test_a_gradual_change_is_a_trend_and_not_a_pair_of_odd_ends() -> None:
    def chance(found: dict[int, float]) -> float:
        history = Map(found, threshold=0.05)
        (run,) = history.rounds.between_changes(history.rounds.gaps())
        return chance_for_gradual(run)

    rising = {at: 0.012 * at for at in range(12)}
    odd = dict.fromkeys(range(12), 0.0) | {0: -0.035, 11: 0.035}
    assert chance(rising) < 1e-6
    assert chance(odd) > 0.01
    assert chance({0: 0.0, 1: 0.03, 2: 0.06}) == 1.0, "too few builds for a trend"


def test_a_map_of_builds_that_differ_by_half_the_threshold_hides_changes() -> None:
    calm, restless = Map(levels(60, 0.003)), Map(levels(60, 0.06))
    assert calm.guard.hidden == 0
    assert restless.guard.hidden == pytest.approx(0.06, rel=0.35)
    few = Map(levels(9, 0.06))
    assert few.guard.hidden == 0, "more builds may show the noise to be smaller"


# Builds beside a change.


def beside(levels_: dict[int, float]) -> tuple[float, set[int]]:
    history = Map(levels_)
    return history.separation().chances[50], set(history.guard.wanted())


CALM = {0: 0.0, 25: 0.011, 49: 0.0, 50: 0.075, 75: 0.062, 99: 0.07}


def test_a_change_that_layouts_hardly_explain_needs_no_builds_beside_it() -> None:
    chance, builds = beside({at: level + 0.5 * (at >= 50) for at, level in CALM.items()})
    assert chance <= 0.01 * CLEAR
    assert builds == set()


def test_a_change_needs_a_build_on_each_side_that_was_not_chosen_by_its_level() -> None:
    history = Map(CALM)
    assert 0.01 * CLEAR < (history.guard.chance(history.gap(50)) or 0) <= 0.01
    assert not history.guard.allows(history.gap(50)), (
        "a budget may end the search before these builds are measured"
    )
    builds = set(history.guard.wanted())
    assert {49, 50} <= builds
    before, after = sorted(builds - {49, 50})
    assert 0 < before < 49
    assert 50 < after < 99
    history.measure(CALM | {before: 0.005, after: 0.068})
    assert set(history.guard.wanted()) == set()
    assert history.guard.allows(history.gap(50))


def test_a_change_in_doubt_is_measured_with_new_builds_on_both_sides() -> None:
    chance, builds = beside({0: 0.01, 49: -0.01, 50: 0.06, 99: 0.08})
    assert 0.01 < chance < HOPELESS
    assert {49, 50} <= builds
    assert len(builds - {0, 49, 50, 99}) == 2


def test_a_build_unlike_both_neighbours_may_have_an_unusual_layout() -> None:
    found = levels(20, 0.002, culprit=10, size=0.2)
    chances = Map(found | {9: -0.2}).separation().chances
    assert chances[9] > HOPELESS
    steps = Map(found | {9: 0.1}).separation().chances
    assert steps[9] < 0.05
    assert steps[10] < 0.05


def test_the_number_of_builds_beside_a_change_is_limited() -> None:
    """Layouts of about a tenth of the change are in doubt; no side gets more than its number of builds."""
    oracle = Oracle(step(40, 0.07), normal(1, 0.004), layouts(5, 0.012))
    oracle.settle(Question(revisions=80), most=400)
    assert oracle.builds <= 2 * MOST_BESIDE + 16


# Whole searches.


@pytest.mark.parametrize("trials", [3, pytest.param(30, marks=pytest.mark.long)])
@pytest.mark.parametrize("tau", [0.004, 0.01])
def test_layouts_alone_name_no_change(tau: float, trials: int) -> None:
    wrong = 0
    for seed in range(trials):
        oracle = Oracle(lambda position: 1.0, normal(seed, 0.004), layouts(100 + seed, tau))
        wrong += bool(oracle.settle(Question(revisions=60, threshold=0.03, seed=seed)).changes)
    assert wrong <= trials // 20


def test_a_change_far_above_the_layouts_is_found_although_they_cannot_be_drawn_again() -> None:
    for seed in range(2):
        oracle = Oracle(step(37, 0.15), normal(seed, 0.01), layouts(100 + seed, 0.005))
        answer = oracle.settle(Question(revisions=60, seed=seed))
        assert [change.positions for change in answer.changes] == [(37,)]
        (change,) = answer.changes
        assert change.certificate is not None
        assert change.confidence < 1 - change.certificate.error, "the doubt about layouts counts"


def test_a_budget_without_runs_for_the_check_of_layouts_names_no_change_that_needs_it() -> None:
    answers = []
    for runs in (60, 80):
        oracle = Oracle(step(50, 0.07), normal(0, 0.004), layouts(100, 0.008))
        answers.append(oracle.settle(Question(revisions=100, budget=Budget(invocations=runs))))
    early, checked = answers
    assert (early.verdict, checked.verdict) == (Verdict.UNCLEAR, Verdict.FOUND)
    assert early.layouts_hide
    assert [suspicion.doubted for suspicion in early.suspected] == [True]
    assert early.suspected[0].confidence > 0.99, "without the check, this would have been enough"


@pytest.mark.parametrize("revisions", [2, 3])
@pytest.mark.parametrize("build", [0.2, 10.0])
def test_a_large_change_in_the_shortest_histories_is_found(revisions: int, build: float) -> None:
    question = Question(revisions=revisions, threshold=0.1, costs=Costs(build=build, sample=1.0))
    answer = Oracle(step(1, 0.26), normal(1, 0.01), build_seconds=build).settle(question)
    assert answer.verdict is Verdict.FOUND
    assert [change.positions for change in answer.changes] == [(1,)]


@pytest.mark.parametrize("linked", [False, True])
def test_two_revisions_that_certainly_differ_leave_no_other_change_to_exclude(linked: bool) -> None:
    for seed in range(3):
        question = Question(revisions=2, linked=linked, seed=seed)
        answer = Oracle(step(1, 0.3), normal(seed, 0.02)).settle(question)
        (change,) = answer.changes
        assert change.certificate is not None
        assert change.certificate.is_only_change
        remarks = reservations(change.certificate, math.exp(0.3), linked=linked)
        assert not any("another change" in remark for remark in remarks)


@pytest.mark.parametrize("other", [(0, 4, 6), (0, 2, 4, 6), (0, 4, 6, 7)])
def test_no_build_is_measured_again_and_again_beside_a_change(other: tuple[int, ...]) -> None:
    """Most revisions have the artefact of another one, and the rounds of another metric ran some of them."""
    oracle = Oracle(step(6, 0.2), content=lambda position: 6 if position >= 6 else 4 * (position >= 4))
    search = Search(Question(revisions=8))
    for at in other:
        content = oracle.content(at)
        search.tell(Built(position=at, seconds=1.0, same_as=None if content == at else content))
        oracle.built[at] = oracle.content(at)
    for _ in range(8):
        search.tell(batch(*((at, 0.2 * (at >= 6)) for at in (0, 4, 6)), certificate=True))
    oracle.settle(search, most=200)
