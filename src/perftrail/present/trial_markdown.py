"""What a trial found as a Markdown table: medians with their intervals, and the verdicts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from perftrail.model.quantity import decimals, quantity
from perftrail.stats.comparison import Verdict

if TYPE_CHECKING:
    from perftrail.stats.comparison import Comparison
    from perftrail.stats.trial import Finding, Findings

_SHOWN = {"wall": "Wall", "cpu": "CPU", "peak_memory": "Peak memory"}


def to_markdown(found: Findings) -> str:
    """Write a table with one row for each command, and a column for the verdict where there are several."""
    compared = bool(found.contrasts)
    head = ["Command", *(f"{name} [95 %]" for name in _SHOWN.values()), "Runs"]
    rows = [[*head, *(["Wall against the reference"] if compared else [])]]
    rows.append([":---", *["---:"] * (len(rows[0]) - 1)])
    verdicts = {each.entry: each.comparison for each in found.contrasts if each.metric == "wall"}
    references = {group.reference for group in found.trial.groups if group.others}
    for number, result in enumerate(found.results):
        row = [_code(result.entry.name), *(_figure(result, metric) for metric in _SHOWN), str(result.runs)]
        if compared:
            row.append("reference" if number in references else _verdict(verdicts.get(number)))
        rows.append(row)
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def ratio(found: Comparison) -> str:
    """Write an effect with its interval: ``1.052 [1.031, 1.074]``."""
    digits = decimals(found.effect, found.low, found.high)
    return f"{found.effect:.{digits}f} [{found.low:.{digits}f}, {found.high:.{digits}f}]"


def _figure(result: Finding, metric: str) -> str:
    figure = result.figures.get(metric)
    if figure is None:
        return "–"
    lies = figure.estimate
    return quantity(lies.value, figure.unit, low=lies.low, high=lies.high)


def _verdict(found: Comparison | None) -> str:
    if found is None:
        return "–"
    return "same" if found.verdict is Verdict.SAME else f"{found.verdict}: × {ratio(found)}"


def _code(text: str) -> str:
    """Write text as code that stays one cell: no character of it ends the cell, the code or the line."""
    flat = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)
    fence = "`" * (1 + max((len(run) for run in re.findall(r"`+", flat)), default=0))
    pad = " " if flat.startswith("`") or flat.endswith("`") else ""
    return f"{fence}{pad}{flat}{pad}{fence}".replace("|", "\\|")
