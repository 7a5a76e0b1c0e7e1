"""Back-ports over fakes: the share of the gain, the order of starts, resuming, and what cannot be measured."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from pathlib import Path

import pytest

from perftrail.errors import UsageError
from perftrail.measure.events import GivenUp, Invoked
from perftrail.measure.session import Session
from perftrail.measure.subjects import Ready
from perftrail.model.benchmark import Benchmark
from perftrail.model.measurement import InvocationKey, Measurement
from perftrail.model.metrics import Derived, Metric
from perftrail.model.patch import Patch, Patched
from perftrail.model.plan import Cell
from perftrail.model.process import Command, Exited, Ran, TimedOut
from perftrail.model.study import FindPolicy, Invocations, MeasurePolicy, Study
from perftrail.model.subject import Revision, Subject
from perftrail.verbs.backport.backport import Backport
from perftrail.verbs.backport.patch import FittedPatch, write_patch
from perftrail.verbs.backport.result import BackportReport, MetricResult, Role
from tests.fakes.memory_store import MemoryStore
from tests.fakes.subject_builder import FakeBuilder, FakeSource, FakeStarter, number_of
from tests.fakes.watcher import NOISY, QUIET, FakeWatcher
from tests.measure.fake_session import MACHINE, a_session, a_study, drain

OLD, FIXED, PATCHED = (Revision(id=f"r{number}") for number in range(3))
FITTED = FittedPatch(
    patched=Patched(base=OLD, patch=Patch(text=b"a patch", files=()), revision=PATCHED), fix=FIXED
)
POLICY = MeasurePolicy(invocations=Invocations(least=3, most=40), warmups=1, precision=0.02)


def test_a_patch_is_not_written_through_a_link_of_a_repository(tmp_path: Path) -> None:
    """A link to a file that does not exist yet could name a file that a shell reads at its start."""
    file, startup = tmp_path / "revert-r1.patch", tmp_path / "startup"
    file.symlink_to(startup)
    with pytest.raises(UsageError, match="cannot be written: It is a symbolic link"):
        write_patch(file, FITTED)
    assert not startup.exists()
    file.unlink()
    write_patch(file, FITTED)
    assert file.read_text().endswith("a patch")


def study(**changes: object) -> Study:
    return a_study(**{"measure": POLICY, **changes})


def speeds(old: float, fixed: float, patched: float, *, noise: float = 0.01) -> FakeStarter:
    seconds = {0: old, 1: fixed, 2: patched}
    return FakeStarter(seconds=lambda words: seconds[number_of(words)], noise=noise)


def session_of(
    tmp_path: Path,
    starter: FakeStarter,
    *,
    custom_study: Study | None = None,
    builder: FakeBuilder | None = None,
    store: MemoryStore | None = None,
    source: FakeSource | None = None,
) -> Session:
    return a_session(
        custom_study or study(),
        tmp_path,
        source=source or FakeSource(3),
        starter=starter,
        builder=builder,
        store=store,
    )


def wall(report: BackportReport) -> MetricResult:
    [found] = [stand for stand in report.metrics if stand.target.text == "wall"]
    return found


@pytest.mark.parametrize(
    ("share", "verdict"), [(1.0, "whole"), (0.5, "part"), (0.0, "nothing"), (-0.5, "nothing")]
)
def test_the_share_of_the_gain_is_found(tmp_path: Path, share: float, verdict: str) -> None:
    starter = speeds(1.0, 0.5, 0.5**share)
    _, report = drain(Backport(session_of(tmp_path, starter), FITTED).events())
    assert report.verdict == verdict
    found = wall(report).retained
    assert found is not None
    assert found.low <= share <= found.high
    assert found.high - found.low < 0.15


def test_a_backport_compares_values_above_zero_by_their_ratio_whatever_scale_the_study_states(
    tmp_path: Path,
) -> None:
    metric = Metric(pattern="value ([0-9.]+)", unit="errors", scale="difference")
    custom_study = study(benchmarks={"work": Benchmark(command="{build}/work", metrics={"printed": metric})})
    rng = random.Random(2)
    starter = FakeStarter(
        seconds=lambda _: 1.0,
        prints=lambda words: f"value {(900.0, 500.0, 510.0)[number_of(words)] + rng.gauss(0.0, 3.0)}\n",
    )
    _, report = drain(Backport(session_of(tmp_path, starter, custom_study=custom_study), FITTED).events())
    [found] = [each for each in report.metrics if each.target.text == "printed"]
    assert found.patched_against_old is not None
    assert found.patched_against_old.effect == pytest.approx(510 / 900, rel=0.02)
    assert found.judged(found.patched_against_old) == "better"
    assert found.estimates[Role.OLD].value == pytest.approx(900.0, rel=0.02)


def test_a_patched_one_that_is_slower_is_a_cost(tmp_path: Path) -> None:
    _, report = drain(Backport(session_of(tmp_path, speeds(1.0, 0.5, 1.3)), FITTED).events())
    assert [stand.target.text for stand in report.costs] == ["wall"]


def test_a_fix_that_is_slower_is_no_gain(tmp_path: Path) -> None:
    _, report = drain(Backport(session_of(tmp_path, speeds(0.5, 1.0, 1.0)), FITTED).events())
    assert report.verdict == "no gain"
    assert wall(report).judged(wall(report).fixed_against_old) == "worse"


@pytest.mark.parametrize("metric", ["work.cpu", "cpu"])
def test_the_answer_is_about_the_metric_that_the_study_looks_for(tmp_path: Path, metric: str) -> None:
    class Cpu(FakeStarter):
        """A starter with equal wall times; the old revision takes four times the CPU time."""

        def run(self, command: Command) -> Ran:
            times = 4 if number_of(command.arguments) == 0 else 1
            return replace(super().run(command), cpu_seconds=0.01 * times)

    custom_study = study(find=FindPolicy(metric=(metric,)))
    starter = Cpu(seconds=lambda words: {0: 1.0, 1: 0.5, 2: 1.0}[number_of(words)])
    _, report = drain(Backport(session_of(tmp_path, starter, custom_study=custom_study), FITTED).events())
    assert report.headline is not None
    assert report.headline.target.text == "cpu"
    assert report.verdict == "whole"


def test_units_that_were_taken_in_noise_are_counted(tmp_path: Path) -> None:
    watcher = FakeWatcher.with_conditions(*[NOISY] * 500)
    session = a_session(
        study(), tmp_path, source=FakeSource(3), starter=speeds(1.0, 0.5, 0.5), watcher=watcher
    )
    _, report = drain(Backport(session, FITTED).events())
    assert wall(report).noisy == wall(report).replicates > 0


def test_marked_units_are_left_out_only_where_the_rest_is_enough_for_a_verdict(tmp_path: Path) -> None:
    few = MeasurePolicy(invocations=Invocations(least=3, most=4), warmups=0, precision=0.02)
    watcher = FakeWatcher.with_conditions(*[QUIET] * 9, *[NOISY] * 400)
    session = a_session(
        study(measure=few),
        tmp_path,
        source=FakeSource(3),
        starter=speeds(1.0, 1.0, 1.0, noise=0.0),
        watcher=watcher,
    )
    _, report = drain(Backport(session, FITTED).events())
    assert wall(report).fixed_against_old is not None
    assert wall(report).judged(wall(report).fixed_against_old) == "same"
    assert 0 < wall(report).noisy <= wall(report).replicates


def test_the_order_of_the_three_is_drawn_in_each_unit(tmp_path: Path) -> None:
    starter = speeds(1.0, 0.5, 0.5)
    drain(Backport(session_of(tmp_path, starter), FITTED).events())
    numbers = [number_of(words) for words in starter.started]
    assert numbers[:3] == [0, 2, 1]  # the warm-up
    units = [tuple(numbers[at : at + 3]) for at in range(3, len(numbers), 3)]
    assert {tuple(sorted(unit)) for unit in units} == {(0, 1, 2)}
    assert len(set(units)) > 2


def test_without_noise_no_more_units_are_taken_than_a_verdict_needs(tmp_path: Path) -> None:
    starter = speeds(1.0, 0.5, 0.5, noise=0.0)
    _, report = drain(Backport(session_of(tmp_path, starter), FITTED).events())
    assert wall(report).replicates < POLICY.invocations.most


def test_in_much_noise_the_study_s_most_units_are_taken_and_nothing_is_claimed(tmp_path: Path) -> None:
    starter = speeds(1.0, 0.98, 0.98, noise=0.3)
    _, report = drain(Backport(session_of(tmp_path, starter), FITTED).events())
    assert report.verdict == "no gain"
    assert wall(report).replicates == POLICY.invocations.most
    assert wall(report).retained is None


def test_a_second_time_nothing_is_started_and_the_report_is_the_same(tmp_path: Path) -> None:
    store = MemoryStore()
    _, report = drain(Backport(session_of(tmp_path, speeds(1.0, 0.5, 0.7), store=store), FITTED).events())
    starter = speeds(1.0, 0.5, 0.7)
    _, again = drain(Backport(session_of(tmp_path, starter, store=store), FITTED).events())
    assert starter.started == []
    assert again.as_json(file=None) == report.as_json(file=None)


def test_killed_in_the_middle_it_resumes(tmp_path: Path) -> None:
    store = MemoryStore()
    workflow = Backport(session_of(tmp_path, speeds(1.0, 0.5, 0.7), store=store), FITTED).events()
    invoked = 0
    while invoked < 11:
        invoked += isinstance(next(workflow), Invoked)
    workflow.close()
    starter = speeds(1.0, 0.5, 0.7)
    _, report = drain(Backport(session_of(tmp_path, starter, store=store), FITTED).events())
    # A warm-up each and two whole units were there; the third unit lacked one start and is not made whole later.
    assert len(starter.started) == 3 * (wall(report).replicates - 2)


def test_samples_that_earlier_runs_took_at_other_times_are_no_units(tmp_path: Path) -> None:
    store = MemoryStore()
    session = session_of(tmp_path, speeds(1.0, 0.5, 0.5), store=store)
    for number, revision in enumerate((OLD, FIXED, PATCHED)):
        cell = Cell(
            subject=Subject(revision=revision, variant="plain"),
            benchmark="work",
            point=session.study.benchmarks["work"].points("plain")[0],
        )
        _, ready = drain(session.subject_builder.ready(cell))
        assert isinstance(ready, Ready)
        for ordinal in range(20):
            key = InvocationKey(
                runnable=ready.runnable.key,
                machine=MACHINE.id,
                phase="sample",
                ordinal=ordinal,
            )
            values = {"wall": 9.0 - number, "cpu": 1.0, "peak_memory": 1.0}
            store.add(
                Measurement(key=key, started=f"202{number}-01-01T00:00:00+00:00", seconds=1.0, values=values)
            )
    _, report = drain(Backport(session, FITTED).events())
    assert wall(report).estimates[Role.OLD].high < 1.2


def test_one_build_is_started_once_for_both(tmp_path: Path) -> None:
    starter = speeds(1.0, 0.5, 0.5)
    source = FakeSource(3, same_as={"r2": "r1"})
    _, report = drain(Backport(session_of(tmp_path, starter, source=source), FITTED).events())
    assert report.equal == ((Role.PATCHED, Role.FIXED),)
    found = wall(report).retained
    assert found is not None
    assert found.low == pytest.approx(1.0)
    assert found.high == pytest.approx(1.0)
    assert {number_of(words) for words in starter.started} == {0, 1}


def test_all_builds_are_confirmed(tmp_path: Path) -> None:
    source = FakeSource(3)
    builder = FakeBuilder(source)
    drain(
        Backport(session_of(tmp_path, speeds(1.0, 0.5, 0.5), builder=builder, source=source), FITTED).events()
    )
    assert sorted(builder.decisive) == ["r0", "r1", "r2"]


@pytest.mark.parametrize(("broken", "verdict"), [("r0", "failed"), ("r2", "failed"), ("r1", "unclear")])
def test_a_failed_build_is_reported(tmp_path: Path, broken: str, verdict: str) -> None:
    source = FakeSource(3)
    builder = FakeBuilder(source, broken=[broken])
    session = session_of(tmp_path, speeds(1.0, 0.5, 0.5), builder=builder, source=source)
    _, report = drain(Backport(session, FITTED).events())
    assert report.verdict == verdict
    [failed] = report.failures
    assert failed.failure.stage == "build"


def test_a_crash_is_reported_and_is_not_repeated_for_ever(tmp_path: Path) -> None:
    starter = FakeStarter(
        seconds=lambda _: 1.0, ended=lambda words: Exited(code=3 if number_of(words) == 2 else 0)
    )
    _, report = drain(Backport(session_of(tmp_path, starter), FITTED).events())
    assert report.verdict == "failed"
    assert {(each.role, each.failure.stage) for each in report.failures} == {(Role.PATCHED, "crash")}
    assert len(starter.started) < 10


def test_points_beyond_one_that_does_not_end_are_given_up(tmp_path: Path) -> None:
    custom_study = study(
        benchmarks={
            "work": Benchmark(command="{build}/work {size}", parameters={"size": (1, 2, 3)}, give_up=True)
        }
    )
    starter = FakeStarter(
        seconds=lambda words: {0: 1.0, 1: 0.5, 2: 0.5}[number_of(words)],
        ended=lambda words: TimedOut() if number_of(words) == 0 and int(words[1]) >= 2 else Exited(code=0),
    )
    events, report = drain(
        Backport(session_of(tmp_path, starter, custom_study=custom_study), FITTED).events()
    )
    assert report.verdict == "whole"
    assert sum(isinstance(event, GivenUp) for event in events) == 1
    assert report.skipped == 1
    small = next(stand for stand in report.metrics if stand.target.name == "work.wall[size=1]")
    assert small.retained is not None
    large = next(stand for stand in report.metrics if stand.target.name == "work.wall[size=2]")
    assert large.patched_against_old is None
    assert large.note


def test_a_derived_metric_has_its_own_share(tmp_path: Path) -> None:
    custom_study = study(
        benchmarks={"work": Benchmark(command="{build}/work {threads}", parameters={"threads": (1, 8)})},
        derived={
            "ratio": Derived(benchmark="work", value="wall[threads=1] / wall[threads=8]", better="higher")
        },
    )
    together = {0: 1.0, 1: 0.25, 2: 0.5}
    starter = FakeStarter(
        seconds=lambda words: 1.0 if words[1] == "1" else together[number_of(words)], chance=random.Random(2)
    )
    _, report = drain(Backport(session_of(tmp_path, starter, custom_study=custom_study), FITTED).events())
    head = report.headline
    assert head is not None
    assert head.target.text == "ratio"
    assert head.retained is not None
    assert head.retained.low <= 0.5 <= head.retained.high
    assert math.isclose(head.estimates[Role.FIXED].value, 4.0, rel_tol=0.05)


def test_who_builds_several_at_once_is_asked_for_all_that_is_compared(tmp_path: Path) -> None:
    builder = FakeBuilder(FakeSource(3), parallel_builds=3)
    session = session_of(tmp_path, speeds(1.0, 0.8, 0.8), builder=builder)
    drain(Backport(session, FITTED).events())
    assert builder.begun == [OLD.id, PATCHED.id, FIXED.id]
