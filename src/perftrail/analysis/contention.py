"""Why threads do not bring what they should: what the figures beside the time say of it.

With n threads for the work of one, n T(n) - T(1) seconds of the threads' time are lost. They are lost in two ways that
the CPU time tells apart, exactly: threads are off their processors (waiting), or on them for longer (burning).
Waiting with many voluntary switches is what a lock that sleeps does; with few, work that is not shared out. Burning is
what spinning does, and cache lines or memory that several want; which of these takes counters. What makes less than a
quarter of the lost time is not asked for, and what is left over when no count explains a wait is believed only where
that is much. Only counts of threads that the machine has free processors for decide: beyond them every program waits.

The telltales are those of Brooks and Flynt (2013), their borders from programs with a known fault (see
docs/explanation/scaling.md). Where several causes would look the same, all are named, and none is called likely.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from statistics import median
from typing import TYPE_CHECKING

from perftrail.analysis.causes import (
    EXCESS,
    GOOD_PART,
    SOME,
    Cause,
    fought_for,
    lost,
    of_few_waits,
    of_many_waits,
)
from perftrail.analysis.paired import centre
from perftrail.analysis.scaling import scaling_ratio
from perftrail.analysis.telltales import Telltale, telltales

if TYPE_CHECKING:
    from perftrail.analysis.paired import Interval
    from perftrail.analysis.scaling import ThreadSamples

FAIR = 0.85
"""An efficiency of this or more needs no explanation."""

LEAST = 5
"""Fewer pairs of samples tell nothing."""

RATE = 80.0
"""So many voluntary switches a second, beyond those with one thread, are threads that wait for each other."""

OF_WAITS = (Cause.LOCK, Cause.HANDOVER, Cause.HIDDEN_LOCK, Cause.SERIAL)
"""The causes of which threads wait."""

MORE = "more invocations, as [measure] says how many, narrow the intervals"
"""The next step where the samples are too few."""

QUIET = "measure again while nothing else runs; perftrail doctor tells what does"
"""The next step where others took what the threads lacked."""

MOST_SHARED = 1.5
"""What processors that share a core, a clock or a cache may cost is below this many times the CPU time."""


class Outcome(StrEnum):
    """What came of looking for a cause."""

    LIKELY = "likely"
    SCALES = "scales"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contention:
    """The finding at `threads` threads, None where no count could decide.

    `candidates` are the causes that the evidence allows: one when `LIKELY`. `because` says why it cannot be told, and
    `next_step` what would tell.
    """

    outcome: Outcome
    threads: int | None
    candidates: tuple[Cause, ...] = ()
    because: str = ""
    next_step: str = ""
    evidence: tuple[Telltale, ...] = ()


def contention(threads: ThreadSamples) -> Contention:
    """Find out why a benchmark's time tapers, from its samples at one thread and at more."""
    if 1 not in threads.counts:
        return _cannot(
            "nothing was measured with one thread", "add 1 to the values of the parameter that counts them"
        )
    several = [count for count in threads.within if count > 1]
    if not several:
        processors = threads.processors.count
        return _cannot(
            f"each count measured has more threads than this machine has processors ({processors})",
            f"measure a count of 2 to {processors} threads" if processors > 1 else "use a machine with more",
        )
    if not all(_known(threads, 1, count) for count in several):
        return _cannot(f"fewer than {LEAST} samples have wall and CPU time at both counts", MORE)
    free = [count for count in several if count + _taken(threads, count) <= threads.processors.count + SOME]
    if not free:
        taken = _taken(threads, several[0])
        return _cannot(
            f"others took {taken:.1f} of {threads.processors.count} CPUs while it ran, so that threads lacked cores",
            QUIET,
        )
    return _at(threads, free[-1])


def _cannot(because: str, next_step: str) -> Contention:
    return Contention(outcome=Outcome.CANNOT_TELL, threads=None, because=because, next_step=next_step)


def _known(threads: ThreadSamples, first: int, second: int) -> bool:
    return all(
        len(threads.paired(metric, first, second)[0]) >= LEAST for metric in ("wall", "cpu", threads.metric)
    )


def _taken(threads: ThreadSamples, count: int) -> float:
    """How many CPUs others took while it ran, the host of a virtual machine included; the worse of both counts."""
    taken = 0.0
    for held in (threads.samples[1], threads.samples[count]):
        sums = [each.get("foreign_cpu", 0.0) + each.get("stolen_cpu", 0.0) for each in held.values()]
        taken = max(taken, median(sums))
    return taken if taken > SOME * threads.processors.count else 0.0


