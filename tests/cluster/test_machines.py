"""Studies on four machines: real `perftrail worker` processes with declared names, real git, builds and kills.

`make test` has the same in `test_own_directories` and `test_machine_left`, with fewer processes.
"""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.cluster.machines import SOURCES, Machines, machines, until
from perftrail import studyfile
from perftrail.cli.options import SessionOptions
from perftrail.find.answer import FindAnswer, FindRequest
from perftrail.find.find import Find
from perftrail.model.target import resolve
from perftrail.opening import open_session, open_view
from perftrail.process.machine import read_machine
from perftrail.results.selection import select
from perftrail.search.budget import Budget
from perftrail.store import open_store
from perftrail.verbs.run import Run, RunReport
from tests.e2e.printing import program, write_study
from tests.measure.fake_session import drain
from tests.sources.repositories import Repository

pytestmark = [pytest.mark.long, pytest.mark.slow("cluster")]

NAMES = ("one", "two", "three", "four")
CULPRIT = 4
COSTS = tuple(130 if number >= CULPRIT else 100 for number in range(6))
SECONDS_TO_BE_GONE = 2.0


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    with machines(tmp_path_factory.mktemp("machines"), NAMES) as started:
        yield started


def history(path: Path, costs: tuple[int, ...] = COSTS, *, build: str = "") -> Repository:
    repository = Repository(path)
    for number, cost in enumerate(costs):
        repository.commit(program(cost, name=f"revision {number}", build=build))
    return repository


def study(path: Path, repository: Repository) -> Path:
    """Write a study that takes two samples of each revision."""
    file = write_study(path, repository)
    file.write_text(file.read_text().replace("warmups = 0", "warmups = 0\ninvocations = 2"))
    return file


def run(file: Path, engine: str | None, *, store: Path | None = None) -> RunReport:
    loaded = studyfile.load(str(file))
    with open_session(loaded, store=None if store is None else str(store), engine=engine) as session:
        _, report = drain(Run(session, select(loaded, ())).events())
    return report


def find(file: Path, engine: str | None) -> FindAnswer:
    loaded = studyfile.load(str(file))
    request = FindRequest(
        goal=(resolve(loaded, "cost"),),
        range=None,
        threshold=0.05,
        confidence=0.99,
        budget=Budget(invocations=200),
    )
    with open_session(loaded, store=None, engine=engine) as session:
        _, answer = drain(Find(session, request).events())
    assert isinstance(answer, FindAnswer)
    return answer


def kept(file: Path, *, store: Path | None = None) -> dict[str, Any]:
    """The content of a store: artefacts by revision, and the number of samples by machine."""
    with open_store(str((store or file.parent / ".perftrail") / "results.db"), access="read") as opened:
        runnables = opened.runnables()
        names = {id_: machine.facts.get("name", "") for id_, machine in opened.machines().items()}
        outcomes = {
            names[machine]: opened.outcomes([each.key for each in runnables], machine) for machine in names
        }
        return {
            "made": {each.revision: (each.key, each.artefact) for each in runnables},
            "samples": {
                name: {key: [each.key.ordinal for each in those] for key, those in of.items() if those}
                for name, of in outcomes.items()
            },
        }


def engine_of(four: Machines) -> str:
    return four.address.replace("tcp://", "dask://")


def test_a_study_on_four_machines_ends_as_it_does_here(tmp_path: Path, four: Machines) -> None:
    repository = history(tmp_path / "repository")
    here, there = (study(tmp_path / name, repository) for name in ("here", "there"))
    local, away = run(here, None), run(there, engine_of(four))
    assert (away.revisions, away.cells, away.measured) == (local.revisions, local.cells, local.measured)
    assert not away.failures
    ours, theirs = kept(here), kept(there)
    assert theirs["made"] == ours["made"]
    measuring = {name for name, samples in theirs["samples"].items() if samples}
    assert measuring == {"four"}, "samples are of the first machine by its name"
    answers = [find(here, None), find(there, engine_of(four))]
    assert [each.answer.verdict for each in answers] == ["found", "found"]
    assert [[change.positions for change in each.answer.changes] for each in answers] == [[(CULPRIT,)]] * 2
    measured = {name for name, samples in kept(there)["samples"].items() if samples}
    assert measured == {"four"}, "and so are those that a search took"


