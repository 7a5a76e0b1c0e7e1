"""A curve along an axis as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.workflows.showing.intervals import interval_json

if TYPE_CHECKING:
    from perftrail.model.search_record import Json
    from perftrail.stats.growth import Growth
    from perftrail.stats.memory import OverTime, PerUnit
    from perftrail.workflows.showing.growth import Along, Rivals


def as_json(along: Along) -> dict[str, Json]:
    """Return a curve as `show --json` prints it; what is unknown is null."""
    return {
        "axis": along.axis,
        "metric": along.metric,
        "unit": along.unit,
        "values": along.curve.xs.tolist(),
        "order": _growth(along.growth) if along.growth else None,
        "work": _growth(along.work) if along.work else None,
        "per_unit": _per_unit(along.unit_cost) if along.unit_cost else None,
        "over_time": _over_time(along.leak) if along.leak else None,
        "given_up": [{"value": each.x, "stage": each.stage, "limit": each.limit} for each in along.refused],
        "not_started": list(along.skipped),
    }


def _growth(found: Growth) -> dict[str, Json]:
    exponent, bend = found.exponent, found.bend
    return {
        "order": found.order.value if found.order else None,
        "candidates": {order.value: weight for order, weight in found.orders.items()},
        "exponent": interval_json(exponent.value, exponent.low, exponent.high),
        "start": found.start,
        "misfit": found.misfit,
        "systematic": found.systematic,
        "break": None
        if bend is None
        else {
            **interval_json(bend.x, bend.low, bend.high),
            "exponent_before": bend.before,
            "exponent_after": bend.after,
        },
    }


def _per_unit(found: PerUnit) -> dict[str, Json]:
    quantum = found.quantum
    return {
        **interval_json(found.value, found.low, found.high),
        "base": found.base,
        "linear": not found.bent,
        "quantum": None if quantum is None else {"chunk": quantum.chunk, "factor": quantum.factor},
    }


def _over_time(found: OverTime) -> dict[str, Json]:
    return {
        "verdict": found.verdict.value,
        "slope": interval_json(found.slope, found.low, found.high),
        "p_value": found.p_value,
    }


def rivals_json(rivals: Rivals) -> dict[str, Json]:
    """Give which of two curves is lower where, and where they cross, as `show --json` prints it with the first."""
    variants = [each.subject.variant for each in (rivals.first, rivals.second)]
    return {
        "variant": variants[1],
        "stretches": [
            {
                "first": each.first,
                "last": each.last,
                "lower": None if each.lower is None else variants[each.lower],
                "ratio": each.ratio,
            }
            for each in rivals.comparison.stretches
        ],
        "crossings": [
            {**interval_json(each.x, each.low, each.high), "lower": variants[each.lower]}
            for each in rivals.comparison.crossings
        ],
    }
