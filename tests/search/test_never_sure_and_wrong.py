"""Cases in which the search was once sure and wrong, as seeded simulations."""

from __future__ import annotations

import json
import math
import re
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from perftrail.search import Batch, Measure, Question, Sample, Search, Verdict
from perftrail.stats.scale import Scale
from tests.search.oracle import Oracle, batch, layouts, normal, step, steps

if TYPE_CHECKING:
    from perftrail.search import Answer
    from tests.search.oracle import Noise

CASE = json.loads((Path(__file__).parent / "cases" / "wrong-none.json").read_text(encoding="utf-8"))


def names_only(answer: Answer, culprits: set[int]) -> bool:
    """Return whether every named change contains a culprit."""
    return all(culprits.intersection(change.positions) for change in answer.changes)


def recorded() -> dict[int, list[float]]:
    """Return the samples of the recorded search by position, as logarithms."""
    found: dict[int, list[float]] = {}
    for each in CASE["steps"]:
        found.setdefault(each["position"], []).extend(map(math.log, each["values"]))
    return found


def resampled(seed: int) -> Oracle:
    """Return an oracle that draws recorded samples of the position, or of one on the same side of the change.

    Positions that were not measured share no layout with their neighbours, as real builds do not.
    """
    samples, rng = recorded(), np.random.default_rng(seed)

    def sample(position: int) -> float:
        side = [each for each in samples if (each >= CASE["culprit"]) == (position >= CASE["culprit"])]
        source = (
            position if position in samples else int(np.random.default_rng([seed, position]).choice(side))
        )
        return float(rng.choice(samples[source]))

    return Oracle(lambda position: 0.0, sample)


@pytest.mark.parametrize("seed", range(4))
def test_a_real_history_on_a_busy_machine_is_never_none(seed: int) -> None:
    question = Question(revisions=CASE["revisions"], threshold=CASE["threshold"], seed=seed)
    answer = resampled(seed).settle(question)
    assert answer.verdict in {Verdict.FOUND, Verdict.UNCLEAR, Verdict.RANGE}
    assert names_only(answer, {CASE["culprit"]})


@pytest.mark.parametrize("seed", range(2))
def test_the_recorded_samples_in_their_order_do_not_lead_to_none(seed: int) -> None:
    search = Search(Question(revisions=CASE["revisions"], threshold=CASE["threshold"], seed=seed))
    first, *others = sorted(CASE["steps"], key=lambda each: each["position"] != 0)
    search.tell(batch(*((first["position"], math.log(value)) for value in first["values"])))
    search.ask()
    # The recorded search did not measure a reference with each build. The next build in time replaces it.
    for each, next_one in pairwise(others):
        samples = [(one["position"], math.log(value)) for one in (each, next_one) for value in one["values"]]
        search.tell(batch(*samples))
        assert search.ask() == search.ask()
    answer = resampled(seed).settle(search)
    assert answer.verdict is not Verdict.NONE
    assert names_only(answer, {CASE["culprit"]})


def test_equal_ends_with_a_slow_range_between_them_are_not_none() -> None:
    for seed in range(2):
        oracle = Oracle(
            steps((30, math.log(1.4)), (70, -math.log(1.4))),
            normal(seed, 0.03),
            content=lambda position: 0 if position >= 70 else position,
        )
        answer = oracle.settle(Question(revisions=100, thorough=True))
        assert answer.verdict is Verdict.SEVERAL
        assert [change.positions for change in answer.changes] == [(30,), (70,)]


@pytest.mark.parametrize("relinks", [False, True])
def test_layouts_alone_do_not_lead_to_a_culprit(relinks: bool) -> None:
    for seed in range(5):
        oracle = Oracle(lambda position: 1.0, normal(seed, 0.003), layouts(100 + seed, 0.015))
        question = Question(revisions=100, threshold=0.02, relinks=relinks, seed=seed)
        answer = oracle.settle(question)
        assert answer.changes == ()
        if answer.verdict is Verdict.NONE:
            assert answer.certificate is not None


def test_layouts_that_hide_any_change_end_a_search_that_cannot_relink() -> None:
    for seed in range(3):
        oracle = Oracle(step(60, 0.1), normal(seed, 0.02), layouts(100 + seed, 0.06))
        answer = oracle.settle(Question(revisions=200, threshold=0.05, seed=seed))
        assert answer.changes == ()
        # Four builds for each halving, and those that divide all open gaps once more.
        assert oracle.builds <= 64
    assert re.search(r"builds differ by about [0-9.]+ % without any change", answer.reason)


def test_layouts_that_hide_any_difference_are_told_in_the_unit_of_the_metric() -> None:
    own, noise = layouts(101, 0.06), normal(1, 0.02)
    search = Search(Question(revisions=200, scale=Scale.DIFFERENCE, threshold=0.05, seed=1))
    while isinstance(action := search.ask(), Measure):
        samples = tuple(
            Sample(position=each, value=own(each, 0) + 0.1 * (each >= 60) + noise(each))
            for each in action.order
        )
        search.tell(Batch(samples=samples, certificate=action.certificate, layout=action.layout))
    assert action.answer.changes == ()
    assert re.search(r"builds differ by about 0\.0[0-9]+ without any change", action.answer.reason)


