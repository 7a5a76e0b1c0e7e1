"""A study on workers that a real Slurm starts; left out where Slurm is not installed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from benchmarks.cluster.machines import REPOSITORY, SOURCES, machines, until
from tests.cluster import slurm
from tests.cluster.test_machines import kept, run
from tests.e2e.printing import program, write_study
from tests.sources.repositories import Repository

pytestmark = [
    pytest.mark.slow("cluster"),
    pytest.mark.skipif(not slurm.can_be_had(), reason="Slurm is not installed, or we may not start it"),
]

JOB = REPOSITORY / "deploy" / "slurm" / "workers.sh"


def test_workers_of_a_slurm_job_measure_a_study_and_end_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = Repository(tmp_path / "repository")
    for number in range(3):
        repository.commit(program(100, name=f"revision {number}"))
    file = write_study(tmp_path / "study", repository)
    command = tmp_path / "bin" / "perftrail"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nPYTHONPATH={SOURCES} exec {sys.executable} -m perftrail "$@"\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("PERFTRAIL_DIRECTORY", str(tmp_path / "worker"))
    monkeypatch.chdir(tmp_path)
    with slurm.slurm(tmp_path / "slurm") as started, machines(tmp_path / "machines") as nobody:
        started.environment |= {name: os.environ[name] for name in ("PERFTRAIL_DIRECTORY",)} | {
            "PATH": f"{command.parent}:{slurm.PATH}"
        }
        job = started.say("sbatch", "--parsable", str(JOB), nobody.address)
        report = run(file, nobody.address.replace("tcp://", "dask://"))
        assert report.measured == report.cells == 3
        assert {name for name, samples in kept(file)["samples"].items() if samples}
        started.say("scancel", job)
        until(lambda: not started.say("squeue", "--noheader"), seconds=30)
        until(lambda: not nobody.workers, seconds=30)
