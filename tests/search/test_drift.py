"""Readings in order of time: drift, machines that follow each other."""

from __future__ import annotations

import math

import numpy as np
import pytest

from perftrail.search import Block, Measure, Question, Readings, Same, Search, Settled, Unusable, Verdict
from perftrail.search.blocks import Timed, offsets
from perftrail.search.drift import LAYOUTS, LAYOUTS_PRIOR, NEVER, WALKS, WALKS_PRIOR, Drift, Frame
from perftrail.search.jump import JUMP
from tests.search.oracle import step

ORDER = [5, 5, 9, 9, 9, 5, 7, 7, 3, 3, 9, 0, 7, 3, 8, 8, 0, 9]
FRAME = Frame(
    level=0.0,
    level_spread=0.15,
    change=0.1,
    change_spread=0.2,
    blocks=(("", 0.0),),
    sigma=(0.02, 0.03, 0.045),
    layout=0.05,
    garbage=1e-12,
)


def timed(values: np.ndarray, block: str = "") -> list[Timed]:
    return [
        Timed(position=position, value=float(value), block=block, redraw=False)
        for position, value in zip(ORDER, values, strict=True)
    ]


def wandering(seed: int, omega: float) -> np.ndarray:
    rng = np.random.default_rng(seed)
    positions = np.array(ORDER)
    layout = {position: rng.normal(0, 0.01) for position in ORDER}
    walk = np.cumsum(rng.normal(0, omega, len(ORDER)))
    own = np.array([layout[position] for position in ORDER])
    values: np.ndarray = 0.1 * (positions >= 7) + own + walk + rng.normal(0, 0.03, len(ORDER))
    return values


@pytest.mark.parametrize("last_before", [NEVER, 0, 3, 5, 7, 8])
def test_the_filter_gives_the_evidence_of_the_multivariate_normal(last_before: int) -> None:
    values = wandering(1, 0.01)
    drift = Drift(FRAME)
    drift.follow(timed(values))
    (row,) = np.nonzero(drift.last_before == last_before)[0]
    positions, count = np.array(ORDER), len(ORDER)
    after = (positions > last_before).astype(float)
    times = np.arange(count)
    for noise in np.nonzero(drift.jump == 0)[0]:
        sigma, layout, walk = drift.sigma[noise], drift.layout[noise], drift.walk[noise]
        # Under no change the one level is where the first reading is; else that is the level of its side.
        first = after[0] - after if last_before != NEVER else np.zeros(count)
        covariance = (
            sigma**2 * np.eye(count)
            + layout**2 * (positions[:, None] == positions[None, :])
            + walk**2 * np.minimum(times[:, None], times[None, :])
            + FRAME.level_spread**2
            + FRAME.change_spread**2 * np.outer(first, first)
        )
        off = values + FRAME.change * first
        density = -0.5 * (
            off @ np.linalg.solve(covariance, off) + np.linalg.slogdet(2 * np.pi * covariance)[1]
        )
        prior = (
            LAYOUTS_PRIOR[int(np.argmin(np.abs(np.array([*LAYOUTS, FRAME.layout / sigma]) - layout / sigma)))]
            * WALKS_PRIOR[int(np.argmin(np.abs(np.array(WALKS) - walk / sigma)))]
            / len(FRAME.sigma)
        )
        expected = density + count * math.log(0.97) + math.log(prior)
        assert drift.log_evidence[row, noise] == pytest.approx(expected, abs=1e-6)


def test_time_reversed_drift_says_the_same() -> None:
    values = wandering(2, 0.01)
    forward, backward = Drift(FRAME), Drift(FRAME)
    forward.follow(timed(values))
    backward.follow(timed(values)[::-1])
    best = {
        name: {
            int(place): evidence
            for place, evidence in zip(drift.last_before, drift.log_evidence, strict=True)
        }
        for name, drift in (("forward", forward), ("backward", backward))
    }
    assert best["forward"].keys() == best["backward"].keys()
    change = {place: best["forward"][place] - best["backward"][place] for place in best["forward"]}
    # All differ by the same: the level is laid down at the other end of time.
    still = forward.jump == 0
    np.testing.assert_allclose((change[5] - change[3])[still], 0.0, atol=0.3)
    np.testing.assert_allclose((change[5] - change[3])[~still], 0.0, atol=1.0)


def test_a_jump_is_one_more_case_of_the_mixture() -> None:
    frame = Frame(**{name: getattr(FRAME, name) for name in FRAME.__slots__} | {"garbage": 2.0})
    drift = Drift(frame)
    value = 0.4
    drift.follow([Timed(position=5, value=value, block="", redraw=False)])
    level, build = drift.blocks[""], drift.builds[5]
    for noise in np.nonzero(drift.jump > 0)[0]:
        chance, layout = drift.jump[noise], drift.layout[noise]
        variances = [frame.level_spread**2, frame.level_spread**2 + JUMP**2]
        weights, means, levels = [0.03 * frame.garbage], [(0.0, 0.0)], [(frame.level_spread**2, 0.0)]
        for variance, prior in zip(variances, (1 - chance, chance), strict=True):
            total = variance + layout**2 + drift.sigma[noise] ** 2
            density = math.exp(-0.5 * value**2 / total) / math.sqrt(2 * math.pi * total)
            weights.append(0.97 * prior * density)
            means.append((variance / total * value, layout**2 / total * value))
            levels.append((variance - variance**2 / total, -variance * layout**2 / total))
        share = np.array(weights) / sum(weights)
        mean = share @ np.array(means)
        second = (
            share @ np.array(levels) + share @ (np.array(means)[:, :1] * np.array(means)) - mean[0] * mean
        )
        assert drift.mean[0, noise, [level, build]] == pytest.approx(mean)
        assert drift.covariance[0, noise, level, [level, build]] == pytest.approx(second)


