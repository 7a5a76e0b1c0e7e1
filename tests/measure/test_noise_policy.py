"""A study's setting for noise takes effect: samples are marked, delayed or refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from perftrail.errors import MachineBusy
from perftrail.measure.events import Event, Invoked
from perftrail.measure.noise_policy import Noise, NoiseObserver
from perftrail.model.measurement import BusyProcess, Conditions, Measurement, Quiet
from perftrail.model.process import Command
from perftrail.model.study import Invocations, MeasurePolicy
from perftrail.results.rows import rows
from perftrail.results.selection import Selection
from perftrail.verbs.run import Run
from tests.fakes.memory_store import MemoryStore
from tests.fakes.subject_builder import FakeSource, FakeStarter
from tests.fakes.watcher import NOISY, QUIET, FakeWatcher
from tests.measure.fake_session import a_session, a_study, drain

COMMAND = Command(arguments=("/work",), environment={}, directory="/")


def study_with(quiet: Quiet | None = None, *, least: int = 3, most: int = 3) -> MeasurePolicy:
    return MeasurePolicy(
        invocations=Invocations(least=least, most=most), warmups=0, quiet=quiet or Quiet(), precision=0.5
    )


def measurements(events: list[Event]) -> list[Measurement]:
    return [
        event.outcome
        for event in events
        if isinstance(event, Invoked) and isinstance(event.outcome, Measurement)
    ]


def observer(watcher: FakeWatcher, quiet: Quiet, slept: list[float] | None = None) -> NoiseObserver:
    return NoiseObserver(watcher, quiet, threshold=0.25, sleep=([] if slept is None else slept).append)


def test_noisy_samples_are_flagged_and_keep_their_values(tmp_path: Path) -> None:
    session = a_session(
        a_study(measure=study_with()),
        tmp_path,
        source=FakeSource(1),
        starter=FakeStarter(seconds=lambda _: 0.1),
        watcher=FakeWatcher.with_conditions(QUIET, NOISY, Conditions(stolen_cpus=0.5, cpu_pressure=0.1)),
    )
    events, _ = drain(Run(session, Selection()).events())
    found = measurements(events)
    assert [each.flags for each in found] == [(), ("busy",), ("stolen",)]
    assert [each.values.get("foreign_cpu") for each in found] == [0.0, 0.9, None]
    assert found[2].values["cpu_pressure"] == 0.1


def test_the_noise_observer_gets_the_cpu_time_of_the_process_tree() -> None:
    watcher = FakeWatcher()
    standing = observer(watcher, Quiet())
    standing.before()
    standing.after(FakeStarter(seconds=lambda _: 0.1).run(COMMAND))
    assert watcher.calls == ["begin", "end"]
    assert watcher.cpu_seconds == [0.01]


def test_waiting_ends_as_soon_as_it_is_quiet() -> None:
    watcher, slept = FakeWatcher.with_recent([None, 0.9, 0.3, 0.25, 0.0]), list[float]()
    observer(watcher, Quiet(action="wait", seconds=60.0), slept).before()
    assert watcher.calls == ["recent"] * 4 + ["begin"]
    assert len(slept) == 3


def test_waiting_is_reported_once_until_a_start_need_not_wait() -> None:
    events: list[Noise] = []
    watcher = FakeWatcher.with_recent([1.5, 1.0, 0.0, 0.7, 0.0, 0.0, 0.6, 0.0])
    waiting = NoiseObserver(
        watcher,
        Quiet(action="wait", seconds=60.0),
        threshold=0.25,
        sleep=lambda _: None,
        on_wait=events.append,
    )
    for _ in range(4):
        waiting.before()
    assert events == [Noise(cpus=1.5, seconds=60.0), Noise(cpus=0.6, seconds=60.0)]


def test_waiting_ends_after_the_longest_wait_even_in_noise() -> None:
    watcher, slept = FakeWatcher.with_recent([0.9]), list[float]()
    observer(watcher, Quiet(action="wait", seconds=2.0), slept).before()
    assert sum(slept) == pytest.approx(2.0, abs=0.06)
    assert watcher.calls[-1] == "begin"


def test_a_refusal_names_the_busy_processes_and_the_remedy() -> None:
    worst = (BusyProcess(pid=7, name="make\x1b[31m", cpus=0.97), BusyProcess(pid=8, name="cc1", cpus=0.5))
    watcher = FakeWatcher.with_recent([None, 1.47], worst=worst)
    with pytest.raises(MachineBusy) as raised:
        observer(watcher, Quiet(action="refuse")).before()
    text = str(raised.value)
    assert "1.47 CPUs" in text
    assert text.index('process 7 "make\\u001b[31m"') < text.index('process 8 "cc1"')
    assert 'quiet = "wait 60s"' in text
    assert "begin" not in watcher.calls


def test_a_refusal_keeps_what_was_measured_before(tmp_path: Path) -> None:
    store, starter = MemoryStore(), FakeStarter(seconds=lambda _: 0.1)
    session = a_session(
        a_study(measure=study_with(Quiet(action="refuse"))),
        tmp_path,
        source=FakeSource(1),
        starter=starter,
        store=store,
        watcher=FakeWatcher.with_recent([0.0, 0.1, 0.9]),
    )
    with pytest.raises(MachineBusy):
        drain(Run(session, Selection()).events())
    assert len(starter.started) == 2
    [held] = store.outcomes([store.runnables()[0].key], session.machine.id).values()
    assert len(held) == 2


def test_an_estimate_omits_noisy_samples_and_says_so(tmp_path: Path) -> None:
    times = iter([0.1, 9.0, 0.1, 0.1])
    session = a_session(
        a_study(measure=study_with(least=3, most=10)),
        tmp_path,
        source=FakeSource(1),
        starter=FakeStarter(seconds=lambda _: next(times), noise=0.0),
        watcher=FakeWatcher.with_conditions(QUIET, NOISY),
    )
    events, _ = drain(Run(session, Selection()).events())
    # One more than three is taken, so that three are quiet.
    assert len(measurements(events)) == 4
    [row] = rows(session)
    assert row.estimate is not None
    assert (row.estimate.value, row.estimate.count) == (0.1, 3)
    assert row.noise == "discarded 1 of 4 samples (busy)"


def test_where_it_is_always_busy_all_samples_are_used_and_measuring_ends(tmp_path: Path) -> None:
    session = a_session(
        a_study(measure=study_with(least=3, most=30)),
        tmp_path,
        source=FakeSource(1),
        starter=FakeStarter(seconds=lambda _: 0.1, noise=0.0),
        watcher=FakeWatcher.with_conditions(*[NOISY] * 30),
    )
    events, _ = drain(Run(session, Selection()).events())
    assert len(measurements(events)) == 6
    [row] = rows(session)
    assert row.noise == "used all samples; 6 of 6 noisy (busy)"
