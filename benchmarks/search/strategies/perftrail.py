"""perftrail's own search for one step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.search.strategies.asking import question, report, settle
from perftrail.search import Search

if TYPE_CHECKING:
    from benchmarks.search.outcome import Report
    from benchmarks.search.simulator import Machine


def search(machine: Machine) -> Report:
    """Search the history for one step."""
    return report(settle(Search(question(machine)), machine), machine)
