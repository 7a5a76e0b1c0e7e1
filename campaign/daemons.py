"""Builds that ask a process which they did not start, in every way to reach one, as builds with a compile server do.

Two revisions differ in a file that only the daemon reads. Their builds differ, so perftrail must build and measure
both, though it observed that the build does not open the file.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from campaign import Result, command_line
from perftrail.model.measurement import Measurement
from perftrail.process.machine import read_machine
from perftrail.results_directory import DATABASE, RESULTS
from perftrail.store import open_store

if TYPE_CHECKING:
    from collections.abc import Iterator

WAYS = {
    "stream": ("AF_INET", "STREAM", ("127.0.0.1", 0), "127.0.0.1"),
    "any address": ("AF_INET", "STREAM", ("0.0.0.0", 0), "0.0.0.0"),
    "another address of the host": ("AF_INET", "STREAM", ("0.0.0.0", 0), "127.0.0.2"),
    "IPv6": ("AF_INET6", "STREAM", ("::1", 0), "::1"),
    "IPv4 in IPv6": ("AF_INET6", "STREAM", ("::", 0), "::ffff:127.0.0.1"),
    "datagram without connect": ("AF_INET", "DGRAM", ("127.0.0.1", 0), "127.0.0.1"),
    "Unix": ("AF_UNIX", "STREAM", "socket", "socket"),
    "Unix without a path": ("AF_UNIX", "STREAM", "\0perftrail-campaign", "\0perftrail-campaign"),
}
"""Family, kind, address of the daemon and host or address in the build. Ports and directories are filled in."""

_DAEMON = """\
import socket, sys
family, kind, address = (eval(each) for each in sys.argv[1:])
server = socket.socket(getattr(socket, family), getattr(socket, f"SOCK_{kind}"))
if family == "AF_INET6" and address[0] == "::":
    server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
server.bind(address)
print(repr(server.getsockname()), flush=True)
if kind == "DGRAM":
    while True:
        path, client = server.recvfrom(4096)
        server.sendto(open(path, "rb").read(), client)
server.listen()
while True:
    client, _ = server.accept()
    client.sendall(open(client.recv(4096), "rb").read())
    client.close()
"""
_ASKS = """\
import os, socket, sys
family, kind, address = (eval(each) for each in sys.argv[1:])
client = socket.socket(getattr(socket, family), getattr(socket, f"SOCK_{kind}"))
path = os.path.join(os.getcwd(), "value.txt").encode()
if kind == "DGRAM":
    client.sendto(path, address)
else:
    client.connect(address)
    client.sendall(path)
print(client.recv(4096).decode())
"""
_STUDY = """\
[source]
kind = "git"
location = "repository"

[build]
steps = ['''{step} > number''']
outputs = ["number"]

[benchmark.it]
command = "cat {{build}}/number"
metrics = {{ n = {{ pattern = 'number ([0-9]+)' }} }}

[measure]
warmups = 0
invocations = 1
"""


def run(seconds: float, seed: int) -> Result:
    """Build through a daemon in each way, in random order, at least once each and until the time is over."""
    command_line.import_all()
    ends = time.monotonic() + seconds
    rng = Random(seed)
    losses = list(filter(None, [_unread_file()]))
    trials, skipped = 1, set[str]()
    while trials == 1 or time.monotonic() < ends:
        for way in rng.sample(list(WAYS), len(WAYS)):
            with tempfile.TemporaryDirectory() as directory:
                try:
                    losses += filter(None, [_asking(way, Path(directory).resolve())])
                    trials += 1
                except ConnectionError as error:
                    skipped.add(f"left out: {way}: {error}")
    return Result(trials=trials, losses=tuple(losses), notes=tuple(sorted(skipped)))


def _unread_file() -> str:
    """Build without a daemon: nothing reads the file, and both revisions have one build, with one process id."""
    with tempfile.TemporaryDirectory() as directory:
        first, last = _measured(Path(directory).resolve(), "echo number $$")
        return (
            "" if first == last else "builds are not observed: a file that no build reads makes a difference"
        )


def _asking(way: str, directory: Path) -> str:
    """Return what went wrong with builds that ask a daemon in one way, or an empty text."""
    family, kind, _, host = WAYS[way]
    with _daemon(way, directory) as bound:
        address = (
            f"{directory}/{host}" if host == "socket" else host if family == "AF_UNIX" else (host, bound[1])
        )
        (directory / "ask.py").write_text(_ASKS)
        words = (sys.executable, f"{directory}/ask.py", repr(family), repr(kind), repr(address))
        found = _measured(directory, " ".join(f'"{word}"' for word in words))
    return "" if found == [1.0, 2.0] else f"{way}: the daemon read another file, and the builds gave {found}"


@contextmanager
def _daemon(way: str, directory: Path) -> Iterator[tuple[str, int]]:
    """Start a daemon; yield its address. Raises `ConnectionError` if this machine lacks its kind of address."""
    family, kind, address, _ = WAYS[way]
    if not hasattr(socket, family):
        raise ConnectionError(f"Python has no {family}")
    words = [sys.executable, "-c", _DAEMON, repr(family), repr(kind), repr(address)]
    with subprocess.Popen(
        words, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            if not (line := process.stdout.readline()):
                raise ConnectionError(process.stderr.read().strip().splitlines()[-1])
            yield eval(line)
        finally:
            process.kill()


def _measured(directory: Path, step: str) -> list[float]:
    """Observe a build and measure two revisions; return the numbers of all builds in their order."""
    study = directory / "study"
    repository = study / "repository"
    repository.mkdir(parents=True)
    git = ["git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@a"]
    subprocess.run([*git, "init", "-q"], check=True)
    for number in (1, 2):
        (repository / "value.txt").write_text(f"number {number}\n")
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "-q", "-m", f"{number}"], check=True)
    (study / "perftrail.toml").write_text(_STUDY.format(step=step))
    for words in (("check", ".", "--try", "1"), ("run", ".")):
        ended = command_line.run(words, study)
        if ended.code:
            raise RuntimeError(f"{' '.join(words)}: exit {ended.code}: {ended.stdout}{ended.stderr}")
    with open_store(str(study / RESULTS / DATABASE), access="read") as store:
        keys = [each.key for each in store.runnables("it")]
        outcomes = store.outcomes(tuple(keys), read_machine().id)
    found = [each for key in keys for each in outcomes.get(key, ())]
    return sorted(each.values["n"] for each in found if isinstance(each, Measurement))
