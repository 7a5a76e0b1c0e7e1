"""A worker's desk: opens a study when the first job of it comes, and does what jobs ask."""

from __future__ import annotations

import time
from contextlib import contextmanager
from threading import Event, Lock
from typing import TYPE_CHECKING

from perftrail.engines.attendance import present_job
from perftrail.errors import ClusterError, MachineBusy, PerftrailError
from perftrail.model.build import Failure
from perftrail.model.measurement import FailedInvocation
from perftrail.model.wording import quoted
from perftrail.process.machine.exclusive import building, measuring
from perftrail.workflows.away.outpost import Outpost

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from perftrail.model.build import Built
    from perftrail.model.measurement import Outcome
    from perftrail.workflows.away.terms import Terms
    from perftrail.workflows.away.values import Carried, Lacks, Making, Parcel, Relinking, Site
    from perftrail.workflows.workshop import Start

SECONDS_OF_DOUBT = 0.3
"""A batch system's signal reaches a worker and its builds at once; the worker takes it in much sooner than this."""


class StudyDesk:
    """Does jobs of any study; implements `engines.attendance.Desk`. Called from several threads.

    While one job measures, no other job of this user's workers on this machine does anything.
    """

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._outposts: list[Outpost] = []
        self._opening = Lock()
        self._stopping = Event()

    def greet(self, site: Site) -> Lacks | None:
        """Say what is needed here before anything can be made of a study; nothing where it is there."""
        with self._refusing(site):
            return self._outpost(site).lacks(())

    def make(self, site: Site, parcels: Sequence[Parcel], making: Making) -> Carried[Built | Failure] | Lacks:
        """Make a subject in a clean tree. Raises `ClusterError` where it would be another build here."""
        with self._refusing(site):
            outpost = self._outpost(site)
            if (lacks := outpost.lacks(parcels)) is not None:
                return lacks
            with building(self._terms.machine.id):
                carried = outpost.make(making, job=present_job())
            if isinstance(carried.outcome, Failure):
                self._doubt()
            return carried

    def relink(
        self, site: Site, parcels: Sequence[Parcel], relinking: Relinking
    ) -> Carried[Mapping[int, Built | Failure]] | Lacks:
        """Relink a subject. Raises `ClusterError` where the result would be a different build here."""
        with self._refusing(site):
            outpost = self._outpost(site)
            if (lacks := outpost.lacks(parcels)) is not None:
                return lacks
            with building(self._terms.machine.id):
                carried = outpost.relink(relinking, job=present_job())
            if any(isinstance(outcome, Failure) for outcome in carried.outcome.values()):
                self._doubt()
            return carried

    def invoke(self, site: Site, parcels: Sequence[Parcel], start: Start) -> Carried[Outcome] | Lacks:
        """Start something once and give what came of it."""
        with self._refusing(site):
            outpost = self._outpost(site)
            with measuring(self._terms.machine.id):
                # Whoever builds may remove a build to make room: what is there is known only while nobody does.
                if (lacks := outpost.lacks(parcels, start.ready.prepared)) is not None:
                    return lacks
                carried = outpost.invoke(start, job=present_job())
            if isinstance(carried.outcome, FailedInvocation):
                self._doubt()
            return carried

    def drop(self, job: str) -> None:
        """Kill what a job runs that nobody waits for any more, as the command was interrupted or has died."""
        for outpost in tuple(self._outposts):
            outpost.drop(job)

    def stop(self) -> None:
        """Kill what runs, for good; whoever waits for it waits in vain, as its outcome means nothing."""
        self._stopping.set()
        with self._opening:
            for outpost in self._outposts:
                outpost.stop()

    def close(self) -> None:
        """Remove what was only for the while, once no job goes on."""
        for outpost in self._outposts:
            outpost.close()

    @contextmanager
    def _refusing(self, site: Site) -> Iterator[None]:
        """Put errors so that they can travel, each with the machine it happened on."""
        named = quoted(self._terms.machine.facts.get("name", self._terms.machine.id))
        if site.version != self._terms.version:
            raise ClusterError(
                f"machine {named} has perftrail {self._terms.version}, and the command is {site.version}; install the "
                "same version everywhere"
            )
        try:
            yield
        except MachineBusy as error:
            raise MachineBusy(f"machine {named}: {error}") from None
        except PerftrailError as error:
            self._wait_for_the_end()
            raise ClusterError(f"machine {named}: {error}") from None
        except OSError as error:
            self._wait_for_the_end()
            raise ClusterError(
                f"machine {named}: {error}; see to the disk that its worker works on, or name another one there with "
                "--directory, and the same command goes on from what is kept"
            ) from None
        except KeyboardInterrupt:
            self._wait_for_the_end()
            raise ClusterError(f"machine {named}: was told that nobody waits for the job any more") from None

    def _doubt(self) -> None:
        """Wait a moment before a failure is believed: who ends a worker may have ended what it runs as well."""
        self._stopping.wait(SECONDS_OF_DOUBT)
        self._wait_for_the_end()

    def _wait_for_the_end(self) -> None:
        """Say nothing of a job that was broken off because this worker leaves: another one will do it."""
        while self._stopping.is_set():
            time.sleep(1.0)

    def _outpost(self, site: Site) -> Outpost:
        with self._opening:
            if self._stopping.is_set():
                raise KeyboardInterrupt
            for outpost in self._outposts:
                if outpost.site == site:
                    return outpost
            self._outposts.append(Outpost(site, self._terms))
            return self._outposts[-1]
