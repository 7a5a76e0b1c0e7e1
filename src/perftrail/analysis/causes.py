"""What may keep threads from bringing what they should, and which of it the counted waits leave.

Threads that wait are counted at locks, where they spin, and where they hand over to each other: at condition variables,
barriers and semaphores. Waiting that is in none of these counts is of a thread that has ended, or of one at a lock of
malloc or the kernel; the voluntary switches that no count explains tell these apart.

Of n threads of which one keeps a lock to itself until it is done, the others wait for it in half of the lost time at
least; for the rest the first have ended. Of two that hand over to each other on one processor, to which the kernel
likes to move them, one waits for the other and the other for the processor. Either starts late, beside. So a lock or a
queue explains up to twice as much again as is counted of it. A wait at a lock is one however often the thread was woken
in vain, so the switches that it made say nothing of a second lock.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perftrail.analysis.paired import Interval
    from perftrail.analysis.telltales import Telltale

    Signs = Mapping[str, Telltale]

SOME = 0.1
"""Lost time below this share is no cause."""

EXCESS = 20.0
"""So many more voluntary switches of each thread than with one thread are not its start and end."""

OFTEN = 0.2
"""A lock that is found held in more than this share of cases is fought for."""

GOOD_PART = 0.25
"""Waits of more than this share of the lost or the waited time take part in it; those at a lock are the cause."""

EXPLAINS = 1.0 / 3.0
"""Handovers, spins and what no count explains are the cause above this share of the lost or the waited time."""


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


def lost(signs: Signs) -> float:
    """All of the threads' time that is lost, as a share of the time with one thread."""
    return signs["waiting"].figure.value + signs["burning"].figure.value


def fought_for(signs: Signs) -> Cause | None:
    """Name what threads fight for, where counts show it: a lock found held often, or one that they spin on.

    The rest goes with it, whatever it looks like: a lock that many ask for burns, too, in the kernel and by the line
    of its word, and the thread that keeps it to itself ends first.
    """
    all_lost = lost(signs)
    if all_lost <= 0.0:
        return None
    often, held, spun = (_figure(signs, name) for name in ("contended_locks", "lock_wait", "spin_wait"))
    if often is not None and held is not None and often.low > OFTEN and held.low > GOOD_PART * all_lost:
        return Cause.LOCK if _is_below(_figure(signs, "handover_wait"), GOOD_PART * all_lost) else None
    if spun is not None and spun.low > EXPLAINS * all_lost:
        return Cause.SPINNING
    return None


def of_many_waits(signs: Signs) -> tuple[Cause, ...]:
    """Tell a lock from a queue or a barrier, which takes counts; those of malloc and the kernel have none."""
    held, handed = _figure(signs, "lock_wait"), _figure(signs, "handover_wait")
    if held is None:
        return (Cause.LOCK, Cause.HANDOVER)
    part, some = GOOD_PART * _waited(signs), SOME * _waited(signs)
    if held.low > max(part, SOME * lost(signs)) and _is_below(handed, part):
        return (Cause.LOCK,)
    if handed is None:
        others = (Cause.HANDOVER, Cause.HIDDEN_LOCK)
        return others if held.high < SOME * lost(signs) else (Cause.LOCK, *others)
    if held.high < part and _explains(handed, signs):
        return (Cause.HANDOVER,)
    uncounted = signs["uncounted_wait"].figure
    if max(held.high, handed.high) < some and _explains(uncounted, signs):
        return _uncounted(signs)
    counted = {Cause.LOCK: held, Cause.HANDOVER: handed}
    causes = [cause for cause, figure in counted.items() if figure.high >= some]
    causes += _uncounted(signs) if uncounted.high >= some else ()
    return tuple(dict.fromkeys(causes))


def of_few_waits(signs: Signs) -> tuple[Cause, ...]:
    """Few long waits: work that is not shared out, or one lock or queue waited at for long, which counts tell."""
    held, handed = _figure(signs, "lock_wait"), _figure(signs, "handover_wait")
    if held is None:
        return (Cause.SERIAL, Cause.LOCK)
    part, some = GOOD_PART * _waited(signs), SOME * lost(signs)
    if held.low > part and _is_below(handed, part):
        return (Cause.LOCK,)
    if handed is not None and handed.low > part and held.high < part:
        return (Cause.HANDOVER,) if _explains(handed, signs) else (Cause.HANDOVER, Cause.SERIAL)
    causes = [Cause.SERIAL]
    if held.high >= some:
        causes.append(Cause.LOCK)
    if not _is_below(handed, some):
        causes.append(Cause.HANDOVER)
    return tuple(causes)


def _uncounted(signs: Signs) -> tuple[Cause, ...]:
    """Name what waiting may be that no count explains.

    Threads that come and go hand over by ending, processes by pipes. A thread that is waited for until it ends, once,
    has more work than others.
    """
    switches, joined = signs["uncounted_switches"].figure, signs["join_wait"].figure
    joins, processes = _figure(signs, "joins"), _figure(signs, "counted_processes")
    causes = []
    if switches.high >= EXCESS:
        causes.append(Cause.HIDDEN_LOCK)
    if processes is not None or (joins is not None and joins.high >= EXCESS):
        causes.append(Cause.HANDOVER)
    if switches.low < EXCESS or joined.low > GOOD_PART * _waited(signs):
        causes.append(Cause.SERIAL)
    return tuple(causes)


def _explains(part: Interval, signs: Signs) -> bool:
    return part.low > max(EXPLAINS * _waited(signs), SOME * lost(signs))


def _waited(signs: Signs) -> float:
    return max(signs["waiting"].figure.value, SOME)


def _is_below(figure: Interval | None, border: float) -> bool:
    """Whether a figure is surely below a border, or not there at all."""
    return figure is None or figure.high < border


def _figure(signs: Signs, name: str) -> Interval | None:
    return signs[name].figure if name in signs else None
