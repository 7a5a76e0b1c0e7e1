"""A study on a worker's machine: its builders, and the launcher that measures, opened when first needed."""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from queue import SimpleQueue
from threading import Event, Lock
from typing import TYPE_CHECKING

from perftrail.builds.workers import CleanBuilder, Stoppable
from perftrail.errors import ClusterError
from perftrail.file_claim import claimed_directory, remove_left_over
from perftrail.file_lock import together
from perftrail.model.build import Built
from perftrail.process.launcher import Launcher
from perftrail.process.sandbox.view import remove_left_over_rooms
from perftrail.workflows.away.grounds import LOGS, Grounds
from perftrail.workflows.hands import OwnHand, open_builder, sandboxes
from perftrail.workflows.invoker import log_name
from perftrail.workflows.invoking import open_invoker
from perftrail.workflows.pinning import open_sources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from perftrail.model.build import Failure, Prepared
    from perftrail.model.measurement import Outcome
    from perftrail.workflows.away.terms import Terms
    from perftrail.workflows.away.values import Carried, Lacks, Making, Parcel, Relinking, Site
    from perftrail.workflows.containment import Sandboxes
    from perftrail.workflows.invoker import Invoker
    from perftrail.workflows.workshop import Start

PREFIX = "perftrail-bench-"
ROOMS = "rooms"


def remove_left_over_of_workers(directory: Path) -> None:
    """Remove what killed workers left in a worker's directory."""
    remove_left_over(PREFIX, below=directory)
    if (directory / ROOMS).is_dir():
        remove_left_over_rooms(directory / ROOMS)


class Outpost:
    """Makes and starts what jobs of one study ask for. Called from several threads; one of them starts at a time."""

    def __init__(self, site: Site, terms: Terms) -> None:
        self.site = site
        self._terms = terms
        self._grounds = Grounds(site, terms.directory, apart=terms.apart)
        self._arriving = Lock()
        self._rooms = terms.directory / ROOMS
        self._hands: list[OwnHand] = []
        self._idle: SimpleQueue[OwnHand] = SimpleQueue()
        self._bench = ExitStack()
        self._stop = Event()
        self._launcher = Launcher()
        self._enclosing: Sandboxes | None = None
        self._opened: Invoker | None = None
        self._cancels: dict[str, Callable[[], None]] = {}

    def lacks(self, parcels: Sequence[Parcel], prepared: Prepared | None = None) -> Lacks | None:
        """Take in what was sent, and say what of what is needed is not there; nothing when all is."""
        with self._arriving:
            return self._grounds.lacks(parcels, prepared)

    def make(self, making: Making, *, job: str) -> Carried[Built | Failure]:
        """Make a subject. Raises `ClusterError` where what comes of it would be another build than is asked."""
        with self._hand(making, job) as hand:
            return self._grounds.made(hand.make(making.subject, making.recipe), making.recipe)

    def relink(self, relinking: Relinking, *, job: str) -> Carried[Mapping[int, Built | Failure]]:
        """Relink a subject, built here first where it is not. Raises `ClusterError` as `make` does."""
        making = relinking.making
        with self._hand(making, job) as hand:
            outcomes = hand.relink(
                making.subject, making.recipe, tuple(relinking.layouts), artefact=relinking.artefact
            )
            for layout, outcome in outcomes.items():
                if isinstance(outcome, Built) and outcome.key != relinking.layouts[layout]:
                    raise _another(making)
            return self._grounds.relinked(outcomes, making.recipe)

    @contextmanager
    def _hand(self, making: Making, job: str) -> Iterator[OwnHand]:
        """Give a hand for a job. Raises `ClusterError` where it would make another build than is asked."""
        hand = self._free_hand()
        self._cancels[job] = hand.cancel
        try:
            if hand.builder.key(making.subject, making.recipe) != making.key:
                raise _another(making)
            yield hand
        finally:
            del self._cancels[job]
            hand.let_go()
            self._idle.put(hand)

    def _free_hand(self) -> OwnHand:
        """Wait for a hand that is free; they are made when the first one is wanted, as the study is there then."""
        with self._arriving:
            while len(self._hands) < self._terms.builds:
                self._hands.append(
                    OwnHand(
                        self._grounds.study,
                        self._grounds.root,
                        own=self.site.own,
                        cpus=max(1, len(os.sched_getaffinity(0)) // self._terms.builds),
                        kind=CleanBuilder,
                        rooms=self._rooms,
                    )
                )
                self._idle.put(self._hands[-1])
        return self._idle.get()

    def invoke(self, start: Start, *, job: str) -> Carried[Outcome]:
        """Start something once."""
        if start.key.machine != self._terms.machine.id:
            raise ClusterError(f"what is measured on {start.key.machine} was sent to another machine")
        if self._opened is None:
            self._opened = self._open()
        ready = replace(start.ready, prepared=self._grounds.here(start.ready.prepared))
        self._cancels[job] = self._cancel
        locks = self._grounds.root / "builds" / "locks"
        try:
            # Others who see the same directory may relink the build there: not while it runs.
            with together(locks / f"{ready.prepared.built.key}.lock"):
                outcome = self._opened.invoke(replace(start, ready=ready))
        finally:
            del self._cancels[job]
        return self._grounds.started(outcome, f"{LOGS}/{log_name(start.key)}.")

    def drop(self, job: str) -> None:
        """Kill what a job runs now, if it is one of ours: nobody wants what comes of it."""
        cancel = self._cancels.get(job)
        if cancel is not None:
            cancel()

    def _cancel(self) -> None:
        self._launcher.cancel()
        if self._enclosing is not None:
            self._enclosing.cancel()

    def stop(self) -> None:
        """Kill what runs here, for good."""
        self._stop.set()
        self._launcher.close()
        if self._enclosing is not None:
            self._enclosing.end()
        for hand in tuple(self._hands):
            hand.stop()

    def close(self) -> None:
        """Remove what was only for the while, when nothing runs here any more."""
        self._bench.close()

    def _open(self) -> Invoker:
        """Open who measures, with a scratch directory of its own: others may measure in the same results."""
        study, root = self._grounds.study, self._grounds.root
        (root / LOGS).mkdir(parents=True, exist_ok=True)
        scratch = self._bench.enter_context(claimed_directory(PREFIX, below=self._terms.directory))
        starter = Stoppable(self._launcher, self._stop)
        self._enclosing = sandboxes(study, root, self._launcher, rooms=self._rooms)
        sources = open_sources(study, cache=str(root / "sources"), starter=starter, own=self.site.own)
        return self._bench.enter_context(
            open_invoker(
                study,
                open_builder(study, root, sources, starter, enclosing=self._enclosing),
                self._launcher,
                enclosing=self._enclosing,
                place=scratch,
                logs=root / LOGS,
            )
        )


def _another(making: Making) -> ClusterError:
    return ClusterError(
        f"{making.subject} would be another build than where perftrail was started: its tools, its source "
        "or the study's files differ; install the same compilers and tools on every machine"
    )
