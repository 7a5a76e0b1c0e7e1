"""Plugin that runs tests in several processes: `pytest -p tests.workers --workers 4`.

One process collects all tests and forks the workers, which so share its imports. A worker runs the tests of one file
after another. Files that take longest start first, by the stored durations (`tests.durations`). Half of the workers
prefer files that compute, the others files that wait, so that the processors are busy until the end.
"""

from __future__ import annotations

import ctypes
import os
import random
import signal
import sys
import time
from collections import Counter, deque
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NoReturn

import pytest

from tests import starting
from tests.durations import Cost, Spent, Table, by_kind, file_of, kind_of, now
from tests.shared_directory import WORKER

EXAMPLES = "src"
"""Unit of all examples in docstrings: one worker runs them, as none takes long."""

WAITING = 0.6
"""A file waits if its tests use less of a processor than this share of their time."""

UNMARKED_SECONDS = 15.0
"""CPU time above which a test without a mark `slow` fails the run: five times the limit of a quiet machine."""

_PR_SET_PDEATHSIG = 1
"""Of linux/prctl.h."""

HARMLESS_THREADS = {"jemalloc_bg_thd", "polars-ooc-clea"}
"""Names of threads that a fork may lose: jemalloc starts its own again, and the other one removes files of a spilling
Polars."""

