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


def print_growth(growths: Growths, described: Sequence[Revision]) -> None:
    """Print the growth of some revisions, and the number of all others; nothing without a curve."""
    console = output()
    if growths.curves:
        console.print(Text("\nGrowth:", style="bold"))
    for series in growths.curves:
        if series.subject.revision in described:
            for line in curve_words(series):
                console.print(Text(f"  {_name(series)}: {line}"), soft_wrap=True)
    for variants in growths.variants:
        for line in variant_words(variants):
            console.print(Text(f"  {line}"), soft_wrap=True)
    if hint := cause_hint(each for each in growths.curves if each.subject.revision in described):
        console.print(Text(f"  {hint}."), soft_wrap=True)
    if undescribed := described_words("Growth", described=len(described), measured=len(growths.measured)):
        console.print(Text(f"  {undescribed}; --json has every one."), soft_wrap=True)


def curve_words(series: GrowthSeries) -> Iterator[str]:
    """Yield the growth, the cost of each unit, and the limits of one curve, a sentence each."""
    axis = escaped(series.axis)
    if series.growth is not None:
        yield from _growth(series.growth, series, axis)
    elif series.unit_cost is None and series.leak is None:
        yield (
            f"too few values: growth along {axis} needs {LEAST_POINTS} values with samples, and "
            f"{len(series.curve)} {'has' if len(series.curve) == 1 else 'have'} some; measure more with: perftrail run"
        )
    if series.unit_cost is not None:
        yield _per_unit(series.unit_cost, series.unit, axis)
    if series.leak is not None:
        yield _over_time(series.leak, series.unit, axis)
    for refused in series.refused:
        if refused.stage == "timeout":
            why = f"takes more than {quantity(refused.limit, 's')}"
        else:
            why = f"takes more memory than {quantity(refused.limit, 'B')}"
        yield f"stopped at {axis}={_axis_value(refused.x)}, which {why}"
    if series.skipped:
        yield f"skipped {axis}={listed(map(_axis_value, series.skipped), 'and')}, larger than the value that failed"


def variant_words(variants: ComparedVariants) -> Iterator[str]:
    """Yield which of two subjects is lower where, and where they cross."""
    names = (escaped(variants.first.subject.variant), escaped(variants.second.subject.variant))
    first = variants.first
    title = f"{first.largest.benchmark}.{first.metric}, {names[0]} and {names[1]}"
    ranges = [_range_words(each, names, escaped(first.axis)) for each in variants.comparison.ranges]
    yield f"{title}: {'; '.join(ranges)}"
    for crossing in variants.comparison.crossings:
        yield f"{title}: {_crossing(crossing, names, escaped(first.axis))}"


def _name(series: GrowthSeries) -> str:
    point = f" at {escaped(str(series.fixed))}" if series.fixed.values else ""
    return f"{series.subject} {series.largest.benchmark}.{series.metric}{point} along {escaped(series.axis)}"


def _growth(growth: Growth, series: GrowthSeries, axis: str) -> Iterator[str]:
    span = f"over {axis}={_axis_value(series.curve.xs[0])} to {_axis_value(series.curve.xs[-1])}"
    exponent = growth.exponent
    value, low, high = (round(each, 2) + 0.0 for each in (exponent.value, exponent.low, exponent.high))
    power = f"exponent {value:.2f} [{low:.2f}, {high:.2f}]"
    grows = "time grows" if series.unit == "s" else "grows"
    if growth.order is Order.CONSTANT:
        yield f"constant {span}, within 10 % ({power})"
    elif growth.order is not None:
        yield f"{grows} like {_order(growth.order)} {span} ({power}), where n is {axis}{_misfit(growth)}"
    elif growth.orders:
        weights = [f"{_order(order)} ({probability(weight)})" for order, weight in growth.orders.items()]
        yield f"{grows} like {listed(weights)} {span} ({power}), where n is {axis}{_misfit(growth)}"
    elif growth.bend is None:
        yield f"the growth {span} fits no order; as a power law, it has the {power}"
    if growth.bend is not None:
        bend = growth.bend
        yield (
            f"the growth changes near {axis}={_axis_value(bend.x)} "
            f"(between {_axis_value(bend.low)} and {_axis_value(bend.high)}): "
            f"exponent {bend.before:.2f} below, {bend.after:.2f} above"
        )
    if growth.start is not None:
        yield f"constant part, independent of {axis}: {quantity(growth.start, series.unit)}"
    if series.work is not None:
        yield _work(growth, series.work)


