"""Explain what differs between a revision and its predecessor.

- `explain`: find the two revisions and profile both.
- `profilers`: plain starts, locks, system calls and instructions.
- `result`: the report and its JSON.
"""

from __future__ import annotations

from perftrail.verbs.explain.explain import CellReport, Explain, Explained, Figured, Unavailable

__all__ = ["CellReport", "Explain", "Explained", "Figured", "Unavailable"]
