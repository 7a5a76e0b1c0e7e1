"""Markdown tables of the benchmarks' pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def table(lines: Sequence[Sequence[str]]) -> str:
    """Return lines as a table. The first line is its head."""
    head, *body = (f"| {' | '.join(line)} |" for line in lines)
    return "\n".join([head, "|" + "---|" * len(lines[0]), *body])
