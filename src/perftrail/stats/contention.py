"""Likely causes of poor thread scaling, from the metrics that are measured with the time.

With n threads for the work of one, n T(n) - T(1) seconds of thread time are lost. CPU time splits this loss exactly:
threads are off their processors (waiting), or on them for longer (burning). A lock that sleeps causes many voluntary
switches; work that is not shared causes few. Spinning burns time, and so do contended cache lines and memory; counters
separate them. Parts below a quarter of the lost time are ignored. Lost time that no count explains must be large to
count as a cause. Only thread counts for which the machine has free processors decide: beyond them every program waits.
The indicators are those of Brooks and Flynt (2013). Their limits come from programs with a known fault
(docs/explanation/scaling.md). If several causes would look the same, all are named, and none is called likely.

Counted waits are those at locks, spins, and handovers (condition variables, barriers, semaphores). Uncounted waits
belong to ended threads, or to locks of malloc or the kernel; voluntary switches without a counted wait separate these.
If one thread keeps a lock until it is done, the others wait at least half of the lost time; the rest belongs to
threads that ended first. If two threads alternate on one processor, one waits for the other, which waits for the
processor. So a lock or a queue explains up to twice its counted wait. One wait at a lock may contain several
switches, so the switches do not show a second lock.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from statistics import median
from typing import TYPE_CHECKING

from perftrail.stats.ratios import PairedEstimate, centre, ratio
from perftrail.stats.scaling import scaling_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from perftrail.stats.scaling import ThreadSamples

    Sample = Mapping[str, float]
    Losses = Mapping[str, "LossIndicator"]

HANDOVERS = {
    "condition_wait": "a queue (condition variables)",
    "barrier_wait": "a barrier",
    "semaphore_wait": "a queue (semaphores)",
}
"""Metrics of waits in which threads hand over to each other, and what each one indicates."""

PART = 0.1
"""Handovers below this share of their sum are not named."""

SINGLE = 1.5
"""Above this number of joins per thread (or of processes), there is more than the usual one."""

SPLIT_SECONDS = 0.1
"""Below this CPU time, the kernel's split into user and system time is only noise of its tick."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LossIndicator:
    """One metric at a thread count, relative to one thread.

    `unit` is ``share`` (of the wall time with one thread), ``times``, ``1/s``, ``of each thread``, or empty for a
    count. `indicates` names what a high value indicates.
    """

    name: str
    value: PairedEstimate
    unit: str
    indicates: str


def indicators(threads: ThreadSamples, count: int) -> dict[str, LossIndicator]:
    """Return the indicators of the samples by name; ``waiting`` and ``burning`` need wall and CPU time."""
    pairs = _pairs(threads, count)
    found = (*_lost(pairs, count), *_waits(pairs, count), *_locks(pairs), *_counted_waits(pairs, count))
    return {each.name: each for each in found}


def _pairs(threads: ThreadSamples, count: int) -> list[tuple[Sample, Sample, float]]:
    """Return pairs of samples (one thread, `count` threads) of equal ordinal, and the ratio of their work."""
    alone, several = threads.samples[1], threads.samples[count]
    pairs = []
    for ordinal in sorted(set(alone) & set(several)):
        one, other = alone[ordinal], several[ordinal]
        if not all(name in each for name in ("wall", "cpu", threads.metric) for each in (one, other)):
            continue
        if min(one["wall"], other["wall"], one[threads.metric], other[threads.metric]) <= 0.0:
            continue
        work = 1.0
        if threads.rising:
            work = other[threads.metric] * other["wall"] / (one[threads.metric] * one["wall"])
        pairs.append((one, other, work))
    return pairs


