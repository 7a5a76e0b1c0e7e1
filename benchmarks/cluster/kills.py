"""Workers killed with -9 at random instants while studies run: what is lost, what is there twice."""

from __future__ import annotations

import random
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.cluster import history
from benchmarks.cluster.machines import Machines, machines
from perftrail.opening import open_session
from perftrail.results.selection import select
from perftrail.store import open_store
from perftrail.verbs.run import Run, RunReport

if TYPE_CHECKING:
    from perftrail.model.study import Study

REVISIONS, INVOCATIONS = 16, 3
SECONDS_BETWEEN = (0.2, 2.0)
SECONDS_OF_A_BUILD = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What was found after so many kills: studies that ran meanwhile, what they lack, what they have too much of."""

    kills: int
    studies: int
    samples: int
    lost: int
    twice: int
    other_artefacts: int

    @property
    def nothing_lost(self) -> bool:
        """Whether every study ended as it does undisturbed."""
        return self.lost == self.twice == self.other_artefacts == 0

    def __str__(self) -> str:
        return (
            f"{self.kills} kills while {self.studies} studies ran: {self.samples} samples, {self.lost} lost, "
            f"{self.twice} twice, {self.other_artefacts} artefacts unlike those of one process alone"
        )


def play(kills: int, *, machines: int, seed: int, scratch: Path) -> Found:
    """Run studies on so many machines until so many of their workers were killed, and look at what was stored."""
    with tempfile.TemporaryDirectory(dir=scratch) as home:
        return _play(kills, Path(home), machines_=machines, seed=seed)


def _play(kills: int, home: Path, *, machines_: int, seed: int) -> Found:
    repository = history.make(home / "repository", revisions=REVISIONS)
    alone = history.study(home / "alone", repository, seconds=0.0, invocations=INVOCATIONS)
    _run(alone, None)
    undisturbed = _kept(alone)
    names = [f"machine-{number}" for number in range(machines_)]
    tallies: list[tuple[int, int, int, int]] = []
    with machines(home / "machines", names) as started:
        killer = Killer(started, names, kills=kills, seed=seed)
        with killer:
            while not killer.done:
                # what is built is named by its recipe, and each study builds anew
                study = history.study(
                    home / f"study-{len(tallies)}",
                    repository,
                    seconds=SECONDS_OF_A_BUILD,
                    invocations=INVOCATIONS,
                )
                report = _run(study, started.address.replace("tcp://", "dask://"))
                tallies.append(_compared(_kept(study), undisturbed, report))
    samples, lost, twice, others = (sum(each) for each in zip(*tallies, strict=True))
    return Found(
        kills=killer.count,
        studies=len(tallies),
        samples=samples,
        lost=lost,
        twice=twice,
        other_artefacts=others,
    )


class Killer:
    """Kills one worker after the other at random instants, and starts another one of its machine each time."""

    def __init__(self, started: Machines, names: list[str], *, kills: int, seed: int) -> None:
        self._started = started
        self._names = names
        self._kills = kills
        self._chance = random.Random(seed)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work)
        self.count = 0

    @property
    def done(self) -> bool:
        """Whether enough were killed."""
        return self.count >= self._kills

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _work(self) -> None:
        while not self.done and not self._stop.wait(self._chance.uniform(*SECONDS_BETWEEN)):
            name = self._chance.choice(self._names)
            self._started.kill(name)
            self._started.start(name)
            self.count += 1


def _run(study: Study, engine: str | None) -> RunReport:
    with open_session(study, store=None, engine=engine) as session:
        running = Run(session, select(study, ())).events()
        while True:
            try:
                next(running)
            except StopIteration as stop:
                report: RunReport = stop.value
                return report


def _kept(study: Study) -> dict[str, tuple[str, list[list[int]]]]:
    """What a store holds of each revision: its artefact, and the ordinals of its samples on each machine."""
    with open_store(f"{study.directory}/.perftrail/results.db", access="read") as store:
        kept = {}
        for runnable in store.runnables():
            ordinals = [
                [outcome.key.ordinal for outcome in store.outcomes([runnable.key], machine)[runnable.key]]
                for machine in store.machines()
            ]
            # the runnable's own key names its build's artefact
            kept[runnable.revision] = (runnable.key, [each for each in ordinals if each])
        return kept


def _compared(
    kept: dict[str, tuple[str, list[list[int]]]],
    undisturbed: dict[str, tuple[str, list[list[int]]]],
    report: RunReport,
) -> tuple[int, int, int, int]:
    """Return how many samples there are, how many are lost, there twice, and artefacts unlike the undisturbed ones."""
    stored = [ordinals for _, machines in kept.values() for ordinals in machines]
    samples = sum(map(len, stored))
    most = [max((len(set(each)) for each in machines), default=0) for _, machines in kept.values()]
    lost = REVISIONS * INVOCATIONS - sum(most)
    twice = samples - sum(len(set(each)) for each in stored) + max(0, samples - report.invocations)
    others = sum(kept.get(revision, ("", []))[0] != key for revision, (key, _) in undisturbed.items())
    return samples, lost, twice, others
