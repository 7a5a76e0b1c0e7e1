"""A scheduler of Dask in this process, and real `perftrail worker` processes with different machine names."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import dask
from distributed import LocalCluster, Security

REPOSITORY = Path(__file__).parents[2]
SOURCES = REPOSITORY / "src"
PERFTRAIL = (sys.executable, "-m", "perftrail")


class Machines:
    """The workers of a scheduler, which can be started and killed; `known` counts those that the scheduler knows."""

    def __init__(self, address: str, home: Path, *, known: Callable[[], int]) -> None:
        self.address = address
        self._home = home
        self._known = known
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(
        self, name: str, *options: str, builds: int = 1, inside: Sequence[str] = ()
    ) -> subprocess.Popen[bytes]:
        """Start the worker of a machine, with the arguments `inside` before its command."""
        arguments = ["worker", self.address, "--machine", name, "--builds", f"{builds}"]
        with (self._home / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [*inside, *PERFTRAIL, *arguments, "--directory", str(self._home / name), *options],
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        return self.processes[name]

    def kill(self, name: str) -> None:
        """Kill the worker of a machine with -9."""
        process = self.processes.pop(name)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def log(self, name: str) -> str:
        """Return the log of the worker of a machine."""
        return (self._home / f"{name}.log").read_text()

    def await_workers(self, count: int) -> None:
        """Wait until the scheduler knows `count` workers."""
        until(lambda: self.workers >= count)

    @property
    def workers(self) -> int:
        """Return the number of workers that the scheduler knows."""
        return self._known()

    def end(self) -> None:
        """End every worker."""
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
            process.wait()


@contextmanager
def machines(
    home: Path, names: Sequence[str] = (), *options: str, builds: int = 1, security: Security | None = None
) -> Iterator[Machines]:
    """Start a scheduler and a worker for each machine; end them all on exit."""
    home.mkdir(parents=True, exist_ok=True)
    config: dict[str, Any] = {
        "distributed.scheduler.allowed-failures": 20,
        "distributed.scheduler.http.routes": [],
    }
    with (
        dask.config.set(config),
        LocalCluster(
            n_workers=0,
            host="127.0.0.1",
            protocol="tcp://" if security is None else "tls://",
            dashboard_address="127.0.0.1:0",
            security=security,
            silence_logs=logging.CRITICAL,
        ) as cluster,
    ):

        def known() -> int:
            return 0 if cluster.scheduler is None else len(cluster.scheduler.workers)

        started = Machines(str(cluster.scheduler_address), home, known=known)
        try:
            for name in names:
                started.start(name, *options, builds=builds)
            started.await_workers(len(names))
            yield started
        finally:
            started.end()


def environment() -> dict[str, str]:
    """Return the environment of every process: with this source, and without the web pages of a scheduler."""
    own = {"PYTHONPATH": str(SOURCES), "DASK_DISTRIBUTED__SCHEDULER__HTTP__ROUTES": "[]"}
    return {**os.environ, **own}


def until(condition: Callable[[], bool], *, seconds: float = 60.0) -> None:
    """Wait until a condition is true."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not become true"
        time.sleep(0.05)