def _lost(pairs: list[tuple[Sample, Sample, float]], count: int) -> Iterator[LossIndicator]:
    """Split the lost thread time, as a share of the time alone, into waiting and burning."""
    waiting, burning = [], []
    for one, other, work in pairs:
        waiting.append(_waiting(one, other, work, count))
        burning.append((other["cpu"] / work - one["cpu"]) / one["wall"])
    yield LossIndicator(
        name="waiting", value=centre(waiting), unit="share", indicates="threads that wait, or have no work"
    )
    yield LossIndicator(
        name="burning",
        value=centre(burning),
        unit="share",
        indicates="spinning, or contended cache lines or memory",
    )
    growth = ratio([one["cpu"] for one, _, _ in pairs], [other["cpu"] / work for _, other, work in pairs])
    if growth is not None:
        yield LossIndicator(
            name="cpu_growth", value=growth, unit="times", indicates="work that one thread does not do"
        )
    if all("instructions" in each for one, other, _ in pairs for each in (one, other)):
        executed = ratio(
            [one["instructions"] for one, _, _ in pairs],
            [other["instructions"] / work for _, other, work in pairs],
        )
        if executed is not None:
            yield LossIndicator(
                name="instructions", value=executed, unit="times", indicates="spinning, where it grows"
            )


def _waiting(one: Sample, other: Sample, work: float, count: int) -> float:
    idle = (count * other["wall"] - other["cpu"]) / work - (one["wall"] - one["cpu"])
    return idle / one["wall"]


def _waits(pairs: list[tuple[Sample, Sample, float]], count: int) -> Iterator[LossIndicator]:
    if all(
        "system" in each and each["cpu"] >= SPLIT_SECONDS for one, other, _ in pairs for each in (one, other)
    ):
        system = [(other["system"] / work - one["system"]) / one["wall"] for one, other, work in pairs]
        yield LossIndicator(
            name="system",
            value=centre(system),
            unit="share",
            indicates="the kernel, which also handles locks",
        )
    names = {
        "voluntary_switches": ("switches", "switch_rate"),
        "involuntary_switches": ("", "preemption_rate"),
    }
    for metric, (each_thread, a_second) in names.items():
        if not all(metric in each for one, other, _ in pairs for each in (one, other)):
            continue
        excess = [max(0.0, other[metric] - one[metric] * work) for one, other, work in pairs]
        if each_thread:
            yield LossIndicator(
                name=each_thread,
                value=centre([more / count for more in excess]),
                unit="of each thread",
                indicates="threads that wait for one another: a lock, a queue or a barrier",
            )
        indicates = "threads that wait for one another" if each_thread else "a lack of cores"
        rates = [more / other["wall"] for more, (_, other, _) in zip(excess, pairs, strict=True)]
        yield LossIndicator(name=a_second, value=centre(rates), unit="1/s", indicates=indicates)


def _locks(pairs: list[tuple[Sample, Sample, float]]) -> Iterator[LossIndicator]:
    names = ("locks", "contended_locks", "lock_wait")
    if not all(name in each for name in names for one, other, _ in pairs for each in (one, other)):
        return
    contended = [other["contended_locks"] / max(1.0, other["locks"]) for _, other, _ in pairs]
    yield LossIndicator(name="contended_locks", value=centre(contended), unit="share", indicates="a lock")
    # The counted wait includes waiting for a CPU, so that only a small one excludes a lock.
    locked = [_more(one, other, work, "lock_wait") for one, other, work in pairs]
    yield LossIndicator(name="lock_wait", value=centre(locked), unit="share", indicates="a lock")


def _counted_waits(pairs: list[tuple[Sample, Sample, float]], count: int) -> Iterator[LossIndicator]:
    """Yield waits other than locks, and the uncounted waiting; nothing for samples that only count locks."""
    waits = (*HANDOVERS, "join_wait", "spin_wait")
    if not all(name in each for name in waits for one, other, _ in pairs for each in (one, other)):
        return
    handed = [sum(_beyond_wall(one, other, work, name) for name in HANDOVERS) for one, other, work in pairs]
    parts = {name: median([other[name] for _, other, _ in pairs]) for name in HANDOVERS}
    at = [kind for name, kind in HANDOVERS.items() if parts[name] > PART * sum(parts.values())]
    yield LossIndicator(
        name="handover_wait", value=centre(handed), unit="share", indicates=" or ".join(at) or "a queue"
    )
    joined = [_beyond_wall(one, other, work, "join_wait") for one, other, work in pairs]
    yield LossIndicator(
        name="join_wait", value=centre(joined), unit="share", indicates="threads of unequal work"
    )
    spun = [_more(one, other, work, "spin_wait") for one, other, work in pairs]
    yield LossIndicator(name="spin_wait", value=centre(spun), unit="share", indicates="spinning on a lock")
    ready = _ready(pairs)
    uncounted = [
        _waiting(one, other, work, count)
        - _more(one, other, work, "lock_wait")
        - by_handing
        - without_processor
        for (one, other, work), by_handing, without_processor in zip(pairs, handed, ready, strict=True)
    ]
    if any(ready):
        yield LossIndicator(
            name="ready", value=centre(ready), unit="share", indicates="a lack of free processors"
        )
    yield LossIndicator(
        name="uncounted_wait",
        value=centre(uncounted),
        unit="share",
        indicates="threads without work, or a lock that is not counted",
    )
    yield from _counts(pairs, count)


