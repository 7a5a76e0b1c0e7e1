"""What a machine's settings and load mean for measurements: one finding for each, its cost and its remedy."""

from __future__ import annotations

from perftrail.workflows.diagnosis import containing, memory, processor, sharing
from perftrail.workflows.diagnosis.finding import GRADES, Finding, Grade, Signs

__all__ = ["GRADES", "Finding", "Grade", "Signs", "diagnose"]

_LOOKS = (
    sharing.load,
    sharing.power,
    memory.swap,
    processor.governor,
    processor.turbo,
    sharing.heat,
    sharing.steal,
    sharing.quota,
    processor.smt,
    memory.numa,
    memory.huge_pages,
    memory.layout,
    memory.control_groups,
    processor.counters,
    processor.isolated,
    processor.clock,
    containing.sandbox,
)
"""Where to look, what usually costs most first; the order within a grade."""


def diagnose(signs: Signs) -> tuple[Finding, ...]:
    """Give every finding, the worst first."""
    found = [finding for look in _LOOKS for finding in look(signs)]
    return tuple(sorted(found, key=lambda finding: GRADES.index(finding.grade)))
