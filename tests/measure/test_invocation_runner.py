"""The invocation runner: each start happens once, and each outcome is stored with the start's draw."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from perftrail.builds import named_files
from perftrail.errors import InputChanged
from perftrail.measure import build_inputs
from perftrail.measure import subjects as subjects_module
from perftrail.measure.invocation_runner import RunnableOutcomes, most_failed
from perftrail.measure.pairs import PairedOutcomes
from perftrail.model.benchmark import Benchmark
from perftrail.model.build import Failure
from perftrail.model.measurement import Draw, FailedInvocation, InvocationKey, Measurement
from perftrail.model.plan import cells, subjects
from perftrail.model.process import Ended, Exited
from tests.fakes.subject_builder import FakeSource, FakeStarter
from tests.measure.fake_session import a_session, a_study, drain

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from perftrail.measure.session import Session
    from perftrail.measure.subjects import Ready

DRAW = Draw(block="b1", turn=2, seed=77)


def fails(code: int) -> FakeStarter:
    def ended(_: tuple[str, ...]) -> Ended:
        return Exited(code=code)

    return FakeStarter(seconds=lambda _: 1.0, ended=ended)


def ready_in(session: Session) -> Ready:
    cell = cells(session.study, subjects(session.study, session.source.history())[0])[0]
    _, ready = drain(session.subject_builder.ready(cell))
    assert not isinstance(ready, Failure)
    return ready


def test_a_draw_is_stored_with_the_sample_that_it_was_drawn_for(tmp_path: Path) -> None:
    session = a_session(a_study(), tmp_path, source=FakeSource(1), starter=fails(0))
    ready = ready_in(session)
    _, outcome = drain(session.runner.outcome(ready, "sample", 0, draw=DRAW))
    assert isinstance(outcome, Measurement)
    assert outcome.draw == DRAW
    assert session.store.outcomes([ready.runnable.key], session.machine.id) == {
        ready.runnable.key: (outcome,)
    }


def test_a_draw_is_stored_with_an_invocation_that_fails(tmp_path: Path) -> None:
    session = a_session(a_study(), tmp_path, source=FakeSource(1), starter=fails(3))
    ready = ready_in(session)
    _, outcome = drain(session.runner.outcome(ready, "sample", 0, draw=DRAW))
    assert isinstance(outcome, FailedInvocation)
    assert outcome.draw == DRAW


def test_a_known_sample_keeps_the_draw_that_it_was_taken_with(tmp_path: Path) -> None:
    session = a_session(a_study(), tmp_path, source=FakeSource(1), starter=fails(0))
    ready = ready_in(session)
    drain(session.runner.outcome(ready, "sample", 0, draw=DRAW))
    _, again = drain(session.runner.outcome(ready, "sample", 0, draw=Draw(block="other")))
    assert again.draw == DRAW
    assert session.runner.started == 1


def edited_session(tmp_path: Path, edit: Callable[[Path], object]) -> Session:
    """A session of a benchmark that reads a file; each invocation edits the file."""
    file = tmp_path / "study" / "data.txt"
    file.parent.mkdir()
    file.write_text("1")

    def ended(_: tuple[str, ...]) -> Ended:
        edit(file)
        return Exited(code=0)

    study = a_study(
        directory=str(file.parent), benchmarks={"work": Benchmark(command="{build}/work {study}/data.txt")}
    )
    starter = FakeStarter(seconds=lambda _: 1.0, ended=ended)
    return a_session(study, tmp_path, source=FakeSource(1), starter=starter)


@pytest.mark.parametrize("edit", [lambda file: file.write_text("2"), lambda file: file.unlink()])
def test_a_sample_whose_input_was_edited_meanwhile_is_discarded(
    tmp_path: Path, edit: Callable[[Path], object]
) -> None:
    session = edited_session(tmp_path, edit)
    ready = ready_in(session)
    with pytest.raises(InputChanged, match=r"study/data\.txt: changed while perftrail measured"):
        drain(session.runner.outcome(ready, "sample", 0))
    assert not session.store.outcomes([ready.runnable.key], session.machine.id).get(ready.runnable.key)


def test_a_program_may_write_to_a_file_outside_the_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(named_files, "temporary_directories", tuple)
    count = tmp_path / "count"
    count.write_text("1")
    study = a_study(
        directory=str(tmp_path / "study"), benchmarks={"work": Benchmark(command=f"work {count}")}
    )
    session = a_session(study, tmp_path, source=FakeSource(1), starter=fails(0))
    ready = ready_in(session)
    count.write_text("2")
    drain(session.runner.outcome(ready, "sample", 0))
    assert session.store.outcomes([ready.runnable.key], session.machine.id).get(ready.runnable.key)


def test_no_sample_is_stored_after_an_input_was_edited(tmp_path: Path) -> None:
    session = edited_session(tmp_path, lambda _: None)
    ready = ready_in(session)
    (tmp_path / "study" / "data.txt").write_text("2")
    with pytest.raises(InputChanged):
        drain(session.runner.outcome(ready, "sample", 0))
    assert not session.store.outcomes([ready.runnable.key], session.machine.id).get(ready.runnable.key)


def test_each_invocation_compares_its_inputs_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = edited_session(tmp_path, lambda _: None)
    ready = ready_in(session)
    read: list[Path] = []

    def content(path: Path) -> str:
        read.append(path)
        return dict(ready.inputs)[str(path)]

    monkeypatch.setattr(subjects_module, "content_of_input", content)
    drain(session.runner.outcome(ready, "sample", 0))
    assert read == [tmp_path / "study" / "data.txt"]


def test_a_directory_is_compared_instead_of_the_files_below_it(tmp_path: Path) -> None:
    session = edited_session(tmp_path, lambda _: None)
    command = "sh -c 'cd {study}/data && {build}/work one.txt'"
    (tmp_path / "study" / "data").mkdir()
    (tmp_path / "study" / "data" / "one.txt").write_text("1")
    study = replace(session.study, benchmarks={"work": Benchmark(command=command)})
    again = a_session(study, tmp_path, source=FakeSource(1), starter=fails(0))
    assert [path for path, _ in ready_in(again).inputs] == [str(tmp_path / "study" / "data")]


def test_the_named_files_of_a_cell_are_searched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[tuple[str, ...]] = []

    def named(texts: tuple[str, ...], *_: object, **__: object) -> tuple[str, ...]:
        searched.append(texts)
        return ()

    monkeypatch.setattr(build_inputs, "named_files", named)
    session = edited_session(tmp_path, lambda _: None)
    ready_in(session)
    ready_in(session)
    assert sum("{study}/data.txt" in " ".join(texts) for texts in searched) == 1


def test_an_input_that_is_written_again_with_equal_content_is_the_same(tmp_path: Path) -> None:
    session = edited_session(tmp_path, lambda file: file.write_text(file.read_text()))
    _, outcome = drain(session.runner.outcome(ready_in(session), "sample", 0))
    assert isinstance(outcome, Measurement)


def test_starts_that_were_handed_out_keep_their_draws(tmp_path: Path) -> None:
    session = a_session(a_study(), tmp_path, source=FakeSource(1), starter=fails(0))
    ready = ready_in(session)
    starts = [
        session.runner.plan(ready, "sample", turn, draw=Draw(block="b", turn=turn, seed=1)) for turn in (0, 1)
    ]
    session.runner.submit(starts)
    session.runner.submit(session.runner.plan(ready, "sample", ordinal, draw=DRAW) for ordinal in (1, 2))
    drain(session.runner.perform(starts))
    drain(session.runner.outcome(ready, "sample", 2))
    draws = [session.runner.known(ready)["sample", ordinal].draw for ordinal in range(3)]
    assert draws == [Draw(block="b", turn=0, seed=1), Draw(block="b", turn=1, seed=1), DRAW]


@pytest.mark.parametrize(
    ("ended", "broken"),
    [("F", True), (".F", False), (".FF", True), ("F.", False), ("F..F", False), ("FF.", True)],
)
def test_runs_and_pairs_agree_on_what_is_broken(tmp_path: Path, ended: str, broken: bool) -> None:
    """The first invocation is the warm-up; F is one that failed."""
    session = a_session(a_study(), tmp_path, source=FakeSource(1), starter=fails(0))
    ready = ready_in(session)
    failure = Failure(stage="crash", message="exit code 3")
    for number, each in enumerate(ended):
        key = InvocationKey(
            runnable=ready.runnable.key,
            machine=session.machine.id,
            phase="sample" if number else "warmup",
            ordinal=max(0, number - 1),
        )
        session.store.add(
            FailedInvocation(key=key, started="", seconds=1.0, failure=failure)
            if each == "F"
            else Measurement(key=key, started="", seconds=1.0, values={"wall": 1.0})
        )
    known = session.runner.known(ready)
    run = RunnableOutcomes.of(known.values(), policy=session.study.measure, metrics=("wall",))
    pairs = PairedOutcomes(session.runner, {"base": [ready], "head": [ready]})
    assert most_failed(known.values()) == pairs.failure_of(ready) == (failure if broken else None)
    assert run.broken == broken


def test_equal_outputs_share_their_space_on_disk_and_stay_as_they_are(tmp_path: Path) -> None:
    starter = FakeStarter(seconds=lambda _: 1.0, output="a\n" * 10_000)
    session = a_session(a_study(), tmp_path, source=FakeSource(1), starter=starter)
    ready = ready_in(session)
    for ordinal in range(3):
        drain(session.runner.outcome(ready, "sample", ordinal))
    logs = sorted((tmp_path / "logs").rglob("*-sample-*.out"))
    assert len(logs) == len({log.name for log in logs}) == 3
    assert len({log.stat().st_ino for log in logs}) == 1

    repeated = replace(starter, output="b\n" * 10_000)
    session = a_session(a_study(), tmp_path, source=FakeSource(1), starter=repeated)
    drain(session.runner.outcome(ready_in(session), "sample", 0))
    assert [log.read_text()[:1] for log in logs] == ["b", "a", "a"]
