"""A scheduler that stops: the command reports it, workers end, and the same command resumes later."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.cluster.machines import SOURCES, until
from tests.cluster.test_machines import kept, study
from tests.e2e.printing import program
from tests.sources.repositories import Repository

pytestmark = [pytest.mark.long, pytest.mark.slow("cluster")]

COMMAND = [sys.executable, "-m", "perftrail"]
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": str(SOURCES),
    "DASK_DISTRIBUTED__SCHEDULER__HTTP__ROUTES": "[]",
}


def start(*words: str, log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as file:
        return subprocess.Popen(
            [sys.executable, "-m", *words],
            env=ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
        )


def scheduler(log: Path, *, port: int = 0) -> tuple[subprocess.Popen[bytes], int]:
    words = ["--host", "127.0.0.1", "--port", f"{port}", "--dashboard-address", "127.0.0.1:0"]
    process = start("distributed.cli.dask_scheduler", *words, log=log)
    until(lambda: "Scheduler at:" in log.read_text())
    (line,) = (line for line in log.read_text().splitlines() if "Scheduler at:" in line)
    return process, int(line.rpartition(":")[2])


def test_a_lost_scheduler_is_reported_and_samples_are_kept(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repository")
    for number in range(2):
        repository.commit(program(100, name=f"revision {number}", body="sleep 0.2\n"))
    file = study(tmp_path / "study", repository)
    file.write_text(file.read_text().replace("invocations = 2", "invocations = 4"))
    (process, port), worker = scheduler(tmp_path / "scheduler.log"), None
    address = f"127.0.0.1:{port}"
    try:
        attend = ("perftrail", "worker", f"tcp://{address}", "--machine", "one")
        worker = start(*attend, "--directory", str(tmp_path / "one"), log=tmp_path / "one.log")
        words = ["run", str(file), "--engine", f"dask://{address}", "--json"]
        running = subprocess.Popen(
            [*COMMAND, *words], env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        logs = file.parent / ".perftrail" / "logs" / "runs"
        until(lambda: len(list(logs.glob("*/*.out"))) >= 3)
        process.send_signal(signal.SIGKILL)
        process.wait()
        _, output = running.communicate(timeout=60)
        assert running.returncode == 1
        assert "the scheduler does not answer any more; all samples are stored" in output
        assert "Traceback" not in output
        assert worker.wait(30) == 1
        assert "the scheduler ended, or removed this worker" in (tmp_path / "one.log").read_text()
        process, _ = scheduler(tmp_path / "scheduler.log", port=port)
        worker = start(*attend, "--directory", str(tmp_path / "one"), log=tmp_path / "one.log")
        again = subprocess.run(
            [*COMMAND, *words], env=ENVIRONMENT, capture_output=True, text=True, timeout=60, check=False
        )
        assert again.returncode == 0, again.stderr
        assert '"measured": 2' in again.stdout
        fresh = int(again.stdout.partition('"invocations": ')[2].partition(",")[0])
        assert 0 < fresh < 8, "what was measured before is not measured again"
        assert sum(map(len, kept(file)["samples"]["one"].values())) == 8
        worker.terminate()
        assert worker.wait(20) == 0, "it ends normally at SIGTERM"
    finally:
        for each in (process, worker):
            if each is not None:
                each.kill()
                each.wait()
