"""Perform jobs in this process one after another, so that perftrail does not disturb a measurement.

`second_process` starts a second process for computations while nothing is measured. It always ends with this process,
because it ends at the end of its input.
"""

from __future__ import annotations

import fcntl
import os
import pickle
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from queue import SimpleQueue
from typing import IO, TYPE_CHECKING, Any, Generic

from perftrail.own_python import own_python
from perftrail.ports import Done, Job

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from perftrail.ports import Engine, Pending


class LocalEngine:
    """Performs each job in this process when its outcome is requested."""

    def begin(self, perform: Callable[[Job], Done], job: Job) -> Pending[Done]:
        """Keep a job until its outcome is requested."""
        return _Deferred(perform, job)


@dataclass(frozen=True, slots=True)
class _Deferred(Generic[Job, Done]):
    """A job that is performed when its outcome is requested."""

    perform: Callable[[Job], Done]
    job: Job

    def outcome(self) -> Done:
        return self.perform(self.job)


PIPE_BYTES = 1 << 20
"""Bytes that can be sent before they are read; the maximum of Linux."""

SWITCH_SECONDS = 0.0005
"""Time slice of the worker, in seconds: Python's own 5 ms would delay the sender at each piece."""

JobOutcome = tuple[Any, Exception | None]
"""The result of a job, or the exception that it raised."""


@contextmanager
def second_process() -> Iterator[Engine]:
    """Yield an engine with one more process, which ends with the block; on a single processor, a `LocalEngine`."""
    if len(os.sched_getaffinity(0)) < 2:
        yield LocalEngine()
        return
    process = _start()
    try:
        yield SecondProcessEngine(process)
    finally:
        process.kill()
        process.communicate()


def _start() -> subprocess.Popen[bytes]:
    """Start the process. It imports the same modules, and none from the current directory.

    It has its own process group, because this process handles Ctrl-C.
    """
    process = subprocess.Popen(
        own_python("-m", "perftrail.local_engine"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        process_group=0,
    )
    assert process.stdin is not None
    with suppress(OSError):  # a user with many large pipes gets a small one
        fcntl.fcntl(process.stdin, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    return process


class SecondProcessEngine:
    """Performs jobs in one other process, in the order in which they began.

    Functions, jobs and results must be picklable. Jobs that a dead process cannot answer are performed here.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._jobs, self._results = process.stdin, process.stdout
        self._begun = self._read = 0
        self._outcomes: dict[int, JobOutcome] = {}

    def begin(self, perform: Callable[[Job], Done], job: Job) -> Pending[Done]:
        """Send a job; it is performed after those before it."""
        sent = pickle.dumps((perform, job), protocol=pickle.HIGHEST_PROTOCOL)
        try:
            self._jobs.write(sent)
            self._jobs.flush()
        except OSError:
            return LocalEngine().begin(perform, job)
        self._begun += 1
        return _Sent(self, self._begun, perform, job)

    def outcome_of(self, number: int) -> JobOutcome | None:
        """Wait for the result of a job by its number; `None` if the process died."""
        while self._read < number:
            try:
                result: JobOutcome = pickle.load(self._results)  # noqa: S301 - our own process wrote it
            except (EOFError, OSError, pickle.UnpicklingError):
                return None
            self._read += 1
            self._outcomes[self._read] = result
        return self._outcomes.pop(number)


@dataclass(frozen=True, slots=True)
class _Sent(Generic[Job, Done]):
    """A job that was sent."""

    engine: SecondProcessEngine
    number: int
    perform: Callable[[Job], Done]
    job: Job

    def outcome(self) -> Done:
        result = self.engine.outcome_of(self.number)
        if result is None:
            return self.perform(self.job)
        value, raised = result
        if raised is not None:
            raise raised
        done: Done = value
        return done


def serve() -> None:
    """Perform the jobs of standard input, one after another, and write each result to standard output.

    A thread reads jobs meanwhile, so that the sender never waits.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.setswitchinterval(SWITCH_SECONDS)
    jobs: SimpleQueue[tuple[Callable[[Any], Any], Any]] = SimpleQueue()
    threading.Thread(target=_receive, args=(sys.stdin.buffer, jobs), daemon=True).start()
    with os.fdopen(os.dup(1), "wb") as results:
        os.dup2(2, 1)  # output of libraries must not mix with the results
        while True:
            perform, job = jobs.get()
            pickle.dump(_performed(perform, job), results, protocol=pickle.HIGHEST_PROTOCOL)
            results.flush()


def _performed(perform: Callable[[Any], Any], job: object) -> JobOutcome:
    try:
        return perform(job), None
    except Exception as error:  # raised again by `outcome`
        return None, error


def _receive(sent: IO[bytes], jobs: SimpleQueue[tuple[Callable[[Any], Any], Any]]) -> None:
    """Read jobs until the input ends; then end the process, even during a job."""
    try:
        while True:
            jobs.put(pickle.load(sent))  # noqa: S301 - the process that started us sent it
    finally:
        os._exit(0)


if __name__ == "__main__":
    serve()
