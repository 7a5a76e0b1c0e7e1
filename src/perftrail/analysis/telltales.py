"""The figures beside the time that change as threads are added, each with its interval and what it speaks for."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from perftrail.analysis.paired import centre, ratio

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from perftrail.analysis.paired import Interval
    from perftrail.analysis.scaling import ThreadSamples

    Sample = Mapping[str, float]

HANDOVERS = {
    "condition_wait": "a queue (condition variables)",
    "barrier_wait": "a barrier",
    "semaphore_wait": "a queue (semaphores)",
}
"""The metrics of waits in which threads hand over to each other, and what each speaks for."""

PART = 0.1
"""What has less than this share of a sum is not named for it."""

SINGLE = 1.5
"""More than so many threads that each thread waits for, or processes, and one is not all there is."""

SPLIT_SECONDS = 0.1
"""Below so much CPU time the kernel's split into user and system is noise of its tick."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Telltale:
    """One figure at some threads against one thread. `unit` is ``share`` (of the time alone), ``times`` or ``1/s``.

    `speaks_for` says what a figure above the ordinary would mean.
    """

    name: str
    figure: Interval
    unit: str
    speaks_for: str


def telltales(threads: ThreadSamples, count: int) -> dict[str, Telltale]:
    """Give the telltales that the samples have, by name; ``waiting`` and ``burning`` need wall and CPU time."""
    pairs = _pairs(threads, count)
    found = (*_lost(pairs, count), *_waits(pairs, count), *_locks(pairs), *_counted_waits(pairs, count))
    return {each.name: each for each in found}


def _pairs(threads: ThreadSamples, count: int) -> list[tuple[Sample, Sample, float]]:
    """Samples with one thread and with `count` of one ordinal, and how much more work the second did."""
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


def _lost(pairs: list[tuple[Sample, Sample, float]], count: int) -> Iterator[Telltale]:
    """Split what is lost of the threads' time, as a share of the time alone, into waiting and burning."""
    waiting, burning = [], []
    for one, other, work in pairs:
        waiting.append(_waiting(one, other, work, count))
        burning.append((other["cpu"] / work - one["cpu"]) / one["wall"])
    yield Telltale(
        name="waiting", figure=centre(waiting), unit="share", speaks_for="threads that wait, or have no work"
    )
    yield Telltale(
        name="burning",
        figure=centre(burning),
        unit="share",
        speaks_for="spinning, or cache lines and memory that several threads want",
    )
    growth = ratio([one["cpu"] for one, _, _ in pairs], [other["cpu"] / work for _, other, work in pairs])
    if growth is not None:
        yield Telltale(
            name="cpu_growth", figure=growth, unit="times", speaks_for="work that one thread has not"
        )
    if all("instructions" in each for one, other, _ in pairs for each in (one, other)):
        executed = ratio(
            [one["instructions"] for one, _, _ in pairs],
            [other["instructions"] / work for _, other, work in pairs],
        )
        if executed is not None:
            yield Telltale(
                name="instructions", figure=executed, unit="times", speaks_for="spinning, where it grows"
            )


def _waiting(one: Sample, other: Sample, work: float, count: int) -> float:
    idle = (count * other["wall"] - other["cpu"]) / work - (one["wall"] - one["cpu"])
    return idle / one["wall"]


