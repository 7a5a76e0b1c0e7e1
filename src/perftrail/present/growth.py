"""How metrics grow along an axis, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from perftrail.model.wording import escaped, listed, number, percent, probability, quantity
from perftrail.present.console import output
from perftrail.present.scaling import described_words
from perftrail.stats.growth import LEAST_POINTS, Order
from perftrail.stats.memory import Leak

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from perftrail.model.subject import Revision
    from perftrail.results.growth import ComparedVariants, Growths, GrowthSeries
    from perftrail.stats.curves import Crossing, CurveRange
    from perftrail.stats.growth import Growth
    from perftrail.stats.memory import OverTime, PerUnit


def print_growth(found: Growths, described: Sequence[Revision]) -> None:
    """Print the growth of some revisions, and the number of all others; nothing without a curve."""
    console = output()
    if found.curves:
        console.print(Text("\nGrowth:", style="bold"))
    for along in found.curves:
        if along.subject.revision in described:
            for line in curve_words(along):
                console.print(Text(f"  {_name(along)}: {line}"), soft_wrap=True)
    for variants in found.variants:
        for line in variant_words(variants):
            console.print(Text(f"  {line}"), soft_wrap=True)
    if hint := cause_hint(each for each in found.curves if each.subject.revision in described):
        console.print(Text(f"  {hint}."), soft_wrap=True)
    if undescribed := described_words("Growth", described=len(described), measured=len(found.measured)):
        console.print(Text(f"  {undescribed}; --json has every one."), soft_wrap=True)


def curve_words(along: GrowthSeries) -> Iterator[str]:
    """Yield what one curve shows, a sentence each."""
    axis = escaped(along.axis)
    if along.growth is not None:
        yield from _growth(along.growth, along, axis)
    elif along.unit_cost is None and along.leak is None:
        yield (
            f"{len(along.curve)} of the {LEAST_POINTS} values of {axis} that a growth needs have samples; "
            "measure more with: perftrail run"
        )
    if along.unit_cost is not None:
        yield _per_unit(along.unit_cost, along.unit, axis)
    if along.leak is not None:
        yield _over_time(along.leak, along.unit, axis)
    for refused in along.refused:
        if refused.stage == "timeout":
            why = f"takes more than {quantity(refused.limit, 's')}"
        else:
            why = f"takes more memory than {quantity(refused.limit, 'B')}"
        yield f"stopped at {axis}={_at(refused.x)}, which {why}"
    if along.skipped:
        yield f"skipped {axis}={listed(map(_at, along.skipped), 'and')}, larger than the value that failed"


def variant_words(variants: ComparedVariants) -> Iterator[str]:
    """Yield which of two subjects is lower where, and where they cross."""
    names = (escaped(variants.first.subject.variant), escaped(variants.second.subject.variant))
    first = variants.first
    title = f"{first.largest.benchmark}.{first.metric}, {names[0]} and {names[1]}"
    parts = [_range_words(each, names) for each in variants.comparison.ranges]
    yield f"{title}: {'; '.join(parts)} ({escaped(first.axis)})"
    for crossing in variants.comparison.crossings:
        yield f"{title}: {_crossing(crossing, names, escaped(first.axis))}"


def _name(along: GrowthSeries) -> str:
    fixed = f" at {escaped(str(along.fixed))}" if along.fixed.values else ""
    return f"{along.subject} {along.largest.benchmark}.{along.metric}{fixed} along {escaped(along.axis)}"


def _growth(found: Growth, along: GrowthSeries, axis: str) -> Iterator[str]:
    span = f"over {axis}={_at(along.curve.xs[0])} to {_at(along.curve.xs[-1])}"
    exponent = found.exponent
    value, low, high = (round(each, 2) + 0.0 for each in (exponent.value, exponent.low, exponent.high))
    power = f"exponent {value:.2f} [{low:.2f}, {high:.2f}]"
    grows = "time grows" if along.unit == "s" else "grows"
    if found.order is Order.CONSTANT:
        yield f"constant {span}, within 10 % ({power})"
    elif found.order is not None:
        yield f"{grows} like {_order(found.order)} {span} ({power}), where n is {axis}{_misfit(found)}"
    elif found.orders:
        weights = [f"{_order(order)} ({probability(weight)})" for order, weight in found.orders.items()]
        yield f"{grows} like {listed(weights)} {span} ({power}), where n is {axis}{_misfit(found)}"
    elif found.bend is None:
        yield f"{grows} like no common order {span}; as a power law it has the {power}"
    if found.bend is not None:
        bend = found.bend
        yield (
            f"the growth changes near {axis}={_at(bend.x)} (between {_at(bend.low)} and {_at(bend.high)}): "
            f"exponent {bend.before:.2f} below, {bend.after:.2f} above"
        )
    if found.start is not None:
        yield f"constant part, independent of {axis}: {quantity(found.start, along.unit)}"
    if along.work is not None:
        yield _work(found, along.work)


def _misfit(found: Growth) -> str:
    if not found.systematic:
        return ""
    return (
        f"; no order fits: points differ by {percent(found.misfit)} from the nearest curve, beyond the noise"
    )


def _work(time: Growth, work: Growth) -> str:
    """Return how the growth of time compares with that of instructions, which shows whether the work itself grows."""
    orders = listed(map(_order, work.orders)) or f"a power of {work.exponent.value:.2f}"
    text = f"its instructions grow like {orders}"
    if time.exponent.low > work.exponent.high:
        return f"{text}, less than the time: each instruction takes longer, for example by cache misses"
    if time.exponent.high < work.exponent.low:
        return f"{text}, more than the time"
    return f"{text}, as the time does: the work itself grows"


def cause_hint(curves: Iterable[GrowthSeries]) -> str:
    """Return what would show why time grows, if instructions were not counted; else an empty text."""
    grows = any(
        each.unit == "s" and each.growth and each.growth.order is not Order.CONSTANT and each.work is None
        for each in curves
    )
    hint = (
        "This describes how time grows, not why: a benchmark of the same command with "
        'counters = ["instructions"] shows whether the work grows equally'
    )
    return hint if grows else ""


def _order(order: Order) -> str:
    return "an exponential of n" if order is Order.EXPONENTIAL else order.value


def _per_unit(found: PerUnit, unit: str, axis: str) -> str:
    note = ""
    if found.quantum is not None and found.quantum.chunk is not None:
        note = f"; the heap grows in steps of {quantity(found.quantum.chunk, unit)}, which the interval allows for"
    elif found.quantum is not None and found.quantum.factor is not None:
        note = (
            f"; the heap grows by a factor of {found.quantum.factor:g} at a time, "
            f"so that up to {percent(1.0 - 1.0 / found.quantum.factor)} of a value may be unused"
        )
    if found.bent:
        return f"no constant cost of each unit of {axis}: the growth is not linear{note}"
    if found.low <= 0.0 <= found.high:
        return f"no growth detected: at most {quantity(found.high, unit)} for each unit of {axis}{note}"
    each = quantity(found.value, unit, low=found.low, high=found.high)
    return f"each unit of {axis} adds {each}; the base is {quantity(found.base, unit)}{note}"


def _over_time(found: OverTime, unit: str, axis: str) -> str:
    slope = quantity(found.slope, unit, low=found.low, high=found.high)
    match found.verdict:
        case Leak.LEAK:
            return f"a leak: grows by {slope} for each unit of {axis} at constant load"
        case Leak.NONE:
            most = quantity(found.high, unit)
            return f"no leak: at constant load it grows by at most {most} for each unit of {axis}"
        case Leak.LEVELS_OFF:
            return f"grows with {axis} and levels off: no leak in the measured range"
        case _:
            unclear = f"a leak is possible, but unclear: {slope} for each unit of {axis}"
            return f"{unclear}; measure for a longer time, or at more values"


def _range_words(each: CurveRange, names: tuple[str, str]) -> str:
    where = _at(each.first) if each.first == each.last else f"{_at(each.first)} to {_at(each.last)}"
    if each.lower is None:
        return f"no difference detected at {where}"
    ratio = each.ratio if each.lower == 0 else 1.0 / each.ratio
    return f"{names[each.lower]} is lower at {where} ({number(ratio)} times on average)"


def _crossing(each: Crossing, names: tuple[str, str], axis: str) -> str:
    return (
        f"they cross at {axis}={_at(each.x)} (95 %: {_at(each.low)} to {_at(each.high)}); "
        f"beyond it {names[each.lower]} is lower"
    )


def _at(x: float) -> str:
    return str(int(x)) if float(x).is_integer() and abs(x) < 1e7 else number(float(x))