def test_jobs_of_a_killed_worker_are_repeated_and_stored_once(tmp_path: Path, four: Machines) -> None:
    repository = history(tmp_path / "repository", build="sleep 0.2")
    file = study(tmp_path / "study", repository)
    chance = random.Random(8)
    done = threading.Event()
    killed = 0

    def kill() -> None:
        nonlocal killed
        while not done.wait(chance.uniform(0.3, 1.5)) and killed < 4:
            name = chance.choice(NAMES)
            four.kill(name)
            four.start(name)
            killed += 1

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        report = run(file, engine_of(four))
    finally:
        done.set()
        killer.join()
    assert killed
    assert report.measured == report.cells == len(COSTS)
    assert not report.failures
    samples = kept(file)["samples"]
    assert set(samples) <= set(NAMES)
    counts = [ordinals for of in samples.values() for ordinals in of.values()]
    assert all(ordinals == list(range(len(ordinals))) for ordinals in counts)
    assert sum(map(len, counts)) == report.invocations
    with sqlite3.connect(file.parent / ".perftrail" / "results.db") as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_processes_of_a_killed_worker_end_within_two_seconds(tmp_path: Path, four: Machines) -> None:
    begun = tmp_path / "begun"
    first = f"mkdir {begun} 2>/dev/null && {{ echo $$ > {begun}/pid; sleep 1000; }}; true"
    repository = history(tmp_path / "repository", (100, 100), build=first)
    file = study(tmp_path / "study", repository)
    reports: list[RunReport] = []
    runner = threading.Thread(target=lambda: reports.append(run(file, engine_of(four))))
    runner.start()
    until(lambda: (begun / "pid").exists() and bool((begun / "pid").read_text().strip()))
    builder = int((begun / "pid").read_text())
    name = next(each for each in NAMES if ancestor(builder, four.processes[each].pid))
    four.kill(name)
    killed = time.monotonic()
    until(lambda: not Path(f"/proc/{builder}").exists(), seconds=SECONDS_TO_BE_GONE)
    assert time.monotonic() - killed < SECONDS_TO_BE_GONE
    four.start(name)
    runner.join(60)
    assert [report.measured for report in reports] == [2], "another worker has made it"


def test_jobs_of_a_killed_command_end_soon(tmp_path: Path, four: Machines) -> None:
    begun = tmp_path / "begun"
    repository = history(tmp_path / "repository", (100,), build=f"echo $$ > {begun}; sleep 1000")
    file = study(tmp_path / "study", repository)
    command = subprocess.Popen(
        [sys.executable, "-m", "perftrail", "run", str(file), "--engine", engine_of(four)],
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
        stderr=subprocess.DEVNULL,
    )
    until(lambda: begun.exists() and bool(begun.read_text().strip()))
    command.kill()
    command.wait()
    builder = Path(f"/proc/{int(begun.read_text())}")
    until(lambda: not builder.exists())


def test_when_the_measuring_machine_leaves_another_one_repeats_the_measurement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("perftrail.cluster.dask.SECONDS_TO_REAPPEAR", 0.5)
    repository = Repository(tmp_path / "repository")
    for number in range(3):
        repository.commit(program(100, name=f"revision {number}", body="sleep 0.3\n"))
    file = study(tmp_path / "study", repository)
    options = SessionOptions(store=None, wait=True, retry_failed=False, sandbox=None)
    loaded = studyfile.load(str(file))
    with machines(tmp_path / "machines", ("alpha", "beta")) as two:
        logs = file.parent / ".perftrail" / "logs" / "runs"

        def kill() -> None:
            until(lambda: len(list(logs.glob("*/*.out"))) >= 2)
            two.kill("alpha")

        killer = threading.Thread(target=kill)
        killer.start()
        report = options.run(
            loaded, lambda session: Run(session, select(loaded, ())).events(), engine=engine_of(two)
        )
        killer.join()
        two.start("alpha")
        two.await_workers(2)
        again = run(file, engine_of(two))
    assert (again.measured, again.invocations) == (3, 0), "the one that measured last goes on"
    assert report.measured == report.cells == 3
    assert 'machine "alpha" has had no worker for 0.5 s' in capsys.readouterr().err
    samples = kept(file)["samples"]
    assert sorted(map(len, samples["beta"].values())) == [2, 2, 2]
    assert 0 < sum(map(len, samples["alpha"].values())) < 6
    with open_view(loaded, store=None) as view:
        assert view.machine.facts["name"] == "beta", "what is looked at is the one that measured last"


def test_started_workers_are_this_machine(tmp_path: Path) -> None:
    file = study(tmp_path / "study", history(tmp_path / "repository", (100, 100)))
    report = run(file, "dask:local:2")
    assert (report.measured, report.invocations) == (2, 4)
    with open_store(str(file.parent / ".perftrail" / "results.db"), access="read") as store:
        assert list(store.machines()) == [read_machine().id]
    again = run(file, None)
    assert (again.measured, again.invocations) == (2, 0)


def ancestor(process: int, of: int) -> bool:
    """Whether a process was started, however indirectly, by another one; a launcher's guard is its child."""
    while process > 1:
        if process == of:
            return True
        stat = Path(f"/proc/{process}/stat").read_text()
        process = int(stat.rpartition(")")[2].split()[1])
    return False
