"""The program that runs suites in the Python of a revision: asv's meaning of a benchmark's attributes."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NoReturn

import pytest

from perftrail.model.suite import Suite
from perftrail.suites import runners, unlisted
from perftrail.suites.python import _VERSION, read_calibration, read_listing

_MAIN = importlib.import_module("perftrail.suites.runners.python_suite").main
importlib.import_module("asv_runner.discovery")  # forks need not import it

Run = Callable[[Sequence[str], Path], subprocess.CompletedProcess[str]]
"""How the program runs with some arguments in a directory."""

PROGRAM = Path(runners.__path__[0]) / "python_suite.py"


def forked(words: Sequence[str], directory: Path) -> subprocess.CompletedProcess[str]:
    """Run the program in a fork of this process, which has imported what it needs: that takes longer than a test."""
    with TemporaryFile("w+") as stdout, TemporaryFile("w+") as stderr:
        child = os.fork()
        if not child:
            _become(words, directory, stdout.fileno(), stderr.fileno())
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        printed = [each.read() for each in (stdout, stderr) if each.seek(0) == 0]
    return subprocess.CompletedProcess(words, code, stdout=printed[0], stderr=printed[1])


def _become(words: Sequence[str], directory: Path, *standard: int) -> NoReturn:
    code = 1
    try:
        for number, descriptor in enumerate(standard, start=1):
            os.dup2(descriptor, number)
        sys.stdout, sys.stderr = (
            open(number, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - descriptors of this process
            for number in (1, 2)
        )
        for name in [name for name in os.environ if name.startswith("PYTEST_")]:
            del os.environ[name]
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        # Other tests import this repository's package of that name.
        for name in [name for name in sys.modules if name.partition(".")[0] == "benchmarks"]:
            del sys.modules[name]
        os.chdir(directory)
        _MAIN([str(_VERSION), *words])
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def started(words: Sequence[str], directory: Path) -> subprocess.CompletedProcess[str]:
    """Run the program in a process of its own."""
    # The shell forks: a process inherits the peak memory of the process that executed it, here of the tests.
    command = ["sh", "-c", '"$@"; exit $?', "sh", sys.executable, str(PROGRAM), str(_VERSION), *words]
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment = {**own, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, check=False
    )


class AsvSuite:
    """A suite of asv below a directory whose sources must not be imported from the tree."""

    def __init__(self, root: Path, source: str, *, run: Run = forked) -> None:
        self._root = root
        self._run = run
        (root / "benchmarks").mkdir()
        (root / "benchmarks" / "__init__.py").touch()
        (root / "benchmarks" / "suite.py").write_text(source)
        (root / "json").mkdir()
        (root / "json" / "__init__.py").write_text("raise ImportError('from the tree')")

    def start(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self._run(["asv", *words, "benchmarks"], self._root)

    def listed(self) -> dict[tuple[str, tuple[Any, ...]], dict[str, Any]]:
        done = self.start("list", "0.01")
        assert done.returncode == 0, done.stderr
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        done = self.start("calibrate", json.dumps([each["request"] for each in lines]))
        assert done.returncode == 0, done.stderr
        chosen = [json.loads(line) for line in done.stdout.splitlines()]
        return {
            (each["name"], tuple(value for _, value in each["point"])): each | found
            for each, found in zip(lines, chosen, strict=True)
            if not found["skipped"]
        }

    def values(self, request: dict[str, Any]) -> list[float]:
        done = self.start("run", json.dumps(request))
        assert done.returncode == 0, done.stderr
        return [json.loads(line)["value"] for line in done.stdout.splitlines()]


def one(tmp_path: Path, source: str, *, run: Run = forked) -> tuple[AsvSuite, dict[str, Any]]:
    suite = AsvSuite(tmp_path, source, run=run)
    (listed,) = suite.listed().values()
    return suite, listed


def test_attributes_of_a_benchmark_are_respected(tmp_path: Path) -> None:
    source = """
class Suite:
    number, repeat, warmup_time = 7, 3, 0
    calls = 0

    def time_it(self):
        Suite.calls += 1

    def teardown(self):
        open("/dev/stderr", "w").write("calls %d" % Suite.calls)
"""
    suite, listed = one(tmp_path, source, run=started)
    assert listed["iterations"] == 7
    done = suite.start("run", json.dumps(listed["request"]))
    assert len(done.stdout.splitlines()) == 3
    assert done.stderr.endswith("calls 21")


def test_a_setup_may_set_attributes(tmp_path: Path) -> None:
    source = "class Suite:\n    def setup(self):\n        self.number = 5\n    def time_it(self): pass\n"
    suite = AsvSuite(tmp_path, source)
    assert [each["failure"] for each in suite.listed().values()] == [""]


def test_parameters_are_named_as_asv_names_them(tmp_path: Path) -> None:
    source = """