def test_one_garbage_reading_moves_no_level_far() -> None:
    values = wandering(3, 0.0)
    drift = Drift(
        FRAME.__class__(**{name: getattr(FRAME, name) for name in FRAME.__slots__} | {"garbage": 8.0})
    )
    values[0] += 0.7
    drift.follow(timed(values))
    best = np.unravel_index(drift.log_evidence.argmax(), drift.log_evidence.shape)
    assert drift.last_before[best[0]] == 5
    assert abs(drift.mean[best][drift.blocks[""]]) < 0.05


def run(search: Search, level: float, walk: float, seed: int, culprit: int, readings: int) -> None:
    """Read two builds on both sides in turns."""
    rng = np.random.default_rng(seed)
    places = [0, 999, culprit - 100, culprit + 100]
    for number in range(readings):
        level += rng.normal(0, walk)
        position = places[number // 2 % 4]
        value = level + 0.1 * (position >= culprit) + rng.normal(0, 0.02)
        search.tell(Readings(position=position, values=(value,)))


def test_drift_is_seen_and_order_matters_only_then() -> None:
    still, wanders = Search(Question(revisions=1000)), Search(Question(revisions=1000))
    run(still, 0.0, 0.0, 2, 500, 40)
    run(wanders, 0.0, 0.02, 2, 500, 40)
    assert still.posterior.drift < 0.1
    assert still.posterior.track is None
    assert wanders.posterior.drift > 0.9
    assert wanders.posterior.track is not None
    gap = int(wanders.posterior.gaps.argmax())
    assert wanders.posterior.positions[gap] == 400


def test_a_drifting_search_reads_references_and_asks_the_same_when_told_again() -> None:
    rng = np.random.default_rng(8)
    level = step(321, 0.1)
    search, told, references, machine = Search(Question(revisions=1000)), [], 0, 0.0
    while not isinstance(action := search.ask(), Settled):
        references += action.reference
        values = []
        for _ in range(action.readings):
            machine += rng.normal(0, 0.02)
            values.append((level(action.position) or 0.0) + machine + rng.normal(0, 0.02))
        told.append(Readings(position=action.position, values=tuple(values), seconds=float(action.readings)))
        search.tell(told[-1])
        assert search.invocations < 400
    assert references > 0
    assert 321 in action.answer.changes[0].positions
    again = Search(Question(revisions=1000))
    for news in told:
        again.tell(news)
    assert again.ask() == action


def test_a_new_block_begins_with_a_reference_and_its_level_is_not_taken_for_a_change() -> None:
    rng = np.random.default_rng(4)
    level = step(321, 0.1)
    search = Search(Question(revisions=1000))
    asked: list[Measure] = []
    shift = 0.0
    while not isinstance(action := search.ask(), Settled):
        asked.append(action)
        if len(asked) in (9, 18):
            shift += 0.4
            search.tell(Block(name=f"boot {len(asked)}"))
            reference = search.ask()
            assert isinstance(reference, Measure)
            assert reference.reference
            assert reference.position in {measure.position for measure in asked[:-1]}
            action = reference
        if action.position == 500:
            search.tell(Unusable(position=500))
            continue
        values = tuple((level(action.position) or 0.0) + shift + rng.normal(0, 0.02, action.readings))
        search.tell(Readings(position=action.position, values=values, seconds=float(action.readings)))
    assert action.answer.verdict is Verdict.FOUND
    assert action.answer.changes[0].positions == (321,)
    assert len(asked) > 18


def test_offsets_rest_on_builds_read_in_both_blocks() -> None:
    def reading(position: int, value: float, block: str) -> Timed:
        return Timed(position=position, value=value, block=block, redraw=False)

    told = [reading(1, 0.0, "a"), reading(5, 0.1, "a"), reading(5, 0.6, "b"), reading(7, 0.9, "c")]
    assert offsets(told) == {"a": 0.0, "b": pytest.approx(0.5), "c": None}
    assert offsets([*told, reading(5, 0.0, "c")])["c"] == pytest.approx(-0.1)


def test_a_build_between_two_equal_ones_holds_no_culprit_in_a_second_block_either() -> None:
    search = Search(Question(revisions=40, smallest=0.05))
    noise = np.random.default_rng(5)

    def read(position: int, level: float) -> None:
        values = tuple((math.log(level) + noise.normal(0.0, 0.005, 4)).tolist())
        search.tell(Readings(position=position, values=values, seconds=4.0))

    read(0, 1.0)
    read(39, 1.3)
    read(4, 1.0)
    search.tell(Same(position=8, like=0))
    search.tell(Block(name="after"))
    read(0, 1.1)
    read(20, 1.43)
    assert isinstance(search.ask(), Measure)
    posterior = search.posterior
    assert posterior.positions == (0, 4, 8, 20, 39)
    assert posterior.gaps[:2].sum() == 0.0
