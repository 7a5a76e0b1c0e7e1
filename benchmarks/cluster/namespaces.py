"""A scheduler and workers that share no network: each in a namespace of its own, at the ports of one bridge.

The command and the scheduler are in a namespace as well, so that all that goes between machines goes over the bridge.
Workers keep to directories of their own: what they build has to travel.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.cluster import history
from benchmarks.cluster.machines import PERFTRAIL, Machines, environment, until
from perftrail.store import open_store

HEAD = "head"
PORT = 8786
STEP = 4
"""The revision that costs more than all before it."""

REGISTERED = re.compile(r"Register worker addr: +tcp://([0-9.]+):")


class NoNamespaces(Exception):
    """Networks of one's own cannot be had here; says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What one study came to, on machines that only a network connects, and here by itself."""

    addresses: tuple[str, ...]
    sent: dict[str, int]
    here: dict[str, Any]
    away: dict[str, Any]
    made_alike: bool
    measuring: tuple[str, ...]

    @property
    def agreed(self) -> bool:
        """Whether the answer, the builds and what was measured are what they are without other machines."""
        return self.made_alike and _said(self.here) == _said(self.away)

    def __str__(self) -> str:
        bytes_ = ", ".join(f"{name} {number / 1e3:,.0f} kB" for name, number in self.sent.items())
        return (
            f"{len(self.addresses)} workers at {', '.join(self.addresses)}; they sent {bytes_}; "
            f"{', '.join(self.measuring)} measured\n"
            f"here: {_said(self.here)}\naway: {_said(self.away)}\n"
            f"{'the same answer, the same builds' if self.agreed else 'NOT THE SAME'}"
        )


def play(count: int, *, revisions: int, scratch: Path) -> Found:
    """Search one history on so many machines and here. Raises `NoNamespaces`."""
    with tempfile.TemporaryDirectory(dir=scratch) as directory, ExitStack() as stack:
        home = Path(directory)
        names = [f"machine-{number + 1}" for number in range(count)]
        inside = stack.enter_context(_connected([HEAD, *names]))
        repository = history.make(
            home / "repository", revisions=revisions, cost=lambda number: 130 if number >= STEP else 100
        )
        study = Path(history.study(home / "study", repository, seconds=0.2).directory)
        machines = stack.enter_context(_working(home, inside, names))
        engine = machines.address.replace("tcp://", "dask://")
        away = _find(study, "--engine", engine, inside=inside[HEAD])
        here = _find(study, "--store", str(home / "here"))
        log = (home / "scheduler.log").read_text()
        there, alone = (
            _kept(directory / "results.db") for directory in (study / ".perftrail", home / "here")
        )
        return Found(
            addresses=tuple(sorted(set(REGISTERED.findall(log)))),
            sent={name: _sent(inside[name]) for name in names},
            here=here,
            away=away,
            made_alike=all(
                there.artefacts[each] == alone.artefacts[each]
                for each in there.artefacts.keys() & alone.artefacts.keys()
            ),
            measuring=there.machines,
        )


@contextmanager
def _connected(names: Sequence[str]) -> Iterator[dict[str, tuple[str, ...]]]:
    """Make a network namespace for each name, at a bridge in one more; give the words that start programs inside.

    The first has the address 10.77.0.1, the next one 10.77.0.2 and so on. Nothing of this machine's own network is
    touched. Raises `NoNamespaces`.
    """
    if os.geteuid() != 0:
        raise NoNamespaces("only root may make network namespaces")
    if shutil.which("ip") is None:
        raise NoNamespaces("the program ip is not installed (Debian: iproute2)")
    own = f"perftrail-{os.getpid()}"
    hub = f"{own}-hub"
    with ExitStack() as stack:
        _made(stack, hub)
        _ip("-n", hub, "link", "add", "bridge", "type", "bridge")
        _ip("-n", hub, "link", "set", "bridge", "up")
        for number, name in enumerate(names, start=1):
            space = f"{own}-{name}"
            _made(stack, space)
            port = f"port{number}"
            _ip("-n", hub, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", space)
            _ip("-n", hub, "link", "set", port, "master", "bridge", "up")
            _ip("-n", space, "address", "add", f"10.77.0.{number}/24", "dev", "eth0")
            _ip("-n", space, "link", "set", "lo", "up")
            _ip("-n", space, "link", "set", "eth0", "up")
        yield {name: ("ip", "netns", "exec", f"{own}-{name}") for name in names}


def _made(stack: ExitStack, space: str) -> None:
    """Make a network namespace, which goes with all that is in it."""
    _ip("netns", "add", space)
    stack.callback(_ip, "netns", "delete", space)


def _ip(*words: str) -> str:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoNamespaces(f"ip {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


@contextmanager
def _working(home: Path, inside: dict[str, tuple[str, ...]], names: Sequence[str]) -> Iterator[Machines]:
    """Start a scheduler and a worker on each machine; ends all of them."""
    log = home / "scheduler.log"
    words = ["--host", "10.77.0.1", "--port", f"{PORT}", "--no-dashboard"]
    with log.open("wb") as said:
        scheduler = subprocess.Popen(
            [*inside[HEAD], sys.executable, "-m", "distributed.cli.dask_scheduler", *words],
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
        )
    machines = Machines(
        f"tcp://10.77.0.1:{PORT}", home, known=lambda: len(set(REGISTERED.findall(log.read_text())))
    )
    try:
        until(lambda: "Scheduler at:" in log.read_text())
        for name in names:
            machines.start(name, "--apart", inside=inside[name])
        machines.await_workers(len(names))
        yield machines
    finally:
        machines.end()
        scheduler.terminate()
        scheduler.wait()


def _find(study: Path, *words: str, inside: Sequence[str] = ()) -> dict[str, Any]:
    """Search a study and give the answer."""
    asked = ["find", str(study), "--metric", "cost", "--threshold", "0.05", "--json", *words]
    done = subprocess.run(
        [*inside, *PERFTRAIL, *asked], env=environment(), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"perftrail {' '.join(asked)}: {done.stderr}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """What a store holds: artefacts by revision, and the names of the machines that measured."""

    artefacts: dict[str, str]
    machines: tuple[str, ...]


def _kept(database: Path) -> _Kept:
    with open_store(str(database), access="read") as store:
        runnables = store.runnables()
        keys = [each.key for each in runnables]
        measured = [
            machine.facts.get("name", id_)
            for id_, machine in store.machines().items()
            if any(store.outcomes(keys, id_).values())
        ]
        return _Kept(artefacts={each.revision: each.artefact for each in runnables}, machines=tuple(measured))


def _sent(inside: Sequence[str]) -> int:
    """Return how many bytes a machine has sent so far."""
    told: list[dict[str, Any]] = json.loads(_ip("-n", inside[-1], "-s", "-j", "link", "show", "eth0"))
    return int(told[0]["stats64"]["tx"]["bytes"])


def _said(answer: dict[str, Any]) -> tuple[str, tuple[tuple[str, ...], ...]]:
    """Return the verdict and who is to blame."""
    return answer["verdict"], tuple(tuple(each["revisions"]) for each in answer["changes"])
