"""Evidence of a search: corrections by the reference, equal artefacts, disturbed batches, and costs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from perftrail.search import Batch, BootSession, Built, CannotRelink, Observation, Question, Sample, Unusable
from perftrail.search.drift import pooled_spread
from perftrail.search.evidence import Evidence
from tests.search.oracle import batch

QUESTION = Question(revisions=100)


def evidence_of(*observations: Observation, reference: int = 0) -> Evidence:
    evidence = Evidence(QUESTION)
    evidence.reference = reference
    for each in observations:
        evidence.add(each)
    return evidence


def calm(count: int, *, level: float = 0.0, seed: int = 1, position: int = 99) -> list[Observation]:
    """Return batches of the reference and of a build 0.5 above it, on a calm machine at this level."""
    rng = np.random.default_rng(seed)
    return [
        batch(
            (position, level + 0.5 + rng.normal(0, 0.01)),
            (0, level + rng.normal(0, 0.01)),
            (position, level + 0.5 + rng.normal(0, 0.01)),
            (0, level + rng.normal(0, 0.01)),
        )
        for _ in range(count)
    ]


def test_drift_between_batches_does_not_change_the_levels_of_builds() -> None:
    rng = np.random.default_rng(2)
    moves = np.cumsum(rng.normal(0, 0.1, 30))
    evidence = evidence_of(*[calm(1, level=move, seed=seed)[0] for seed, move in enumerate(moves)])
    assert np.std(evidence.all_samples(99)) < 0.03
    level = np.median(evidence.all_samples(99)) - np.median(evidence.all_samples(0))
    assert level == pytest.approx(0.5, abs=0.02)


def test_on_a_calm_machine_a_correction_adds_hardly_any_noise() -> None:
    evidence = evidence_of(*calm(40))
    assert np.std(evidence.all_samples(99)) < 0.0115


def test_a_reference_that_is_an_outlier_once_spoils_its_batch_only() -> None:
    spoilt = batch((50, 0.2), (0, 0.7))
    evidence = evidence_of(*calm(6), spoilt, *calm(6))
    assert 50 not in evidence.positions
    assert evidence.unmeasured_build == 50
    assert evidence.count(99) == 24


def test_a_machine_that_is_slow_throughout_a_batch_is_corrected() -> None:
    evidence = evidence_of(*calm(6), batch((50, 0.9), (0, 0.7), (0, 0.71)), *calm(6))
    assert evidence.all_samples(50)[0] == pytest.approx(0.2, abs=0.03)


def test_a_batch_without_the_reference_uses_that_of_its_neighbours_while_the_machine_is_calm() -> None:
    before, after = calm(4), calm(4, seed=2)
    shared = evidence_of(*before, batch((50, 0.2)), *after)
    assert shared.all_samples(50)[0] == pytest.approx(0.2, abs=0.02)
    assert evidence_of(*before).can_reuse_reference
    assert 7 not in shared.positions
    moved = evidence_of(*before, batch((50, 0.2)), *calm(4, level=0.3))
    assert 50 not in moved.positions


def test_rounds_measure_builds_whatever_the_machine_did_and_do_not_guide() -> None:
    rounds = [batch((50, 0.2), (0, level), certificate=True) for level in (0.0, 0.7, 0.0)]
    evidence = evidence_of(*calm(4), *rounds, *calm(4))
    assert (evidence.positions, evidence.guiding_positions) == ((0, 50, 99), (0, 99))
    assert evidence.unmeasured_build is None
    assert evidence.samples(50) == ()
    assert evidence.values_in_rounds(0).tolist() == pytest.approx([0.0, 0.7, 0.0])
    assert evidence.invocations == 38


def test_levels_are_corrected_between_boot_sessions() -> None:
    evidence = evidence_of(*calm(3), BootSession(name="second"), *calm(3, level=0.4))
    assert np.std(evidence.all_samples(99)) < 0.03
    assert evidence.count(99) == 12


def test_equal_artefacts_are_one_build_in_any_order() -> None:
    for first, second in ((30, 60), (60, 30)):
        evidence = evidence_of(
            *calm(3),
            Built(position=first),
            batch((first, 0.2), (0, 0.0)),
            Built(position=second, same_as=first),
        )
        assert evidence.build_of(60) == evidence.build_of(30) == 30
        np.testing.assert_array_equal(evidence.all_samples(30), evidence.all_samples(60))
        assert evidence.positions == (0, 30, 60, 99)


def test_equal_artefacts_are_joined_over_chains_and_with_the_reference() -> None:
    evidence = evidence_of(
        *calm(3, position=99),
        Built(position=5),
        Built(position=7, same_as=5),
        Built(position=9, same_as=7),
        Built(position=5, same_as=0),
    )
    assert [evidence.build_of(position) for position in (5, 7, 9)] == [0, 0, 0]
    assert evidence.reference == 0


def test_failed_and_noisy_samples_are_counted_and_the_failed_ones_have_no_value() -> None:
    evidence = Evidence(QUESTION)
    observation = batch((0, 0.0), (3, 0.1))
    bad = Sample(position=3, value=None), Sample(position=3, value=0.1, noisy=True)
    evidence.add(type(observation)(samples=(*observation.samples, *bad), seconds=4.0))
    assert evidence.count(3) == 2
    assert evidence.invocations == 4
    assert not evidence.is_always_noisy


def test_a_noisy_sample_cancels_its_pair_until_most_samples_are_noisy() -> None:
    def round_of(*noisy: int) -> Batch:
        samples = [Sample(position=at, value=math.exp(at / 198), noisy=at in noisy) for at in (0, 99)]
        return Batch(samples=tuple(samples), seconds=2.0, certificate=True)

    evidence = evidence_of(*[round_of(*noisy) for noisy in ([], [99], [])])
    assert [sorted(each) for each in evidence.rounds] == [[0, 99], [0], [0, 99]]
    assert evidence.values_in_rounds(99).tolist() == pytest.approx([0.5, 0.5])
    for _ in range(3):
        evidence.add(round_of(0, 99))
    assert all(sorted(each) == [0, 99] for each in evidence.rounds)
    assert evidence.values_in_rounds(99).tolist() == pytest.approx([0.5] * 6)


def test_samples_of_different_layouts_are_separate() -> None:
    evidence = evidence_of(
        *calm(2), batch((50, 0.2), (0, 0.0), layout=3), batch((50, 0.3), (0, 0.0), layout=4)
    )
    assert [len(values) for values in evidence.samples(50)] == [1, 1]


def test_costs_are_learnt_from_measured_times() -> None:
    evidence = Evidence(QUESTION)
    assert (evidence.seconds_per_build, evidence.seconds_per_sample) == (10.0, 1.0)
    evidence.add(Built(position=3, seconds=40.0))
    evidence.add(Unusable(position=4, seconds=20.0))
    evidence.add(batch((3, 0.0), (3, 0.0)))
    assert (evidence.seconds_per_build, evidence.seconds_per_sample) == (30.0, 1.0)
    assert evidence.seconds == 62.0
    assert evidence.builds == 2


def test_the_resolution_of_a_metric_is_recognised() -> None:
    whole = evidence_of(*[batch((0, math.log(value))) for value in (21, 22, 21, 23)])
    assert whole.resolution == pytest.approx(math.log1p(1 / 21.5))
    fine = evidence_of(*[batch((0, math.log(value))) for value in (21.1234567, 22.2345, 21.3, 23.4)])
    assert fine.resolution < 1e-3


def test_counts_that_are_round_by_chance_are_not_taken_for_rounded_values() -> None:
    counts = evidence_of(
        *[batch((at, math.log(value))) for at, value in ((0, 100), (9, 200), (0, 100), (9, 200))]
    )
    assert counts.resolution == pytest.approx(math.log1p(10 / 150))
    tens = evidence_of(
        *[batch((at, math.log(value))) for at, value in ((0, 100), (9, 110), (0, 100), (9, 110))]
    )
    assert tens.resolution == pytest.approx(math.log1p(10 / 105))
    ticks = evidence_of(
        *[batch((at, math.log(value))) for at, value in ((0, 100), (9, 200), (0, 200), (9, 200))]
    )
    assert ticks.resolution == pytest.approx(math.log1p(100 / 200))


def test_a_failed_relink_turns_relinking_off() -> None:
    evidence = Evidence(Question(revisions=10, relinks=True))
    assert evidence.relinks
    evidence.add(CannotRelink(reason="no lld"))
    assert not evidence.relinks


@pytest.mark.parametrize(
    "observation",
    [batch((10, 0.0)), Built(position=10), Built(position=3, same_as=10), Unusable(position=-1)],
)
def test_positions_outside_the_history_are_rejected(observation: Observation) -> None:
    with pytest.raises(ValueError, match="positions 0 to 9"):
        Evidence(Question(revisions=10)).add(observation)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_values_that_are_not_finite_are_rejected(value: float) -> None:
    with pytest.raises(ValueError, match="sample of position 3"):
        Sample(position=3, value=value)


def test_a_position_is_not_the_same_as_itself() -> None:
    with pytest.raises(ValueError, match="same_as names the position itself"):
        Built(position=3, same_as=3)


def test_the_pooled_spread_is_unbiased_and_unmoved_by_outliers() -> None:
    rng = np.random.default_rng(1)
    builds = [np.sort(rng.normal(rng.normal(), 0.03, 3)) for _ in range(400)]
    assert pooled_spread(builds)[0] == pytest.approx(0.03, rel=0.05)
    for build in builds[:40]:
        build[-1] += 0.7
    assert pooled_spread(builds)[0] == pytest.approx(0.03, rel=0.25)
    assert pooled_spread(builds)[1] == 800
    assert pooled_spread([np.array([1.0]), np.array([2.0])]) == (0.0, 0)
