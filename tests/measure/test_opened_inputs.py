"""Files that benchmarks open by themselves: observed once, and part of the samples' key after a change."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from perftrail.builds.artefact import content_of_opened
from perftrail.measure import opened_inputs
from perftrail.measure.events import BuilderMessage
from perftrail.measure.opened_inputs import ChangedFiles, OpenedInputs
from perftrail.measure.subjects import Ready
from perftrail.model.benchmark import Benchmark, Point, Value
from perftrail.model.build import Failure
from perftrail.model.plan import Cell
from perftrail.model.reads import BuildReads
from perftrail.model.store_records import ReadsRecord
from perftrail.model.study import Study
from perftrail.model.subject import Revision, Subject
from tests.fakes.memory_store import MemoryStore
from tests.fakes.subject_builder import FakeSource, FakeStarter
from tests.measure.fake_session import MACHINE, a_session, a_study, drain


@pytest.fixture(autouse=True)
def strace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opened_inputs, "observer", lambda: "/usr/bin/strace")


class Observed:
    """Observations of one file by sessions that can be repeated; counts them. A runnable is the text of its key."""

    def __init__(self, study: Study, tmp_path: Path) -> None:
        self.study = study
        self.store = MemoryStore()
        self.store.add_machine(MACHINE)
        self.file = tmp_path / "file"
        self.file.write_text("1")
        self.opens: dict[str, tuple[Path, ...]] = {"r0": (self.file,), "r1": (self.file,)}
        self.count = 0
        self.failure: Failure | None = None
        self.incomplete = ""
        self.begin()

    def begin(self) -> None:
        """Begin another session."""
        self.inputs = OpenedInputs(self.study, self.store, machine=MACHINE.id)

    def key(self, revision: str = "r0", values: Mapping[str, Value] | None = None) -> str:
        """Return the key of a runnable."""
        return self.inputs.key(cell_at(revision, values), f"{revision} {values or ''}".strip())

    def observe(self, revision: str = "r0", values: Mapping[str, Value] | None = None) -> list[str]:
        """Observe a runnable, and return the messages."""

        def opened_files() -> BuildReads | Failure:
            self.count += 1
            contents = {str(path): content_of_opened(path) for path in self.opens.get(revision, ())}
            return self.failure or BuildReads(outside=contents, incomplete=self.incomplete)

        messages = []
        for event in self.inputs.observe(cell_at(revision, values), self.key(revision, values), opened_files):
            assert isinstance(event, BuilderMessage)
            messages.append(event.text)
        return messages

    def later(self, revision: str = "r0") -> str:
        """Return the key of a runnable in another session."""
        self.begin()
        return self.key(revision)


def cell_at(revision: str, values: Mapping[str, Value] | None = None) -> Cell:
    subject = Subject(revision=Revision(id=revision), variant="plain")
    return Cell(subject=subject, benchmark="work", point=Point(tuple((values or {}).items())))


@pytest.fixture
def observed(tmp_path: Path) -> Observed:
    return Observed(a_study(directory=str(tmp_path)), tmp_path)


def test_a_runnable_is_observed_once(observed: Observed) -> None:
    assert [observed.observe(), observed.observe()] == [[], []]
    observed.begin()
    assert (observed.observe(), observed.count, observed.key()) == ([], 1, "r0")


def test_each_revision_and_point_has_its_own_files(tmp_path: Path) -> None:
    """Only one of two revisions opens another file, by a name that no line has."""
    observed = Observed(a_study(directory=str(tmp_path)), tmp_path)
    other = tmp_path / "other"
    other.write_text("1")
    observed.opens["r1"] = (observed.file, other)
    observed.observe("r0")
    observed.observe("r1")
    assert observed.count == 2
    assert observed.inputs.files(observed.key("r1")) == (str(observed.file), str(other))
    other.write_text("2")
    assert (observed.later("r0"), observed.later("r1") != "r1") == ("r0", True)
    assert observed.observe("r1") == [
        f"work: measured again, because 1 file that it opens changed, for example {other}"
    ]
    other.write_text("1")
    assert (observed.later("r0"), observed.later("r1"), observed.count) == ("r0", "r1", 3)


def test_points_are_observed_each(tmp_path: Path) -> None:
    parameters: dict[str, tuple[Value, ...]] = {"n": (1, 2), "library": ("fast", "plain")}
    benchmark = Benchmark(command="{build}/work {n} {library}", parameters=parameters)
    observed = Observed(a_study(directory=str(tmp_path), benchmarks={"work": benchmark}), tmp_path)
    for n in (1, 2, 1):
        for library in ("fast", "plain"):
            observed.observe(values={"n": n, "library": library})
    assert observed.count == 4


def test_files_that_all_revisions_open_are_stored_once(observed: Observed) -> None:
    for revision in ("r0", "r1"):
        observed.observe(revision)
    stored = [dict(each.reads.outside) for each in observed.store.documents(ReadsRecord)]
    assert stored == [{str(observed.file): content_of_opened(observed.file)}, {}, {}]


def test_a_changed_file_is_another_key_until_it_is_restored(observed: Observed) -> None:
    for revision in ("r0", "r1"):
        observed.observe(revision)
    observed.file.write_text("2")
    changed = observed.later()
    assert changed != "r0"
    text = f"work: measured again, because 1 file that it opens changed, for example {observed.file}"
    assert [observed.observe(), observed.observe("r1")] == [[text], []]
    assert (observed.later(), observed.observe()) == (changed, [])
    observed.file.write_text("1")
    assert (observed.later(), observed.observe(), observed.count) == ("r0", [], 4)


def test_stored_runnables_know_their_changed_files(observed: Observed, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("1")
    observed.opens["r1"] = (observed.file, other)
    keys = {name: observed.key(name) for name in ("r0", "r1")}
    for revision in keys:
        observed.observe(revision)

    def changed() -> dict[str, str]:
        files = ChangedFiles(observed.store, study=tmp_path)
        return {name: Path(found).name for name, key in keys.items() if (found := files.of(key))}

    assert changed() == {}
    other.write_text("2")
    assert changed() == {"r1": "other"}
    observed.file.write_text("2")
    assert changed() == {"r0": "file", "r1": "file"}
    assert ChangedFiles(observed.store, study=tmp_path).of("unknown") == ""


def test_another_machine_observes_its_own_files(observed: Observed) -> None:
    observed.observe()
    observed.file.write_text("2")
    assert OpenedInputs(observed.study, observed.store, machine="another").key(cell_at("r0"), "r0") == "r0"


def test_what_cannot_be_observed_is_reported_once_with_its_remedy(
    observed: Observed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opened_inputs, "observer", lambda: None)
    (message,) = observed.observe()
    assert message.startswith("cannot observe which files the benchmarks open without strace")
    assert "name every input" in message
    assert "install strace" in message
    assert observed.observe("r1") == []


def test_benchmarks_of_another_machine_are_not_observed_and_that_is_reported(observed: Observed) -> None:
    (event,) = observed.inputs.observe(cell_at("r0"), observed.key(), None)
    assert isinstance(event, BuilderMessage)
    assert event.text.startswith("cannot observe which files the benchmarks open on another machine")


def test_a_benchmark_that_fails_under_strace_is_reported_once_and_tried_three_times(
    observed: Observed,
) -> None:
    observed.failure = Failure(stage="crash", message="exit code 1")
    (message,) = observed.observe()
    assert "work opens, because it fails under strace (exit code 1)" in message
    assert [observed.observe(f"r{number}") for number in (1, 2, 1, 2)] == 4 * [[]]
    assert (observed.count, observed.later()) == (3, "r0")


def test_an_incomplete_observation_counts_and_is_reported_once(observed: Observed) -> None:
    observed.incomplete = "the benchmark asks another process at @1"
    (message,) = observed.observe()
    assert message.startswith("cannot observe each file that work opens: the benchmark asks another process")
    observed.incomplete = "the benchmark asks another process at @2"
    assert observed.observe("r1") == []
    observed.file.write_text("2")
    assert observed.later() != "r0"


def test_an_opened_file_of_the_study_is_checked_after_each_invocation(tmp_path: Path) -> None:
    observed = Observed(a_study(directory=str(tmp_path)), tmp_path)
    session = a_session(
        observed.study, tmp_path, source=FakeSource(1), starter=FakeStarter(seconds=lambda _: 1.0)
    )
    builder = session.subject_builder
    opened = BuildReads(outside={"file": content_of_opened(observed.file)})

    def ready() -> Ready:
        _, found = drain(builder.ready(cell_at("r0")))
        assert isinstance(found, Ready)
        return found

    key = ready().runnable.key
    assert list(builder.opened.observe(cell_at("r0"), key, lambda: opened)) == []
    assert dict(ready().inputs) == {str(observed.file): content_of_opened(observed.file)}
