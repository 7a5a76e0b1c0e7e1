"""How a benchmark scales with its threads, and what limits it, in sentences."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.text import Text

from perftrail.model.wording import escaped, listed, number, percent
from perftrail.present.answer_sentence import revision_name
from perftrail.present.console import output
from perftrail.present.shared_sentences import interval_words
from perftrail.stats.contention import Cause, ContentionOutcome
from perftrail.stats.scaling import Law

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from perftrail.results.scaling import ThreadScaling, ThreadScalings
    from perftrail.stats.contention import Contention, LossIndicator
    from perftrail.stats.ratios import PairedEstimate
    from perftrail.stats.scaling import Parameter, Scaling

CAUSES = {
    Cause.LOCK: "a lock",
    Cause.HANDOVER: (
        "a queue or a barrier at which threads wait for each other, or a lock that contains one"
    ),
    Cause.HIDDEN_LOCK: (
        "a wait that is not counted: a lock of malloc or of the kernel, or one that the program builds from "
        "futexes, pipes or sleeps"
    ),
    Cause.SERIAL: "serial work, which is not divided among the threads",
    Cause.SPINNING: "threads that spin on a lock",
    Cause.FALSE_SHARING: "cache lines that several threads write",
    Cause.MEMORY: "memory or a cache at its bandwidth limit",
    Cause.SLOWER_CORES: "cores that slow one another down (shared units, a lower clock)",
    Cause.KERNEL: "the kernel, in system calls or page faults",
    Cause.MORE_WORK: "more work with more threads, which a throughput metric would show",
}

INDICATORS = {
    "waiting": "threads waiting",
    "burning": "CPU time beyond that of one thread",
    "cpu_growth": "CPU time",
    "instructions": "instructions",
    "system": "system time beyond that of one thread",
    "switches": "voluntary switches beyond those of one thread",
    "switch_rate": "voluntary switches beyond those of one thread",
    "preemption_rate": "involuntary switches beyond those of one thread",
    "contended_locks": "contended locks",
    "lock_wait": "time waited for locks",
    "handover_wait": "time waited at condition variables, barriers and semaphores",
    "join_wait": "time waited for threads to end",
    "spin_wait": "time spent at spin locks",
    "ready": "time in which a thread was ready but had no processor",
    "uncounted_wait": "waiting outside of counted locks, queues and barriers",
    "uncounted_switches": "voluntary switches without a counted wait",
    "joins": "joined threads",
    "counted_processes": "processes",
}


NEGLIGIBLE = 0.05
"""Shares below this are listed in one line."""


def print_scalings(scalings: ThreadScalings) -> None:
    """Print a section about each thread axis; nothing without one."""
    console = output()
    for each in scalings.found:
        console.print(Text(f"\n{_title(each)}", style="bold"), soft_wrap=True)
        for line in scaling_lines(each.scaling, each.contention, axis=each.axis):
            console.print(Text(f"  {line}"), soft_wrap=True)
    if (undescribed := undescribed_words(scalings)) and scalings.found:
        console.print(Text(f"\n{undescribed}; --json has every one."), soft_wrap=True)


def undescribed_words(scalings: ThreadScalings) -> str:
    """Return at which revisions the scaling is described; empty if at all of them."""
    return described_words("Scaling", described=len(scalings.described), measured=len(scalings.measured))


def described_words(what: str, *, described: int, measured: int) -> str:
    """Return at how many of the measured revisions something is described; empty if at all of them.

    >>> described_words("Growth", described=2, measured=40)
    'Growth is described for 2 of 40 revisions: the first and the last that were measured'
    """
    if described == measured:
        return ""
    named = " and those that a search named" if described > 2 else ""
    which = "the first and the last that were measured"
    return f"{what} is described for {described} of {measured} revisions: {which}{named}"


def _title(each: ThreadScaling) -> str:
    others = each.point.without([each.axis])
    where = f" at {escaped(str(others))}" if others.values else ""
    variant = "" if each.subject.variant == "plain" else f" ({each.subject.variant})"
    return (
        f"Scaling of {each.benchmark}.{each.scaling.metric}{where} with {each.axis}: "
        f"{revision_name(each.subject.revision)}{variant}"
    )


def scaling_lines(scaling: Scaling, contention: Contention, *, axis: str = "threads") -> Iterator[str]:
    """Yield the whole description, one sentence or point a line."""
    for point in scaling.points:
        if point.threads == scaling.base:
            continue
        beyond = ""
        if point.beyond:
            beyond = f"; more {axis} than processors ({scaling.processors.count})"
        elif point.shares_cores:
            beyond = f"; more {axis} than cores ({scaling.processors.cores}), so that some share a core"
        yield (
            f"{count_words(point.threads, axis)}: {_interval(point.speed_up)} times as fast as {scaling.base}, "
            f"efficiency {_interval(point.efficiency)}{_low_confidence(point.speed_up)}{beyond}"
        )
    yield _best(scaling, axis)
    yield from _fits(scaling, axis)
    yield from contention_lines(contention, axis=axis)


def contention_lines(contention: Contention, *, axis: str = "threads") -> Iterator[str]:
    """Yield what limits the speed-up, with its evidence."""
    at = f" at {count_words(contention.threads, axis)}" if contention.threads else ""
    if contention.outcome is ContentionOutcome.SCALES:
        yield f"The loss{at} is too small to need a cause."
    elif contention.outcome is ContentionOutcome.LIKELY:
        yield f"Likely cause of the loss{at}: {CAUSES[contention.candidates[0]]}. Evidence:"
        yield from _evidence(contention.evidence)
    else:
        causes = "; or ".join(CAUSES[each] for each in contention.candidates)
        yield f"The cause of the loss{at} is unknown: {contention.reason}{': ' if causes else ''}{causes}."
        if causes:
            yield from _evidence(contention.evidence)
        if contention.next_step:
            yield f"  Next: {contention.next_step}."


def _evidence(indicators: Sequence[LossIndicator]) -> Iterator[str]:
    """Yield each piece of evidence in a line, the negligible ones combined."""
    small = [
        each
        for each in indicators
        if each.unit == "share" and -NEGLIGIBLE < each.value.low <= each.value.high < NEGLIGIBLE
    ]
    yield from (f"  {evidence(each)}" for each in indicators if each not in small)
    if small:
        yield f"  below {percent(NEGLIGIBLE)}: {'; '.join(INDICATORS[each.name] for each in small)}"


def evidence(indicator: LossIndicator) -> str:
    """Return one piece of evidence with its value, interval and meaning."""
    measured = indicator.value
    if indicator.unit == "share":
        value = f"{percent(measured.value)} [{percent(measured.low)}, {percent(measured.high)}]"
        unit = "" if indicator.name == "contended_locks" else " of the time with one thread"
    else:
        value, unit = _interval(measured), f" {indicator.unit}".rstrip()
    meaning = f"a high value indicates {indicator.indicates}"
    return f"{INDICATORS[indicator.name]}: {value}{unit}{_low_confidence(measured)}; {meaning}"


def count_words(count: int, axis: str) -> str:
    """Return a count with the noun of an axis.

    >>> count_words(1, "threads"), count_words(2, "n_threads")
    ('1 thread', '2 threads')
    """
    name = axis.removeprefix("n_")
    return f"{count} {name.removesuffix('s') if count == 1 else name}"


def _best(scaling: Scaling, axis: str) -> str:
    best = scaling.best
    indistinguishable = (
        ""
        if best.low == best.high
        else f"; counts from {best.low} to {best.high} cannot be distinguished from it"
    )
    text = f"The highest measured throughput is at {count_words(best.threads, axis)}{indistinguishable}"
    return f"{text}; the peak may be at a count that was not measured." if best.open else f"{text}."


def _fits(scaling: Scaling, axis: str) -> Iterator[str]:
    fits, processors = scaling.fits, scaling.processors
    shared = [point.threads for point in scaling.points if point.shares_cores]
    if shared:
        counts = listed(map(str, shared), "and")
        cores = count_words(processors.alone, "cores")
        yield f"No fit uses {counts} {axis}: on {cores}, some {axis} share a core."
    if fits.chosen is None:
        yield f"No law of scaling fits: {fits.reason}."
        return
    kind = "processors" if processors.cores is None else "cores"
    within = f"{axis} up to this machine's {count_words(processors.alone, kind)}"
    if fits.chosen is Law.AMDAHL:
        assert fits.amdahl is not None
        more = f"; {fits.reason}" if fits.reason else ""
        yield f"Amdahl's law fits ({within}): serial share {_share(fits.amdahl.contention)}{more}."
        return
    assert fits.usl is not None
    assert fits.usl.coherency is not None
    limit = "; it assumes that no processors share a core, which this machine does not report"
    limit = limit if processors.cores is None else ""
    yield (
        f"The Universal Scalability Law fits ({within}): contention {_parameter(fits.usl.contention)}, "
        f"coherency {_parameter(fits.usl.coherency)}{limit}."
    )
    if (peak := scaling.peak) is not None:
        most = max(p.threads for p in scaling.points if not (p.beyond or p.shares_cores))
        where = ""
        if peak.value > processors.alone:
            where = f", more than this machine's {processors.alone} {kind}"
        elif peak.value > most:
            where = ", more than the largest measured count"
        yield f"It predicts the highest throughput at {_parameter(peak)} {axis}{where}."


def _share(parameter: Parameter) -> str:
    """Return a share, which is at most 1 although noise can fit a larger number."""
    return _parameter(replace(parameter, value=min(1.0, parameter.value), high=min(1.0, parameter.high)))


def _parameter(parameter: Parameter) -> str:
    if not math.isfinite(parameter.high):
        return f"{number(parameter.value)} [{number(parameter.low)}, no upper bound]"
    return f"{number(parameter.value)} [{number(parameter.low)}, {number(parameter.high)}]"


def _interval(estimate: PairedEstimate) -> str:
    return interval_words(estimate.value, estimate.low, estimate.high)


def _low_confidence(estimate: PairedEstimate) -> str:
    """Return the confidence of an interval that few pairs leave below 95 %; else an empty text."""
    if estimate.confidence >= 0.9495:
        return ""
    return (
        " (one pair of samples, no interval)"
        if estimate.pairs == 1
        else f" ({estimate.confidence * 100:.0f} % interval)"
    )