def _misfit(growth: Growth) -> str:
    if not growth.systematic:
        return ""
    return (
        f"; no order fits: points differ by {percent(growth.misfit)} from the nearest curve, beyond the noise"
    )


def _work(time: Growth, work: Growth) -> str:
    """Return how the growth of time compares with that of instructions, which shows whether the work itself grows."""
    orders = listed(map(_order, work.orders)) or f"a power of {work.exponent.value:.2f}"
    text = f"its instructions grow like {orders}"
    if time.exponent.low > work.exponent.high:
        return (
            f"{text}, less than the time: each instruction takes longer, for example because of cache misses"
        )
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


def _per_unit(unit_cost: PerUnit, unit: str, axis: str) -> str:
    note = ""
    if unit_cost.quantum is not None and unit_cost.quantum.chunk is not None:
        note = f"; the heap grows in steps of {quantity(unit_cost.quantum.chunk, unit)}, which the interval allows for"
    elif unit_cost.quantum is not None and unit_cost.quantum.factor is not None:
        note = (
            f"; the heap grows by a factor of {unit_cost.quantum.factor:g} at a time, "
            f"so that up to {percent(1.0 - 1.0 / unit_cost.quantum.factor)} of a value may be unused"
        )
    if unit_cost.bent:
        return f"no constant cost of each unit of {axis}: the growth is not linear{note}"
    if unit_cost.low <= 0.0 <= unit_cost.high:
        return f"no growth detected: at most {quantity(unit_cost.high, unit)} for each unit of {axis}{note}"
    slope = quantity(unit_cost.value, unit, low=unit_cost.low, high=unit_cost.high)
    return f"each unit of {axis} adds {slope} to a base of {quantity(unit_cost.base, unit)}{note}"


def _over_time(over_time: OverTime, unit: str, axis: str) -> str:
    slope = quantity(over_time.slope, unit, low=over_time.low, high=over_time.high)
    match over_time.verdict:
        case Leak.LEAK:
            return f"a leak: grows by {slope} for each unit of {axis} at constant load"
        case Leak.NONE:
            most = quantity(over_time.high, unit)
            return f"no leak: at constant load it grows by at most {most} for each unit of {axis}"
        case Leak.LEVELS_OFF:
            return f"grows with {axis} and levels off: no leak in the measured range"
        case _:
            unclear = f"a leak is possible, but unclear: {slope} for each unit of {axis}"
            return f"{unclear}; measure for a longer time, or at more values"


def _range_words(each: CurveRange, names: tuple[str, str], axis: str) -> str:
    last = "" if each.first == each.last else f" to {_axis_value(each.last)}"
    where = f"{axis}={_axis_value(each.first)}{last}"
    if each.lower is None:
        return f"no difference detected at {where}"
    ratio = each.ratio if each.lower == 0 else 1.0 / each.ratio
    return f"{names[each.lower]} is lower at {where} ({number(ratio)} times on average)"


def _crossing(each: Crossing, names: tuple[str, str], axis: str) -> str:
    return (
        f"they cross at {axis}={_axis_value(each.x)} (95 %: {_axis_value(each.low)} to {_axis_value(each.high)}); "
        f"beyond it {names[each.lower]} is lower"
    )


def _axis_value(x: float) -> str:
    return str(int(x)) if float(x).is_integer() and abs(x) < 1e7 else number(float(x))
