"""perftrail's search: any number of changes, with ramps."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from benchmarks.search.strategies.running import question, report, run_search
from perftrail.search import Search

if TYPE_CHECKING:
    from benchmarks.search.outcome import Report
    from benchmarks.search.simulator import Machine


def search(machine: Machine) -> Report:
    """Search the history."""
    return report(run_search(Search(question(machine)), machine), machine)


def thorough(machine: Machine) -> Report:
    """Search the history, also for changes that a later revision undid."""
    return report(run_search(Search(replace(question(machine), thorough=True)), machine), machine)
