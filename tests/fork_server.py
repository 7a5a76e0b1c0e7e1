"""A process that has imported perftrail and forks to run its command line for tests.

The import takes longer than most commands of the tests. Each run has its own arguments, directory, environment and
files, and ends like any Python program. Run by `tests.starting`.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import random
import runpy
import signal
import socket
import sys
import tempfile
from types import ModuleType
from typing import Any

import perftrail
from perftrail.cli.main import keep_to_one_thread
from tests.json_checked import check_printed_json

LAZY_IMPORTS = ("jinja2", "rich.live", "rich.progress", "rich.table", "scipy.special", "scipy.stats")
"""Modules that commands import only when they need them."""

NOT_IMPORTED = {
    "perftrail.__main__",
    "perftrail.cli.agent_server",
    "perftrail.cluster.dask_worker",
    "perftrail.cluster.dask",
    "perftrail.notebook",
    "perftrail.cluster",
}
"""The module that runs the command line, the agents' server, and those that import Arrow or Dask, whose threads a
fork loses."""

LONGEST_REQUEST = 1 << 20


def main() -> None:
    """Serve requests from the socket whose number is the only argument, until its other end is closed."""
    keep_to_one_thread()
    _import_all(perftrail)
    for name in LAZY_IMPORTS:
        importlib.import_module(name)
    check_printed_json()
    gc.freeze()  # the garbage collector would write to, and so copy, the pages of imported modules
    requests = socket.socket(fileno=int(sys.argv[1]))
    while True:
        message, descriptors, _, _ = socket.recv_fds(requests, LONGEST_REQUEST, 4)
        if not message:
            return
        waiter = os.fork()
        if waiter:
            for descriptor in descriptors:
                os.close(descriptor)
            os.waitpid(waiter, 0)
        else:
            requests.close()
            _start(json.loads(message), *descriptors)
            return


def _import_all(package: ModuleType) -> None:
    for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if found.name not in NOT_IMPORTED:
            module = importlib.import_module(found.name)
            if found.ispkg:
                _import_all(module)


def _start(request: dict[str, Any], stdin: int, stdout: int, stderr: int, report: int) -> None:
    """Fork twice: one child becomes perftrail, the other waits for it and reports its exit code."""
    if os.fork():
        os._exit(0)
    if started := os.fork():
        os.write(report, f"{started}\n".encode())
        _, status = os.waitpid(started, 0)
        os.write(report, f"{os.waitstatus_to_exitcode(status)}\n".encode())
        os._exit(0)
    os.close(report)
    for number, descriptor in enumerate((stdin, stdout, stderr)):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(request["directory"])
    os.environ.clear()
    os.environ.update(request["environment"])
    tempfile.tempdir = None
    random.seed()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = ["perftrail", *request["arguments"]]
    runpy.run_module("perftrail", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
