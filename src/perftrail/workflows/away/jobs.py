"""The calls that a worker answers: what is sent is a value, what is done is done at the worker's desk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.engines.attendance import present_desk
from perftrail.workflows.away.desk import StudyDesk

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perftrail.model.build import Built, Failure
    from perftrail.model.measurement import Outcome
    from perftrail.workflows.away.values import Carried, Lacks, Making, Parcel, Relinking, Site
    from perftrail.workflows.workshop import Start


@dataclass(frozen=True, slots=True, kw_only=True)
class Make:
    """Makes subjects on whichever worker it is called."""

    site: Site
    parcels: tuple[Parcel, ...] = ()

    def __call__(self, making: Making) -> Carried[Built | Failure] | Lacks:
        """Make one there."""
        return _desk().make(self.site, self.parcels, making)


@dataclass(frozen=True, slots=True, kw_only=True)
class Relink:
    """Relinks subjects on whichever worker it is called."""

    site: Site
    parcels: tuple[Parcel, ...] = ()

    def __call__(self, relinking: Relinking) -> Carried[Mapping[int, Built | Failure]] | Lacks:
        """Relink one there."""
        return _desk().relink(self.site, self.parcels, relinking)


@dataclass(frozen=True, slots=True, kw_only=True)
class Invoke:
    """Starts what is ready on whichever worker it is called."""

    site: Site
    parcels: tuple[Parcel, ...] = ()

    def __call__(self, start: Start) -> Carried[Outcome] | Lacks:
        """Start once there."""
        return _desk().invoke(self.site, self.parcels, start)


def greet(site: Site) -> Lacks | None:
    """Say what a worker would need before it can do anything for a study; nothing where it has it all."""
    return _desk().greet(site)


def _desk() -> StudyDesk:
    desk = present_desk()
    assert isinstance(desk, StudyDesk)
    return desk
