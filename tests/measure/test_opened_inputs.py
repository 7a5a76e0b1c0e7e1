"""Files that benchmarks open by themselves: observed once, and part of the samples' key after a change."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from perftrail.builds.artefact import content_of_opened
from perftrail.measure import opened_inputs
from perftrail.measure.events import BuilderMessage
from perftrail.measure.opened_inputs import OpenedInputs
from perftrail.measure.subjects import Ready
from perftrail.model.benchmark import Benchmark, Point, Value
from perftrail.model.build import Failure
from perftrail.model.plan import Cell
from perftrail.model.reads import BuildReads
from perftrail.model.study import Study
from perftrail.model.subject import Revision, Subject
from perftrail.store.memory import MemoryStore
from tests.fakes.subject_builder import FakeSource, FakeStarter
from tests.measure.fake_session import MACHINE, a_session, a_study, drain


@pytest.fixture(autouse=True)
def strace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opened_inputs, "observer", lambda: "/usr/bin/strace")


class Observed:
    """Observations of one file, `name`, by a session that can be repeated; counts them."""

    def __init__(self, study: Study, tmp_path: Path, *, name: str = "file") -> None:
        self.study = study
        self.store = MemoryStore()
        self.store.add_machine(MACHINE)
        self.file = tmp_path / name
        self.file.write_text("1")
        self.count = 0
        self.answer: BuildReads | Failure | None = None
        self.session = a_session(
            study, tmp_path, source=FakeSource(3), starter=FakeStarter(seconds=lambda _: 1.0)
        )
        self.begin()

    def begin(self) -> None:
        """Begin another session."""
        self.inputs = OpenedInputs(self.study, self.store, machine=MACHINE.id)

    def ready(self, revision: int = 0, values: Mapping[str, Value] | None = None) -> Ready:
        subject = Subject(revision=Revision(id=f"r{revision}"), variant="plain")
        cell = Cell(subject=subject, benchmark="work", point=Point(tuple((values or {}).items())))
        _, ready = drain(self.session.subject_builder.ready(cell))
        assert isinstance(ready, Ready)
        return ready

    def observe(self, ready: Ready) -> list[str]:
        """Observe a cell, and return the messages."""
        messages = []
        for event in self.inputs.observe(ready.cell, self.opened_files):
            assert isinstance(event, BuilderMessage)
            messages.append(event.text)
        return messages

    def opened_files(self) -> BuildReads | Failure:
        self.count += 1
        return self.answer or BuildReads(outside={str(self.file): content_of_opened(self.file)})

    def changes(self) -> tuple[str, ...]:
        """Return the changes in another session."""
        self.begin()
        return self.inputs.of(self.ready().cell).changes


@pytest.fixture
def observed(tmp_path: Path) -> Observed:
    return Observed(a_study(directory=str(tmp_path)), tmp_path)


def test_a_benchmark_is_observed_once_for_all_its_revisions(observed: Observed) -> None:
    for number in range(3):
        assert observed.observe(observed.ready(number)) == []
    observed.begin()
    assert (observed.observe(observed.ready()), observed.count) == ([], 1)


def test_points_that_differ_in_texts_are_observed_each_and_numbers_are_not(tmp_path: Path) -> None:
    parameters: dict[str, tuple[Value, ...]] = {"n": (1, 2), "library": ("fast", "plain")}
    benchmark = Benchmark(command="{build}/work {n} {library}", parameters=parameters)
    observed = Observed(a_study(directory=str(tmp_path), benchmarks={"work": benchmark}), tmp_path)
    for n in (1, 2):
        for library in ("fast", "plain"):
            observed.observe(observed.ready(values={"n": n, "library": library}))
    assert observed.count == 2


def test_a_changed_file_is_another_key_until_it_is_restored(observed: Observed) -> None:
    observed.observe(observed.ready())
    assert observed.changes() == ()
    observed.file.write_text("2")
    changes = observed.changes()
    assert len(changes) == 1
    assert observed.observe(observed.ready()) == [
        f"work: measured again, because 1 file that it opens changed, for example {observed.file}"
    ]
    assert (observed.changes(), observed.observe(observed.ready())) == (changes, [])
    observed.file.write_text("1")
    assert (observed.changes(), observed.observe(observed.ready()), observed.count) == ((), [], 2)


def test_another_machine_observes_its_own_files(observed: Observed) -> None:
    observed.observe(observed.ready())
    observed.file.write_text("2")
    other = OpenedInputs(observed.study, observed.store, machine="another")
    assert other.of(observed.ready().cell).changes == ()


def test_what_cannot_be_observed_is_reported_once_with_its_remedy(
    observed: Observed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opened_inputs, "observer", lambda: None)
    (message,) = observed.observe(observed.ready())
    assert message.startswith("cannot observe which files the benchmarks open without strace")
    assert "name every input" in message
    assert "install strace" in message
    assert observed.observe(observed.ready(1)) == []


def test_benchmarks_of_another_machine_are_not_observed_and_that_is_reported(observed: Observed) -> None:
    (event,) = observed.inputs.observe(observed.ready().cell, None)
    assert isinstance(event, BuilderMessage)
    assert event.text.startswith("cannot observe which files the benchmarks open on another machine")


def test_a_benchmark_that_fails_under_strace_is_reported_once_and_tried_three_times(
    observed: Observed,
) -> None:
    observed.answer = Failure(stage="crash", message="exit code 1")
    (message,) = observed.observe(observed.ready())
    assert "work opens, because it fails under strace (exit code 1)" in message
    assert [observed.observe(observed.ready(number)) for number in (1, 2, 1, 2)] == 4 * [[]]
    assert (observed.count, observed.changes()) == (3, ())


def test_an_incomplete_observation_counts_and_is_reported(observed: Observed) -> None:
    content = {str(observed.file): content_of_opened(observed.file)}
    observed.answer = BuildReads(outside=content, incomplete="the benchmark asks another process at @x")
    (message,) = observed.observe(observed.ready())
    assert message.startswith("cannot observe each file that work opens: the benchmark asks another process")
    observed.file.write_text("2")
    assert len(observed.changes()) == 1


def test_a_change_is_part_of_the_runnable_key(observed: Observed, tmp_path: Path) -> None:
    store = observed.store
    session = a_session(
        observed.study,
        tmp_path,
        source=FakeSource(1),
        starter=FakeStarter(seconds=lambda _: 1.0),
        store=store,
    )
    cell = observed.ready().cell
    before = session.subject_builder.known_runnable(cell)
    observed.observe(observed.ready())
    observed.file.write_text("2")

    def key() -> object:
        builder = a_session(
            observed.study,
            tmp_path,
            source=FakeSource(1),
            starter=FakeStarter(seconds=lambda _: 1.0),
            store=store,
        ).subject_builder
        _, ready = drain(builder.ready(cell))
        assert isinstance(ready, Ready)
        # A file of the study that changes while its benchmark runs invalidates the sample.
        assert str(observed.file) in dict(ready.inputs)
        return ready.runnable.key

    assert before is None
    changed = key()
    observed.file.write_text("1")
    assert key() == observed.ready().runnable.key != changed
