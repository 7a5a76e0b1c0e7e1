"""Contention: each cause is recognised by its values, and causes with equal values are not distinguished."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from perftrail.stats.contention import Cause, ContentionOutcome, contention
from perftrail.stats.scaling import Processors, ThreadSamples

ALONE = {"wall": 1.0, "cpu": 1.0, "user": 0.99, "system": 0.01, "voluntary_switches": 3.0}
MUTEX = {"wall": 1.0, "cpu": 1.02, "user": 1.0, "system": 0.02, "voluntary_switches": 275.0}
STORM = {"wall": 1.9, "cpu": 2.88, "user": 2.13, "system": 0.75, "voluntary_switches": 25402.0}
BURNING = {"wall": 1.0, "cpu": 1.98, "user": 1.97, "system": 0.01, "voluntary_switches": 4.0}
SLOWER = {"wall": 2.2, "cpu": 4.3, "user": 4.29, "system": 0.01, "voluntary_switches": 4.0}
SERIAL = {"wall": 0.8, "cpu": 1.0, "user": 0.99, "system": 0.01, "voluntary_switches": 5.0}
PERFECT = {"wall": 0.51, "cpu": 1.01, "user": 1.0, "system": 0.01, "voluntary_switches": 4.0}
COUNTED = {"locks": 240.0, "contended_locks": 0.0, "lock_wait": 0.0}
NO_WAITS = {
    **COUNTED,
    **dict.fromkeys(("conditions", "barriers", "semaphores", "spins"), 0.0),
    **dict.fromkeys(("condition_wait", "barrier_wait", "semaphore_wait", "spin_wait"), 0.0),
    "joins": 1.0,
    "join_wait": 1.0,  # the main thread only waits for the others
    "counted_processes": 1.0,
    "cpu_pressure": 0.0,
}
"""The counts of a program whose threads never wait for each other."""


def samples(
    several: Mapping[str, float],
    alone: Mapping[str, float] = ALONE,
    *,
    count: int = 2,
    processors: int = 8,
    pairs: int = 8,
) -> ThreadSamples:
    """Return samples of one thread and of several, with a noise of 1 % in each value."""
    rng = np.random.default_rng(31)

    def noisy_values(ideal: Mapping[str, float]) -> dict[int, dict[str, float]]:
        return {
            i: {name: value * float(np.exp(rng.normal(0.0, 0.01))) for name, value in ideal.items()}
            for i in range(pairs)
        }

    return ThreadSamples(
        metric="wall",
        rising=False,
        samples={1: noisy_values({**ALONE, **alone}), count: noisy_values(several)},
        processors=Processors(count=processors),
    )


@pytest.mark.parametrize("several", [MUTEX, STORM])
def test_waits_with_many_switches_are_a_lock_or_a_handover_until_locks_are_counted(
    several: Mapping[str, float],
) -> None:
    found = contention(samples({**several, "cpu": several["cpu"]}))
    assert found.candidates[:2] == (Cause.LOCK, Cause.HANDOVER)
    assert Cause.SERIAL not in found.candidates
    assert found.outcome is ContentionOutcome.CANNOT_TELL
    counted = {**several, **COUNTED, "contended_locks": 9.0, "lock_wait": 0.5}
    with_counts = contention(samples(counted, COUNTED))
    assert (with_counts.outcome, with_counts.candidates) == (ContentionOutcome.LIKELY, (Cause.LOCK,))
    assert {"waiting", "burning", "switches", "system"} <= {each.name for each in found.evidence}


def test_counted_locks_without_waits_leave_a_handover_or_an_uncounted_lock() -> None:
    found = contention(samples({**MUTEX, **COUNTED}, COUNTED))
    assert found.candidates == (Cause.HANDOVER, Cause.HIDDEN_LOCK)
    assert found.outcome is ContentionOutcome.CANNOT_TELL


def test_few_waits_at_a_counted_lock_do_not_name_it_as_the_only_cause() -> None:
    found = contention(samples({**MUTEX, **COUNTED, "contended_locks": 9.0, "lock_wait": 0.1}, COUNTED))
    assert found.candidates == (Cause.LOCK, Cause.HANDOVER, Cause.HIDDEN_LOCK)
    assert found.outcome is ContentionOutcome.CANNOT_TELL


def test_a_lock_that_spins_more_than_it_waits_is_recognised_by_counting_locks() -> None:
    contended = {"wall": 2.5, "cpu": 4.9, "user": 3.7, "system": 1.2, "voluntary_switches": 8800.0}
    assert contention(samples(contended)).outcome is ContentionOutcome.CANNOT_TELL
    found = contention(
        samples({**contended, "locks": 2e7, "contended_locks": 9e6, "lock_wait": 1.5}, COUNTED)
    )
    assert (found.outcome, found.candidates) == (ContentionOutcome.LIKELY, (Cause.LOCK,))
    seldom = contention(
        samples({**contended, "locks": 2e7, "contended_locks": 1e6, "lock_wait": 1.5}, COUNTED)
    )
    assert seldom.outcome is ContentionOutcome.CANNOT_TELL


def test_few_long_waits_are_serial_work_or_one_long_lock_until_locks_are_counted() -> None:
    assert set(contention(samples(SERIAL)).candidates) == {Cause.SERIAL, Cause.LOCK}
    assert contention(samples(SERIAL)).outcome is ContentionOutcome.CANNOT_TELL
    without_waits = contention(samples({**SERIAL, **COUNTED}, COUNTED))
    assert without_waits.candidates == (Cause.SERIAL,)
    with_waits = contention(
        samples({**SERIAL, **COUNTED, "contended_locks": 9.0, "lock_wait": 0.59}, COUNTED)
    )
    assert with_waits.candidates == (Cause.LOCK,)
    waited = contention(samples(SERIAL)).evidence[0].value.value
    with_most_waits = {**SERIAL, **COUNTED, "contended_locks": 9.0, "lock_wait": 0.4 * waited * ALONE["wall"]}
    assert contention(samples(with_most_waits, COUNTED)).candidates == (Cause.LOCK,)
    with_few_waits = {**with_most_waits, "lock_wait": 0.2 * waited * ALONE["wall"]}
    assert contention(samples(with_few_waits, COUNTED)).outcome is ContentionOutcome.CANNOT_TELL


def counted(several: Mapping[str, float], **waits: float) -> ThreadSamples:
    """Return samples of one thread without waits and of two threads whose waits are counted."""
    joins = {"joins": 2.0, "join_wait": several["wall"]}
    return samples({**several, **NO_WAITS, **joins, **waits}, NO_WAITS)


@pytest.mark.parametrize(
    ("kind", "words"), [("condition", "condition"), ("barrier", "a barrier"), ("semaphore", "semaphores")]
)
def test_counted_waits_at_a_queue_or_a_barrier_are_a_handover(kind: str, words: str) -> None:
    found = contention(counted(MUTEX, **{f"{kind}s": 200.0, f"{kind}_wait": 0.95}))
    assert (found.outcome, found.candidates) == (ContentionOutcome.LIKELY, (Cause.HANDOVER,))
    [indication] = [each.indicates for each in found.evidence if each.name == "handover_wait"]
    assert words in indication


@pytest.mark.parametrize("several", [MUTEX, STORM])
def test_counted_waits_for_locks_are_a_lock_even_if_one_thread_monopolises_it(
    several: Mapping[str, float],
) -> None:
    waited = contention(counted(several)).evidence[0].value.value
    for share in (0.5, 1.0):
        found = contention(counted(several, contended_locks=9.0, lock_wait=share * waited))
        assert (found.outcome, found.candidates) == (ContentionOutcome.LIKELY, (Cause.LOCK,))


def test_spurious_wakeups_at_a_lock_are_not_a_second_lock() -> None:
    waited = contention(counted(MUTEX)).evidence[0].value.value
    found = contention(counted(MUTEX, contended_locks=1.0, lock_wait=0.3 * waited))
    assert (found.outcome, found.candidates) == (ContentionOutcome.LIKELY, (Cause.LOCK,))


def test_many_uncounted_waits_are_an_uncounted_lock() -> None:
    found = contention(counted(MUTEX))
    assert (found.outcome, found.candidates) == (ContentionOutcome.LIKELY, (Cause.HIDDEN_LOCK,))
    assert {"uncounted_wait", "uncounted_switches"} <= {each.name for each in found.evidence}


@pytest.mark.parametrize("waits", [{"counted_processes": 3.0}, {"joins": 200.0}])
def test_waits_of_several_processes_or_short_threads_are_not_all_counted(
    waits: dict[str, float],
) -> None:
    found = contention(counted(MUTEX, **waits))
    assert found.outcome is ContentionOutcome.CANNOT_TELL
    assert Cause.HANDOVER in found.candidates
    assert Cause.LOCK not in found.candidates


def test_waits_for_the_end_of_a_thread_are_serial_work() -> None:
    waited = contention(counted(MUTEX)).evidence[0].value.value
    alone = {**NO_WAITS, "joins": 0.0, "join_wait": 0.0}  # the main thread does the work of the first thread
    joined = {"joins": 1.0, "join_wait": 0.9 * waited}
    found = contention(samples({**MUTEX, **NO_WAITS, **joined}, alone))
    assert found.candidates == (Cause.HIDDEN_LOCK, Cause.SERIAL)
    seldom = contention(samples({**SERIAL, **NO_WAITS, **joined}, alone))
    assert (seldom.outcome, seldom.candidates) == (ContentionOutcome.LIKELY, (Cause.SERIAL,))


def test_waiting_beyond_the_counted_waits_is_serial_work() -> None:
    found = contention(counted(MUTEX, conditions=150.0, condition_wait=0.02))
    assert (found.outcome, found.candidates) == (ContentionOutcome.LIKELY, (Cause.SERIAL,))


def test_two_causes_that_both_contribute_are_both_named() -> None:
    waits = {"contended_locks": 40.0, "lock_wait": 0.5, "conditions": 200.0, "condition_wait": 0.5}
    found = contention(counted(MUTEX, **waits))
    assert found.outcome is ContentionOutcome.CANNOT_TELL
    assert found.candidates == (Cause.LOCK, Cause.HANDOVER)
    contended = contention(counted(MUTEX, **{**waits, "contended_locks": 100.0}))
    assert contended.candidates == (Cause.LOCK, Cause.HANDOVER)


def test_waits_that_a_single_thread_also_has_are_subtracted() -> None:
    alone = {**NO_WAITS, "conditions": 1.0, "condition_wait": 1.0}
    slower = {**STORM, **NO_WAITS, "joins": 2.0, "join_wait": 1.9, "conditions": 1.0, "condition_wait": 1.9}
    values = {each.name: each.value for each in contention(samples(slower, alone)).evidence}
    assert abs(values["handover_wait"].value) < 0.05
    assert abs(values["join_wait"].value) < 0.05


def test_waits_for_a_processor_leave_the_cause_open() -> None:
    serial = contention(counted(SERIAL, cpu_pressure=0.7))
    assert (serial.outcome, serial.candidates) == (ContentionOutcome.CANNOT_TELL, (Cause.SERIAL,))
    assert "a lack of processors" in serial.reason
    assert "perftrail doctor" in serial.next_step
    hidden = contention(counted(MUTEX, cpu_pressure=0.95))
    assert hidden.outcome is ContentionOutcome.CANNOT_TELL
    assert contention(counted(MUTEX, cpu_pressure=0.3)).candidates == (Cause.HIDDEN_LOCK,)


def test_a_handover_on_one_processor_is_recognised_by_half_of_its_waiting() -> None:
    found = contention(counted(MUTEX, semaphores=120.0, semaphore_wait=0.5, cpu_pressure=0.5))
    assert (found.outcome, found.candidates) == (ContentionOutcome.LIKELY, (Cause.HANDOVER,))


def test_partly_counted_waits_leave_a_counted_and_an_uncounted_lock() -> None:
    found = contention(counted(MUTEX, contended_locks=5.0, lock_wait=0.2))
    assert found.candidates == (Cause.LOCK, Cause.HIDDEN_LOCK)


def test_counted_waits_at_spin_locks_are_spinning() -> None:
    # In the second case, the thread with the lock ends first.
    for several, spun in ((BURNING, 0.9), ({**BURNING, "cpu": 1.5}, 0.49)):
        found = contention(counted(several, spins=200.0, spin_wait=spun))
        assert (found.outcome, found.candidates) == (ContentionOutcome.LIKELY, (Cause.SPINNING,))
    own_loops = contention(counted(BURNING))
    assert Cause.SPINNING in own_loops.candidates
    assert own_loops.outcome is ContentionOutcome.CANNOT_TELL


def test_a_few_long_waits_at_a_barrier_are_distinguished_from_serial_work() -> None:
    waited = contention(counted(SERIAL)).evidence[0].value.value
    all_of_it = contention(counted(SERIAL, barriers=6.0, barrier_wait=0.95 * waited))
    assert (all_of_it.outcome, all_of_it.candidates) == (ContentionOutcome.LIKELY, (Cause.HANDOVER,))
    part = contention(counted(SERIAL, barriers=6.0, barrier_wait=0.3 * waited))
    assert part.candidates == (Cause.HANDOVER, Cause.SERIAL)
    assert contention(counted(SERIAL)).candidates == (Cause.SERIAL,)


def test_causes_of_less_than_a_quarter_of_the_lost_time_are_ignored() -> None:
    little_extra_cpu = {**SERIAL, "wall": 0.95, "cpu": 1.15}
    assert contention(counted(little_extra_cpu)).candidates == (Cause.SERIAL,)
    much_extra_cpu = {**SERIAL, "wall": 0.95, "cpu": 1.4}
    assert {Cause.SERIAL, Cause.FALSE_SHARING} <= set(contention(counted(much_extra_cpu)).candidates)


@pytest.mark.parametrize(
    ("threads", "next_step"),
    [
        (samples(MUTEX), 'counters = ["locks"]'),
        (samples(BURNING), 'counters = ["locks"]'),
        (counted(BURNING), 'counters = ["instructions"]'),
        (counted(SERIAL, barriers=6.0, barrier_wait=0.2), "raise measure.invocations"),
        (counted(MUTEX, counted_processes=3.0), "strace -f -c"),
        (samples({**MUTEX, "foreign_cpu": 7.0}, {"foreign_cpu": 7.0}), "perftrail doctor"),
        (samples(MUTEX, pairs=3), "raise measure.invocations"),
        (samples(MUTEX, count=8, processors=2), "2 to 2 threads"),
        (samples(MUTEX, count=8, processors=1), "a machine with more"),
    ],
)
def test_an_open_cause_has_a_next_step(threads: ThreadSamples, next_step: str) -> None:
    found = contention(threads)
    assert found.outcome is ContentionOutcome.CANNOT_TELL
    assert next_step in found.next_step


def test_spinning_without_counters_is_not_distinguished_from_other_uses_of_the_cpu() -> None:
    found = contention(samples(BURNING))
    assert found.outcome is ContentionOutcome.CANNOT_TELL
    assert {Cause.SPINNING, Cause.FALSE_SHARING, Cause.MEMORY, Cause.MORE_WORK} <= set(found.candidates)
    assert Cause.LOCK not in found.candidates


def test_instruction_counts_distinguish_spinning_from_false_sharing() -> None:
    spinning = contention(samples({**SLOWER, "instructions": 4e9}, {"instructions": 1e9}))
    assert set(spinning.candidates) == {Cause.SPINNING, Cause.MORE_WORK}
    lines = contention(samples({**SLOWER, "instructions": 1e9}, {"instructions": 1e9}))
    assert lines.outcome is ContentionOutcome.LIKELY
    assert lines.candidates == (Cause.FALSE_SHARING,)


def test_work_that_grows_with_the_threads_is_not_contention_of_a_throughput() -> None:
    doubled_work = samples(BURNING)
    with_rate = {
        n: {i: {**each, "rate": n * 100.0} for i, each in series.items()}
        for n, series in doubled_work.samples.items()
    }
    found = contention(
        ThreadSamples(metric="rate", rising=True, samples=with_rate, processors=doubled_work.processors)
    )
    assert found.outcome is ContentionOutcome.SCALES


def test_a_program_that_scales_has_no_cause() -> None:
    assert contention(samples(PERFECT)).outcome is ContentionOutcome.SCALES


@pytest.mark.parametrize(
    ("threads", "reason"),
    [
        (samples(MUTEX, count=8, processors=2), "exceeds this machine's processors"),
        (samples({**MUTEX, "foreign_cpu": 7.0}, {"foreign_cpu": 7.0}), "other processes used 7.0 of 8 CPUs"),
        (samples(MUTEX, {"wall": 1.5}), "it already waits with one thread"),
        (samples(MUTEX, pairs=3), "fewer than 5 samples"),
    ],
)
def test_an_open_cause_has_a_reason(threads: ThreadSamples, reason: str) -> None:
    found = contention(threads)
    assert found.outcome is ContentionOutcome.CANNOT_TELL
    assert reason in found.reason
    assert found.candidates == ()


def test_noise_alone_is_never_a_likely_cause() -> None:
    rng = np.random.default_rng(32)
    for _ in range(200):
        noisy_samples = {
            n: {
                i: {name: value * float(np.exp(rng.normal(0.0, 0.2))) for name, value in ideal.items()}
                for i in range(6)
            }
            for n, ideal in ((1, {**ALONE, **NO_WAITS}), (2, {**PERFECT, **NO_WAITS}))
        }
        found = contention(
            ThreadSamples(metric="wall", rising=False, samples=noisy_samples, processors=Processors(count=2))
        )
        assert found.outcome is not ContentionOutcome.LIKELY
