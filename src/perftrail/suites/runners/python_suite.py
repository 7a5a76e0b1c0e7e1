"""Run benchmarks of asv or pytest-benchmark in the Python of a revision: list them, measure one, or serve requests.

This program runs in the environment of the project, without perftrail: it uses only the standard library, asv_runner,
and pytest with pytest-benchmark. It must work with old versions of Python.

    python_suite.py VERSION TOOL list SECONDS DIRECTORY
    python_suite.py VERSION TOOL calibrate REQUESTS DIRECTORY
    python_suite.py VERSION TOOL run REQUEST DIRECTORY
    python_suite.py VERSION TOOL serve DIRECTORY

``list`` runs no benchmark. ``calibrate`` runs each of a JSON list of requests for a moment, and prints a line for each
as soon as its iterations are known. A REQUEST is a JSON object: the benchmark's name, its iterations, and for asv the
index of its parameters. The answer is a JSON line for each measured round, and nothing for a missing benchmark. A
server reads requests from the FIFO ``PERFTRAIL_REQUESTS`` and answers through ``PERFTRAIL_RESPONSES``.
"""

import contextlib
import itertools
import json
import math
import os
import pickle
import shutil
import signal
import sys
import tempfile
import timeit
import traceback

ROUNDS = 5
"""Number of rounds of one measurement; their median counts."""

MOST_ROUNDS = 200
"""Largest number of rounds, of asv's benchmarks that run once in each round because of their setup."""

SETUP_SHARE = 4
"""Largest time of a measurement's rounds with their setups, in units of the time without setups."""


class PytestBenchmark:
    """The tests of a directory that use the fixture ``benchmark``."""

    def __init__(self, directory):
        self._directory = directory
        self.unlisted = []  # files that pytest could not collect, each with the reason

    def session(self, work):
        """Collect the tests once, and call `work` with a function that measures one of them by its node id."""
        import pytest

        outer = self

        class Plugin:
            def pytest_collectreport(self, report):
                if report.failed:
                    outer.unlisted.append((report.nodeid, _reason(report)))

            def pytest_runtestloop(self, session):
                outer._begin(session)
                work(outer)
                outer._tear_down(None)
                return True

        words = [
            self._directory,
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
            "-p",
            "no:cov",
            "-o",
            "addopts=",
        ]
        if os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD"):
            words += ["-p", "pytest_benchmark.plugin"]
        words += ["--rootdir", os.getcwd(), "--benchmark-disable-gc", "--import-mode=append"]
        code = pytest.main(words, plugins=[Plugin()])
        if code not in (0, 1, 5):  # tests that cannot be collected are not a reason to leave out the others
            raise SystemExit("pytest ended with exit code %s" % int(code))

    def names(self):
        return list(self._items)

    def point(self, name):
        """Return the name without parameters, and the parameters of plain values; `None` if there are others."""
        item = self._items[name]
        params = getattr(getattr(item, "callspec", None), "params", {})
        plain = all(
            isinstance(value, (int, float, str)) and not isinstance(value, bool) for value in params.values()
        )
        if not params or not plain:
            return name, []
        return name.rpartition("::")[0] + "::" + item.originalname, list(params.items())

    def measure(self, request):
        """Return seconds per iteration of each round; `None` without such a test. Raises `Failed`."""
        item = self._items.get(request["name"])
        if item is None:
            return None
        self._wanted = request
        self._seconds = None
        self._tear_down(item)
        from _pytest.runner import runtestprotocol

        try:
            reports = runtestprotocol(item, nextitem=item.parent, log=False)
        except TypeError:
            reports = runtestprotocol(item, nextitem=None, log=False)
        for report in reports:
            if report.failed:
                raise Failed([_reason(report)])
        if self._seconds is None:
            skipped = [str(report.longrepr) for report in reports if report.skipped]
            raise Failed(skipped or ["the test did not call its benchmark fixture"])
        return self._seconds

    def _begin(self, session):
        from pytest_benchmark import fixture

        outer = self
        self._state = session._setupstate
        self._items = dict(
            (item.nodeid, item)
            for item in session.items
            if "benchmark" in getattr(item, "fixturenames", ()) and not _skips(item)
        )

        def calibrate(benchmark, runner):
            wanted = outer._wanted.get("iterations") or 0
            if not wanted:
                wanted = _calibrated(runner, outer._wanted["seconds"])
            loops = range(wanted)
            runner(loops)
            benchmark._max_time, benchmark._min_rounds = 0.0, ROUNDS
            benchmark._precision, benchmark._warmup = None, False
            outer.iterations = wanted
            return 1.0, wanted, loops

        def make_stats(benchmark, iterations):
            stats = fixture_make_stats(benchmark, iterations)
            outer._rounds, add = [], stats.update

            def update(duration, *rest):
                outer._rounds.append(duration / float(iterations))
                outer._seconds = outer._rounds
                return add(duration, *rest)

            stats.update = update
            return stats

        fixture_make_stats = fixture.BenchmarkFixture._make_stats
        fixture.BenchmarkFixture._calibrate_timer = calibrate
        fixture.BenchmarkFixture._make_stats = make_stats
        self.iterations = 1

    def _tear_down(self, item):
        """End fixtures that the next test does not share; those of its module or session stay."""
        try:
            self._state.teardown_exact(item)
        except TypeError:
            self._state.teardown_exact(item, item)


