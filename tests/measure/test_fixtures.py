"""Fixtures of many builds: few services run at once, their data is kept, and everything ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from perftrail.measure import fixtures as module
from perftrail.measure.fixtures import MOST_KEPT, MOST_RUNNING, Fixtures, drop_caches
from perftrail.measure.services import FixtureFailed, RunningService
from perftrail.measure.subjects import Ready
from perftrail.model.benchmark import Benchmark
from perftrail.model.measurement import FailedInvocation
from perftrail.model.metrics import Metric
from perftrail.model.service import Readiness, Service
from perftrail.process.launcher import Launcher
from tests.fakes.subject_builder import FakeBuilder, FakeSource
from tests.measure.fake_session import a_session, a_study, some_fixtures
from tests.measure.test_invocation_runner import fails, ready_in


class ManyBuilds:
    """The fixtures of a study with a service, and any number of builds."""

    def __init__(self, root: Path, launcher: Launcher, *, service: bool = True) -> None:
        self.log = root / "log"
        self.logs = root / "logs"
        benchmark = Benchmark(
            command="true",
            services=("idle",) if service else (),
            setup=(f"echo setup >> {self.log}; echo > {{data}}/loaded",),
            prepare=("test -f {data}/loaded",),
            cleanup=(f"test -f {{data}}/loaded; echo cleanup >> {self.log}",),
        )
        idle = Service(command="sleep 1000", ready=Readiness(command="true"))
        study = a_study(benchmarks={"work": benchmark}, services={"idle": idle})
        source = FakeSource(1)
        self._ready = ready_in(a_session(study, root, source=source, starter=fails(0)))
        self.fixtures: Fixtures = some_fixtures(study, root, builder=FakeBuilder(source), starter=launcher)

    def ready(self, number: int) -> Ready:
        prepared = self._ready.prepared
        built = replace(prepared.built, artefact=str(number))
        return replace(self._ready, prepared=replace(prepared, built=built))

    def use(self, number: int) -> list[RunningService]:
        """Use the fixture of a build once; return its services."""
        with self.fixtures.around(self.ready(number), self.logs / f"{number}.out") as fixture:
            kept = fixture._kept
            assert kept is not None
            return self.fixtures.running(kept)

    def lines(self) -> list[str]:
        return self.log.read_text().split()


@pytest.fixture
def launcher() -> Iterator[Launcher]:
    with Launcher() as opened:
        yield opened


def test_the_services_of_few_builds_run_and_the_data_of_all_is_kept(
    tmp_path: Path, launcher: Launcher
) -> None:
    builds = ManyBuilds(tmp_path, launcher)
    with ExitStack() as stack:
        stack.callback(builds.fixtures.close)
        started = [builds.use(number)[0] for number in range(MOST_RUNNING + 2)]
        assert [each.is_running for each in started] == [False] * 2 + [True] * MOST_RUNNING
        again = builds.use(0)[0]
        assert again.is_running
        assert not started[2].is_running
        assert builds.lines() == ["setup"] * (MOST_RUNNING + 2)
    assert builds.lines() == ["setup"] * (MOST_RUNNING + 2) + ["cleanup"] * (MOST_RUNNING + 2)
    assert not any(each.is_running for each in (*started, again))
    assert list((tmp_path / "fixtures").iterdir()) == []


def test_the_data_of_the_least_recently_used_builds_is_removed(tmp_path: Path, launcher: Launcher) -> None:
    builds = ManyBuilds(tmp_path, launcher, service=False)
    for number in range(MOST_KEPT + 1):
        builds.use(number)
    assert builds.lines() == ["setup"] * MOST_KEPT + ["cleanup", "setup"]
    assert len(list((tmp_path / "fixtures").iterdir())) == MOST_KEPT
    builds.use(0)
    assert builds.lines()[-2:] == ["cleanup", "setup"]
    builds.fixtures.close()
    assert list((tmp_path / "fixtures").iterdir()) == []


def test_a_service_that_ended_between_two_invocations_starts_again_with_new_data(
    tmp_path: Path, launcher: Launcher
) -> None:
    builds = ManyBuilds(tmp_path, launcher)
    [first] = builds.use(0)
    first._starter.cancel()
    first.end(0.0)
    [second] = builds.use(0)
    assert second.is_running
    assert builds.lines() == ["setup", "cleanup", "setup"]
    builds.fixtures.close()


def test_a_service_that_ends_shortly_after_a_failed_command_is_the_reason(
    tmp_path: Path, launcher: Launcher
) -> None:
    """As under load: its client fails and ends before perftrail notices that the service crashed."""
    benchmark = Benchmark(
        command="true", services=("db",), metrics={"cost": Metric(pattern="cost ([0-9]+)", unit="s")}
    )
    db = Service(command="sleep 0.3; exit 3", ready=Readiness(command="true"), shell=True)
    study = a_study(benchmarks={"work": benchmark}, services={"db": db})
    session = a_session(study, tmp_path, source=FakeSource(1), starter=fails(0))
    invoker, ready = session.runner.invoker, ready_in(session)
    outcome = invoker.invoke(session.runner.plan(ready, "sample", 0))
    assert isinstance(outcome, FailedInvocation)
    assert (outcome.failure.stage, outcome.failure.message) == ("fixture", "service db ended: exit code 3")


def test_the_cpu_time_of_lines_and_ended_services_is_never_lost(tmp_path: Path, launcher: Launcher) -> None:
    builds = ManyBuilds(tmp_path, launcher)
    seen = []
    for number in range(MOST_RUNNING + 1):
        builds.use(number)
        seen.append(builds.fixtures.cpu_seconds())
    builds.fixtures.close()
    seen.append(builds.fixtures.cpu_seconds())
    assert seen == sorted(seen)
    assert seen[0] > 0.0


def test_caches_are_dropped_through_the_file_of_the_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "DROP_CACHES", tmp_path / "drop_caches")
    drop_caches()
    assert (tmp_path / "drop_caches").read_text() == "3\n"
    monkeypatch.setattr(module, "DROP_CACHES", tmp_path)
    with pytest.raises(FixtureFailed, match=r"drop_caches: .* cannot be written: Is a directory"):
        drop_caches()
