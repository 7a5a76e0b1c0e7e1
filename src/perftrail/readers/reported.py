"""Figures of a benchmark that prints another tool's format: one invocation gives as many as it has items."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.errors import FormatError
from perftrail.model.wording import listed, quoted, suggestion
from perftrail.readers.formats import read

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.model.exchange import Series
    from perftrail.model.metrics import Metric, Printed


class Reported:
    """An output, read once in each format that metrics ask for."""

    def __init__(self, output: str) -> None:
        self._output = output
        self._read: dict[Printed, tuple[Series, ...]] = {}

    def figures(self, metric: Metric) -> Sequence[float]:
        """Give the values of a metric's item. Raises `FormatError` that says what there is instead."""
        assert metric.reads is not None, "a metric without it has a pattern"
        if metric.reads not in self._read:
            self._read[metric.reads] = read(
                self._output.encode(), name="the output", format=metric.reads
            ).series
        found = [each for each in self._read[metric.reads] if each.metric == metric.figure]
        if not found:
            figures = {each.metric: None for each in self._read[metric.reads]}
            there = listed(map(quoted, figures), "and") or "none"
            raise FormatError(f"the output has no figure {quoted(metric.figure)}; it has {there}")
        items = {item(each): each for each in found}
        if not metric.item and len(items) == 1:
            return found[0].values
        if metric.item not in items:
            named = (
                f"no item {quoted(metric.item)}"
                if metric.item
                else "several items, so that item must name one"
            )
            raise FormatError(f"the output has {named}{suggestion(metric.item, items)}")
        chosen = items[metric.item]
        if (chosen.unit or "") != metric.unit:
            raise FormatError(
                f"{metric.item or metric.figure} is in {quoted(chosen.unit or '')}; write this as its unit"
            )
        return chosen.values


def item(series: Series) -> str:
    """Name a benchmark at its point as a study names it: ``BM_Sort[arg=64]``."""
    point = ", ".join(f"{name}={value}" for name, value in series.point)
    return f"{series.benchmark}[{point}]" if point else series.benchmark
