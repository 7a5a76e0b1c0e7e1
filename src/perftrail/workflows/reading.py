"""One reading of a target: an invocation at each point it needs, put together by its expression."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.model.build import Failure
from perftrail.model.conditions import weight
from perftrail.model.expression import ExpressionError, evaluate
from perftrail.model.measurement import FailedInvocation, Measurement

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence

    from perftrail.model.expression import Reference
    from perftrail.model.measurement import InvocationKey, Outcome, Phase
    from perftrail.model.parameters import Point
    from perftrail.model.target import Target
    from perftrail.workflows.bench import Bench
    from perftrail.workflows.events import Event
    from perftrail.workflows.workshop import Ready


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The natural logarithm of a target's value, or why there is none, and what getting it cost.

    `marked`: noise marks at least one of the invocations that it was put together of.
    """

    result: float | Failure
    seconds: float
    marked: bool = False


class Reader:
    """Takes readings of one target, warm-ups first; tells of each invocation they use, and what it took."""

    def __init__(
        self,
        target: Target,
        bench: Bench,
        *,
        warmups: int,
        count: Callable[[InvocationKey, float], None] = lambda _key, _seconds: None,
    ) -> None:
        self._target = target
        self._bench = bench
        self._count = count
        self._warming: tuple[tuple[Phase, int], ...] = tuple(("warmup", number) for number in range(warmups))
        self._used: set[InvocationKey] = set()

    def take(self, readies: Sequence[Ready], ordinal: int) -> Generator[Event, None, Reading]:
        """Take one reading: the same ordinal at each point, there and back in turn against drift."""
        found: dict[Point, Measurement] = {}
        seconds = 0.0
        for ready, starts in self._starts(readies, ordinal):
            for start in starts:
                outcome = yield from self._bench.outcome(ready, *start)
                seconds += self._spent(outcome)
                if isinstance(outcome, FailedInvocation):
                    return Reading(result=outcome.failure, seconds=seconds)
                found[ready.cell.point] = outcome
        marked = any(weight(measurement.flags) == 0.0 for measurement in found.values())
        return Reading(result=logarithm(self._target, found), seconds=seconds, marked=marked)

    def hand_out(self, readies: Sequence[Ready], ordinals: Iterable[int]) -> None:
        """Hand out all that readings of these ordinals start, for `take` to ask for what came of it."""
        for ordinal in ordinals:
            for ready, starts in self._starts(readies, ordinal):
                self._bench.hand_out(ready, starts)

    def _starts(
        self, readies: Sequence[Ready], ordinal: int
    ) -> Iterator[tuple[Ready, Sequence[tuple[Phase, int]]]]:
        order = readies if ordinal % 2 == 0 else tuple(reversed(readies))
        return ((ready, (*self._warming, ("sample", ordinal))) for ready in order)

    def _spent(self, outcome: Outcome) -> float:
        self._count(outcome.key, outcome.seconds)
        if outcome.key in self._used:
            return 0.0
        self._used.add(outcome.key)
        return outcome.seconds


def logarithm(target: Target, found: Mapping[Point, Measurement]) -> float | Failure:
    """Evaluate a target over one measurement at each of its points; give its natural logarithm."""

    def lookup(reference: Reference) -> float:
        values = found[reference.point].values
        if reference.name not in values:
            raise ExpressionError(0, f"no figure of {reference.name} could be had")
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
