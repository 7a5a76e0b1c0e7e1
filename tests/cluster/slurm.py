"""A Slurm of one node on this machine, in a separate directory: munged, slurmctld and slurmd run during the block."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scancel", "squeue", "sinfo")
PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"

CONFIGURATION = """\
ClusterName=perftrail
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={node}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={home}/munge.socket
CredType=cred/munge
StateSaveLocation={home}/state
SlurmdSpoolDir={home}/spool
SlurmctldPidFile={home}/slurmctld.pid
SlurmdPidFile={home}/slurmd.pid
SlurmctldLogFile={home}/slurmctld.log
SlurmdLogFile={home}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
SwitchType=switch/none
KillWait=5
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def can_be_had() -> bool:
    """Whether Slurm is installed and can be started."""
    return os.geteuid() == 0 and all(shutil.which(each, path=PATH) for each in PROGRAMS)


class Slurm:
    """A running Slurm; `environment` is that of its commands."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.environment = {**os.environ, "PATH": PATH, "SLURM_CONF": str(home / "slurm.conf")}

    def say(self, *words: str) -> str:
        """Run one of its commands and give what it prints."""
        return subprocess.run(
            words, env=self.environment, capture_output=True, text=True, check=True, timeout=30
        ).stdout.strip()


@contextmanager
def slurm(home: Path) -> Iterator[Slurm]:
    """Start it, wait until its node is idle, and end it with all that it started."""
    home.mkdir(parents=True, mode=0o755)
    for name in ("state", "spool"):
        (home / name).mkdir()
    (home / "munge.key").write_bytes(os.urandom(1024))
    (home / "munge.key").chmod(0o400)
    host = platform.node().partition(".")[0]
    (home / "slurm.conf").write_text(
        CONFIGURATION.format(
            home=home,
            host=host,
            user="root",
            cpus=os.cpu_count(),
            controller=_free_port(),
            node=_free_port(),
        )
    )
    started = Slurm(home)
    commands = [
        [
            "munged",
            "--foreground",
            "--force",
            f"--key-file={home}/munge.key",
            f"--socket={home}/munge.socket",
            f"--pid-file={home}/munged.pid",
            f"--log-file={home}/munged.log",
            f"--seed-file={home}/munged.seed",
        ],
        ["slurmctld", "-D", "-i"],
        ["slurmd", "-D", "-N", host],
    ]
    running: list[subprocess.Popen[bytes]] = []
    try:
        for command in commands:
            with (home / f"{command[0]}.output").open("wb") as reported:
                running.append(
                    subprocess.Popen(
                        command,
                        env=started.environment,
                        stdin=subprocess.DEVNULL,
                        stdout=reported,
                        stderr=reported,
                        start_new_session=True,
                    )
                )
            time.sleep(0.5)
        _await_idle(started)
        yield started
    finally:
        for process in reversed(running):
            process.terminate()
        for process in running:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _await_idle(started: Slurm) -> None:
    deadline = time.monotonic() + 30
    state = ""
    while state != "idle":
        if time.monotonic() > deadline:
            output = {each.name: each.read_text()[-1000:] for each in started.home.glob("*.output")}
            logs = {each.name: each.read_text()[-2000:] for each in started.home.glob("*.log")}
            raise AssertionError(f"the node is {state!r}: {output} {logs}")
        time.sleep(0.5)
        try:
            state = started.say("sinfo", "--noheader", "--format=%T")
        except subprocess.SubprocessError as error:
            state = str(error)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
