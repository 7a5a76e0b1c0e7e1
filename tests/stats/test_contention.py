"""Contention: each cause is told from the values it leaves; what looks the same is not told apart."""

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
    "join_wait": 1.0,  # main only waits for the others
    "counted_processes": 1.0,
    "cpu_pressure": 0.0,
}
"""The counts of a program of which no thread waits for another."""


def samples(
    several: Mapping[str, float],
    alone: Mapping[str, float] = ALONE,
    *,
    count: int = 2,
    processors: int = 8,
    pairs: int = 8,
) -> ThreadSamples:
    """One thread against several, each value 1 % uncertain."""
    rng = np.random.default_rng(31)

    def taken(ideal: Mapping[str, float]) -> dict[int, dict[str, float]]:
        return {
            i: {name: value * float(np.exp(rng.normal(0.0, 0.01))) for name, value in ideal.items()}
            for i in range(pairs)
        }

    return ThreadSamples(
        metric="wall",
        rising=False,
        samples={1: taken({**ALONE, **alone}), count: taken(several)},
        processors=Processors(count=processors),
    )


@pytest.mark.parametrize("several", [MUTEX, STORM])
def test_waits_with_many_switches_are_a_lock_or_a_queue_until_locks_are_counted(
    several: Mapping[str, float],
) -> None:
    found = contention(samples({**several, "cpu": several["cpu"]}))
    assert found.candidates[:2] == (Cause.LOCK, Cause.HANDOVER)
    assert Cause.SERIAL not in found.candidates
    assert found.outcome is ContentionOutcome.CANNOT_TELL
    counted = {**several, **COUNTED, "contended_locks": 9.0, "lock_wait": 0.5}
    held = contention(samples(counted, COUNTED))
    assert (held.outcome, held.candidates) == (ContentionOutcome.LIKELY, (Cause.LOCK,))
    assert {"waiting", "burning", "switches", "system"} <= {each.name for each in found.evidence}


def test_counted_locks_that_nobody_waits_for_leave_a_queue_or_a_lock_that_is_not_counted() -> None:
    found = contention(samples({**MUTEX, **COUNTED}, COUNTED))
    assert found.candidates == (Cause.HANDOVER, Cause.HIDDEN_LOCK)
    assert found.outcome is ContentionOutcome.CANNOT_TELL


def test_a_count_that_leaves_it_open_whether_a_lock_is_waited_for_names_no_lock_alone() -> None:
    found = contention(samples({**MUTEX, **COUNTED, "contended_locks": 9.0, "lock_wait": 0.1}, COUNTED))
    assert found.candidates == (Cause.LOCK, Cause.HANDOVER, Cause.HIDDEN_LOCK)
    assert found.outcome is ContentionOutcome.CANNOT_TELL


def test_a_lock_that_spins_more_than_it_waits_is_recognised_by_counting_locks() -> None:
    fought = {"wall": 2.5, "cpu": 4.9, "user": 3.7, "system": 1.2, "voluntary_switches": 8800.0}
    assert contention(samples(fought)).outcome is ContentionOutcome.CANNOT_TELL
    found = contention(samples({**fought, "locks": 2e7, "contended_locks": 9e6, "lock_wait": 1.5}, COUNTED))
    assert (found.outcome, found.candidates) == (ContentionOutcome.LIKELY, (Cause.LOCK,))
    seldom = contention(samples({**fought, "locks": 2e7, "contended_locks": 1e6, "lock_wait": 1.5}, COUNTED))
    assert seldom.outcome is ContentionOutcome.CANNOT_TELL


def test_few_long_waits_are_serial_work_or_one_long_lock_until_locks_are_counted() -> None:
    assert set(contention(samples(SERIAL)).candidates) == {Cause.SERIAL, Cause.LOCK}
    assert contention(samples(SERIAL)).outcome is ContentionOutcome.CANNOT_TELL
    free = contention(samples({**SERIAL, **COUNTED}, COUNTED))
    assert free.candidates == (Cause.SERIAL,)
    held = contention(samples({**SERIAL, **COUNTED, "contended_locks": 9.0, "lock_wait": 0.59}, COUNTED))
    assert held.candidates == (Cause.LOCK,)
    waited = contention(samples(SERIAL)).evidence[0].value.value
    kept = {**SERIAL, **COUNTED, "contended_locks": 9.0, "lock_wait": 0.4 * waited * ALONE["wall"]}
    assert contention(samples(kept, COUNTED)).candidates == (Cause.LOCK,)
    little = {**kept, "lock_wait": 0.2 * waited * ALONE["wall"]}
    assert contention(samples(little, COUNTED)).outcome is ContentionOutcome.CANNOT_TELL


def counted(several: Mapping[str, float], **waits: float) -> ThreadSamples:
    """One thread that waits for nothing against two of which waits are counted."""
    main = {"joins": 2.0, "join_wait": several["wall"]}
    return samples({**several, **NO_WAITS, **main, **waits}, NO_WAITS)


