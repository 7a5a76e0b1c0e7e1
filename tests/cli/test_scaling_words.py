"""Words for what limits threads: each cause and indicator has its own; an unclear cause names what would decide."""

from __future__ import annotations

import numpy as np

from perftrail.model.metrics import COUNTED, MEASURED
from perftrail.present.scaling import CAUSES, INDICATORS, contention_lines, scaling_lines
from perftrail.stats.contention import Cause, contention
from perftrail.stats.scaling import Processors, ThreadSamples, scaling


def samples(**waits: float) -> ThreadSamples:
    """Two threads that take as long as one, every value of every counter among the samples."""
    measured = {**MEASURED, **COUNTED["locks"], **COUNTED["instructions"]}
    alone = {
        **dict.fromkeys(measured, 0.0),
        "wall": 1.0,
        "cpu": 1.0,
        "instructions": 1e9,
        "counted_processes": 2.0,
    }
    together = {**alone, "voluntary_switches": 300.0, "joins": 4.0, "cpu_pressure": 0.1, **waits}
    return ThreadSamples(
        metric="wall",
        rising=False,
        samples={1: dict.fromkeys(range(8), alone), 2: dict.fromkeys(range(8), together)},
        processors=Processors(count=2),
    )


def scaled(times: dict[int, float], processors: Processors) -> list[str]:
    """The text on a benchmark that takes so long at each number of threads, with 1 % noise."""
    rng = np.random.default_rng(5)
    held = {
        n: {i: {"wall": time * np.exp(rng.normal(0.0, 0.01)), "cpu": time * n} for i in range(8)}
        for n, time in times.items()
    }
    found = ThreadSamples(metric="wall", rising=False, samples=held, processors=processors)
    scaling_found = scaling(found)
    assert scaling_found is not None
    return [*scaling_lines(scaling_found, contention(found))]


def test_counts_beyond_the_cores_are_marked_and_no_fit_uses_them() -> None:
    lines = scaled({1: 2.0, 2: 1.0, 4: 0.5, 8: 0.25, 16: 0.2}, Processors(count=16, cores=8))
    assert any(line.startswith("16 threads: ") and "more threads than cores (8)" in line for line in lines)
    assert "No fit uses 16 threads: on 8 cores, some threads share a core." in lines
    assert any(line.startswith("Amdahl's law fits (threads up to this machine's 8 cores)") for line in lines)


def test_a_law_names_its_assumption_with_unknown_cores() -> None:
    usl = {n: 2.0 * (1.0 + 0.05 * (n - 1) + 0.02 * n * (n - 1)) / n for n in (1, 2, 4, 8, 12, 16)}
    limit = "it assumes that no processors share a core, which this machine does not report"
    assert any(limit in line for line in scaled(usl, Processors(count=16)))
    assert not any(limit in line for line in scaled(usl, Processors(count=16, cores=16)))
    bent = {1: 2.0, 2: 1.0, 4: 0.5, 8: 0.25, 12: 2 / 9, 16: 0.2}
    assert any("No law of scaling" in line for line in scaled(bent, Processors(count=16)))


def test_each_cause_has_words() -> None:
    assert set(CAUSES) == set(Cause)


def test_each_reported_value_has_words() -> None:
    reported = {each.name for each in contention(samples()).evidence}
    assert reported == set(INDICATORS)


def test_a_reported_cause_has_its_evidence_and_needs_no_further_run() -> None:
    lines = [*contention_lines(contention(samples(barriers=290.0, barrier_wait=0.9)))]
    assert lines[0].startswith("Likely cause of the loss at 2 threads: a queue or a barrier")
    [waited] = [line for line in lines if "time waited at condition variables, barriers" in line]
    assert waited.endswith("a high value indicates a barrier")
    assert "90 % [90 %, 90 %] of the time with one thread" in waited
    assert lines[-1].startswith("  below 5 %: ")
    assert "time waited for locks" in lines[-1]
    assert not any("Next:" in line for line in lines)


def test_an_unclear_cause_ends_with_the_run_that_would_settle_it() -> None:
    *_, last = contention_lines(contention(samples()))
    assert (
        last
        == "  Next: trace one run with strace -f -c: it shows which system calls wait, futex, or read and wait4."
    )