LINES = 20
"""Lines of progress of a run whose output is not a terminal."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the workers."""
    parser.addoption("--workers", type=int, default=0, help="processes that run tests [default: 0, this one]")
    parser.addoption(
        "--store-durations", action="store_true", help=f"write the durations to {Table.FILE.name}"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Run the tests in workers, if there are any."""
    if config.option.workers and not config.option.collectonly and not config.option.usepdb:
        config.pluginmanager.register(_Run(config), "workers-run")


class _Run:
    """The process that collects tests, gives them to workers, and reports their results."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._stored = Table.read()
        self._costs: list[Cost] = []
        self._unmarked: list[Cost] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run all tests in workers."""
        if session.testsfailed and not session.config.option.continue_on_collection_errors:
            raise session.Interrupted(f"{session.testsfailed} errors during collection")
        _refuse_threads()
        starting.serve_forks()
        _temporary_directories(self._config).getbasetemp()  # created once: workers have theirs below it
        queue = _Queue(session.items, self._stored)
        progress = _Progress(session, queue.expected_seconds)
        count = min(self._config.option.workers, len(queue.units))
        workers = [
            _Worker(session, number, prefers_waiting=number >= (count + 1) // 2) for number in range(count)
        ]
        try:
            while workers:
                by_connection = {each.connection: each for each in workers}
                for connection in wait(list(by_connection), timeout=1.0):
                    worker = by_connection[connection]  # type: ignore[index]  # only these were waited for
                    if not self._serve(worker, queue, progress):
                        workers.remove(worker)
                        workers += worker.successor(session)
                progress.show()
                if session.shouldfail or session.shouldstop:
                    raise session.Failed(session.shouldfail or session.shouldstop)
        finally:
            for worker in workers:
                worker.kill()
            progress.end()
        return True

    def _serve(self, worker: _Worker, queue: _Queue, progress: _Progress) -> bool:
        """Handle one message of a worker; return false once it has ended."""
        try:
            kind, value = worker.connection.recv()
        except (EOFError, ConnectionError):
            if report := worker.crash():
                self._config.hook.pytest_runtest_logreport(report=report)
            return False
        if kind == "more":
            worker.give(queue.next(prefers_waiting=worker.prefers_waiting))
        elif kind == "begin":
            worker.running = value
        elif kind == "report":
            report = self._config.hook.pytest_report_from_serializable(config=self._config, data=value)
            self._config.hook.pytest_runtest_logreport(report=report)
            progress.report(report)
        else:
            self._costs.append(value)
            progress.count(value)
        return True

    @pytest.hookimpl
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Store the durations, if wanted; fail the run for long tests without a mark."""
        limit = 3.0 if self._config.option.store_durations else UNMARKED_SECONDS
        self._unmarked = [each for each in self._costs if each.spent.cpu > limit and not each.resource]
        if self._config.option.store_durations:
            self._stored.merged(self._costs).write()
        elif self._unmarked and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the costs by kind, and long tests without a mark."""
        terminalreporter.section("durations by kind")
        for line in by_kind(self._costs):
            terminalreporter.write_line(line)
        if self._unmarked:
            terminalreporter.section("long tests without a mark", red=True)
        for each in self._unmarked:
            terminalreporter.write_line(
                f"{each.test} took {each.spent.cpu:.1f} s of CPU time: make it shorter, or mark what "
                'it needs, as in @pytest.mark.slow("builds")'
            )

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Print no letters: the progress has the number of tests, and the names of failed ones."""
        if hasattr(report, "wasxfail"):
            return None
        if report.failed:
            kind = "failed" if report.when == "call" else "error"
            return kind, "", kind.upper()  # the word begins a line of the summary
        if report.skipped or report.when == "call":
            return report.outcome, "", ""
        return None


class _Queue:
    """The files of tests that no worker has run yet, the longest first."""

    def __init__(self, items: Sequence[pytest.Item], stored: Table) -> None:
        units: dict[str, list[int]] = {}
        for index, item in enumerate(items):
            file = file_of(item.nodeid)
            units.setdefault(EXAMPLES if file.startswith("src/") else file, []).append(index)
        # Examples are short: their time is not stored for each file.
        spent = {
            unit: Spent(10.0, 10.0) if unit == EXAMPLES else stored.spent(unit, len(tests))
            for unit, tests in units.items()
        }
        self.units = units
        self.expected_seconds = {
            items[index].nodeid: spent[unit].wall / len(tests)
            for unit, tests in units.items()
            for index in tests
        }
        ordered = sorted(units, key=lambda unit: -spent[unit].wall)
        waits = {unit for unit in units if spent[unit].cpu < WAITING * spent[unit].wall}
        self._waiting = deque(unit for unit in ordered if unit in waits)
        self._computing = deque(unit for unit in ordered if unit not in waits)

    def next(self, *, prefers_waiting: bool) -> list[int]:
        """Take the next file, and return the indices of its tests; empty after the last one."""
        first, second = self._computing, self._waiting
        if prefers_waiting:
            first, second = second, first
        left = first or second
        return self.units[left.popleft()] if left else []


class _Worker:
    """A forked process that runs the tests it is given. `running` is the index of its current test."""

    def __init__(
        self, session: pytest.Session, number: int, *, prefers_waiting: bool, first: Sequence[int] = ()
    ) -> None:
        self.number = number
        self.prefers_waiting = prefers_waiting
        self.running: int | None = None
        self.connection, theirs = Pipe()
        self._session = session
        self._given: list[int] = list(first)
        self._leftover: list[int] = []
        sys.stdout.flush()
        sys.stderr.flush()
        self._pid = os.fork()
        if not self._pid:
            self.connection.close()
            _work(session, number, theirs, list(first))
        theirs.close()

    def give(self, tests: list[int]) -> None:
        """Send the indices of the next tests; none end the worker."""
        self._given = [*self._given, *tests]
        self.connection.send(tests)

    def crash(self) -> pytest.TestReport | None:
        """Return a failed report if the process ended within a test; remember what it had not run."""
        _, status = os.waitpid(self._pid, 0)
        self._pid = 0
        if self.running is None:
            return None
        item = self._session.items[self.running]
        at = self._given.index(self.running)
        self._leftover = self._given[at + 1 :]
        return pytest.TestReport(
            nodeid=item.nodeid,
            location=item.location,
            keywords={},
            outcome="failed",
            longrepr=f"the process of the tests ended with {os.waitstatus_to_exitcode(status)}",
            when="call",
        )

    def successor(self, session: pytest.Session) -> Sequence[_Worker]:
        """Return a new worker for the tests that this one had not run when it crashed."""
        if self.running is None:
            return ()
        return (
            _Worker(session, self.number + 100, prefers_waiting=self.prefers_waiting, first=self._leftover),
        )

    def kill(self) -> None:
        """End the process at once."""
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)


def _refuse_threads() -> None:
    """Raise `pytest.UsageError` if the collection started threads that a fork would lose."""
    names = [each.joinpath("comm").read_text().strip() for each in Path("/proc/self/task").iterdir()]
    threads = [name for name in names[1:] if name not in HARMLESS_THREADS]
    if threads:
        raise pytest.UsageError(
            f"the collection started threads: {', '.join(threads)}; import what starts them within tests, or use "
            "--workers 0"
        )


def _work(session: pytest.Session, number: int, connection: Connection, first: list[int]) -> NoReturn:
    """Run tests in the forked process until the other end sends none."""
    code = 1
    try:
        # The kernel ends this process if the other one ends.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        _set_up(session.config, number)
        session.config.pluginmanager.register(_Sender(session, connection), "workers-sender")
        tests = first or _next(connection)
        while tests:
            following: list[int] = []
            for at, index in enumerate(tests):
                item = session.items[index]
                if at == len(tests) - 1:
                    following = _next(connection)
                after = tests[at + 1] if at + 1 < len(tests) else next(iter(following), None)
                connection.send(("begin", index))
                session.config.hook.pytest_runtest_protocol(
                    item=item, nextitem=None if after is None else session.items[after]
                )
                connection.send(("begin", None))
            tests = following
        code = 0
    except KeyboardInterrupt:
        code = 130
    except BaseException:  # the process must not return into the loop that collected the tests
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _next(connection: Connection) -> list[int]:
    connection.send(("more", None))
    tests: list[int] = connection.recv()
    return tests


