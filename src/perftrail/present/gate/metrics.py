"""A comparison as OpenMetrics text, which GitLab shows as a metrics report of a merge request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.stats.comparison import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from perftrail.results.gate import Gate, Row

FAMILIES: dict[str, tuple[str, Callable[[Row], float | None]]] = {
    "perftrail_value": (
        "Median at the head, in the metric's unit.",
        lambda row: None if row.head is None else row.head.value,
    ),
    "perftrail_ratio": (
        "Head against base; 1 is as much.",
        lambda row: 1.0 if row.one_build else None if row.comparison is None else row.comparison.effect,
    ),
    "perftrail_worse": (
        "1 where the head is worse for sure, else 0.",
        lambda row: float(row.verdict is Verdict.SLOWER),
    ),
}
"""Each family of figures: what it is, and its value of a row, `None` where it has none."""


def to_metrics(gate: Gate) -> str:
    """Write every row of every family; labels name the figure, so that one pipeline's stand beside another's."""
    return "\n".join(_lines(gate)) + "\n"


def _lines(gate: Gate) -> Iterator[str]:
    for family, (meaning, value) in FAMILIES.items():
        yield f"# TYPE {family} gauge"
        yield f"# HELP {family} {meaning}"
        for row in gate.rows:
            found = value(row)
            if found is not None:
                yield f"{family}{{{_labels(row)}}} {found!r}"
    yield "# EOF"


def _labels(row: Row) -> str:
    target = row.target
    labels = {
        "benchmark": target.benchmark,
        "metric": target.text,
        "point": str(target.open_point),
        "unit": target.unit,
        "variant": target.variant,
    }
    return ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items() if text)


def _escaped(text: str) -> str:
    r"""Escape a label's value; what does not print is written in letters.

    >>> print(_escaped('a"b\\' + chr(10)))
    a\"b\\\\n
    """
    flat = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)
    return flat.replace("\\", "\\\\").replace('"', '\\"')
