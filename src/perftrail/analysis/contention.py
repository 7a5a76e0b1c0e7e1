"""Why threads do not bring what they should: what the figures beside the time say of it.

With n threads for the work of one, n T(n) - T(1) seconds of the threads' time are lost. They are lost in two ways that
the CPU time tells apart, exactly: threads are off their processors (waiting), or on them for longer (burning).
Waiting with many voluntary switches is what a lock that sleeps does; with few, work that is not shared out. Burning is
what spinning does, and cache lines or memory that several want; which of these takes counters. Only counts of threads
that the machine has free processors for decide: beyond them every program waits.

The telltales are those of Brooks and Flynt (2013), their borders from programs with a known fault (see
docs/explanation/scaling.md). Where several causes would look the same, all are named, and none is called likely.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from statistics import median
from typing import TYPE_CHECKING

from perftrail.analysis.paired import centre
from perftrail.analysis.scaling import scaling_ratio
from perftrail.analysis.telltales import Telltale, telltales

if TYPE_CHECKING:
    from perftrail.analysis.scaling import ThreadSamples

FAIR = 0.85
"""An efficiency of this or more needs no explanation."""

LEAST = 5
"""Fewer pairs of samples tell nothing."""

SOME = 0.1
"""Lost time below this share of the time alone is no cause."""

EXCESS = 20.0
"""So many more voluntary switches of each thread than with one thread are not its start and end."""

RATE = 80.0
"""So many voluntary switches a second, beyond those with one thread, are threads that wait for each other."""

OFTEN = 0.2
"""A lock that is found held in more than this share of cases is fought for."""

GOOD_PART = 0.25
"""Waiting for locks that makes more than this share of the lost or the waited time is what the time is lost to."""

MOST_SHARED = 1.5
"""What processors that share a core, a clock or a cache may cost is below this many times the CPU time."""


class Cause(StrEnum):
    """What keeps threads from bringing what they should."""

    LOCK = "lock"
    HANDOVER = "handover"
    HIDDEN_LOCK = "hidden lock"
    SERIAL = "serial"
    SPINNING = "spinning"
    FALSE_SHARING = "false sharing"
    MEMORY = "memory"
    SLOWER_CORES = "slower cores"
    KERNEL = "kernel"
    MORE_WORK = "more work"


class Outcome(StrEnum):
    """What came of looking for a cause."""

    LIKELY = "likely"
    SCALES = "scales"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contention:
    """The finding at `threads` threads, None where no count could decide.

    `candidates` are the causes that the evidence allows: one when `LIKELY`. `because` says why it cannot be told.
    """

    outcome: Outcome
    threads: int | None
    candidates: tuple[Cause, ...] = ()
    because: str = ""
    evidence: tuple[Telltale, ...] = ()


def contention(threads: ThreadSamples) -> Contention:
    """Find out why a benchmark's time tapers, from its samples at one thread and at more."""
    if 1 not in threads.counts:
        return _cannot("nothing was measured with one thread")
    several = [count for count in threads.within if count > 1]
    if not several:
        return _cannot(
            f"each count measured has more threads than this machine has processors ({threads.processors.count})"
        )
    if not all(_known(threads, 1, count) for count in several):
        return _cannot(f"fewer than {LEAST} samples have wall and CPU time at both counts")
    free = [count for count in several if count + _taken(threads, count) <= threads.processors.count + SOME]
    if not free:
        taken = _taken(threads, several[0])
        return _cannot(
            f"others took {taken:.1f} of {threads.processors.count} CPUs while it ran, so that threads lacked cores"
        )
    return _at(threads, free[-1])


def _cannot(because: str) -> Contention:
    return Contention(outcome=Outcome.CANNOT_TELL, threads=None, because=because)


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
    if efficiency.high > FAIR:
        because = f"whether the time tapers at {count} threads is within the noise"
    elif _waits_alone(threads):
        because = "with one thread it waits already, for a disk, a clock or another process"
    else:
        causes = _causes(threads, signs, count)
        if len(causes) == 1:
            return Contention(outcome=Outcome.LIKELY, threads=count, candidates=causes, evidence=told)
        because = "several causes would look the same" if causes else "what is lost is within the noise"
        return Contention(
            outcome=Outcome.CANNOT_TELL, threads=count, candidates=causes, because=because, evidence=told
        )
    return Contention(outcome=Outcome.CANNOT_TELL, threads=count, because=because, evidence=told)


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
    if _fought_for(signs):
        return (Cause.LOCK,)
    if waits and _switches_often(signs):
        return _sleeping(signs)
    if _switches_often(signs) and (waiting.high > SOME / 2.0 or burns):
        return (*_sleeping(signs), *(_burning(threads, signs, count) if burns else ()))
    if waits and burns:
        return (*_idle(signs), *_burning(threads, signs, count))
    if waits:
        return _idle(signs)
    return _burning(threads, signs, count) if burns else ()


def _fought_for(signs: dict[str, Telltale]) -> bool:
    """Whether counted locks are found held often, and waiting for them is a good part of what is lost.

    The rest goes with it, whatever it looks like: a lock that many ask for burns, too, in the kernel and by the line
    of its word.
    """
    held, wait = signs.get("contended_locks"), signs.get("lock_wait")
    return (
        held is not None
        and wait is not None
        and held.figure.low > OFTEN
        and wait.figure.low > GOOD_PART * _lost(signs) > 0.0
    )


def _switches_often(signs: dict[str, Telltale]) -> bool:
    switches, rate = signs.get("switches"), signs.get("switch_rate")
    return (
        switches is not None
        and rate is not None
        and switches.figure.low >= EXCESS
        and rate.figure.low >= RATE
    )


def _sleeping(signs: dict[str, Telltale]) -> tuple[Cause, ...]:
    """Tell a lock from a queue or a barrier, which takes a count of locks; those of malloc and the kernel have none."""
    held = signs.get("lock_wait")
    if held is None:
        return (Cause.LOCK, Cause.HANDOVER)
    if held.figure.low > SOME * _lost(signs):
        return (Cause.LOCK,)
    others = (Cause.HANDOVER, Cause.HIDDEN_LOCK)
    return others if _no_lock(signs) else (Cause.LOCK, *others)


def _idle(signs: dict[str, Telltale]) -> tuple[Cause, ...]:
    """Few long waits: work that is not shared out, or one lock held for long, which counting locks tells.

    Of two threads of which one keeps the lock to itself, the other waits for it for half of what is lost at most: then
    it works alone, and the first one is done.
    """
    held = signs.get("lock_wait")
    if held is not None and held.figure.low > GOOD_PART * signs["waiting"].figure.value:
        return (Cause.LOCK,)
    return (Cause.SERIAL,) if _no_lock(signs) else (Cause.SERIAL, Cause.LOCK)


def _no_lock(signs: dict[str, Telltale]) -> bool:
    held = signs.get("lock_wait")
    return held is not None and held.figure.high < SOME * _lost(signs)


def _lost(signs: dict[str, Telltale]) -> float:
    """All of the threads' time that is lost, as a share of the time with one thread."""
    return signs["waiting"].figure.value + signs["burning"].figure.value


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