def test_two_builds_on_one_side_do_not_suffice_if_layouts_may_explain_their_level() -> None:
    # Revision 6 and the first are equal by chance; a third build near them shows it.
    by_chance = {0: 0.078, 6: 0.083, 100: 0.049}
    oracle = Oracle(lambda position: math.exp(by_chance.get(position, 0.005)), normal(3, 0.02))
    answer = oracle.settle(Question(revisions=200, threshold=0.05))
    assert answer.changes == ()


def slower_in_half(seed: int, culprit: int, sigma: float) -> Noise:
    rng = np.random.default_rng(seed)
    return lambda position: float(
        rng.normal(0, sigma) + math.log(1.3) * (position >= culprit and rng.random() < 0.5)
    )


def test_a_change_in_half_of_the_invocations_is_found_or_unclear() -> None:
    found = 0
    for seed in range(6):
        oracle = Oracle(lambda position: 1.0, slower_in_half(seed, 37, 0.01))
        answer = oracle.settle(Question(revisions=100, seed=seed), most=2000)
        assert answer.verdict is not Verdict.NONE
        assert names_only(answer, {37})
        found += answer.verdict is Verdict.FOUND
    # The others are unclear: half of the samples of the new builds are like all samples of the old ones.
    assert found >= 2


def bursts(seed: int, sigma: float, size: float, share: float = 0.15) -> Noise:
    """Return noise with bursts of other load of 3 to 9 samples, in this share of the time."""
    rng = np.random.default_rng(seed)
    left = 0

    def sample(position: int) -> float:
        nonlocal left
        if left == 0 and rng.random() < share / 6 / (1 - share):
            left = int(rng.integers(3, 10))
        slow, left = left > 0, max(0, left - 1)
        return float(rng.normal(0, sigma) + size * slow)

    return sample


def test_bursts_of_other_load_as_large_as_the_change_mislead_no_search() -> None:
    found = 0
    for seed in range(8):
        culprit = 20 + 7 * seed
        answer = Oracle(step(culprit, math.log(1.1)), bursts(seed, 0.02, math.log(1.1))).settle(
            Question(revisions=100, seed=seed)
        )
        assert answer.verdict is not Verdict.NONE
        assert names_only(answer, {culprit})
        found += answer.verdict is Verdict.FOUND
    assert found >= 6


def jump(seed: int, sigma: float, size: float) -> Noise:
    """Return noise of a machine that becomes slower permanently, after some samples."""
    rng = np.random.default_rng(seed)
    after, count = int(rng.integers(5, 45)), 0

    def sample(position: int) -> float:
        nonlocal count
        count += 1
        return float(rng.normal(0, sigma) + size * (count > after))

    return sample


def test_a_machine_that_slows_down_by_the_size_of_the_change_misleads_no_search() -> None:
    for seed in range(6):
        culprit = 20 + 7 * seed
        answer = Oracle(step(culprit, math.log(1.1)), jump(seed, 0.02, math.log(1.1))).settle(
            Question(revisions=100, seed=seed)
        )
        assert answer.verdict is Verdict.FOUND
        assert [change.positions for change in answer.changes] == [(culprit,)]


def test_bursts_of_other_load_alone_lead_to_no_culprit() -> None:
    for seed in range(6):
        answer = Oracle(lambda position: 1.0, bursts(50 + seed, 0.02, math.log(1.1))).settle(
            Question(revisions=100, seed=seed)
        )
        assert answer.changes == ()


@pytest.mark.parametrize(
    "shown", ["ticks of ten", "ticks of four thousand", "rounded to tens", "rounded to ones"]
)
@pytest.mark.parametrize("noise", [0.0, 0.002, 0.01])
def test_coarse_clocks_and_rounded_values_lead_to_no_change_below_the_threshold(
    shown: str, noise: float
) -> None:
    """The levels differ by 1 to 2 %, their printed values by 10 % if a tick or a rounding border is between them."""
    before, after, step, ticks = {
        "ticks of ten": (104.0, 106.0, 10.0, True),
        "ticks of four thousand": (104_000.0, 106_000.0, 4000.0, True),
        "rounded to tens": (104.5, 105.5, 10.0, False),
        "rounded to ones": (14.4, 14.6, 1.0, False),
    }[shown]
    for seed in range(2):
        rng = np.random.default_rng(seed)

        def printed(position: int) -> float:
            value = (after if position >= 17 else before) * math.exp(rng.normal(0.0, noise)) / step  # noqa: B023
            return math.log(step * (math.floor(value + rng.random()) if ticks else round(value)))  # noqa: B023

        answer = Oracle(lambda position: 0.0, printed).settle(Question(revisions=40, seed=seed))
        assert answer.changes == ()


def test_a_count_that_doubles_is_found() -> None:
    oracle = Oracle(lambda position: math.log(200.0 if position >= 17 else 100.0))
    answer = oracle.settle(Question(revisions=40))
    assert [change.positions for change in answer.changes] == [(17,)]
