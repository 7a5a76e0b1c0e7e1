"""What a worker tells of itself: which machine it is, and what it offers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.model.measurement import Machine
from perftrail.model.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

FACTS = "perftrail"
"""The name under which a worker tells the scheduler what it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What a worker tells of itself: its machine, how many builds at once, its version of perftrail."""

    machine: Machine
    builds: int
    version: str

    def facts(self) -> dict[str, object]:
        """Put it as plain data."""
        machine = {"id": self.machine.id, "facts": dict(self.machine.facts)}
        return {"machine": machine, "builds": self.builds, "version": self.version}

    def resources(self) -> dict[str, float]:
        """Put it as Dask counts it."""
        return {"bench": 1, "build": self.builds, resource_of(self.machine): 1}


def told_machine(machine: Machine) -> str:
    """Name a machine for people: by its name where it has one."""
    return quoted(machine.facts.get("name", machine.id))


def read_offer(facts: Mapping[str, object]) -> Offer:
    """Read what a worker tells; of one that tells less, as another version may, what there is."""
    machine, builds = facts.get("machine"), facts.get("builds")
    kept = machine if isinstance(machine, dict) else {}
    told = kept.get("facts")
    return Offer(
        machine=Machine(
            id=str(kept.get("id", "")),
            facts={str(name): str(fact) for name, fact in told.items()} if isinstance(told, dict) else {},
        ),
        builds=builds if isinstance(builds, int) else 0,
        version=str(facts.get("version", "")),
    )


def resource_of(machine: Machine) -> str:
    """Name the resource that only workers of a machine offer."""
    return f"machine {machine.id}"
