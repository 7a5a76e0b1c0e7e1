"""Explaining over fakes: the number and order of profiled starts, and the report when a profiler fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from perftrail.measure.events import Stepped
from perftrail.measure.function_profilers import FunctionProfiler
from perftrail.measure.subjects import Ready
from perftrail.model.benchmark import Benchmark
from perftrail.model.build import Failure
from perftrail.model.patch import FileChange
from perftrail.model.plan import cells, subjects
from perftrail.model.profile import Calls, Function, Profile
from perftrail.model.subject import Revision
from perftrail.present.why import explanation_lines
from perftrail.process.launcher import Launcher
from perftrail.results.selection import Selection
from perftrail.verbs.explain.explain import Explain, ExplainReport, Pair
from perftrail.verbs.explain.profilers import (
    TIMES_SLOWER,
    CallsProfiler,
    ProfiledMetric,
    Profiler,
    instruction_metrics,
    read_calls,
)
from tests.fakes.memory_store import MemoryStore
from tests.fakes.subject_builder import FakeBuilder, FakeSource, FakeStarter
from tests.measure.fake_session import a_session, a_study, drain
from tests.needs import needs

PAIR = Pair(
    culprit=Revision(id="r1"), against=Revision(id="r0"), changes=(FileChange(path="a", added=1, removed=0),)
)

TABLE = """\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 61.90    0.000013           1        12         3 openat
 38.10    0.000008           0         9           mmap
  0.00    0.000000           0         1         1 total_of_something