def _ready(pairs: list[tuple[Sample, Sample, float]]) -> list[float]:
    """Return, per pair, the additional time in which a ready task had no processor; 0 if it is unknown."""
    return [
        (other["cpu_pressure"] * other["wall"] / work - one["cpu_pressure"] * one["wall"]) / one["wall"]
        if "cpu_pressure" in one and "cpu_pressure" in other
        else 0.0
        for one, other, work in pairs
    ]


def _counts(pairs: list[tuple[Sample, Sample, float]], count: int) -> Iterator[LossIndicator]:
    """Yield the switches without a counted wait. A wait makes at most two: condition variable and mutex."""
    numbers = ("contended_locks", "conditions", "barriers", "semaphores", "joins")
    switches = []
    for one, other, work in pairs:
        excess = other["voluntary_switches"] - one["voluntary_switches"] * work
        counted = sum(other[name] - one[name] * work for name in numbers)
        switches.append(max(0.0, excess - 2.0 * counted) / count)
    yield LossIndicator(
        name="uncounted_switches",
        value=centre(switches),
        unit="of each thread",
        indicates="a lock that is not counted",
    )
    joins = centre([other["joins"] / count for _, other, _ in pairs])
    if joins.high > SINGLE:
        indicates = "threads that come and go, whose waits are not all counted"
        yield LossIndicator(name="joins", value=joins, unit="of each thread", indicates=indicates)
    processes = centre([other["counted_processes"] for _, other, _ in pairs])
    if processes.high > SINGLE:
        indicates = "processes that wait for each other, which is not counted"
        yield LossIndicator(name="counted_processes", value=processes, unit="", indicates=indicates)


def _more(one: Sample, other: Sample, work: float, metric: str) -> float:
    """Return the additional time of a metric, as a share of the wall time with one thread."""
    return (other[metric] / work - one[metric]) / one["wall"]


def _beyond_wall(one: Sample, other: Sample, work: float, metric: str) -> float:
    """Return the additional time beyond the one-thread share of the wall time.

    A thread that only waits for the others, as main often does, waits for the whole wall time at every count.
    """
    return (other[metric] - one[metric] * other["wall"] / one["wall"]) / work / one["wall"]


SOME = 0.1
"""Lost time below this share is not a cause."""

EXCESS = 20.0
"""Additional voluntary switches per thread; fewer may belong to its start and end."""

OFTEN = 0.2
"""A lock is contended if more than this share of attempts find it held."""

GOOD_PART = 0.25
"""Waits above this share of the lost or the waited time count; if they are at a lock, it is the cause."""

EXPLAINS = 1.0 / 3.0
"""Handovers, spins and uncounted waits above this share of the lost or the waited time are the cause."""


class Cause(StrEnum):
    """Why a program scales poorly with its threads."""

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


def lost(losses: Losses) -> float:
    """Return the lost thread time, as a share of the time with one thread."""
    return losses["waiting"].value.value + losses["burning"].value.value


def contended_resource(losses: Losses) -> Cause | None:
    """Return the contended resource if counts show it: a lock that is often held, or one that threads spin on.

    Other symptoms follow from it: a contended lock also burns time in the kernel and on its cache line, and the
    thread that keeps it ends first.
    """
    all_lost = lost(losses)
    if all_lost <= 0.0:
        return None
    often, locked, spun = (_value(losses, name) for name in ("contended_locks", "lock_wait", "spin_wait"))
    if often is not None and locked is not None and often.low > OFTEN and locked.low > GOOD_PART * all_lost:
        return Cause.LOCK if _is_below(_value(losses, "handover_wait"), GOOD_PART * all_lost) else None
    if spun is not None and spun.low > EXPLAINS * all_lost:
        return Cause.SPINNING
    return None


