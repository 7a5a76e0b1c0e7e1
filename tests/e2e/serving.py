"""A small server and its client, as files of a revision, for the tests of fixtures."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SERVER = """\
import os, signal, socket, sys, time
cost, place = int(sys.argv[1]), sys.argv[2]
if place.isdigit():
    listening = socket.create_server(("127.0.0.1", int(place)))
else:
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(place)
    listening.listen()
signal.signal(signal.SIGTERM, lambda *_: (os.path.exists(place) and os.unlink(place), os._exit(0)))
starts = open("starts", "a")
starts.write(f"{os.getpid()}\\n")
starts.close()
print("ready to answer", flush=True)
while True:
    client, _ = listening.accept()
    asked = client.recv(100).decode().strip()
    if asked == "crash":
        print("I have had enough", flush=True)
        os._exit(3)
    began = time.process_time()
    while time.process_time() - began < cost / 1000:
        pass
    rows = open("rows").read().split() if os.path.exists("rows") else []
    client.sendall(f"cost {cost} rows {len(rows)} pid {os.getpid()}\\n".encode())
    client.close()
"""
"""Server at a port or a path: it answers with its cost, the rows of its data, and its process."""

CLIENT = """\
import socket, sys
place, words = sys.argv[1], sys.argv[2]
there = ("127.0.0.1", int(place)) if place.isdigit() else place
client = socket.socket(socket.AF_INET if place.isdigit() else socket.AF_UNIX)
client.connect(there)
client.sendall(words.encode())
print(client.makefile().read())
"""

STUDY = """\
[source]
kind = "{kind}"
location = "{location}"

[service.db]
command = "python3 {{build}}/server.py {cost} {place}"
ready = {{ line = "ready to answer" }}
{service}

[benchmark.ask]
command = "python3 {{build}}/client.py {place} {asked}"
services = ["db"]
{benchmark}

[benchmark.ask.metrics]
cost = {{ pattern = 'cost ([0-9]+)' }}
rows = {{ pattern = 'rows ([0-9]+)' }}
pid = {{ pattern = 'pid ([0-9]+)' }}

[measure]
invocations = 2
warmups = 0
{measure}
"""


def files(*, name: str = "") -> Mapping[str, str]:
    """Return the files of a revision."""
    return {"server.py": f"# {name}\n{SERVER}", "client.py": CLIENT}


def write_served_study(
    directory: Path,
    *,
    location: Path,
    kind: str = "directory",
    service: str = "",
    benchmark: str = "",
    asked: str = "something",
    place: str = "{port}",
    cost: str = "1",
    measure: str = "",
) -> Path:
    """Write a study of a server and its client; return its file."""
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / "perftrail.toml"
    file.write_text(
        STUDY.format(
            kind=kind,
            location=location,
            service=service,
            benchmark=benchmark,
            asked=asked,
            place=place,
            cost=cost,
            measure=measure,
        )
    )
    return file
