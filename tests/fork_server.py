"""A process that has imported perftrail, and starts it for tests by forking: each time as it would start itself.

Importing takes longer than most of what tests ask of the command line. What starts has its own arguments,
directory, environment and files, and ends like any Python program. Run by `tests.starting`.
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

LATER = ("jinja2", "rich.live", "rich.progress", "rich.table", "scipy.special", "scipy.stats")
"""What commands import when they come to it."""

LEFT_OUT = {
    "perftrail.__main__",
    "perftrail.cluster.dask_worker",
    "perftrail.cluster.dask",
    "perftrail.notebook",
    "perftrail.cluster",
}
"""What starts the command line; and what imports Arrow or Dask, which start threads: a fork would have them only in
name."""

LONGEST = 1 << 20


def main() -> None:
    """Start what comes over the socket whose number is the only argument, until its other end is closed."""
    keep_to_one_thread()
    _import_all(perftrail)
    for name in LATER:
        importlib.import_module(name)
    check_printed_json()
    gc.freeze()  # what is imported is garbage in none of them, and would be copied by being looked at
    asking = socket.socket(fileno=int(sys.argv[1]))
    while True:
        message, descriptors, _, _ = socket.recv_fds(asking, LONGEST, 4)
        if not message:
            return
        waiter = os.fork()
        if waiter:
            for descriptor in descriptors:
                os.close(descriptor)
            os.waitpid(waiter, 0)
        else:
            asking.close()
            _start(json.loads(message), *descriptors)
            return


def _import_all(package: ModuleType) -> None:
    for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if found.name not in LEFT_OUT:
            module = importlib.import_module(found.name)
            if found.ispkg:
                _import_all(module)


def _start(asked: dict[str, Any], stdin: int, stdout: int, stderr: int, told: int) -> None:
    """Fork twice: one becomes perftrail, the other waits for it, tells how it ended and is waited for by nobody."""
    if os.fork():
        os._exit(0)
    if started := os.fork():
        os.write(told, f"{started}\n".encode())
        _, status = os.waitpid(started, 0)
        os.write(told, f"{os.waitstatus_to_exitcode(status)}\n".encode())
        os._exit(0)
    os.close(told)
    for number, descriptor in enumerate((stdin, stdout, stderr)):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(asked["directory"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    tempfile.tempdir = None
    random.seed()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = ["perftrail", *asked["arguments"]]
    runpy.run_module("perftrail", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