def causes_of_many_waits(losses: Losses) -> tuple[Cause, ...]:
    """Return the causes of many waits. Counts separate a lock from a queue or a barrier.

    Locks of malloc and of the kernel have no counts.
    """
    locked, handed = _value(losses, "lock_wait"), _value(losses, "handover_wait")
    if locked is None:
        return (Cause.LOCK, Cause.HANDOVER)
    part, some = GOOD_PART * _waited(losses), SOME * _waited(losses)
    if locked.low > max(part, SOME * lost(losses)) and _is_below(handed, part):
        return (Cause.LOCK,)
    if handed is None:
        others = (Cause.HANDOVER, Cause.HIDDEN_LOCK)
        return others if locked.high < SOME * lost(losses) else (Cause.LOCK, *others)
    if locked.high < part and _explains(handed, losses):
        return (Cause.HANDOVER,)
    uncounted = losses["uncounted_wait"].value
    if max(locked.high, handed.high) < some and _explains(uncounted, losses):
        return _uncounted_causes(losses)
    counted = {Cause.LOCK: locked, Cause.HANDOVER: handed}
    causes = [cause for cause, value in counted.items() if value.high >= some]
    causes += _uncounted_causes(losses) if uncounted.high >= some else ()
    return tuple(dict.fromkeys(causes))


def causes_of_few_waits(losses: Losses) -> tuple[Cause, ...]:
    """Return the causes of few long waits: unshared work, or long waits at one lock or queue."""
    locked, handed = _value(losses, "lock_wait"), _value(losses, "handover_wait")
    if locked is None:
        return (Cause.SERIAL, Cause.LOCK)
    part, some = GOOD_PART * _waited(losses), SOME * lost(losses)
    if locked.low > part and _is_below(handed, part):
        return (Cause.LOCK,)
    if handed is not None and handed.low > part and locked.high < part:
        return (Cause.HANDOVER,) if _explains(handed, losses) else (Cause.HANDOVER, Cause.SERIAL)
    causes = [Cause.SERIAL]
    if locked.high >= some:
        causes.append(Cause.LOCK)
    if not _is_below(handed, some):
        causes.append(Cause.HANDOVER)
    return tuple(causes)


def _uncounted_causes(losses: Losses) -> tuple[Cause, ...]:
    """Return the possible causes of uncounted waits.

    Short-lived threads hand over when they end, processes by pipes. A thread that others join once has more work.
    """
    switches, joined = losses["uncounted_switches"].value, losses["join_wait"].value
    joins, processes = _value(losses, "joins"), _value(losses, "counted_processes")
    causes = []
    if switches.high >= EXCESS:
        causes.append(Cause.HIDDEN_LOCK)
    if processes is not None or (joins is not None and joins.high >= EXCESS):
        causes.append(Cause.HANDOVER)
    if switches.low < EXCESS or joined.low > GOOD_PART * _waited(losses):
        causes.append(Cause.SERIAL)
    return tuple(causes)


def _explains(part: PairedEstimate, losses: Losses) -> bool:
    return part.low > max(EXPLAINS * _waited(losses), SOME * lost(losses))


def _waited(losses: Losses) -> float:
    return max(losses["waiting"].value.value, SOME)


def _is_below(value: PairedEstimate | None, border: float) -> bool:
    """Return whether a metric is clearly below a limit, or missing."""
    return value is None or value.high < border


def _value(losses: Losses, name: str) -> PairedEstimate | None:
    return losses[name].value if name in losses else None


FAIR = 0.85
"""An efficiency of at least this value needs no explanation."""

LEAST = 5
"""Minimum number of pairs of samples."""

RATE = 80.0
"""Additional voluntary switches per second above which threads wait for each other."""

WAITING_CAUSES = (Cause.LOCK, Cause.HANDOVER, Cause.HIDDEN_LOCK, Cause.SERIAL)
"""Causes in which threads wait."""

