"""perftrail's survey: all changes of a history, ramps told as such."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.search.strategies.asking import question, report, settle
from perftrail.search import Survey

if TYPE_CHECKING:
    from benchmarks.search.outcome import Report
    from benchmarks.search.simulator import Machine


def search(machine: Machine) -> Report:
    """Survey the history."""
    return report(settle(Survey(question(machine)), machine), machine)


def thorough(machine: Machine) -> Report:
    """Survey the history, also for changes that are taken back again."""
    return report(settle(Survey(question(machine), thorough=True), machine), machine)