def _at(threads: ThreadSamples, count: int) -> Contention:
    found = scaling_ratio(threads, 1, count)
    assert found is not None
    efficiency = found.times(1.0 / count)
    signs = telltales(threads, count)
    told = tuple(signs.values())
    if efficiency.low >= FAIR:
        return Contention(outcome=Outcome.SCALES, threads=count, evidence=told)
    causes: tuple[Cause, ...] = ()
    if efficiency.high > FAIR:
        because, next_step = f"whether the time tapers at {count} threads is within the noise", MORE
    elif _waits_alone(threads):
        because = "with one thread it waits already, for a disk, a clock or another process"
        next_step = "a benchmark that does not wait tells what its threads cost one another"
    else:
        causes = _causes(threads, signs, count)
        left_over = causes == (Cause.SERIAL,) and _uncounted(signs).low < GOOD_PART
        if len(causes) == 1 and not left_over:
            return Contention(outcome=Outcome.LIKELY, threads=count, candidates=causes, evidence=told)
        because = "several causes would look the same" if causes else "what is lost is within the noise"
        if left_over:
            because = "little is lost that neither counted waits nor a lack of processors explain"
        next_step = QUIET if left_over else _next_step(causes, signs)
    return Contention(
        outcome=Outcome.CANNOT_TELL,
        threads=count,
        candidates=causes,
        because=because,
        next_step=next_step,
        evidence=told,
    )


def _uncounted(signs: dict[str, Telltale]) -> Interval:
    """What no count explains of the waiting; all of it where nothing was counted."""
    return signs.get("uncounted_wait", signs["waiting"]).figure


def _next_step(causes: tuple[Cause, ...], signs: dict[str, Telltale]) -> str:
    """Say what tells causes apart that look the same: counts of waits, of instructions, of calls, else more samples."""
    if {*OF_WAITS, Cause.SPINNING} & {*causes} and "uncounted_wait" not in signs:
        return 'counters = ["locks"] in the benchmark counts locks and waits, which tells more of them apart'
    if Cause.FALSE_SHARING in causes and "instructions" not in signs:
        return (
            'a benchmark of its own with counters = ["instructions"] tells spinning and more work, which execute more '
            "with more threads, from cache lines and memory"
        )
    if {Cause.HIDDEN_LOCK, Cause.HANDOVER} <= {*causes}:
        return "strace -f -c of one run tells which system calls wait: futex, or read and wait4"
    return MORE


def _waits_alone(threads: ThreadSamples) -> bool:
    alone = threads.samples[1].values()
    shares = [
        1.0 - each["cpu"] / each["wall"] for each in alone if each.get("wall", 0.0) > 0.0 and "cpu" in each
    ]
    return centre(shares).high > SOME


def _causes(threads: ThreadSamples, signs: dict[str, Telltale], count: int) -> tuple[Cause, ...]:
    """Name every cause that the evidence allows, the likeliest first."""
    waiting, burning = signs["waiting"].figure, signs["burning"].figure
    waits, burns = waiting.low > SOME, burning.low > SOME
    if (shown := fought_for(signs)) is not None:
        return (shown,)
    if waits and _switches_often(signs):
        return of_many_waits(signs)
    if _switches_often(signs) and (waiting.high > SOME / 2.0 or burns):
        return (*of_many_waits(signs), *(_burning(threads, signs, count) if burns else ()))
    part = GOOD_PART * lost(signs)
    waits, burns = waits and waiting.high > part, burns and burning.high > part
    return (
        *(of_few_waits(signs) if waits else ()),
        *(_burning(threads, signs, count) if burns else ()),
    )


def _switches_often(signs: dict[str, Telltale]) -> bool:
    switches, rate = signs.get("switches"), signs.get("switch_rate")
    return (
        switches is not None
        and rate is not None
        and switches.figure.low >= EXCESS
        and rate.figure.low >= RATE
    )


def _burning(threads: ThreadSamples, signs: dict[str, Telltale], count: int) -> tuple[Cause, ...]:
    growth, system = signs["cpu_growth"].figure, signs.get("system")
    if system is not None and system.figure.low > signs["burning"].figure.value / 2.0:
        return (Cause.KERNEL,)
    causes = [Cause.SPINNING, Cause.FALSE_SHARING, Cause.MEMORY]
    if growth.low < (2.0 if threads.processors.paired else MOST_SHARED):
        causes.append(Cause.SLOWER_CORES)
    if not threads.rising and growth.high > FAIR * count:
        causes.append(Cause.MORE_WORK)
    instructions = signs.get("instructions")
    if instructions is not None:
        executed = (Cause.SPINNING, Cause.MORE_WORK)
        more, alike = instructions.figure.low > 1.0 + 2 * SOME, instructions.figure.high < 1.0 + SOME
        causes = [each for each in causes if not (more and each not in executed)]
        causes = [each for each in causes if not (alike and each in executed)]
    found = scaling_ratio(threads, 1, count)
    if (
        found is not None and found.high < 1.0 / MOST_SHARED
    ):  # sharing a resource does not cost more than it gives
        causes = [each for each in causes if each not in (Cause.MEMORY, Cause.SLOWER_CORES)]
    return tuple(causes)