------ ----------- ----------- --------- --------- ----------------
100.00    0.000021           1        22         4 total
"""


class CannedProfiler:
    """Returns the values of a test for each revision, and records which revisions it profiled."""

    def __init__(
        self,
        values: Mapping[str, Mapping[str, float] | Failure],
        *,
        name: str = "canned",
        invocations: int = 3,
        slowdown: float = 1.0,
        missing: str = "",
    ) -> None:
        self.name, self.invocations, self.slowdown = name, invocations, slowdown
        self._values, self._missing = values, missing
        self.profiled: list[str] = []

    def unsupported_reason(self) -> str:
        return self._missing

    def profile(self, ready: Ready, number: int) -> Mapping[str, ProfiledMetric] | Failure:
        revision = ready.cell.subject.revision.id
        self.profiled.append(revision)
        values = self._values[revision]
        if isinstance(values, Failure):
            return values
        return {
            name: ProfiledMetric(value=value, unit="", method="canned", floor=5.0)
            for name, value in values.items()
        }


def explain(
    tmp_path: Path,
    *profilers: Profiler,
    source: FakeSource | None = None,
    broken: str = "",
    functions: Sequence[FunctionProfiler] = (),
    store: MemoryStore | None = None,
) -> ExplainReport:
    source = source or FakeSource(2)
    session = a_session(
        a_study(),
        tmp_path,
        source=source,
        starter=FakeStarter(seconds=lambda _: 1.0),
        builder=FakeBuilder(source, broken=[broken]),
        store=store,
    )
    explaining = Explain(
        session, PAIR, profilers=profilers, selection=Selection(), function_profilers=functions
    )
    _, explained = drain(explaining.events())
    return explained


def test_both_builds_are_confirmed(tmp_path: Path) -> None:
    source = FakeSource(2)
    builder = FakeBuilder(source)
    starter = FakeStarter(seconds=lambda _: 1.0)
    session = a_session(a_study(), tmp_path, source=source, starter=starter, builder=builder)
    drain(Explain(session, PAIR, profilers=(), selection=Selection()).events())
    assert sorted(builder.decisive) == ["r0", "r1"]


def steps(tmp_path: Path, *profilers: Profiler, points: tuple[int, ...] = (1,)) -> list[str]:
    """Return the purposes of all steps of an explanation at some points."""
    source = FakeSource(2)
    study = a_study(
        benchmarks={"work": Benchmark(command="{build}/work {size}", parameters={"size": points})}
    )
    session = a_session(
        study,
        tmp_path,
        source=source,
        starter=FakeStarter(seconds=lambda _: 1.0),
        builder=FakeBuilder(source),
    )
    explaining = Explain(session, PAIR, profilers=profilers, selection=Selection())
    events, _ = drain(explaining.events())
    return [each.purpose for each in events if isinstance(each, Stepped)]


def test_each_step_has_its_number_of_all_and_the_time_left_once_an_invocation_was_timed(
    tmp_path: Path,
) -> None:
    plain = CannedProfiler({"r0": {"wall": 2.0}, "r1": {"wall": 4.0}}, name="plain")
    calls = CannedProfiler({"r0": {"a": 1.0}, "r1": {"a": 1.0}}, name="calls", slowdown=10.0)
    first, second, third, fourth = steps(tmp_path, plain, calls, points=(1, 2))
    assert first == "1 of 4"
    assert second == "2 of 4, up to 6 min 1 s left"
    assert third.startswith("3 of 4, about ")
    assert fourth.startswith("4 of 4, about ")


def test_invocations_are_interleaved_in_abba_order(tmp_path: Path) -> None:
    profiler = CannedProfiler({"r0": {"a": 1.0}, "r1": {"a": 1.0}})
    explain(tmp_path, profiler)
    assert profiler.profiled == ["r0", "r1", "r1", "r0", "r0", "r1"]


def test_the_largest_difference_comes_first_and_small_numbers_last(tmp_path: Path) -> None:
    before = {"large": 1000.0, "small": 1.0, "same": 7.0}
    after = {"large": 4000.0, "small": 2.0, "same": 7.0, "new": 900.0}
    [cell] = explain(tmp_path, CannedProfiler({"r0": before, "r1": after})).cells
    assert [each.name for each in cell.metrics] == ["new", "large", "small", "same"]
    assert [each.name for each in cell.unchanged] == ["same"]
    assert cell.metrics[0].difference.before == 0.0


def test_a_failed_analysis_is_reported_and_the_others_continue(tmp_path: Path) -> None:
    failing = CannedProfiler(
        {"r0": {"a": 1.0}, "r1": Failure(stage="crash", message="exit code 1")}, name="first"
    )
    other = CannedProfiler({"r0": {"b": 1.0}, "r1": {"b": 1.0}})
    [cell] = explain(tmp_path, failing, other).cells
    assert [(each.what, each.why) for each in cell.unavailable] == [("first", "crash: exit code 1")]
    assert [each.name for each in cell.metrics] == ["b"]


def test_a_profiler_that_this_machine_lacks_is_not_run(tmp_path: Path) -> None:
    lacking = CannedProfiler({}, name="lacking", missing="no such tool; install it")
    explained = explain(tmp_path, lacking, CannedProfiler({"r0": {"a": 1.0}, "r1": {"a": 1.0}}))
    assert lacking.profiled == []
    assert ("lacking", "no such tool; install it") in [
        (each.what, each.why) for each in explained.unavailable
    ]


def test_a_profiler_that_would_take_too_long_is_left_out(tmp_path: Path) -> None:
    plain = CannedProfiler({"r0": {"wall": 10.0}, "r1": {"wall": 10.0}})
    slow = CannedProfiler({}, name="slow", slowdown=60.0)
    [cell] = explain(tmp_path, plain, slow).cells
    assert slow.profiled == []
    [unavailable] = cell.unavailable
    assert "about 10 min" in unavailable.why


def test_revisions_with_the_same_build_are_not_profiled(tmp_path: Path) -> None:
    profiler = CannedProfiler({})
    explained = explain(tmp_path, profiler, source=FakeSource(2, same_as={"r1": "r0"}))
    assert profiler.profiled == []
    assert [cell.equal for cell in explained.cells] == [True]
    assert explained.measured


def test_one_that_does_not_build_leaves_nothing_to_see(tmp_path: Path) -> None:
    explained = explain(tmp_path, CannedProfiler({}), broken="r0")
    assert not explained.measured
    assert [(name, failure.stage) for name, failure in explained.failures] == [("r0", "build")]


def test_the_table_of_strace_is_read_by_its_names() -> None:
    assert read_calls(TABLE) == {"openat": 12, "mmap": 9, "total_of_something": 1}


class CannedFunctions:
    """Returns the profile of a test for each revision, and counts how often it started one."""

    def __init__(
        self, costs: Mapping[str, float | Failure], *, method: str = "callgrind", pairs: int = 3
    ) -> None:
        self.name, self.method, self.pairs, self.slowdown = f"functions by {method}", method, pairs, 1.0
        self.opens: tuple[str, ...] = ()
        self._costs = costs
        self.profiled: list[str] = []

    def unsupported_reason(self) -> str:
        return ""

    def profile(self, ready: Ready, number: int) -> Profile | Failure:
        revision = ready.cell.subject.revision.id
        self.profiled.append(revision)
        cost = self._costs[revision]
        if isinstance(cost, Failure):
            return cost
        main, insert = Function("main", "/b/main.c", 1), Function("insert", "/b/tree.c", 9)
        own = {main: (100.0,), insert: (cost,)} if cost else {}
        return Profile(events=("Ir",), own=own, calls={(main, insert): Calls(5.0, (cost,))})


def test_the_first_profiler_that_applies_compares_the_functions(tmp_path: Path) -> None:
    python = CannedFunctions({"r0": 0.0, "r1": 0.0}, method="cprofile")
    counted = CannedFunctions({"r0": 900.0, "r1": 1800.0})
    sampled = CannedFunctions({}, method="perf")
    [cell] = explain(tmp_path, functions=[python, counted, sampled]).cells
    assert python.profiled == ["r0", "r1"]
    assert counted.profiled == ["r0", "r1", "r1", "r0"]
    assert sampled.profiled == []
    found = cell.as_json()["functions"]
    assert found is not None
    assert (found["method"], found["pairs"]) == ("callgrind", 2)
    [change] = [each for each in found["functions"] if each["responsible"]]
    assert change["function"] == {"name": "insert", "file": "/b/tree.c", "line": 9}
    assert change["contribution"]["value"] == 0.9
    assert [each.name for each in cell.differing] == ["instructions", "instructions in insert"]


def test_compared_functions_are_stored(tmp_path: Path) -> None:
    store = MemoryStore()
    explain(tmp_path, functions=[CannedFunctions({"r0": 900.0, "r1": 1800.0})], store=store)
    [record] = store.explanations()
    assert (record.revision, record.against) == ("r1", "r0")
    assert explanation_lines(record)[0].startswith("work: +90 % in insert (/b/tree.c:9)")


def test_samples_replace_counts_that_fail(tmp_path: Path) -> None:
    failing = CannedFunctions({"r0": Failure(stage="crash", message="exit code 1")})
    sampled = CannedFunctions({"r0": 900.0, "r1": 1800.0}, method="perf")
    [cell] = explain(tmp_path, functions=[failing, sampled]).cells
    assert cell.functions is not None
    assert cell.functions.profiles.method == "perf"
    assert [(each.what, each.why) for each in cell.unavailable] == [
        ("functions by callgrind", "crash: exit code 1")
    ]


def test_a_python_program_is_compared_by_its_functions_and_counted(tmp_path: Path) -> None:
    python = CannedFunctions({"r0": 9.0, "r1": 18.0}, method="cprofile", pairs=1)
    counted = CannedFunctions({"r0": 900.0, "r1": 1800.0})
    [cell] = explain(tmp_path, functions=[python, counted]).cells
    assert cell.functions is not None
    assert cell.functions.profiles.method == "cprofile"
    assert "instructions" in [each.name for each in cell.differing]


def test_metrics_of_a_profile_are_those_of_the_program_and_of_each_function() -> None:
    own = {Function("f.constprop.0"): (10.0, 2.0, 1.0), Function("f"): (5.0,)}
    metrics = instruction_metrics(Profile(events=("Ir", "D1mr", "D1mw"), own=own))
    assert {name: each.value for name, each in metrics.items()} == {
        "instructions": 15.0,
        "cache misses": 3.0,
        "instructions in f": 15.0,
    }


@needs("strace")
def test_counting_system_calls_does_not_wait_for_daemons(tmp_path: Path) -> None:
    daemon = Benchmark(command="sleep 300 & true", shell=True, timeout_seconds=10.0 / TIMES_SLOWER)
    source = FakeSource(1)
    with Launcher() as starter:
        session = a_session(
            a_study(directory=str(tmp_path), benchmarks={"work": daemon}),
            tmp_path,
            source=source,
            starter=starter,
            builder=FakeBuilder(source),
        )
        cell = cells(session.study, subjects(session.study, session.source.history())[0])[0]
        _, ready = drain(session.subject_builder.ready(cell))
        assert isinstance(ready, Ready)
        found = CallsProfiler(session.runner.invoker, invocations=1).profile(ready, 0)
    assert not isinstance(found, Failure), found.message
    assert found["calls of execve"].value >= 1.0
