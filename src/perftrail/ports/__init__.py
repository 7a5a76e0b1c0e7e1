"""What perftrail asks of the world: one Protocol for each edge, written for whoever implements it."""

from perftrail.ports.builder import Builder
from perftrail.ports.engine import Done, Engine, Job, Pending
from perftrail.ports.processes import Enclosing, Starter, Watcher
from perftrail.ports.source import Edited, Growing, Kept, PartlyRead, Source
from perftrail.ports.store import Store

__all__ = [
    "Builder",
    "Done",
    "Edited",
    "Enclosing",
    "Engine",
    "Growing",
    "Job",
    "Kept",
    "PartlyRead",
    "Pending",
    "Source",
    "Starter",
    "Store",
    "Watcher",
]
