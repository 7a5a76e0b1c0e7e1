"""Clients of the commands that serve: a browser of `serve`, an agent of `mcp`, and a command with jobs for `worker`.

Each one talks with a running command line until it has used all of it, and returns what it was answered.
"""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from campaign import command_line
from campaign.scenarios import write_study
from perftrail.results_directory import DATABASE, RESULTS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from campaign.command_line import Client, Served

MOST_PAGES = 60
TOKEN = "r3ad-t0ken-of-the-campaign-0123456789"
SECONDS = 20.0
"""Time for one answer."""

_READING: Mapping[str, Mapping[str, object]] = {
    "studies": {},
    "show": {},
    "samples": {},
    "answer": {},
    "comparisons": {},
    "failures": {},
    "show ": {"study": "perftrail.toml", "metrics": ["cost"]},
}
"""Calls of the agent's tools, with their arguments."""


def browse(served: Served) -> str:
    """Open each page and each answer of the API that others link to, then stop the server."""
    text = ""
    if found := served.wait_for(r"(http://\S+)/ shows"):
        end = time.monotonic() + SECONDS
        while "Reading study" in (front := _get(f"{found[1]}/s/study")) and time.monotonic() < end:
            time.sleep(0.1)
        new, known = ["/", "/api/studies", *_linked(front)], {""}
        while new and len(known) < MOST_PAGES:
            if (path := new.pop(0)) not in known and not path.endswith("/events"):
                known.add(path)
                text += (page := _get(f"{found[1]}{path}"))
                new += _linked(page)
    served.signal(signal.SIGINT)
    return text


def _linked(page: str) -> list[str]:
    """Return the paths in a page or an answer, and those of the API that it names."""
    api = [f"/api/studies/study/{name}" for name in ("metrics", "searches", "regressions", "live")]
    return [*re.findall(r'"(/(?:s|api)/[^"?#\s{}]*)', page), *(api if "/s/study" in page else [])]


def _get(address: str) -> str:
    """Return an answer; nothing of one that is interrupted by the end of the server."""
    request = urllib.request.Request(address, headers={"Authorization": f"Bearer {TOKEN}"})
    with suppress(OSError):
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as answer:
                return str(answer.read(1 << 20).decode(errors="replace"))
        except urllib.error.HTTPError as error:
            return f"{error.code} {error.read(1 << 20).decode(errors='replace')}"
    return ""


def ask(served: Served) -> str:
    """Call each reading tool of an MCP server; it ends with its standard input."""
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
    served.write(_message("initialize", about, id_=0))
    if served.wait_for(r'"id":\s*0\b'):
        served.write(_message("notifications/initialized", {}))
        for id_, (name, given) in enumerate(_READING.items(), 1):
            call = {"name": name.strip(), "arguments": given}
            served.write(_message("tools/call", call, id_=id_))
        for id_ in range(1, len(_READING) + 1):
            served.wait_for(rf'"id":\s*{id_}\b')
    return ""


def _message(method: str, params: Mapping[str, object], *, id_: int | None = None) -> bytes:
    numbered = {} if id_ is None else {"id": id_}
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **numbered}).encode() + b"\n"


@contextmanager
def cluster(home: Path) -> Iterator[tuple[str, Client]]:
    """Start a scheduler; yield its address, and the client of a worker, which builds and measures a study."""
    told, directory = home / "scheduler.json", home / "client"
    write_study(directory)
    words = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(told))
    with subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_scheduler", *words], cwd=home, stderr=subprocess.DEVNULL
    ) as scheduler:
        try:
            while not (told.exists() and told.read_text().endswith("}")):
                time.sleep(0.1)
            address = json.loads(told.read_text())["address"]

            def give_jobs(served: Served) -> str:
                ended = None
                if served.wait_for("^machine ", errors=True):
                    (directory / RESULTS / DATABASE).unlink(missing_ok=True)
                    shutil.rmtree(directory / RESULTS / "builds", ignore_errors=True)
                    engine = address.replace("tcp:", "dask:")
                    ended = command_line.run(("run", ".", "--engine", engine), directory, seconds=2 * SECONDS)
                served.signal(signal.SIGTERM)
                return "" if ended is None else f"{ended.stdout}{ended.stderr}"

            yield address, give_jobs
        finally:
            scheduler.terminate()
