"""A comparison in words: its headline, each row's figures, how sure it is. Nothing is escaped here."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING

from perftrail.model.quantity import change, counted, decimals, percent, quantity
from perftrail.model.recipe import PLAIN
from perftrail.stats.comparison import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perftrail.model.subject import Revision
    from perftrail.results.gate import Gate, Lost, Row
    from perftrail.stats.estimate import Estimate

EXACT = 1e-9
"""An interval narrower than this is of figures that came out alike each time."""

STRIP = 21
"""How many letters wide a row's figure is; odd, so that no change has a letter of its own."""

MACHINE = {
    "cpu": "{}",
    "logical_cpus": "{} CPUs",
    "memory_gib": "{} GiB",
    "kernel": "kernel {}",
    "virtualisation": "virtualisation {}",
}
"""What of a machine is told beside its id, and how; what is not known is not."""

MOST_TOLD = 3

SIDES = math.sqrt(2.0)
"""Both of two builds scatter, so their difference scatters that many times as much as one."""


def headline(gate: Gate) -> str:
    """Say the answer in a line: what is worse and by how much, or that nothing is, as far as could be seen."""
    return f"{_outcome(gate)}{_compared(gate)}{_broken(gate)}"


def _outcome(gate: Gate) -> str:
    if gate.exit_code == 1:
        return "no answer: "
    return "" if gate.fail_on == "never" else "gate failed: " if gate.tripped else "gate passed: "


def _broken(gate: Gate) -> str:
    return f"; {len(gate.broken)} cannot be built or run any more" if gate.broken else ""


def _compared(gate: Gate) -> str:
    every = len(gate.rows)
    worse = [row for row in gate.rows if row.verdict is Verdict.SLOWER]
    better = [row for row in gate.rows if row.verdict is Verdict.FASTER]
    unclear = sum(row.verdict is Verdict.UNCLEAR for row in gate.rows)
    if not every:
        return "nothing could be compared"
    if worse or better:
        told = [f"{name(row)} {effect(row)}" for row in (*worse, *reversed(better))]
        more = f" and {len(told) - MOST_TOLD} more" if len(told) > MOST_TOLD else ""
        what = f"{len(worse)} of {every} worse" if worse else f"{len(better)} of {every} better"
        return f"{what}: {', '.join(told[:MOST_TOLD])}{more}"
    if unclear:
        return f"no change is sure, {unclear} of {every} unclear; {seen(gate)}"
    if all(row.one_build for row in gate.rows):
        return "the same: both are one build"
    return f"the same to within {percent(gate.smallest)}, {every} of {every}"


def name(row: Row) -> str:
    """Name a row's metric in full, with its variant where that is not the only one there may be."""
    variant = "" if row.target.variant == PLAIN else f" ({row.target.variant})"
    return f"{row.target.name}{variant}"


def effect(row: Row) -> str:
    """Say a row's change with its interval: ``5.2 % more [4.1 %, 6.3 %]``."""
    found = row.comparison
    if row.one_build:
        return "one build"
    if found is None:
        return row.note or "not measured"
    if found.high - found.low < EXACT:
        alike = abs(math.log(found.effect)) < EXACT
        return "alike each time" if alike else f"{change(round(found.effect, 9))} each time"
    if found.effect >= 2.0 or found.effect <= 0.5:
        digits = decimals(found.effect, found.low, found.high)
        return f"× {found.effect:.{digits}f} [{found.low:.{digits}f}, {found.high:.{digits}f}]"
    low, value, high = ((each - 1.0) * 100.0 for each in (found.low, found.effect, found.high))
    digits = min(2, decimals(value, low, high))
    return f"{value:+.{digits}f} % [{low:+.{digits}f}, {high:+.{digits}f}]"


def figure(found: Estimate | None, unit: str) -> str:
    """Write where a revision lies."""
    return "" if found is None else quantity(found.value, unit)


def strip(row: Row, reach: float) -> str:
    """Draw a row's change and its interval on a line of letters; `reach` is what lies at its ends, in logarithms.

    The middle is no change. What lies beyond an end is drawn as an arrow there.
    """
    letters = ["·"] * STRIP
    middle = STRIP // 2
    letters[middle] = "│"
    found = row.comparison
    if found is not None:
        places = [
            round(middle + math.log(each) / reach * middle) for each in (found.low, found.effect, found.high)
        ]
        low, value, high = (max(0, min(STRIP - 1, place)) for place in places)
        for place in range(low, high + 1):
            letters[place] = "┿" if place == middle else "━"
        letters[value] = "●"
        if places[0] < 0:
            letters[0] = "◂"
        if places[2] >= STRIP:
            letters[-1] = "▸"
    return "".join(letters)