def _waits(pairs: list[tuple[Sample, Sample, float]], count: int) -> Iterator[Telltale]:
    if all(
        "system" in each and each["cpu"] >= SPLIT_SECONDS for one, other, _ in pairs for each in (one, other)
    ):
        system = [(other["system"] / work - one["system"]) / one["wall"] for one, other, work in pairs]
        yield Telltale(
            name="system",
            figure=centre(system),
            unit="share",
            speaks_for="the kernel, which also settles locks",
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
            yield Telltale(
                name=each_thread,
                figure=centre([more / count for more in excess]),
                unit="of each thread",
                speaks_for="threads that wait for one another: a lock, a queue or a barrier",
            )
        speaks_for = "threads that wait for one another" if each_thread else "a lack of cores"
        rates = [more / other["wall"] for more, (_, other, _) in zip(excess, pairs, strict=True)]
        yield Telltale(name=a_second, figure=centre(rates), unit="1/s", speaks_for=speaks_for)


def _locks(pairs: list[tuple[Sample, Sample, float]]) -> Iterator[Telltale]:
    names = ("locks", "contended_locks", "lock_wait")
    if not all(name in each for name in names for one, other, _ in pairs for each in (one, other)):
        return
    contended = [other["contended_locks"] / max(1.0, other["locks"]) for _, other, _ in pairs]
    yield Telltale(name="contended_locks", figure=centre(contended), unit="share", speaks_for="a lock")
    # The counted wait holds the time that a thread waits for a CPU, so that only a small one excludes a lock.
    held = [_more(one, other, work, "lock_wait") for one, other, work in pairs]
    yield Telltale(name="lock_wait", figure=centre(held), unit="share", speaks_for="a lock")


def _counted_waits(pairs: list[tuple[Sample, Sample, float]], count: int) -> Iterator[Telltale]:
    """Give the waits that are no locks, and the waiting that is in no count; nothing for samples of locks alone."""
    waits = (*HANDOVERS, "join_wait", "spin_wait")
    if not all(name in each for name in waits for one, other, _ in pairs for each in (one, other)):
        return
    handed = [sum(_beyond_wall(one, other, work, name) for name in HANDOVERS) for one, other, work in pairs]
    parts = {name: median([other[name] for _, other, _ in pairs]) for name in HANDOVERS}
    at = [said for name, said in HANDOVERS.items() if parts[name] > PART * sum(parts.values())]
    yield Telltale(
        name="handover_wait", figure=centre(handed), unit="share", speaks_for=" or ".join(at) or "a queue"
    )
    joined = [_beyond_wall(one, other, work, "join_wait") for one, other, work in pairs]
    yield Telltale(
        name="join_wait", figure=centre(joined), unit="share", speaks_for="threads of unequal work"
    )
    spun = [_more(one, other, work, "spin_wait") for one, other, work in pairs]
    yield Telltale(name="spin_wait", figure=centre(spun), unit="share", speaks_for="spinning on a lock")
    ready = _ready(pairs)
    uncounted = [
        _waiting(one, other, work, count)
        - _more(one, other, work, "lock_wait")
        - by_handing
        - without_processor
        for (one, other, work), by_handing, without_processor in zip(pairs, handed, ready, strict=True)
    ]
    if any(ready):
        yield Telltale(
            name="ready", figure=centre(ready), unit="share", speaks_for="a lack of processors, or busy ones"
        )
    yield Telltale(
        name="uncounted_wait",
        figure=centre(uncounted),
        unit="share",
        speaks_for="threads without work, or a lock that is not counted",
    )
    yield from _counts(pairs, count)


def _ready(pairs: list[tuple[Sample, Sample, float]]) -> list[float]:
    """How much longer something was ready and had no processor, as the kernel tells of the machine, if it does."""
    return [
        (other["cpu_pressure"] * other["wall"] / work - one["cpu_pressure"] * one["wall"]) / one["wall"]
        if "cpu_pressure" in one and "cpu_pressure" in other
        else 0.0
        for one, other, work in pairs
    ]


def _counts(pairs: list[tuple[Sample, Sample, float]], count: int) -> Iterator[Telltale]:
    """Give how many switches no counted wait made: each makes two at most, of a condition variable and its mutex."""
    numbers = ("contended_locks", "conditions", "barriers", "semaphores", "joins")
    switches = []
    for one, other, work in pairs:
        excess = other["voluntary_switches"] - one["voluntary_switches"] * work
        counted = sum(other[name] - one[name] * work for name in numbers)
        switches.append(max(0.0, excess - 2.0 * counted) / count)
    yield Telltale(
        name="uncounted_switches",
        figure=centre(switches),
        unit="of each thread",
        speaks_for="a lock that is not counted",
    )
    joins = centre([other["joins"] / count for _, other, _ in pairs])
    if joins.high > SINGLE:
        speaks_for = "threads that come and go, whose waits are not all counted"
        yield Telltale(name="joins", figure=joins, unit="of each thread", speaks_for=speaks_for)
    processes = centre([other["counted_processes"] for _, other, _ in pairs])
    if processes.high > SINGLE:
        speaks_for = "processes that wait for each other, which is not counted"
        yield Telltale(name="counted_processes", figure=processes, unit="", speaks_for=speaks_for)


def _more(one: Sample, other: Sample, work: float, metric: str) -> float:
    """How much more of a time there is than with one thread, as a share of the time with one thread."""
    return (other[metric] / work - one[metric]) / one["wall"]


def _beyond_wall(one: Sample, other: Sample, work: float, metric: str) -> float:
    """How much more of a time there is than the same share of the wall time as with one thread.

    A thread that only waits for the others, as main often does, waits for all of the wall time at every count.
    """
    return (other[metric] - one[metric] * other["wall"] / one["wall"]) / work / one["wall"]
