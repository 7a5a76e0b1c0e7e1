"""How far variants lie from the first one, benchmark by benchmark, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from perftrail.cli.console import output
from perftrail.model.quantity import change, decimals

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.workflows.showing.by_benchmark import Shift


def print_by_benchmark(found: Sequence[Shift]) -> None:
    """Print a line for each benchmark of each variant; nothing where nothing was compared."""
    if not found:
        return
    console = output()
    reference = found[0].reference.variant
    title = f"\nChange by benchmark, against {reference}: geometric means over the points, taken in turns"
    console.print(Text(title, style="bold"), soft_wrap=True)
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    columns = ("variant", "benchmark", "metric", "points", "times", "verdict")
    texts = [_texts(each) for each in found]
    shown = [name for name in columns if name not in ("variant", "metric") or _several(texts, name)]
    for name in shown:
        table.add_column(name, justify="right" if name == "points" else "left", no_wrap=True)
    for each in texts:
        table.add_row(*(Text(each[name]) for name in shown))
    console.print(table)


def _several(texts: Sequence[dict[str, str]], name: str) -> bool:
    return len({each[name] for each in texts}) > 1


def _texts(shift: Shift) -> dict[str, str]:
    found = shift.comparison
    digits = decimals(found.effect, found.low, found.high)
    return {
        "variant": shift.row.subject.variant,
        "benchmark": shift.row.benchmark,
        "metric": shift.row.metric,
        "points": str(len(shift.points)),
        "times": f"{found.effect:.{digits}f} [{found.low:.{digits}f}, {found.high:.{digits}f}]",
        "verdict": change(found.effect) if shift.differs else shift.words,
    }
