"""Evaluate a target from one measurement at each point that it needs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from perftrail.model.build import Failure
from perftrail.model.expression import ExpressionError, evaluate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perftrail.model.benchmark import Point
    from perftrail.model.expression import Reference
    from perftrail.model.measurement import Measurement
    from perftrail.model.target import Target


def logarithm(target: Target, found: Mapping[Point, Measurement]) -> float | Failure:
    """Return the natural logarithm of a target, from one measurement at each of its points."""

    def lookup(reference: Reference) -> float:
        values = found[reference.point].values
        if reference.name not in values:
            raise ExpressionError(0, f"no value of {reference.name} is available")
        return values[reference.name]

    try:
        value = evaluate(target.expression, lookup)
    except ExpressionError as error:
        return Failure(stage="metric", message=f"{target.text}: {error}")
    if not (math.isfinite(value) and value > 0.0):
        return Failure(
            stage="metric", message=f"{target.text} is {value}: only values above zero can be compared"
        )
    return math.log(value)