@pytest.mark.parametrize(
    ("kind", "says"), [("condition", "condition"), ("barrier", "a barrier"), ("semaphore", "semaphores")]
)
def test_counted_waits_at_a_queue_or_a_barrier_are_a_handover(kind: str, says: str) -> None:
    found = contention(counted(MUTEX, **{f"{kind}s": 200.0, f"{kind}_wait": 0.95}))
    assert (found.outcome, found.candidates) == (ContentionOutcome.LIKELY, (Cause.HANDOVER,))
    [at] = [each.indicates for each in found.evidence if each.name == "handover_wait"]
    assert says in at


@pytest.mark.parametrize("several", [MUTEX, STORM])
def test_counted_waits_for_locks_are_a_lock_also_where_one_thread_keeps_it_to_itself(
    several: Mapping[str, float],
) -> None:
    waited = contention(counted(several)).evidence[0].value.value
    for share in (0.5, 1.0):
        found = contention(counted(several, contended_locks=9.0, lock_wait=share * waited))
        assert (found.outcome, found.candidates) == (ContentionOutcome.LIKELY, (Cause.LOCK,))


def test_waits_for_a_lock_that_wake_in_vain_are_no_second_lock() -> None:
    waited = contention(counted(MUTEX)).evidence[0].value.value
    found = contention(counted(MUTEX, contended_locks=1.0, lock_wait=0.3 * waited))
    assert (found.outcome, found.candidates) == (ContentionOutcome.LIKELY, (Cause.LOCK,))


def test_many_waits_that_are_in_no_count_are_a_lock_that_is_not_counted() -> None:
    found = contention(counted(MUTEX))
    assert (found.outcome, found.candidates) == (ContentionOutcome.LIKELY, (Cause.HIDDEN_LOCK,))
    assert {"uncounted_wait", "uncounted_switches"} <= {each.name for each in found.evidence}


@pytest.mark.parametrize("waits", [{"counted_processes": 3.0}, {"joins": 200.0}])
def test_of_processes_and_of_threads_that_come_and_go_not_all_waits_are_counted(
    waits: dict[str, float],
) -> None:
    found = contention(counted(MUTEX, **waits))
    assert found.outcome is ContentionOutcome.CANNOT_TELL
    assert Cause.HANDOVER in found.candidates
    assert Cause.LOCK not in found.candidates


def test_a_thread_that_is_waited_for_until_it_ends_has_more_work_than_others() -> None:
    waited = contention(counted(MUTEX)).evidence[0].value.value
    alone = {**NO_WAITS, "joins": 0.0, "join_wait": 0.0}  # main does the work of the first thread
    joined = {"joins": 1.0, "join_wait": 0.9 * waited}
    found = contention(samples({**MUTEX, **NO_WAITS, **joined}, alone))
    assert found.candidates == (Cause.HIDDEN_LOCK, Cause.SERIAL)
    seldom = contention(samples({**SERIAL, **NO_WAITS, **joined}, alone))
    assert (seldom.outcome, seldom.candidates) == (ContentionOutcome.LIKELY, (Cause.SERIAL,))


def test_waiting_besides_the_counted_waits_is_work_that_is_not_shared_out() -> None:
    found = contention(counted(MUTEX, conditions=150.0, condition_wait=0.02))
    assert (found.outcome, found.candidates) == (ContentionOutcome.LIKELY, (Cause.SERIAL,))


def test_of_two_that_take_part_both_are_named() -> None:
    waits = {"contended_locks": 40.0, "lock_wait": 0.5, "conditions": 200.0, "condition_wait": 0.5}
    found = contention(counted(MUTEX, **waits))
    assert found.outcome is ContentionOutcome.CANNOT_TELL
    assert found.candidates == (Cause.LOCK, Cause.HANDOVER)
    fought = contention(counted(MUTEX, **{**waits, "contended_locks": 100.0}))
    assert fought.candidates == (Cause.LOCK, Cause.HANDOVER)


def test_a_wait_that_a_single_thread_also_has_does_not_count() -> None:
    alone = {**NO_WAITS, "conditions": 1.0, "condition_wait": 1.0}
    slower = {**STORM, **NO_WAITS, "joins": 2.0, "join_wait": 1.9, "conditions": 1.0, "condition_wait": 1.9}
    values = {each.name: each.value for each in contention(samples(slower, alone)).evidence}
    assert abs(values["handover_wait"].value) < 0.05
    assert abs(values["join_wait"].value) < 0.05


def test_who_was_ready_and_had_no_processor_waited_for_nothing_that_can_be_named() -> None:
    serial = contention(counted(SERIAL, cpu_pressure=0.7))
    assert (serial.outcome, serial.candidates) == (ContentionOutcome.CANNOT_TELL, (Cause.SERIAL,))
    assert "a lack of processors" in serial.reason
    assert "perftrail doctor" in serial.next_step
    hidden = contention(counted(MUTEX, cpu_pressure=0.95))
    assert hidden.outcome is ContentionOutcome.CANNOT_TELL
    assert contention(counted(MUTEX, cpu_pressure=0.3)).candidates == (Cause.HIDDEN_LOCK,)


