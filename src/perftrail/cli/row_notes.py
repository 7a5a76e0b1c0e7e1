"""What limits a figure of a table, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.model.measurement import NOISE

if TYPE_CHECKING:
    from perftrail.workflows.showing.rows import Row


def row_notes(row: Row) -> list[str]:
    """Say what is to be known of a figure: its marks, noise, failures, and an interval that says less."""
    found = row.estimate
    notes = [flag for flag in row.flags if flag not in NOISE]
    notes += [row.noise] if row.noise else []
    notes += [f"{row.failures} failed"] if row.failures else []
    reached = found.confidence if found else 0.0
    if found and found.count == 1:
        notes.append("one value, no interval")
    elif found and reached < 0.9495:
        notes.append(f"interval only {reached * 100:.0f} %")
    return notes