MORE = "raise measure.invocations: more samples narrow the intervals"
"""Next step if there are too few samples."""

QUIET = "measure again on a quiet machine; perftrail doctor shows what else runs"
"""Next step if other processes used the CPUs."""

MOST_SHARED = 1.5
"""Sharing a core, a clock or a cache costs less than this factor of CPU time."""


class ContentionOutcome(StrEnum):
    """Outcome of the analysis of contention."""

    LIKELY = "likely"
    SCALES = "scales"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contention:
    """What limits the scaling. `threads` is the thread count that decided it, null if none could.

    `candidates` are the causes that fit the evidence, one if `LIKELY`. `reason` states why several causes remain, and
    `next_step` how to separate them.
    """

    outcome: ContentionOutcome
    threads: int | None
    candidates: tuple[Cause, ...] = ()
    reason: str = ""
    next_step: str = ""
    evidence: tuple[LossIndicator, ...] = ()


def contention(threads: ThreadSamples) -> Contention:
    """Return why a benchmark scales poorly, from its samples with one thread and with more."""
    if 1 not in threads.counts:
        return _cannot_tell(
            "there are no samples with one thread", "add 1 to the values of the thread parameter"
        )
    several = [count for count in threads.within if count > 1]
    if not several:
        processors = threads.processors.count
        return _cannot_tell(
            f"every measured thread count exceeds this machine's processors ({processors})",
            f"measure 2 to {processors} threads" if processors > 1 else "use a machine with more processors",
        )
    if not all(_enough_pairs(threads, 1, count) for count in several):
        return _cannot_tell(f"fewer than {LEAST} samples have wall and CPU time at both counts", MORE)
    free = [
        count for count in several if count + _foreign_cpus(threads, count) <= threads.processors.count + SOME
    ]
    if not free:
        foreign_cpus = _foreign_cpus(threads, several[0])
        return _cannot_tell(
            f"other processes used {foreign_cpus:.1f} of {threads.processors.count} CPUs, so that threads lacked cores",
            QUIET,
        )
    return _contention_at(threads, free[-1])


def _cannot_tell(reason: str, next_step: str) -> Contention:
    return Contention(outcome=ContentionOutcome.CANNOT_TELL, threads=None, reason=reason, next_step=next_step)


def _enough_pairs(threads: ThreadSamples, first: int, second: int) -> bool:
    return all(
        len(threads.paired(metric, first, second)[0]) >= LEAST for metric in ("wall", "cpu", threads.metric)
    )


def _foreign_cpus(threads: ThreadSamples, count: int) -> float:
    """Return the CPUs that other processes and the hypervisor used; the larger value of both counts."""
    foreign_cpus = 0.0
    for samples in (threads.samples[1], threads.samples[count]):
        sums = [each.get("foreign_cpu", 0.0) + each.get("stolen_cpu", 0.0) for each in samples.values()]
        foreign_cpus = max(foreign_cpus, median(sums))
    return foreign_cpus if foreign_cpus > SOME * threads.processors.count else 0.0


def _contention_at(threads: ThreadSamples, count: int) -> Contention:
    found = scaling_ratio(threads, 1, count)
    assert found is not None
    efficiency = found.times(1.0 / count)
    losses = indicators(threads, count)
    evidence = tuple(losses.values())
    if efficiency.low >= FAIR:
        return Contention(outcome=ContentionOutcome.SCALES, threads=count, evidence=evidence)
    causes: tuple[Cause, ...] = ()
    if efficiency.high > FAIR:
        reason, next_step = f"the loss at {count} threads is within the noise", MORE
    elif _waits_alone(threads):
        reason = "it already waits with one thread, for a disk, a clock or another process"
        next_step = "use a benchmark that does not wait, to see how its threads slow each other"
    else:
        causes = _causes(threads, losses, count)
        left_over = causes == (Cause.SERIAL,) and _uncounted_share(losses).low < GOOD_PART
        if len(causes) == 1 and not left_over:
            return Contention(
                outcome=ContentionOutcome.LIKELY, threads=count, candidates=causes, evidence=evidence
            )
        reason = "several causes would look the same" if causes else "the lost time is within the noise"
        if left_over:
            reason = "counted waits and a lack of processors explain most of the lost time"
        next_step = QUIET if left_over else _next_step(causes, losses)
    return Contention(
        outcome=ContentionOutcome.CANNOT_TELL,
        threads=count,
        candidates=causes,
        reason=reason,
        next_step=next_step,
        evidence=evidence,
    )