def test_of_two_that_hand_over_on_one_processor_half_of_the_waiting_is_counted() -> None:
    found = contention(counted(MUTEX, semaphores=120.0, semaphore_wait=0.5, cpu_pressure=0.5))
    assert (found.outcome, found.candidates) == (ContentionOutcome.LIKELY, (Cause.HANDOVER,))


def test_a_lock_that_is_waited_for_in_many_steps_is_not_taken_for_one_that_is_not_counted() -> None:
    found = contention(counted(MUTEX, contended_locks=5.0, lock_wait=0.2))
    assert found.candidates == (Cause.LOCK, Cause.HIDDEN_LOCK)


def test_threads_that_are_counted_at_spin_locks_spin() -> None:
    for several, spun in ((BURNING, 0.9), ({**BURNING, "cpu": 1.5}, 0.49)):  # who keeps it, ends first
        found = contention(counted(several, spins=200.0, spin_wait=spun))
        assert (found.outcome, found.candidates) == (ContentionOutcome.LIKELY, (Cause.SPINNING,))
    own_loops = contention(counted(BURNING))
    assert Cause.SPINNING in own_loops.candidates
    assert own_loops.outcome is ContentionOutcome.CANNOT_TELL


def test_a_few_long_waits_at_a_barrier_are_distinguished_from_work_that_is_not_shared_out() -> None:
    waited = contention(counted(SERIAL)).evidence[0].value.value
    all_of_it = contention(counted(SERIAL, barriers=6.0, barrier_wait=0.95 * waited))
    assert (all_of_it.outcome, all_of_it.candidates) == (ContentionOutcome.LIKELY, (Cause.HANDOVER,))
    part = contention(counted(SERIAL, barriers=6.0, barrier_wait=0.3 * waited))
    assert part.candidates == (Cause.HANDOVER, Cause.SERIAL)
    assert contention(counted(SERIAL)).candidates == (Cause.SERIAL,)


def test_what_makes_less_than_a_quarter_of_the_lost_time_is_not_asked_for() -> None:
    warm = {**SERIAL, "wall": 0.95, "cpu": 1.15}
    assert contention(counted(warm)).candidates == (Cause.SERIAL,)
    hot = {**SERIAL, "wall": 0.95, "cpu": 1.4}
    assert {Cause.SERIAL, Cause.FALSE_SHARING} <= set(contention(counted(hot)).candidates)


@pytest.mark.parametrize(
    ("threads", "step"),
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
def test_what_cannot_be_told_ends_with_what_would_tell(threads: ThreadSamples, step: str) -> None:
    found = contention(threads)
    assert found.outcome is ContentionOutcome.CANNOT_TELL
    assert step in found.next_step


def test_spinning_without_counters_is_not_distinguished() -> None:
    found = contention(samples(BURNING))
    assert found.outcome is ContentionOutcome.CANNOT_TELL
    assert {Cause.SPINNING, Cause.FALSE_SHARING, Cause.MEMORY, Cause.MORE_WORK} <= set(found.candidates)
    assert Cause.LOCK not in found.candidates


def test_instructions_tell_spinning_from_cache_lines() -> None:
    spinning = contention(samples({**SLOWER, "instructions": 4e9}, {"instructions": 1e9}))
    assert set(spinning.candidates) == {Cause.SPINNING, Cause.MORE_WORK}
    lines = contention(samples({**SLOWER, "instructions": 1e9}, {"instructions": 1e9}))
    assert lines.outcome is ContentionOutcome.LIKELY
    assert lines.candidates == (Cause.FALSE_SHARING,)


def test_work_that_grows_with_the_threads_is_no_contention_for_a_throughput() -> None:
    twice = samples(BURNING)
    held = {
        n: {i: {**each, "rate": n * 100.0} for i, each in series.items()}
        for n, series in twice.samples.items()
    }
    found = contention(ThreadSamples(metric="rate", rising=True, samples=held, processors=twice.processors))
    assert found.outcome is ContentionOutcome.SCALES


def test_what_scales_needs_no_cause() -> None:
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
def test_what_cannot_be_told_says_why(threads: ThreadSamples, reason: str) -> None:
    found = contention(threads)
    assert found.outcome is ContentionOutcome.CANNOT_TELL
    assert reason in found.reason
    assert found.candidates == ()


def test_noise_alone_is_never_called_a_cause() -> None:
    rng = np.random.default_rng(32)
    for _ in range(200):
        held = {
            n: {
                i: {name: value * float(np.exp(rng.normal(0.0, 0.2))) for name, value in ideal.items()}
                for i in range(6)
            }
            for n, ideal in ((1, {**ALONE, **NO_WAITS}), (2, {**PERFECT, **NO_WAITS}))
        }
        found = contention(
            ThreadSamples(metric="wall", rising=False, samples=held, processors=Processors(count=2))
        )
        assert found.outcome is not ContentionOutcome.LIKELY
