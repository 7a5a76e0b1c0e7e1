"""Explaining over fakes: the number and order of profiled starts, and the report when a profiler fails."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from perftrail.measure.subjects import Ready
from perftrail.model.build import Failure
from perftrail.model.patch import FileChange
from perftrail.model.subject import Revision
from perftrail.results.selection import Selection
from perftrail.verbs.explain.explain import Explain, ExplainReport, Pair
from perftrail.verbs.explain.profilers import ProfiledMetric, Profiler, read_calls, read_functions
from tests.fakes.subject_builder import FakeBuilder, FakeSource, FakeStarter
from tests.measure.fake_session import a_session, a_study, drain

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
    tmp_path: Path, *profilers: Profiler, source: FakeSource | None = None, broken: str = ""
) -> ExplainReport:
    source = source or FakeSource(2)
    session = a_session(
        a_study(),
        tmp_path,
        source=source,
        starter=FakeStarter(seconds=lambda _: 1.0),
        builder=FakeBuilder(source, broken=[broken]),
    )
    _, explained = drain(Explain(session, PAIR, profilers=profilers, selection=Selection()).events())
    return explained


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


def test_the_functions_of_all_processes_are_added_up() -> None:
    one = "desc: x\ncmd: ./work\nevents: Ir\nfl=a.c\nfn=main\n1 10\n2 5\nfl=b.c\nfn=add\n7 3\nsummary: 18\n"
    other = "events: Ir\nfl=???\nfn=add\n0 4\nsummary: 4\n"
    assert read_functions([one, other]) == {"main": 15, "add": 7}