def _set_up(config: pytest.Config, number: int) -> None:
    """Separate this process from the one that it is forked from: its output, its directory, its random numbers."""
    plugins = config.pluginmanager
    for name in ("terminalreporter", "workers-run"):
        plugins.unregister(name=name)
    capture: Any = plugins.getplugin("capturemanager")  # Any: pytest has no public types of it
    for stream in (capture._global_capturing.out, capture._global_capturing.err):
        if hasattr(stream, "targetfd"):  # captured in a file, which the processes would share
            with TemporaryFile(buffering=0) as own:
                os.dup2(own.fileno(), stream.tmpfile.fileno())
    factory = _temporary_directories(config)
    factory._basetemp = factory.getbasetemp() / f"{WORKER}{number}"
    factory._basetemp.mkdir(mode=0o700)
    random.seed()


def _temporary_directories(config: pytest.Config) -> Any:  # Any: its directory has no public setter
    return config._tmp_path_factory  # type: ignore[attr-defined]  # the fixture's; no test is running yet


class _Sender:
    """Sends the results of tests, and what they cost."""

    def __init__(self, session: pytest.Session, connection: Connection) -> None:
        self._config = session.config
        self._connection = connection

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Measure a test with its set-up."""
        before = now()
        try:
            return (yield)
        finally:
            mark, spent = item.get_closest_marker("slow"), now() - before
            cost = Cost(
                test=item.nodeid,
                kind=kind_of(item, spent),
                resource=str(mark.args[0]) if mark else "long" if item.get_closest_marker("long") else "",
                spent=spent,
            )
            self._connection.send(("cost", cost))

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Send a result."""
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._connection.send(("report", data))


@dataclass(slots=True)
class _Progress:
    """Prints the share of the tests that have run, their time left, and failures as they happen.

    The time left assumes that the other tests are slower or faster than expected by the same factor as those that ran.
    """

    session: pytest.Session
    expected_seconds: Mapping[str, float]
    _began: float = field(default_factory=time.monotonic)
    _tests: int = 0
    _seconds: float = 0.0
    _outcomes: Counter[str] = field(default_factory=Counter)
    _shown: float = 0.0

    def count(self, cost: Cost) -> None:
        """Count a test that has ended."""
        self._tests += 1
        self._seconds += self.expected_seconds[cost.test]

    def report(self, report: pytest.TestReport) -> None:
        """Print the name of a test that failed."""
        if report.failed:
            self._outcomes["failed"] += 1
            crash = getattr(report.longrepr, "reprcrash", None)
            why = f": {crash.message.splitlines()[0][:200]}" if crash and crash.message else ""
            self._line(f"failed: {report.nodeid}{why}", stays=True)

    def show(self) -> None:
        """Print the progress: on a terminal each second, else twenty times."""
        share = self._tests / max(len(self.session.items), 1)
        now = time.monotonic()
        if self._is_terminal:
            if now - self._shown < 1.0:
                return
            self._shown = now
        elif share * LINES < self._shown + 1.0:
            return
        else:
            self._shown = float(int(share * LINES))
        elapsed = now - self._began
        left = elapsed * (sum(self.expected_seconds.values()) / max(self._seconds, 1e-3) - 1.0)
        failed = f", {self._outcomes['failed']} failed" if self._outcomes["failed"] else ""
        ready = f" {_minutes(left)} left" if elapsed > 5.0 else ""
        self._line(f"{share:4.0%} of {len(self.session.items):,} tests{failed},{ready}".rstrip(","))

    def end(self) -> None:
        """Leave the line of the progress."""
        if self._is_terminal:
            self._reporter.rewrite("", erase=True)

    @property
    def _reporter(self) -> Any:  # Any: pytest has no public types of it
        return self.session.config.pluginmanager.getplugin("terminalreporter")

    @property
    def _is_terminal(self) -> bool:
        return bool(self._reporter.isatty)

    def _line(self, text: str, *, stays: bool = False) -> None:
        if not self._is_terminal:
            self._reporter.write_line(text)
            return
        self._reporter.rewrite(text, erase=True)
        if stays:
            self._reporter.write_line("")


def _minutes(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole // 60} min {whole % 60:02} s" if whole >= 60 else f"{whole} s"