def _reason(report):
    """Return the exception of a failed test or file, without its traceback."""
    lines = str(report.longreprtext).strip().splitlines() or ["failed"]
    exceptions = [line[1:].strip() for line in lines if line.startswith("E ")]
    return exceptions[0] if exceptions else lines[-1]


def _skips(item):
    return any(True for _ in item.iter_markers("skip"))


def _calibrated(runner, seconds):
    """Return how many iterations take a round's share of this time."""
    share, iterations = seconds / ROUNDS, 1
    while True:
        took = runner(range(iterations))
        if took >= share / 4 or iterations > 100000000:
            return max(1, int(round(share * iterations / max(took, 1e-9))))
        iterations *= 4


class Asv:
    """The benchmarks of a directory, as asv_runner finds them, or asv before version 0.6."""

    def __init__(self, directory):
        self._tree = os.getcwd()
        self._directory = os.path.abspath(directory)
        self._benchmarks = {}
        self._is_complete = False
        self._caches = {}
        self.unlisted = []

    def session(self, work):
        """Call `work` in an empty directory, as asv runs benchmarks."""
        try:
            from asv_runner import discovery
            from asv_runner._aux import update_sys_path
        except ImportError:
            from asv import benchmark as discovery

            update_sys_path = discovery.update_sys_path
        update_sys_path(self._directory)  # the suite, without the project's tree next to it
        self._discovery = discovery
        self.iterations = 1
        self.rounds = ROUNDS
        # The shell line came from the invocation's own directory, which perftrail empties.
        given = os.environ.get("OLDPWD") or ""
        before = os.getcwd()
        directory = tempfile.mkdtemp(prefix="asv-", dir=given if os.access(given, os.W_OK) else None)
        os.chdir(directory)
        try:
            work(self)
        finally:
            os.chdir(before)
            shutil.rmtree(directory, ignore_errors=True)

    def _discover(self):
        """Import the whole suite, once."""
        if not self._is_complete:
            self._is_complete = True
            with _in_directory(self._tree):
                for benchmark in self._discovery.disc_benchmarks(self._directory, ignore_import_errors=True):
                    self._benchmarks.setdefault(benchmark.name, benchmark)

    def _benchmark(self, name):
        """Return a benchmark, or `None`. As in asv, only its module is imported: others cost time and memory."""
        if name not in self._benchmarks and not self._is_complete:
            try:
                with _in_directory(self._tree):
                    self._benchmarks[name] = self._discovery.get_benchmark_from_name(self._directory, name)
            except Exception:
                self._discover()
        return self._benchmarks.get(name)

    def names(self):
        """Return the benchmarks with the index of each combination of their parameters."""
        self._discover()
        found = []
        for name, benchmark in self._benchmarks.items():
            found += [(name, index) for index in range(_combinations(benchmark))]
        return found

    def point(self, name):
        benchmark, index = self._benchmarks[name[0]], name[1]
        if not benchmark.params:
            return name[0], []
        combination = next(itertools.islice(itertools.product(*benchmark.params), index, None))
        names = []
        for key in benchmark.param_names:
            names.append(key if key not in names else "%s%d" % (key, len(names) + 1))
        return name[0], [(key, _literal(text)) for key, text in zip(names, combination)]

    def kind(self, name):
        benchmark = self._benchmarks[name[0]]
        return benchmark.type, str(getattr(benchmark, "unit", ""))

    def skips(self, name):
        """Whether a benchmark skips these parameters: by skip_params, or with NotImplementedError in its setup."""
        benchmark = self._benchmark(name[0])
        if benchmark is None or name[1] >= _combinations(benchmark):
            return True
        self._select(benchmark, name[1], False)
        with _time_limit(benchmark.timeout, "its setup"):
            if benchmark.do_setup():
                return True
            benchmark.do_teardown()
        return False

    def measure(self, request):
        """Return the values of a benchmark; `None` without such a benchmark, or if it skips its parameters."""
        benchmark = self._benchmark(request["name"])
        if benchmark is None or request["index"] >= _combinations(benchmark):
            return None
        self._select(benchmark, request["index"], benchmark.type == "peakmemory")
        with _time_limit(benchmark.timeout, "it"):
            began = timeit.default_timer()
            if benchmark.do_setup():
                return None
            setup = timeit.default_timer() - began
            try:
                return self._run(benchmark, request, setup)
            finally:
                benchmark.do_teardown()

    def _select(self, benchmark, index, separate):
        """Set the parameters and the cache; each measurement gets its own copy of the cache, as in asv."""
        benchmark._current_params = ()
        if benchmark.params:
            benchmark.set_param_idx(index)
        benchmark._redo_setup_next = False
        if getattr(benchmark, "_setup_cache", None) is None:
            return
        key = benchmark.setup_cache_key
        if key not in self._caches:
            with _time_limit(getattr(benchmark, "setup_cache_timeout", None), "its setup_cache"):
                self._caches[key] = _in_child(benchmark) if separate else _pickled_cache(benchmark)
        cache = pickle.loads(self._caches[key])
        if hasattr(benchmark, "set_cache"):
            benchmark.set_cache(cache)
        else:
            benchmark.insert_param(cache)

    def _run(self, benchmark, request, setup):
        if benchmark.type != "time":
            return _numbers(benchmark.do_run())
        wanted = request.get("iterations") or 0
        if wanted:
            benchmark.number = wanted
            if benchmark.warmup_time < 0:
                benchmark.warmup_time = min(0.01, benchmark.sample_time)
        elif benchmark.sample_time == DEFAULT_SAMPLE_TIME:
            benchmark.sample_time = request["seconds"] / ROUNDS
        if benchmark.repeat == 0:
            benchmark.repeat = request.get("rounds", ROUNDS)
        found = benchmark.do_run()
        if not isinstance(found, dict):  # asv 0.1 to 0.5 return samples and number
            found = {"samples": found[0], "number": found[1]}
        samples = [float(each) for each in found["samples"]]
        self.iterations = int(found["number"])
        if not wanted:
            each = self.iterations * max(1e-9, sorted(samples)[len(samples) // 2])
            with_setup = SETUP_SHARE * request["seconds"] / (each + setup)
            self.rounds = max(ROUNDS, int(min(MOST_ROUNDS, request["seconds"] / each, with_setup)))
            if not hasattr(benchmark, "timer"):  # timeraw: each round starts a process
                self.rounds = ROUNDS
        return samples


DEFAULT_SAMPLE_TIME = 0.01
"""asv's time of one sample, in seconds, of benchmarks that do not set it."""


@contextlib.contextmanager
def _in_directory(directory):
    before = os.getcwd()
    os.chdir(directory)
    try:
        yield
    finally:
        os.chdir(before)


def _combinations(benchmark):
    count = 1
    for values in benchmark.params:
        count *= len(values)
    return count


def _numbers(value):
    """Return the numbers that a benchmark returned."""
    try:
        values = [float(value)]
    except (TypeError, ValueError):
        if not isinstance(value, (list, tuple)):
            raise Failed(["it returned %s, not a number" % repr(value)[:60]])
        values = [float(each) for each in value]
    if not all(math.isfinite(each) for each in values):
        raise Failed(["it returned a number that is not finite"])
    return values


def _pickled_cache(benchmark):
    return pickle.dumps(benchmark.do_setup_cache(), pickle.HIGHEST_PROTOCOL)


def _in_child(benchmark):
    """Return the pickled cache from another process, so that its memory does not count."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        code = 1
        try:
            with os.fdopen(writing, "wb") as file:
                file.write(_pickled_cache(benchmark))
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(writing)
    ended = False
    try:
        with os.fdopen(reading, "rb") as file:
            pickled = file.read()
        failed, ended = os.waitpid(child, 0)[1], True
    finally:
        if not ended:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    if failed:
        raise Failed(["its setup_cache failed"])
    return pickled


@contextlib.contextmanager
def _time_limit(seconds, what):
    """Raise `Failed` in a block that takes longer than a benchmark's own timeout; without one, do nothing."""
    if not seconds:
        yield
        return

    def stop(number, frame):
        raise Failed(["%s took longer than its timeout of %g s" % (what, seconds)])

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, float(seconds))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _literal(text):
    """Return the value that a parameter's representation stands for, if it is a number or a text."""
    import ast

    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
    return value if isinstance(value, (int, float, str)) and not isinstance(value, bool) else text


class Failed(Exception):
    """A benchmark that could not be measured, with the lines of its error."""

    def __str__(self):
        return "\n".join(self.args[0])


TOOLS = {"pytest-benchmark": PytestBenchmark, "asv": Asv}
METRICS = {"time": ("time", "s"), "memory": ("memory", "B"), "peakmemory": ("memory", "B")}


def listed(tool, kind, seconds):
    """Return the benchmarks as the lines of a listing, without running any; their iterations are not chosen yet."""
    lines = [{"unlisted": name, "reason": reason} for name, reason in tool.unlisted]
    for name in tool.names():
        request = {"seconds": seconds}
        if kind == "asv":
            request["name"], request["index"] = name
            metric, unit = METRICS.get(tool.kind(name)[0], ("value", tool.kind(name)[1]))
        else:
            request["name"], metric, unit = name, "time", "s"
        request["metric"], request["unit"] = metric, unit
        if kind == "asv" and tool.kind(name)[0] == "peakmemory":
            request["peak"] = True
        plain, point = tool.point(name)
        lines.append({"name": plain, "point": point, "request": request, "metric": metric, "unit": unit})
    return "".join(json.dumps(line) + "\n" for line in lines)


def calibrated(tool, kind, request):
    """Return a line with a request and its iterations: none if it fails; `skipped` if it has no such parameters."""
    request = dict(request)
    line = {"requested": dict(request), "request": request, "iterations": 0, "skipped": False, "failure": ""}
    tool.iterations, tool.rounds = 0, ROUNDS
    try:
        if request["metric"] == "time":
            line["skipped"] = tool.measure(request) is None
        else:
            line["skipped"] = tool.skips((request["name"], request["index"]))
    except Exception as error:
        tool.iterations, line["failure"] = 0, str(error)
    line["iterations"] = tool.iterations
    if tool.iterations:
        request["iterations"] = tool.iterations
    if kind == "asv" and request["metric"] == "time":
        request["rounds"] = tool.rounds
    return json.dumps(line) + "\n"


def measured(tool, request):
    """Return the lines of one measurement."""
    values = tool.measure(request)
    name = str(request["name"])
    return "".join(
        json.dumps({"benchmark": name, "metric": request["metric"], "value": value, "unit": request["unit"]})
        + "\n"
        for value in values or ()
    )


def serve(tool):
    """Answer each request with one JSON line: its output, the CPU time that it took, or its failure."""
    with (
        open(os.environ["PERFTRAIL_RESPONSES"], "w") as responses,
        open(os.environ["PERFTRAIL_REQUESTS"]) as requests,
    ):
        responses.write(json.dumps({"ready": True}) + "\n")
        responses.flush()
        for line in requests:
            before = os.times()
            answer = {"output": ""}
            try:
                answer["output"] = measured(tool, json.loads(line))
            except Exception as error:
                traceback.print_exc()
                answer["failure"] = str(error).strip() or type(error).__name__
            after = os.times()
            answer["cpu"] = sum(after[:4]) - sum(before[:4])
            responses.write(json.dumps(answer) + "\n")
            responses.flush()


def main(words):
    kind, mode = words[1], words[2]
    directory = words[-1]
    output = os.fdopen(os.dup(1), "w")  # a benchmark's own output goes to standard error
    os.dup2(2, 1)
    tool = TOOLS[kind](directory)
    failures = []

    def work(tool):
        if mode == "list":
            output.write(listed(tool, kind, float(words[3])))
        elif mode == "calibrate":
            for request in json.loads(words[3]):
                output.write(calibrated(tool, kind, request))
                output.flush()
        elif mode == "run":
            try:
                output.write(measured(tool, json.loads(words[3])))
            except Exception as error:
                traceback.print_exc()
                failures.append(str(error).strip() or type(error).__name__)
        else:
            serve(tool)

    tool.session(work)
    output.flush()
    if failures:
        sys.stderr.write(failures[0] + "\n")
        sys.stderr.flush()
        os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
