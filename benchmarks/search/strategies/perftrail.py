"""perftrail's own search: any number of changes, ramps reported as such."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from benchmarks.search.strategies.asking import question, report, settle
from perftrail.search import Search

if TYPE_CHECKING:
    from benchmarks.search.outcome import Report
    from benchmarks.search.simulator import Machine


def search(machine: Machine) -> Report:
    """Search the history."""
    return report(settle(Search(question(machine)), machine), machine)


def thorough(machine: Machine) -> Report:
    """Search the history, also for changes that a later revision undid."""
    return report(settle(Search(replace(question(machine), thorough=True)), machine), machine)
