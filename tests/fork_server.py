"""A process that has imported perftrail and forks to run its command line for tests.

The import takes longer than most commands of the tests. Each run has its own arguments, directory, environment and
files, and ends like any Python program. Run by `tests.starting`.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import random
import runpy
import selectors
import signal
import socket
import sys
import tempfile
import threading
from contextlib import suppress
from types import ModuleType
from typing import Any, NamedTuple, NoReturn

import perftrail
from perftrail.cli.main import keep_to_one_thread
from perftrail.studyfile.structure import structure
from tests.json_checked import check_printed_json

LAZY_IMPORTS = (
    "jinja2",
    "rich._emoji_codes",
    "rich.live",
    "rich.progress",
    "rich.table",
)
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
    structure({})  # derives the readers of a study file from the model: a third of a short command's time
    gc.freeze()  # the garbage collector would write to, and so copy, the pages of imported modules
    requests = socket.socket(fileno=int(sys.argv[1]))
    selector = selectors.DefaultSelector()
    selector.register(requests, selectors.EVENT_READ)
    while True:
        for ready, _ in selector.select():
            if ready.fileobj is not requests:
                _report_end(selector, ready)
                continue
            message, descriptors, _, _ = socket.recv_fds(requests, LONGEST_REQUEST, 4)
            if not message:
                return
            *standard, report = descriptors
            started = os.fork()
            if not started:
                for each in selector.get_map().values():
                    os.close(each.fd)
                    if each.data:
                        os.close(each.data.report)
                os.close(report)
                _become(json.loads(message), standard)
            for number in standard:
                os.close(number)
            os.write(report, f"{started}\n".encode())
            selector.register(os.pidfd_open(started), selectors.EVENT_READ, _Started(started, report))


class _Started(NamedTuple):
    """A command that runs, and where its exit code and CPU time are reported."""

    pid: int
    report: int


def _report_end(selector: selectors.BaseSelector, ended: selectors.SelectorKey) -> None:
    _, status, used = os.wait4(ended.data.pid, 0)
    seconds = used.ru_utime + used.ru_stime
    with suppress(BrokenPipeError):  # a test that timed out waits no more
        os.write(ended.data.report, f"{os.waitstatus_to_exitcode(status)} {seconds}\n".encode())
    os.close(ended.data.report)
    selector.unregister(ended.fileobj)
    os.close(ended.fd)


def _import_all(package: ModuleType) -> None:
    for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if found.name not in NOT_IMPORTED:
            module = importlib.import_module(found.name)
            if found.ispkg:
                _import_all(module)


def _become(request: dict[str, Any], standard: list[int]) -> NoReturn:
    """Run the command line in this process to its end."""
    for number, descriptor in enumerate(standard):
        os.dup2(descriptor, number)
        os.close(descriptor)
    if request.get("session"):
        os.setsid()
    os.chdir(request["directory"])
    os.environ.clear()
    os.environ.update(request["environment"])
    tempfile.tempdir = None
    random.seed()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = ["perftrail", *request["arguments"]]
    try:
        runpy.run_module("perftrail", run_name="__main__")
    except SystemExit as ended:
        if isinstance(ended.code, int):
            _end(ended.code)
        raise
    sys.exit()


def _end(code: int) -> NoReturn:
    """End like any Python program, but do not free modules: that would copy all their pages, in a tenth of a second."""
    threading._shutdown()  # type: ignore[attr-defined]  # the typeshed lacks what the interpreter calls
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code & 0xFF)


if __name__ == "__main__":
    main()