def _uncounted_share(losses: dict[str, LossIndicator]) -> PairedEstimate:
    """Return the waiting that no count explains; all waiting if nothing was counted."""
    return losses.get("uncounted_wait", losses["waiting"]).value


def _next_step(causes: tuple[Cause, ...], losses: dict[str, LossIndicator]) -> str:
    """Return how to separate causes with equal symptoms: counters, a trace of system calls, or more samples."""
    if {*WAITING_CAUSES, Cause.SPINNING} & {*causes} and "uncounted_wait" not in losses:
        return 'add counters = ["locks"] to the benchmark: counted locks and waits separate more causes'
    if Cause.FALSE_SHARING in causes and "instructions" not in losses:
        return (
            'measure another benchmark with counters = ["instructions"]: spinning and more work execute more '
            "instructions with more threads, cache lines and memory do not"
        )
    if {Cause.HIDDEN_LOCK, Cause.HANDOVER} <= {*causes}:
        return "trace one run with strace -f -c: it shows which system calls wait, futex, or read and wait4"
    return MORE


def _waits_alone(threads: ThreadSamples) -> bool:
    alone = threads.samples[1].values()
    shares = [
        1.0 - each["cpu"] / each["wall"] for each in alone if each.get("wall", 0.0) > 0.0 and "cpu" in each
    ]
    return centre(shares).high > SOME


def _causes(threads: ThreadSamples, losses: dict[str, LossIndicator], count: int) -> tuple[Cause, ...]:
    """Return every cause that fits the evidence, the likeliest first."""
    waiting, burning = losses["waiting"].value, losses["burning"].value
    waits, burns = waiting.low > SOME, burning.low > SOME
    if (shown := contended_resource(losses)) is not None:
        return (shown,)
    if waits and _switches_often(losses):
        return causes_of_many_waits(losses)
    if _switches_often(losses) and (waiting.high > SOME / 2.0 or burns):
        return (*causes_of_many_waits(losses), *(_burning(threads, losses, count) if burns else ()))
    part = GOOD_PART * lost(losses)
    waits, burns = waits and waiting.high > part, burns and burning.high > part
    return (
        *(causes_of_few_waits(losses) if waits else ()),
        *(_burning(threads, losses, count) if burns else ()),
    )


def _switches_often(losses: dict[str, LossIndicator]) -> bool:
    switches, rate = losses.get("switches"), losses.get("switch_rate")
    return (
        switches is not None and rate is not None and switches.value.low >= EXCESS and rate.value.low >= RATE
    )


def _burning(threads: ThreadSamples, losses: dict[str, LossIndicator], count: int) -> tuple[Cause, ...]:
    growth, system = losses["cpu_growth"].value, losses.get("system")
    if system is not None and system.value.low > losses["burning"].value.value / 2.0:
        return (Cause.KERNEL,)
    causes = [Cause.SPINNING, Cause.FALSE_SHARING, Cause.MEMORY]
    if growth.low < (2.0 if threads.processors.paired else MOST_SHARED):
        causes.append(Cause.SLOWER_CORES)
    if not threads.rising and growth.high > FAIR * count:
        causes.append(Cause.MORE_WORK)
    instructions = losses.get("instructions")
    if instructions is not None:
        executed = (Cause.SPINNING, Cause.MORE_WORK)
        more, alike = instructions.value.low > 1.0 + 2 * SOME, instructions.value.high < 1.0 + SOME
        causes = [each for each in causes if not (more and each not in executed)]
        causes = [each for each in causes if not (alike and each in executed)]
    found = scaling_ratio(threads, 1, count)
    if found is not None and found.high < 1.0 / MOST_SHARED:
        # Sharing a resource does not cost more than it gains.
        causes = [each for each in causes if each not in (Cause.MEMORY, Cause.SLOWER_CORES)]
    return tuple(causes)
