"""Workers of our own on this machine: a scheduler in this process, and processes that end with it.

Everything between them is encrypted with a certificate that is made for them alone: without it, whoever can
reach the scheduler's port on this machine could run programs as us.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import dask
from distributed import LocalCluster, Security

from perftrail.engines.cluster import Cluster, connected
from perftrail.engines.speech import silence
from perftrail.errors import ClusterError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SECONDS_TO_LEAVE = 10.0

MOST_DEATHS = 20
"""So many workers may die with one job before the scheduler takes it for what kills them."""

_FILES = {
    "tls_ca_file": "CA_FILE",
    "tls_worker_cert": "WORKER__CERT",
    "tls_worker_key": "WORKER__KEY",
}
"""What a worker needs of the certificate, and by which of Dask's own variables it is told."""


@contextmanager
def own_workers(count: int, *, home: Path) -> Iterator[Cluster]:
    """Start a scheduler and workers with a build each, all of them this machine; they end with the block.

    When this process dies, the workers see their scheduler gone and end as well. `home` is a directory of theirs that
    only we can enter. Raises `ClusterError`.
    """
    try:
        security = Security.temporary()
    except ImportError as error:
        raise ClusterError(
            "--engine dask:local needs cryptography: pip install 'perftrail[cluster]'"
        ) from error
    # Its web server serves nothing: it has no password.
    quiet = {"distributed.scheduler.allowed-failures": MOST_DEATHS, "distributed.scheduler.http.routes": []}
    dask.config.set(quiet)
    silence()
    with LocalCluster(
        n_workers=0,
        host="127.0.0.1",
        protocol="tls://",
        dashboard_address="127.0.0.1:0",
        security=security,
        silence_logs=logging.CRITICAL,
    ) as cluster:
        address = str(cluster.scheduler_address)
        environment = {**os.environ, **_written(security, home)}
        started = [_start(address, home / f"{number}", environment) for number in range(count)]
        try:
            with connected(address, security=security, workers=count) as joined:
                yield joined
        finally:
            _end(started)


def _start(address: str, directory: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start a worker that is this machine, and no other one by a name."""
    words = [sys.executable, "-m", "perftrail", "worker", address, "--builds", "1", "--machine", ""]
    with directory.with_suffix(".log").open("ab") as log:
        return subprocess.Popen(
            [*words, "--directory", str(directory)],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )


def _written(security: Security, home: Path) -> dict[str, str]:
    """Write a certificate where only we can read it; give the variables that say where."""
    told = {}
    for name, variable in _FILES.items():
        path = home / name
        path.write_text(str(getattr(security, name)), encoding="ascii")
        path.chmod(0o600)
        told[f"DASK_DISTRIBUTED__COMM__TLS__{variable}"] = str(path)
    return told


def _end(started: list[subprocess.Popen[bytes]]) -> None:
    for process in started:
        process.terminate()
    for process in started:
        try:
            process.wait(SECONDS_TO_LEAVE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
