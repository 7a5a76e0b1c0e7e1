"""What all tests share: property tests have no deadline, since a busy machine is no defect, and the same examples
in each run of CI; numpy has one thread.

A test that takes `postgresql` gets an empty schema of its own on a real server, which all such tests share.
"""

from __future__ import annotations

import gc
import os
import signal
from typing import TYPE_CHECKING

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import HealthCheck, settings

from perftrail import file_tree
from perftrail.cli.main import keep_to_one_thread
from tests import environment, needs
from tests.durations import RESOURCES
from tests.json_checked import check_printed_json
from tests.needs import skip_for

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

    from tests.store.server import Server

# A shell ignores Ctrl-C for what it starts in the background, and nohup ignores the end of the terminal: tests of
# interruptions would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
environment.declare()
keep_to_one_thread()
check_printed_json()
settings.register_profile(
    "perftrail",
    deadline=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("perftrail")


LONG = (
    "tests/simulation/",
    "tests/benchmarks/",
    "tests/campaign/",
    "tests/studies/",
    "tests/search/test_never_sure_and_wrong.py",
)
"""Tests that are `long`, by the beginnings of their paths."""
LONG_BY_FIXTURE = ("tests/process/launcher/",)
"""Where a fixture makes tests long: the files themselves need not say so."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect tests without the garbage collector, and keep it from them later, as nothing of them is garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import files without a selected test, for `-m long` and `-m 'not long'`."""
    selected = config.option.markexpr
    if selected not in {"long", "not long"} or collection_path.suffix != ".py":
        return None
    path = collection_path.relative_to(config.rootpath).as_posix()
    long = path.startswith(LONG)
    if selected == "not long":
        return long or None
    some = path.startswith(LONG_BY_FIXTURE) or "mark.long" in collection_path.read_text()
    return None if long or some else True


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Look for examples in docstrings only in files that have one: each process of a test run looks at all files."""
    collected = yield
    return [
        each
        for each in collected
        if not isinstance(each, DoctestModule) or ">>>" in file_path.read_text("utf-8")
    ]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the long tests, and check the marks of slow ones."""
    for item in items:
        if item.nodeid.startswith(LONG):
            item.add_marker(pytest.mark.long)
        for mark in item.iter_markers("slow"):
            if len(mark.args) != 1 or mark.args[0] not in RESOURCES:
                raise pytest.UsageError(
                    f"{item.nodeid}: its mark slow must name what the test needs: {', '.join(RESOURCES)}"
                )


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print why tests were skipped: a line for each missing program."""
    if lines := needs.summary(terminalreporter.stats.get("skipped", [])):
        terminalreporter.section("skipped tests")
    for line in lines:
        terminalreporter.write_line(line)


@pytest.fixture(scope="session", autouse=True)
def user_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache of the tests' own, but for the charts' script and what Go compiled, which take long to make."""
    go = os.environ.get("GOCACHE", str(file_tree.user_cache().with_name("go-build")))
    ours = tmp_path_factory.mktemp("cache") / "perftrail"
    ours.mkdir()
    for script in file_tree.user_cache().glob("vega-*.js"):
        (ours / script.name).symlink_to(script)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(ours.parent))
        patch.setenv("GOCACHE", go)
        yield ours


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[Server]:
    """A PostgreSQL server that runs; skips where none is installed."""
    from tests.store.server import running

    with running() as server:
        if server is None:
            skip_for("postgres")
        yield server


@pytest.fixture
def postgresql(postgresql_server: Server) -> str:
    """The address of an empty schema of the test's own in a database, password included."""
    return postgresql_server.schema()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The system's Chromium; skips where there is none. Not the session's: nothing can be awaited while it is open."""
    from tests.browsing import chromium

    with chromium() as opened:
        yield opened
