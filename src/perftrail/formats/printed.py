"""Metrics of a benchmark's output, by pattern or in another tool's format.

One invocation that prints another tool's format has as many values as the output has items.
"""

from __future__ import annotations

import math
import re
import statistics
from typing import TYPE_CHECKING

from perftrail.errors import FormatError
from perftrail.formats import read
from perftrail.model.build import Failure
from perftrail.model.wording import listed, quoted, suggestion

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from perftrail.model.exchange import Series
    from perftrail.model.metrics import Metric, Pick, Printed


class ParsedOutput:
    """A benchmark's output, parsed once in each format that the metrics name."""

    def __init__(self, output: str) -> None:
        self._output = output
        self._read: dict[Printed, tuple[Series, ...]] = {}

    def values(self, metric: Metric) -> Sequence[float]:
        """Return the values of a metric's item. Raises `FormatError` that lists the existing items."""
        assert metric.reads is not None, "metrics without a format have a pattern"
        if metric.reads not in self._read:
            self._read[metric.reads] = read(
                self._output.encode(), name="the output", format=metric.reads
            ).series
        found = [each for each in self._read[metric.reads] if each.metric == metric.item_metric]
        if not found:
            names = {each.metric: None for each in self._read[metric.reads]}
            existing = listed(map(quoted, names), "and") or "none"
            raise FormatError(f"the output has no item {quoted(metric.item_metric)}; it has {existing}")
        items = {item(each): each for each in found}
        if not metric.item and len(items) == 1:
            return found[0].values
        # The rest of a name may depend on the machine, for example the number of threads.
        short = [name for name in items if name.partition("[")[0] == metric.item]
        wanted = short[0] if metric.item not in items and len(short) == 1 else metric.item
        if wanted not in items:
            named = (
                f"no item {quoted(metric.item)}" if metric.item else "several items; set item to one of them"
            )
            raise FormatError(f"the output has {named}{suggestion(metric.item, items)}")
        chosen = items[wanted]
        if (chosen.unit or "") != metric.unit:
            raise FormatError(
                f"{metric.item or metric.item_metric} is in {quoted(chosen.unit or '')}; write this as its unit"
            )
        return chosen.values


def item(series: Series) -> str:
    """Return the name of a benchmark at its point as a study writes it: ``BM_Sort[arg=64]``."""
    point = ", ".join(f"{name}={value}" for name, value in series.point)
    return f"{series.benchmark}[{point}]" if point else series.benchmark


def has_items(metrics: Mapping[str, Metric], output: str) -> bool:
    """Return whether an output has an item in the format of any metric, or something else than white space."""
    if not output.strip():
        return False
    try:
        return any(
            read(output.encode(), name="the output", format=metric.reads).series
            for metric in metrics.values()
            if metric.reads
        )
    except FormatError:
        return True


LAST_OF = "last of "
"""Start of the method of a metric with several values if the study does not state which one counts."""

_PICKS: Mapping[Pick, Callable[[Sequence[float]], float]] = {
    "first": lambda values: values[0],
    "last": lambda values: values[-1],
    "min": min,
    "max": max,
    "sum": math.fsum,
    "median": statistics.median,
}


def read_metrics(
    metrics: Mapping[str, Metric], output: str, *, log: str, methods: dict[str, str] | None = None
) -> dict[str, float] | Failure:
    """Return every metric of a benchmark's output, or the first missing one.

    `methods` receives the number of values of a metric with several, if the study does not state which one counts.
    """
    values: dict[str, float] = {}
    parsed = ParsedOutput(output)
    for name, metric in metrics.items():
        try:
            found = parsed.values(metric) if metric.reads else _matches(metric, output)
        except FormatError as error:
            return Failure(stage="metric", message=f"{name}: {error}", log=log)
        try:
            value = _PICKS[metric.pick or "last"](found)
        except (OverflowError, ValueError):  # a sum that overflows, or of opposite infinities
            value = math.nan
        if methods is not None and metric.pick is None and len(found) > 1:
            methods[name] = f"{LAST_OF}{len(found)} values"
        if not math.isfinite(value):
            return Failure(stage="metric", message=f"{name}: {value} is not finite", log=log)
        values[name] = value
    return values


_LONGEST_SHOWN = 100


def _describe(output: str) -> str:
    """Return what an output without a match contains: its last line, or that it is empty."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    if not lines:
        return "it is empty"
    last = lines[-1][:_LONGEST_SHOWN]
    return f"its only line is {quoted(last)}" if len(lines) == 1 else f"its last line is {quoted(last)}"


def _matches(metric: Metric, output: str) -> Sequence[float]:
    """Return every number that the pattern finds. Raises `FormatError` if there is none."""
    found = re.findall(metric.pattern, output, flags=re.MULTILINE)
    if not found:
        raise FormatError(f"the output has no match for {metric.pattern!r}; {_describe(output)}")
    try:
        return [float(text) for text in found]
    except ValueError:
        raise FormatError(f"{found[-1]!r} is not a number") from None
