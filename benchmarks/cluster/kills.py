"""Workers killed with -9 at random instants while studies run: the lost and the duplicate samples."""

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
class Damage:
    """The result of the kills: the studies that ran meanwhile, and their lost, duplicate and different results."""

    kills: int
    studies: int
    samples: int
    lost: int
    twice: int
    other_artefacts: int

    @property
    def nothing_lost(self) -> bool:
        """Whether every study ended as without kills."""
        return self.lost == self.twice == self.other_artefacts == 0

    def __str__(self) -> str:
        return (
            f"{self.kills} kills while {self.studies} studies ran: {self.samples} samples, {self.lost} lost, "
            f"{self.twice} twice, {self.other_artefacts} artefacts different from those of one process"
        )


def kill_workers(kills: int, *, machines: int, seed: int, scratch: Path) -> Damage:
    """Run studies on several machines until `kills` workers were killed, and check the stores."""
    with tempfile.TemporaryDirectory(dir=scratch) as home:
        return _kill_workers(kills, Path(home), machines_=machines, seed=seed)


def _kill_workers(kills: int, home: Path, *, machines_: int, seed: int) -> Damage:
    repository = history.create_repository(home / "repository", revisions=REVISIONS)
    alone = history.study(home / "alone", repository, seconds=0.0, invocations=INVOCATIONS)
    _run(alone, None)
    undisturbed = _stored(alone)
    names = [f"machine-{number}" for number in range(machines_)]
    tallies: list[tuple[int, int, int, int]] = []
    with machines(home / "machines", names) as started:
        killer = Killer(started, names, kills=kills, seed=seed)
        with killer:
            while not killer.done:
                # each study is in a new directory, so it builds everything again
                study = history.study(
                    home / f"study-{len(tallies)}",
                    repository,
                    seconds=SECONDS_OF_A_BUILD,
                    invocations=INVOCATIONS,
                )
                report = _run(study, started.address.replace("tcp://", "dask://"))
                tallies.append(_compare(_stored(study), undisturbed, report))
    samples, lost, twice, others = (sum(each) for each in zip(*tallies, strict=True))
    return Damage(
        kills=killer.count,
        studies=len(tallies),
        samples=samples,
        lost=lost,
        twice=twice,
        other_artefacts=others,
    )


class Killer:
    """Kills workers at random instants, and starts a new worker for the machine each time."""

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
        """Whether enough workers were killed."""
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


def _stored(study: Study) -> dict[str, tuple[str, list[list[int]]]]:
    """Return the stored artefact of each revision, and the ordinals of its samples on each machine."""
    with open_store(f"{study.directory}/.perftrail/results.db", access="read") as store:
        results = {}
        for runnable in store.runnables():
            ordinals = [
                [outcome.key.ordinal for outcome in store.outcomes([runnable.key], machine)[runnable.key]]
                for machine in store.machines()
            ]
            # the key of a runnable contains the artefact of its build
            results[runnable.revision] = (runnable.key, [each for each in ordinals if each])
        return results


def _compare(
    results: dict[str, tuple[str, list[list[int]]]],
    undisturbed: dict[str, tuple[str, list[list[int]]]],
    report: RunReport,
) -> tuple[int, int, int, int]:
    """Return the numbers of samples, lost samples, duplicate samples and different artefacts."""
    stored = [ordinals for _, machines in results.values() for ordinals in machines]
    samples = sum(map(len, stored))
    most = [max((len(set(each)) for each in machines), default=0) for _, machines in results.values()]
    lost = REVISIONS * INVOCATIONS - sum(most)
    twice = samples - sum(len(set(each)) for each in stored) + max(0, samples - report.invocations)
    others = sum(results.get(revision, ("", []))[0] != key for revision, (key, _) in undisturbed.items())
    return samples, lost, twice, others