class Thing: pass

class Suite:
    params = ([1, 2.5], ["a", None], [Thing, Thing(), Thing()])
    param_names = ["n", "text"]

    def time_it(self, n, text, thing): pass
"""
    points = [values for _, values in AsvSuite(tmp_path, source).listed()]
    assert len(points) == 12
    assert points[0] == (1, "a", "<class 'benchmarks.suite.Thing'>")
    assert points[-1] == (2.5, "None", "<benchmarks.suite.Thing object> (1)")


def test_skipped_parameters_are_not_benchmarks(tmp_path: Path) -> None:
    source = """
class Suite:
    params = [1, 2, 3]

    def setup(self, n):
        if n == 2:
            raise NotImplementedError

    def time_it(self, n): pass
    def track_it(self, n): return n
    track_it.skip_params = [(3,)]
"""
    suite = AsvSuite(tmp_path, source)
    assert set(suite.listed()) == {
        ("suite.Suite.time_it", (1,)),
        ("suite.Suite.time_it", (3,)),
        ("suite.Suite.track_it", (1,)),
    }
    assert suite.values({"name": "suite.Suite.time_it", "index": 1, "metric": "time", "unit": "s"}) == []


CACHED = """
class Suite:
    params = [1, 2]

    def setup_cache(self):
        open("file", "w").write("made")
        return [0]

    def setup(self, cache, n):
        cache.append(n)

    def track_it(self, cache, n):
        return len(cache) * 10 + len(open("file").read())

    def track_too(self, cache, n):
        return len(cache)

    def peakmem_it(self, cache, n): pass
"""


def test_every_measurement_has_its_own_copy_of_the_cache(tmp_path: Path) -> None:
    suite = AsvSuite(tmp_path, CACHED)
    listed = suite.listed()
    assert len(listed) == 6
    for index in (0, 1):
        request = listed["suite.Suite.track_it", (index + 1,)]["request"]
        assert suite.values(request) == [24.0]
    assert not (tmp_path / "file").exists()


def test_a_resident_process_measures_all_parameters_of_a_cached_benchmark(tmp_path: Path) -> None:
    suite = AsvSuite(tmp_path, CACHED)
    requests = [each["request"] for (name, _), each in suite.listed().items() if "track" in name]
    files = {"PERFTRAIL_REQUESTS": tmp_path / "requests", "PERFTRAIL_RESPONSES": tmp_path / "responses"}
    files["PERFTRAIL_REQUESTS"].write_text("".join(json.dumps(each) + "\n" for each in requests))
    command = [sys.executable, str(PROGRAM), str(_VERSION), "asv", "serve", "benchmarks"]
    subprocess.run(
        command, cwd=tmp_path, env={name: str(path) for name, path in files.items()}, check=True, timeout=60
    )
    ready, *answers = map(json.loads, files["PERFTRAIL_RESPONSES"].read_text().splitlines())
    assert ready == {"ready": True}
    assert [json.loads(each["output"])["value"] for each in answers] == [24, 24, 2, 2]


def test_the_memory_of_a_cache_is_not_the_peak_memory_of_its_benchmark(tmp_path: Path) -> None:
    source = """
def setup_cache():
    return len(bytearray(300_000_000))

