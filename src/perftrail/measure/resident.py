"""Resident processes of suites: started once for each build, they measure many benchmarks, one request at a time.

A process measures each benchmark once. A second request for one ends the process and starts another, so that the
samples of a benchmark come from different processes, as without resident processes: hash seeds, addresses and paths
differ.
"""

from __future__ import annotations

import json
import os
import select
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import FormatError
from perftrail.file_tree import empty_directory
from perftrail.formats.document import Node
from perftrail.model.process import Exited, Ran, TimedOut, describe_end

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from perftrail.model.process import Command
    from perftrail.ports import Starter

MOST_PROCESSES = 8
"""Maximum number of processes at a time; the one that was idle for longest ends first."""

SECONDS_TO_END = 1.0
"""Time for a process to end by itself when it gets no more requests."""

LONGEST_ANSWER_BYTES = 16 << 20
"""Maximum length of an answer."""

_REQUESTS, _RESPONSES = "PERFTRAIL_REQUESTS", "PERFTRAIL_RESPONSES"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to a request: what a separate process would have printed, or why there is none.

    `ran` is the result as of a process: it took the time of the request.
    """

    output: str
    failure: str
    ran: Ran


@dataclass(slots=True, kw_only=True)
class ResidentProcess:
    """A process that answers requests through two FIFOs. `seed` drew its environment and the path of its build."""

    seed: int
    measured: set[str] = field(default_factory=set)
    last_used: float = 0.0
    _stack: ExitStack
    _thread: threading.Thread
    _ended: list[Ran | BaseException]
    _requests: int
    _responses: int
    _buffer: bytearray = field(default_factory=bytearray)

    def ask(self, request: str, *, timeout_seconds: float) -> Answer:
        """Send a request and wait for its answer. After a failure of the process itself, it must be closed."""
        began = time.monotonic()
        with suppress(BlockingIOError):
            os.write(self._requests, f"{request}\n".encode())
        try:
            answer = self._answer(timeout_seconds)
        except TimeoutError:
            ended = Ran.uncounted(TimedOut(), began=began, now=time.monotonic())
            return Answer(output="", failure="", ran=ended)
        except EOFError as error:
            ran = self._ended[0] if self._ended else None
            ran = (
                ran
                if isinstance(ran, Ran)
                else Ran.uncounted(Exited(code=1), began=began, now=time.monotonic())
            )
            return Answer(output="", failure=str(error), ran=ran)
        ran = Ran.uncounted(Exited(code=0), began=began, now=time.monotonic())
        with suppress(FormatError):
            ran = replace(ran, cpu_seconds=max(0.0, Node(answer)["cpu"].number()))
        output, failure = answer.get("output"), answer.get("failure")
        return Answer(
            output=output if isinstance(output, str) else "",
            failure=failure if isinstance(failure, str) else "",
            ran=ran,
        )

    def wait_until_ready(self, timeout_seconds: float) -> str:
        """Wait until the process accepts requests; return why it does not, or an empty text."""
        try:
            self._answer(timeout_seconds)
        except TimeoutError:
            return "it was not ready in time"
        except EOFError as error:
            return str(error)
        return ""

    def _answer(self, timeout_seconds: float) -> dict[str, object]:
        """Return the next line of the process. Raises `TimeoutError`, and `EOFError` if it ended or wrote no JSON."""
        deadline = time.monotonic() + timeout_seconds
        poll = select.poll()
        poll.register(self._responses, select.POLLIN)
        while b"\n" not in self._buffer:
            if self._ended and not self._read():
                raise EOFError(self._why_ended())
            if time.monotonic() > deadline:
                raise TimeoutError
            if len(self._buffer) > LONGEST_ANSWER_BYTES:
                raise EOFError("its answer is too long")
            if poll.poll(50):
                self._read()
        line, _, rest = self._buffer.partition(b"\n")
        self._buffer = bytearray(rest)
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise EOFError("its answer is not JSON") from error
        if isinstance(answer, dict):
            return answer
        raise EOFError("its answer is not a JSON object")

    def _read(self) -> bool:
        """Read what is there; return whether there was anything."""
        try:
            more = os.read(self._responses, 65536)
        except BlockingIOError:
            return False
        self._buffer += more
        return bool(more)

    def _why_ended(self) -> str:
        result = self._ended[0]
        if isinstance(result, Ran):
            return f"the resident process ended: {describe_end(result.ended) or 'exit code 0'}"
        return f"the resident process ended: {result}"

    def close(self) -> None:
        """End the process: it gets no more requests, and is killed if it does not end by itself."""
        os.close(self._requests)
        self._thread.join(SECONDS_TO_END)
        self._stack.close()
        self._thread.join()
        os.close(self._responses)


class ResidentProcesses:
    """The resident processes of a session, each with a directory below `directory` and a separate launcher.

    `runners` is the directory of the programs that run suites. `open_starter` opens the starter of one process, which
    may write to the given directory.
    """

    def __init__(
        self,
        directory: Path,
        open_starter: Callable[[Path], AbstractContextManager[Starter]],
        *,
        runners: Path,
    ) -> None:
        self.runners = runners
        self._directory = directory
        self._open_starter = open_starter
        self._processes: dict[str, ResidentProcess] = {}
        self._places: dict[str, Path] = {}

    def find(self, key: str, benchmark: str) -> ResidentProcess | None:
        """Return the process of a build that has not measured a benchmark yet; end one that has."""
        process = self._processes.get(key)
        if process is not None and benchmark in process.measured:
            self.end(key)
            return None
        return process

    def start(
        self,
        key: str,
        seed: int,
        command_in: Callable[[Path], AbstractContextManager[Command]],
        *,
        timeout_seconds: float,
    ) -> ResidentProcess | str:
        """Start the process of a build and wait until it is ready; return why it is not.

        `command_in` opens the command for a directory: its files exist until the process ends.
        """
        while len(self._processes) >= MOST_PROCESSES:
            self.end(min(self._processes, key=lambda each: self._processes[each].last_used))
        place = self._free_place()
        stack = ExitStack()
        try:
            process = self._started(stack, place, seed, command_in)
        except BaseException:
            stack.close()
            raise
        self._processes[key], self._places[key] = process, place
        failed = process.wait_until_ready(timeout_seconds)
        if failed:
            self.end(key)
            return failed
        return process

    def _started(
        self,
        stack: ExitStack,
        place: Path,
        seed: int,
        command_in: Callable[[Path], AbstractContextManager[Command]],
    ) -> ResidentProcess:
        place.mkdir(parents=True, exist_ok=True)
        empty_directory(place)
        work = place / "work"
        work.mkdir()
        fifos = {_REQUESTS: place / "requests", _RESPONSES: place / "responses"}
        for each in fifos.values():
            os.mkfifo(each)
        command = stack.enter_context(command_in(work))
        environment = {**command.environment, **{name: str(path) for name, path in fifos.items()}}
        command = replace(command, environment=environment)
        starter = stack.enter_context(self._open_starter(place))
        requests = os.open(fifos[_REQUESTS], os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        responses = os.open(fifos[_RESPONSES], os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        ended: list[Ran | BaseException] = []

        def run() -> None:
            try:
                ended.append(starter.run(command))
            except BaseException as error:
                ended.append(error)

        thread = threading.Thread(target=run, name="resident process", daemon=True)
        thread.start()
        return ResidentProcess(
            seed=seed,
            _stack=stack,
            _thread=thread,
            _ended=ended,
            _requests=requests,
            _responses=responses,
        )

    def _free_place(self) -> Path:
        taken = set(self._places.values())
        return next(place for place in self._all_places() if place not in taken)

    def _all_places(self) -> Iterator[Path]:
        number = 0
        while True:
            yield self._directory / str(number)
            number += 1

    def end(self, key: str) -> None:
        """End the process of a build, if there is one."""
        process = self._processes.pop(key, None)
        self._places.pop(key, None)
        if process is not None:
            process.close()

    def close(self) -> None:
        """End all processes."""
        for key in tuple(self._processes):
            self.end(key)
