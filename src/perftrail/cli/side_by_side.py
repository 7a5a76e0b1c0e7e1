"""A table of alternatives: one revision in several variants, a column for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from perftrail.cli.row_notes import row_notes
from perftrail.cli.speech import plain
from perftrail.model.quantity import change as relative
from perftrail.model.quantity import quantity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from perftrail.model.benchmark import Point
    from perftrail.stats.estimate import Estimate
    from perftrail.workflows.showing.rows import Row

Place = tuple[str, "Point", str]
"""A benchmark, a point of it, and a metric: a line of the table."""


def side_by_side(rows: Sequence[Row]) -> Table | None:
    """Give rows as a table with a column for each variant; `None` when they are of several revisions or one variant.

    Beside a figure stands how it compares with the first variant's where their intervals do not overlap. What
    limits a figure stands below it.
    """
    variants = list(dict.fromkeys(row.subject.variant for row in rows))
    if len({row.subject.revision.id for row in rows}) != 1 or len(variants) < 2:
        return None
    places: dict[Place, dict[str, Row]] = {}
    for row in rows:
        places.setdefault((row.benchmark, row.point, row.metric), {})[row.subject.variant] = row
    several = len({benchmark for benchmark, _, _ in places}) > 1
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    heads = [*(["benchmark"] if several else []), "point", "metric"]
    for head in heads:
        table.add_column(head, no_wrap=True)
    for variant in variants:
        table.add_column(variant, no_wrap=True)
    for (benchmark, point, metric), found in places.items():
        named = [*([benchmark] if several else []), plain(str(point)), metric]
        cells = [_cell(variant, found, variants[0]) for variant in variants]
        table.add_row(*map(Text, (*named, *cells)))
    return table


def fits(table: Table, console: Console) -> bool:
    """Whether a table can be read without lines being cut."""
    return console.measure(table, options=console.options.update(width=10_000)).maximum <= console.width


def _cell(variant: str, found: Mapping[str, Row], first: str) -> str:
    row = found.get(variant)
    if row is None:
        return "not measured"
    if row.estimate is None:
        return "\n".join(["no value", *row_notes(row)])
    each = row.estimate
    told = quantity(each.value, row.unit, low=each.low, high=each.high)
    base = found.get(first)
    if variant != first and base is not None and base.estimate is not None and _apart(each, base.estimate):
        told += f", {relative(each.value / base.estimate.value)}"
    return "\n".join([told, *row_notes(row)])


def _apart(one: Estimate, other: Estimate) -> bool:
    """Whether two estimates are certain enough to be told in relation to each other."""
    overlap = one.low <= other.high and other.low <= one.high
    return min(one.count, other.count) > 1 and other.value > 0.0 and not overlap