def peakmem_it(size): pass
"""
    suite, listed = one(tmp_path, source, run=started)
    assert listed["request"]["peak"]
    (value,) = suite.values(listed["request"])
    assert 1_000_000 < value < 300_000_000


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            "import time\ndef time_it(): time.sleep(60)\ntime_it.timeout = 0.2",
            "it took longer than its timeout",
        ),
        (
            "import time\ndef setup_cache(): time.sleep(60)\nsetup_cache.timeout = 0.2\ndef time_it(cache): pass",
            "its setup_cache took longer than its timeout of 0.2 s",
        ),
        ("def time_it(): raise ValueError('bad value')", "bad value"),
        ("def track_it(): return None", "it returned None, not a number"),
        ("def track_it(): return float('nan')", "it returned a number that is not finite"),
    ],
)
def test_a_failure_has_a_reason(tmp_path: Path, source: str, message: str) -> None:
    suite, listed = one(tmp_path, source)
    done = suite.start("run", json.dumps(listed["request"]))
    assert done.returncode == 1
    assert message in done.stderr.splitlines()[-1]


def test_numbers_of_other_types_are_values(tmp_path: Path) -> None:
    source = "from fractions import Fraction\ndef track_it(): return Fraction(1, 2)\n"
    suite, listed = one(tmp_path, source)
    assert suite.values(listed["request"]) == [0.5]


def test_an_unknown_benchmark_has_no_values(tmp_path: Path) -> None:
    suite = AsvSuite(tmp_path, "def time_it(): pass\n")
    assert suite.values({"name": "suite.time_other", "index": 0, "metric": "time", "unit": "s"}) == []


def test_statements_of_timeraw_run_in_processes(tmp_path: Path) -> None:
    suite, listed = one(tmp_path, "def timeraw_it(): return 'sum(range(1000))', 'x = 1'\n")
    assert listed["metric"] == "time"
    values = suite.values(listed["request"])
    assert len(values) == 5
    assert all(0 < each < 1 for each in values)


def run_pytest(root: Path, *words: str, run: Run = forked) -> subprocess.CompletedProcess[str]:
    return run(["pytest-benchmark", *words, "."], root)


def test_a_file_that_pytest_cannot_collect_is_named_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "test_good.py").write_text("def test_good(benchmark):\n    benchmark(sum, [1])\n")
    (tmp_path / "test_bad.py").write_text("import no_such_module\n")
    done = run_pytest(tmp_path, "list", "0.01")
    suite = Suite(kind="pytest-benchmark")
    assert [each.name for each in read_listing(done.stdout, suite)] == ["test_good.py::test_good"]
    reason = "ModuleNotFoundError: No module named 'no_such_module'"
    assert unlisted(suite, done.stdout) == (f"test_bad.py: {reason}",)


def test_a_benchmark_longer_than_a_round_runs_once_in_each(tmp_path: Path) -> None:
    text = "import time\n\ndef test_slow(benchmark):\n    benchmark(time.sleep, 0.01)\n"
    (tmp_path / "test_slow.py").write_text(text)
    (listed,) = read_listing(
        run_pytest(tmp_path, "list", "0.01", run=started).stdout, Suite(kind="pytest-benchmark")
    )
    output = run_pytest(tmp_path, "calibrate", f"[{listed.selector}]", run=started).stdout
    item = read_calibration(output, (listed,))[listed]
    assert item is not None
    assert (item.iterations, item.is_calibrated, listed.is_calibrated) == (1, True, False)
    done = run_pytest(tmp_path, "run", item.selector, run=started)
    assert all(json.loads(line)["value"] >= 0.01 for line in done.stdout.splitlines())
    assert len(done.stdout.splitlines()) == 5


def test_a_failing_benchmark_states_its_exception(tmp_path: Path) -> None:
    (tmp_path / "test_fails.py").write_text("def test_fails(benchmark):\n    benchmark(int, 'x')\n")
    (item,) = read_listing(run_pytest(tmp_path, "list", "0.01").stdout, Suite(kind="pytest-benchmark"))
    done = run_pytest(tmp_path, "run", item.selector)
    assert done.stderr.splitlines()[-1] == "ValueError: invalid literal for int() with base 10: 'x'"


def test_a_listing_runs_no_benchmark_and_a_calibration_only_the_requested_ones(tmp_path: Path) -> None:
    source = """
def setup():
    raise SystemError("it ran")

def time_a(): pass
def time_b(): pass
"""
    suite = AsvSuite(tmp_path, source)
    (tmp_path / "benchmarks" / "slow.py").write_text("raise SystemExit('imported')\n")
    (tmp_path / "benchmarks" / "slow.py").rename(tmp_path / "slow.py")
    listed = read_listing(suite.start("list", "0.01").stdout, Suite(kind="asv"))
    assert [(each.name, each.is_calibrated) for each in listed] == [
        ("suite.time_a", False),
        ("suite.time_b", False),
    ]
    (tmp_path / "slow.py").rename(tmp_path / "benchmarks" / "slow.py")
    done = suite.start("calibrate", f"[{listed[1].selector}]")
    (line,) = map(json.loads, done.stdout.splitlines())
    assert (line["requested"]["name"], line["failure"]) == ("suite.time_b", "it ran")


def test_an_interrupted_calibration_keeps_its_complete_lines(tmp_path: Path) -> None:
    suite = AsvSuite(tmp_path, "def time_a(): pass\ndef time_b(): pass\n")
    listed = read_listing(suite.start("list", "0.01").stdout, Suite(kind="asv"))
    output = suite.start("calibrate", f"[{listed[0].selector}, {listed[1].selector}]").stdout
    chosen = read_calibration(output[:-5], listed)
    assert list(chosen) == [listed[0]]
    item = chosen[listed[0]]
    assert item is not None
    assert item == replace(listed[0], selector=item.selector, iterations=item.iterations, is_calibrated=True)