def reach(gate: Gate) -> float:
    """How far a line of letters goes to each side, in logarithms: to twice a typical change, four times the smallest.

    What lies far beyond the others is an arrow, and leaves them room.
    """
    sizes = [abs(row.size) for row in gate.rows if row.verdict in (Verdict.SLOWER, Verdict.FASTER)]
    typical = statistics.median_low(sizes) if sizes else 0.0
    return min(math.log(4.0), max(4.0 * math.log1p(gate.smallest), 2.0 * typical))


def seen(gate: Gate) -> str:
    """Say what change would have been seen."""
    told = [
        row.comparison.smallest_seen
        for row in gate.rows
        if row.comparison is not None and row.comparison.smallest_seen is not None
    ]
    if not told:
        needed = max(
            (row.comparison.needed_pairs for row in gate.rows if row.comparison is not None), default=0
        )
        return (
            f"no verdict could be had yet: {needed} pairs are needed" if needed else "no figure was compared"
        )
    if max(told) < EXACT:
        return "any change would have been seen: what was measured is alike each time"
    if len(told) == 1 or percent(min(told)) == percent(max(told)):
        return f"a change of {percent(max(told))} would have been seen"
    return f"a change of {percent(min(told))} to {percent(max(told))} would have been seen, by figure"


def sureness(gate: Gate) -> str:
    """Say how sure the verdicts are, and what change would have been seen."""
    compared = sum(row.comparison is not None for row in gate.rows)
    if not compared:
        one_build = any(row.one_build for row in gate.rows)
        return "equal builds need no measuring" if one_build else "nothing was compared"
    shared = f"all {compared} verdicts together are" if compared > 1 else "the verdict is"
    return (
        f"{shared} wrong in at most {percent(1.0 - gate.confidence)} of such comparisons, however often it was looked; "
        f"changes below {percent(gate.smallest)} count as none; {seen(gate)}"
    )


def effort(gate: Gate) -> str:
    """Say what it stands on."""
    pairs = [row.pairs for row in gate.rows if row.pairs]
    if not pairs:
        return "no starts"
    span = str(min(pairs)) if min(pairs) == max(pairs) else f"{min(pairs)} to {max(pairs)}"
    fresh = f", {gate.fresh} of them now" if gate.fresh < gate.invocations else ""
    layouts = max(row.layouts for row in gate.rows)
    of_layouts = f" of {layouts} layouts" if layouts else ""
    return f"{span} pairs{of_layouts} in random order, {gate.invocations} invocations{fresh}"


def machine(gate: Gate) -> str:
    """Name the machine with what matters of it."""
    facts = gate.machine.facts
    told = [
        how.format(facts[fact]) for fact, how in MACHINE.items() if facts.get(fact, "unknown") != "unknown"
    ]
    return ", ".join([gate.machine.id, *told])


def revision(which: Revision) -> str:
    """Name a revision: its label or its short id, and its message."""
    named = f"{which.label} ({which.short})" if which.label and which.label != which.short else which.short
    return f"{named} {which.summary}".strip()


def lost(each: Lost) -> str:
    """Say what could not be had and why, in a line."""
    lines = each.failure.message.strip().splitlines()
    where = f"{each.side} {each.place}".strip()
    return f"{where}: {each.failure.stage}: {lines[0] if lines else ''}"


def limits(gate: Gate) -> Iterator[str]:
    """Say what limits the answer."""
    yield from _builds_or_layouts(gate)
    if discarded := max((row.discarded for row in gate.rows), default=0):
        yield f"{counted(discarded, 'pair')} discarded and repeated, since others used the machine"
    if marked := max((row.marked for row in gate.rows), default=0):
        yield f"the machine was busy all the time: {counted(marked, 'pair')} taken while others used it"
    small = [row for row in gate.rows if row.verdict is Verdict.SLOWER and not gate.is_worth(row)]
    if small:
        yield f"{len(small)} worse, but not by {percent(gate.smallest)} for sure: that trips nothing"
    yield from gate.notes


def _builds_or_layouts(gate: Gate) -> Iterator[str]:
    """Say of sure differences of two binaries what they are not evidence of, and how to get it."""
    told = [row for row in gate.rows if row.basis == "builds"]
    if not told:
        return
    noise = gate.layout_noise
    usual = ""
    if noise is not None:
        differ = percent(noise.value * SIDES)
        usual = f"; {noise.builds} neighbouring builds of this history differ by {differ} by themselves"
    yield (
        "these builds differ; ten layouts would show whether the change does"
        f"{usual} ([build] relink: docs/how-to/layout-noise.md)"
    )
