"""Schedule of a trial: order, interim analyses and ends, without processes."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest

from perftrail.model.trial import Entry, Group, RunSettings, StoppingRule, Trial, TrialSample
from perftrail.stats.comparison import Verdict
from perftrail.stats.trial import EndReason, TrialSchedule, trial_result


def a_trial(
    count: int, *, groups: tuple[Group, ...] | None = None, shell: bool = False, **stopping_rule: object
) -> Trial:
    entries = tuple(Entry(name=name, command=name, arguments=(name,)) for name in "ABCDEFGH"[:count])
    return Trial(
        entries=entries,
        groups=groups or (Group(reference=0, others=tuple(range(1, count))),),
        stopping_rule=StoppingRule(**stopping_rule),  # type: ignore[arg-type] # the fields of a stopping rule, without their types
        run_settings=RunSettings(environment={}, directory="/"),
        shell=Entry(name="sh", command="sh", arguments=("sh",)) if shell else None,
    )


def play(
    trial: Trial,
    seconds: Callable[[int], float],
    *,
    noise: float = 0.01,
    cost: float = 0.01,
    most: int = 5000,
) -> tuple[TrialSchedule, list[int]]:
    """Run a schedule with simulated samples; return it and the entries in the order of their starts."""
    schedule, rng = TrialSchedule(trial), random.Random(3)
    order: list[int] = []
    while (start := schedule.ask()) is not None and len(order) < most:
        wall = seconds(start.entry) * math.exp(rng.gauss(0.0, noise))
        values = {"wall": wall, "cpu": wall, "peak_memory": 1e6 * math.exp(rng.gauss(0.0, 0.001))}
        schedule.tell(TrialSample(entry=start.entry, unit=start.unit, values=values, seconds=cost))
        order.append(start.entry)
    return schedule, order


def test_the_seed_decides_which_command_of_a_pair_starts_first() -> None:
    orders = []
    for seed in (1, 1, 2):
        trial = replace(a_trial(2, least=40, most=40, warmups=0), seed=seed)
        _, order = play(trial, lambda _: 1.0)
        firsts = order[::2]
        assert [one + other for one, other in zip(firsts, order[1::2], strict=True)] == [1] * 40
        assert 10 <= sum(firsts) <= 30
        orders.append(order)
    assert orders[0] == orders[1] != orders[2]


@pytest.mark.parametrize("count", [2, 3, 4, 5, 8])
def test_every_pair_is_adjacent_and_each_side_comes_first_by_chance(count: int) -> None:
    schedule = TrialSchedule(a_trial(count, least=20, most=20, warmups=0))
    rng, starts = random.Random(4), []
    while (start := schedule.ask()) is not None:
        wall = math.exp(rng.gauss(0.0, 0.3))
        values = {"wall": wall, "cpu": wall, "peak_memory": wall}
        schedule.tell(TrialSample(entry=start.entry, unit=start.unit, values=values, seconds=0.01))
        starts.append(start)
    assert [each.comparison.pairs for each in schedule.contrasts()] == [20] * 3 * (count - 1)
    adjacent = [(one.entry, two.entry) for one, two in pairwise(starts) if one.unit == two.unit]
    for other in range(1, count):
        assert adjacent.count((0, other)) + adjacent.count((other, 0)) == 20
        assert min(adjacent.count((0, other)), adjacent.count((other, 0))) >= 4, "the order is random"


def test_a_reference_is_between_two_others() -> None:
    _, order = play(a_trial(3, least=10, most=10), lambda _: 1.0)
    assert (order[1], order[4]) == (0, 0)
    assert {order[0], order[2]} == {order[3], order[5]} == {1, 2}


def test_the_shell_is_measured_in_every_round() -> None:
    schedule, order = play(a_trial(1, least=12, most=12, shell=True, warmups=0), lambda _: 1.0)
    assert order == [0, 1, 1, 0] * 6
    assert len(schedule.runs[1]) == 12


def test_a_large_difference_is_settled_at_an_early_interim_analysis() -> None:
    schedule, _ = play(a_trial(2, warmups=0), lambda entry: 1.0 + entry)
    assert schedule.end_reason(1) is EndReason.SETTLED
    wall = next(each for each in schedule.contrasts() if each.metric == "wall")
    assert wall.comparison.verdict is Verdict.SLOWER
    assert wall.comparison.pairs <= 18


def test_equal_commands_are_the_same() -> None:
    schedule, _ = play(a_trial(2), lambda _: 1.0, noise=0.01)
    assert {each.comparison.verdict for each in schedule.contrasts()} == {Verdict.SAME}


def test_noise_that_hides_everything_ends_at_the_largest_number_of_runs() -> None:
    schedule, _ = play(a_trial(2, most=30), lambda _: 1.0, noise=0.5)
    assert schedule.end_reason(1) is EndReason.MOST
    assert schedule.end_reason(0) is EndReason.MOST
    assert len(schedule.samples(1)) == 30


def test_one_command_ends_when_its_interval_is_narrow() -> None:
    schedule, order = play(a_trial(1), lambda _: 1.0, noise=0.005)
    assert schedule.end_reason(0) is EndReason.PRECISE
    assert 10 <= len(order) <= 40


def test_a_settled_command_is_started_no_more_while_another_is_unclear() -> None:
    schedule, _ = play(a_trial(3, warmups=0), lambda entry: 3.0 if entry == 1 else 1.0, noise=0.1)
    assert len(schedule.samples(1)) < len(schedule.samples(2))
    assert schedule.end_reason(1) is EndReason.SETTLED


@pytest.mark.parametrize("runs", [1, 2, 3, 5, 7, 8, 9, 12])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_an_exact_number_of_runs_is_obeyed(runs: int, count: int) -> None:
    schedule, _ = play(a_trial(count, least=runs, most=runs, warmups=0), lambda _: 1.0, noise=0.2)
    assert [len(schedule.samples(number)) for number in range(count)] == [runs] * count
    single, order = play(a_trial(1, least=runs, most=runs), lambda _: 1.0, noise=0.001)
    assert len(single.samples(0)) == runs
    assert len(order) == runs


def test_warm_ups_discard_their_pairs_and_further_pairs_replace_them() -> None:
    trial = a_trial(2, least=10, most=10, warmups=3)
    schedule, order = play(trial, lambda _: 1.0, noise=0.3)
    assert Counter(order) == {0: 13, 1: 13}
    assert all(each.comparison.pairs == 10 for each in schedule.contrasts())


def test_the_budget_ends_a_trial_before_a_round_that_does_not_fit() -> None:
    schedule, order = play(a_trial(1, budget_seconds=60.0), lambda _: 20.0, cost=20.0)
    assert len(order) == 3
    assert schedule.end_reason(0) is EndReason.BUDGET


def test_the_budget_never_cuts_guaranteed_runs() -> None:
    schedule, _ = play(
        a_trial(2, least=12, guaranteed_runs=12, budget_seconds=1.0, warmups=0),
        lambda _: 1.0,
        noise=0.4,
        cost=1.0,
    )
    assert len(schedule.samples(1)) == 12


def test_the_rule_expects_as_many_pairs_as_the_budget_permits() -> None:
    schedule, order = play(a_trial(2, budget_seconds=60.0), lambda entry: 4.0 + entry, cost=4.5)
    assert 2 * 10 <= len(order) <= 2 * 13
    wall = next(each for each in schedule.contrasts() if each.metric == "wall")
    assert wall.comparison.verdict is Verdict.SLOWER
    assert wall.comparison.pairs < 14


def test_too_few_pairs_are_unclear_and_not_the_same() -> None:
    schedule, _ = play(a_trial(2, least=5, most=5, warmups=0), lambda _: 1.0, noise=0.0001)
    assert {each.comparison.verdict for each in schedule.contrasts()} == {Verdict.UNCLEAR}


def test_each_command_is_measured_once_even_with_the_shortest_budget() -> None:
    schedule, order = play(a_trial(2, budget_seconds=0.001), lambda _: 1.0, cost=100.0)
    assert sorted(order) == [0, 1]
    assert all(each.comparison.verdict is Verdict.UNCLEAR for each in schedule.contrasts())


def test_a_stop_between_two_interim_analyses_adds_no_analysis() -> None:
    schedule, _ = play(a_trial(2, warmups=0), lambda _: 1.0, noise=0.5, most=2 * 21)
    assert {each.comparison.pairs for each in schedule.contrasts() if each.metric == "wall"} == {18}
    assert schedule.end_reason(1) is EndReason.STOPPED


def test_groups_are_compared_each_within_itself() -> None:
    groups = (Group(reference=0, others=(1,)), Group(reference=2, others=(3,)))
    schedule, order = play(a_trial(4, groups=groups, warmups=0), lambda entry: 1.0 + entry)
    assert {(each.entry, each.against) for each in schedule.contrasts()} == {(1, 0), (3, 2)}
    pairs = [{order[at], order[at + 1]} for at in range(0, 8, 2)]
    assert pairs == [{0, 1}, {2, 3}, {2, 3}, {0, 1}], "units alternate, forwards and backwards"


def test_values_of_zero_have_no_ratio_and_do_not_prolong_the_trial() -> None:
    schedule = TrialSchedule(a_trial(2, warmups=0))
    count = 0
    while (start := schedule.ask()) is not None:
        values = {"wall": 1.0 + start.entry, "cpu": 0.0, "peak_memory": 0.0}
        schedule.tell(TrialSample(entry=start.entry, unit=start.unit, values=values, seconds=0.01))
        count += 1
    assert count <= 36
    assert {each.metric for each in schedule.contrasts()} == {"wall"}


def test_the_remaining_time_decreases_to_zero() -> None:
    trial, rng = a_trial(2, most=40), random.Random(5)
    schedule = TrialSchedule(trial)
    left = []
    while (start := schedule.ask()) is not None:
        wall = math.exp(rng.gauss(0.0, 0.4))
        values = {"wall": wall, "cpu": wall, "peak_memory": wall}
        schedule.tell(TrialSample(entry=start.entry, unit=start.unit, values=values, seconds=0.5))
        progress = schedule.progress()
        assert 0 <= progress.runs_least <= progress.runs_most
        left.append(progress.seconds_most)
    assert left[4] > 30.0
    assert left[-1] == 0.0


def test_results_exist_before_the_first_run() -> None:
    trial = a_trial(2)
    found = trial_result(TrialSchedule(trial), trial)
    assert found.stopped
    assert [result.runs for result in found.results] == [0, 0]
    assert found.contrasts == ()


@pytest.mark.parametrize(
    ("trials", "most_wrong"),
    [(25, 0), pytest.param(200, 6, marks=[pytest.mark.long, pytest.mark.slow("simulation")])],
)
def test_equal_commands_are_rarely_called_different(trials: int, most_wrong: int) -> None:
    """At most 1 in 100 trials of a program with itself may be wrong; 7 of 200 have the probability 0.004."""
    wrong = 0
    for seed in range(trials):
        schedule, rng = TrialSchedule(a_trial(2, most=60)), random.Random(seed)
        while (start := schedule.ask()) is not None:
            wall = math.exp(0.1 * rng.gauss(0.0, 1.0) + (rng.random() < 0.05) * rng.expovariate(1.0))
            values = {"wall": wall, "cpu": wall, "peak_memory": 1e6}
            schedule.tell(TrialSample(entry=start.entry, unit=start.unit, values=values, seconds=0.01))
        verdicts = {each.comparison.verdict for each in schedule.contrasts()}
        wrong += bool(verdicts & {Verdict.SLOWER, Verdict.FASTER})
    assert wrong <= most_wrong
