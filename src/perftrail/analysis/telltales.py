"""The figures beside the time that change as threads are added, each with its interval and what it speaks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.analysis.paired import centre, ratio

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from perftrail.analysis.paired import Interval
    from perftrail.analysis.scaling import ThreadSamples

    Sample = Mapping[str, float]

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
    return {each.name: each for each in (*_lost(pairs, count), *_waits(pairs, count), *_locks(pairs))}


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
        idle = (count * other["wall"] - other["cpu"]) / work - (one["wall"] - one["cpu"])
        waiting.append(idle / one["wall"])
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
    held = [(other["lock_wait"] / work - one["lock_wait"]) / one["wall"] for one, other, work in pairs]
    yield Telltale(name="lock_wait", figure=centre(held), unit="share", speaks_for="a lock")
