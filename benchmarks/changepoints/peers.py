"""The peers: their installation, and a process that runs each."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

WORKER = Path(__file__).with_name("worker.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A detector: its name in the worker, its package, and the length of the longest series that it gets.

    `longest` excludes series that would take hours. A slow detector gets only a `share` of the series.
    """

    name: str
    title: str
    package: str
    longest: int
    share: float = 1.0


PEERS = (
    Peer(name="perftrail", title="perftrail", package="", longest=1_000_000),
    Peer(name="perftrail-alerts", title="perftrail, alerts", package="", longest=10_000),
    Peer(name="asv", title="asv, L1 Potts", package="asv==0.6.6", longest=10_000),
    Peer(name="otava", title="Apache Otava", package="apache-otava==0.8.0", longest=10_000),
    Peer(
        name="e-divisive",
        title="E-divisive (MongoDB)",
        package="signal-processing-algorithms==2.1.6",
        longest=1000,
        share=0.25,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    """The points that a detector reported, and how long the call took."""

    points: tuple[int, ...]
    seconds: float


class Detector:
    """A running detector. Raises `RuntimeError` if it fails."""

    def __init__(self, peer: Peer, directory: Path) -> None:
        self._peer = peer
        self._process = subprocess.Popen(
            [python_of(peer, directory), str(WORKER), peer.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def ask(self, values: list[float]) -> Detection:
        """Find the change points of a series."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(values) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._peer.title} ended with exit code {self._process.wait()}")
        answer = json.loads(line)
        return Detection(points=tuple(answer["points"]), seconds=answer["seconds"])


def python_of(peer: Peer, directory: Path) -> str:
    """Return the interpreter of the environment that has the detector."""
    return str(environment(peer, directory) / "bin" / "python") if peer.package else sys.executable


def environment(peer: Peer, directory: Path) -> Path:
    """Return the directory of a peer's environment. Each has one, since they need different versions of numpy."""
    return directory / "changepoints" / peer.package.partition("==")[0]


def is_installed(peer: Peer, directory: Path) -> bool:
    """Whether a detector is installed."""
    return Path(python_of(peer, directory)).exists()


def install(directory: Path) -> list[str]:
    """Install all missing peers; return a line for each that cannot be installed."""
    failed = []
    for peer in PEERS:
        if is_installed(peer, directory):
            continue
        venv = environment(peer, directory)
        lines = (
            [sys.executable, "-m", "venv", str(venv)],
            [str(venv / "bin/python"), "-m", "pip", "install", "--quiet", peer.package],
        )
        if any(subprocess.run(line, check=False, stdout=sys.stderr).returncode != 0 for line in lines):
            failed.append(f"{peer.title}: {peer.package} could not be installed")
    return failed
