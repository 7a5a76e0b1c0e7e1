"""A scheduler and workers in separate network namespaces, which one bridge connects.

The command and the scheduler are in a namespace as well, so all data between machines goes over the bridge. Workers
have separate directories, so builds must be copied.
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
"""The first revision with the higher cost."""

REGISTERED = re.compile(r"Register worker addr: +tcp://([0-9.]+):")


class NoNamespaces(Exception):
    """Network namespaces cannot be created here, with the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """The results of one study on machines that only a network connects, and on this machine."""

    addresses: tuple[str, ...]
    sent: dict[str, int]
    here: dict[str, Any]
    away: dict[str, Any]
    same_artefacts: bool
    measuring: tuple[str, ...]

    @property
    def agreed(self) -> bool:
        """Whether the answer and the builds are those without other machines."""
        return self.same_artefacts and _answer(self.here) == _answer(self.away)

    def __str__(self) -> str:
        bytes_ = ", ".join(f"{name} {number / 1e3:,.0f} kB" for name, number in self.sent.items())
        return (
            f"{len(self.addresses)} workers at {', '.join(self.addresses)}; they sent {bytes_}; "
            f"{', '.join(self.measuring)} measured\n"
            f"here: {_answer(self.here)}\naway: {_answer(self.away)}\n"
            f"{'the same answer, the same builds' if self.agreed else 'NOT THE SAME'}"
        )


def search(count: int, *, revisions: int, scratch: Path) -> Agreement:
    """Search one history on `count` machines and here. Raises `NoNamespaces`."""
    with tempfile.TemporaryDirectory(dir=scratch) as directory, ExitStack() as stack:
        home = Path(directory)
        names = [f"machine-{number + 1}" for number in range(count)]
        inside = stack.enter_context(_network([HEAD, *names]))
        repository = history.create_repository(
            home / "repository", revisions=revisions, cost=lambda number: 130 if number >= STEP else 100
        )
        study = Path(history.study(home / "study", repository, seconds=0.2).directory)
        machines = stack.enter_context(_started_workers(home, inside, names))
        engine = machines.address.replace("tcp://", "dask://")
        away = _find(study, "--engine", engine, inside=inside[HEAD])
        here = _find(study, "--store", str(home / "here"))
        log = (home / "scheduler.log").read_text()
        distributed, local = (
            _read_store(directory / "results.db") for directory in (study / ".perftrail", home / "here")
        )
        return Agreement(
            addresses=tuple(sorted(set(REGISTERED.findall(log)))),
            sent={name: _sent_bytes(inside[name]) for name in names},
            here=here,
            away=away,
            same_artefacts=all(
                distributed.artefacts[each] == local.artefacts[each]
                for each in distributed.artefacts.keys() & local.artefacts.keys()
            ),
            measuring=distributed.machines,
        )


@contextmanager
def _network(names: Sequence[str]) -> Iterator[dict[str, tuple[str, ...]]]:
    """Create a network namespace for each name and one with a bridge; return the commands that run programs inside.

    The first has the address 10.77.0.1, the next one 10.77.0.2 and so on. The network of this machine does not change.
    Raises `NoNamespaces`.
    """
    if os.geteuid() != 0:
        raise NoNamespaces("only root may create network namespaces")
    if shutil.which("ip") is None:
        raise NoNamespaces("the program ip is not installed (Debian: iproute2)")
    own = f"perftrail-{os.getpid()}"
    hub = f"{own}-hub"
    with ExitStack() as stack:
        _create_namespace(stack, hub)
        _ip("-n", hub, "link", "add", "bridge", "type", "bridge")
        _ip("-n", hub, "link", "set", "bridge", "up")
        for number, name in enumerate(names, start=1):
            space = f"{own}-{name}"
            _create_namespace(stack, space)
            port = f"port{number}"
            _ip("-n", hub, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", space)
            _ip("-n", hub, "link", "set", port, "master", "bridge", "up")
            _ip("-n", space, "address", "add", f"10.77.0.{number}/24", "dev", "eth0")
            _ip("-n", space, "link", "set", "lo", "up")
            _ip("-n", space, "link", "set", "eth0", "up")
        yield {name: ("ip", "netns", "exec", f"{own}-{name}") for name in names}


def _create_namespace(stack: ExitStack, space: str) -> None:
    """Create a network namespace, which is deleted at the end."""
    _ip("netns", "add", space)
    stack.callback(_ip, "netns", "delete", space)


def _ip(*arguments: str) -> str:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoNamespaces(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


@contextmanager
def _started_workers(
    home: Path, inside: dict[str, tuple[str, ...]], names: Sequence[str]
) -> Iterator[Machines]:
    """Start a scheduler and a worker on each machine; end them all on exit."""
    log = home / "scheduler.log"
    options = ["--host", "10.77.0.1", "--port", f"{PORT}", "--no-dashboard"]
    with log.open("wb") as output:
        scheduler = subprocess.Popen(
            [*inside[HEAD], sys.executable, "-m", "distributed.cli.dask_scheduler", *options],
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
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


def _find(study: Path, *options: str, inside: Sequence[str] = ()) -> dict[str, Any]:
    """Search a study and return the answer."""
    arguments = ["find", str(study), "--metric", "cost", "--threshold", "0.05", "--json", *options]
    done = subprocess.run(
        [*inside, *PERFTRAIL, *arguments], env=environment(), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"perftrail {' '.join(arguments)}: {done.stderr}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stored:
    """The artefact of each revision in a store, and the names of the machines that measured."""

    artefacts: dict[str, str]
    machines: tuple[str, ...]


def _read_store(database: Path) -> _Stored:
    with open_store(str(database), access="read") as store:
        runnables = store.runnables()
        keys = [each.key for each in runnables]
        measured = [
            machine.facts.get("name", id_)
            for id_, machine in store.machines().items()
            if any(store.outcomes(keys, id_).values())
        ]
        return _Stored(
            artefacts={each.revision: each.artefact for each in runnables}, machines=tuple(measured)
        )


def _sent_bytes(inside: Sequence[str]) -> int:
    """Return the number of bytes that a machine has sent so far."""
    links: list[dict[str, Any]] = json.loads(_ip("-n", inside[-1], "-s", "-j", "link", "show", "eth0"))
    return int(links[0]["stats64"]["tx"]["bytes"])


def _answer(answer: dict[str, Any]) -> tuple[str, tuple[tuple[str, ...], ...]]:
    """Return the verdict and the revisions of the changes."""
    return answer["verdict"], tuple(tuple(each["revisions"]) for each in answer["changes"])
