"""Builds are started through links of random length, which are removed afterwards; the build stays unchanged."""

from __future__ import annotations

import errno
import itertools
import sys
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from perftrail.errors import UsageError
from perftrail.measure import build_paths
from perftrail.measure.build_paths import BuildPaths
from perftrail.measure.invocation import Invoker, invocation_seed, open_invoker
from perftrail.measure.noise_policy import NoiseObserver
from perftrail.model.build import Built, Prepared
from perftrail.model.measurement import PADDING, Draw, FailedInvocation, Measurement, drawn_environment
from perftrail.model.process import Command, Exited, Ran
from perftrail.model.study import Invocations, MeasurePolicy
from perftrail.process.launcher import Launcher
from tests.fakes.subject_builder import RAN, FakeBuilder, FakeSource
from tests.fakes.watcher import FakeWatcher
from tests.measure.fake_session import a_session, a_study, some_fixtures
from tests.measure.test_invocation_runner import fails, ready_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import FrameType
    from typing import Any

    from perftrail.measure.subjects import Ready
    from perftrail.model.measurement import Outcome
    from perftrail.model.study import Study

STUDY = a_study(measure=MeasurePolicy(invocations=Invocations(least=1, most=1), warmups=0))


class Listening:
    """A starter that records each command, and the content of its build at that time."""

    def __init__(self, *, code: int = 0) -> None:
        self.commands: list[Command] = []
        self.read: list[str] = []
        self._code = code

    def run(self, command: Command) -> Ran:
        self.commands.append(command)
        self.read.append(Path(command.arguments[0]).read_text(encoding="utf-8"))
        assert command.stderr is not None
        Path(command.stderr).write_text(f"{command.arguments[0]}: broken\n", encoding="utf-8")
        return replace(RAN, ended=Exited(code=self._code))


class BuilderOn(FakeBuilder):
    """A builder whose builds are files."""

    def command_placeholders(self, prepared: Prepared) -> Mapping[str, str]:
        return {"build": prepared.built.directory, "out": prepared.out, "study": "/study", "cpus": "2"}


class EqualBuilds:
    """Two equal builds on disk, and an invoker that starts them."""

    def __init__(self, root: Path, *, study: Study = STUDY, code: int = 0, varied: bool = True) -> None:
        self.links = root / "paths"
        self.root = root
        self.starter = Listening(code=code)
        self.study = study
        source = FakeSource(1)
        self.session = a_session(study, root, source=source, starter=fails(0))
        builder = BuilderOn(source)
        self.invoker = Invoker(
            study,
            starter=self.starter,
            builder=builder,
            observer=NoiseObserver(FakeWatcher(), study.measure.quiet, threshold=1.0, sleep=lambda _: None),
            scratch=root / "scratch",
            logs=root / "logs",
            fixtures=some_fixtures(study, root, builder=builder, starter=self.starter),
            paths=BuildPaths(self.links) if varied else None,
        )

    def ready(self, name: str) -> Ready:
        tree = self.root / "builds" / name / "tree"
        tree.mkdir(parents=True, exist_ok=True)
        (tree / "work").write_text(name, encoding="utf-8")
        ready = ready_in(self.session)
        built = Built(key=name, artefact=name, directory=str(tree), seconds=1.0)
        prepared = Prepared(built=built, out=str(tree.parent / "bench" / "l"), artefact="")
        return replace(ready, prepared=prepared)

    def invoke(self, name: str, *, draw: Draw, ordinal: int = 0) -> Outcome:
        ready = self.ready(name)
        return self.invoker.invoke(self.session.runner.plan(ready, "sample", ordinal, draw=draw))


def test_both_builds_of_a_pair_are_seen_at_one_path(tmp_path: Path) -> None:
    equal_builds = EqualBuilds(tmp_path)
    for name in ("one", "other"):
        equal_builds.invoke(name, draw=Draw(seed=5))
    one, other = (command.arguments[0] for command in equal_builds.starter.commands)
    assert one == other == str(equal_builds.links.joinpath(*drawn_environment(5).path, "tree", "work"))
    assert equal_builds.starter.read == ["one", "other"]


def test_every_seed_gives_another_path_environment_and_hash_seed(tmp_path: Path) -> None:
    equal_builds = EqualBuilds(tmp_path)
    for seed in range(1, 9):
        equal_builds.invoke("one", draw=Draw(seed=seed))
    commands = equal_builds.starter.commands
    assert len({len(command.arguments[0]) for command in commands}) >= 6
    assert len({len(command.environment[PADDING]) for command in commands}) == 8
    assert len({command.environment["PYTHONHASHSEED"] for command in commands}) == 8


def test_the_seed_of_an_invocation_is_stored_also_where_none_was_drawn(tmp_path: Path) -> None:
    equal_builds = EqualBuilds(tmp_path)
    outcome = equal_builds.invoke("one", draw=Draw(), ordinal=4)
    assert isinstance(outcome, Measurement)
    assert outcome.draw == Draw(seed=invocation_seed(equal_builds.study, "sample", 4))
    assert equal_builds.invoke("other", draw=Draw(), ordinal=4).draw == outcome.draw
    assert equal_builds.invoke("one", draw=Draw(), ordinal=5).draw != outcome.draw


def test_links_are_removed_after_each_invocation_and_builds_are_not(tmp_path: Path) -> None:
    equal_builds = EqualBuilds(tmp_path)
    equal_builds.invoke("one", draw=Draw(seed=5))
    assert list(equal_builds.links.iterdir()) == []
    assert (tmp_path / "builds" / "one" / "tree" / "work").read_text() == "one"


def test_an_interruption_at_any_line_leaves_no_link(tmp_path: Path) -> None:
    """A signal raises an exception at any line, also while links are removed."""
    equal_builds = EqualBuilds(tmp_path)
    planned = equal_builds.session.runner.plan(equal_builds.ready("one"), "sample", 0, draw=Draw(seed=5))
    logs = tmp_path / "logs"
    left_at = []
    with Launcher() as launcher:
        builder = BuilderOn(FakeSource(1))
        for line in itertools.count(1):
            with (
                suppress(KeyboardInterrupt),
                open_invoker(STUDY, builder, launcher, isolation=None, root=tmp_path, logs=logs) as invoker,
                interrupted_at(line) as interrupted,
            ):
                invoker.invoke(planned)
            if list(equal_builds.links.glob("*")):
                left_at.append(line)
            if not interrupted:
                break
    assert left_at == []
    assert line > 20


def test_what_a_killed_command_left_is_removed(tmp_path: Path) -> None:
    left = [tmp_path / "counts" / "profile-x" / "data", tmp_path / "fixtures" / "1" / "data"]
    for each in left:
        each.parent.mkdir(parents=True)
        each.touch()
    with (
        Launcher() as launcher,
        open_invoker(
            STUDY, BuilderOn(FakeSource(1)), launcher, isolation=None, root=tmp_path, logs=tmp_path / "logs"
        ),
    ):
        assert not any(each.parent.exists() for each in left)


@contextmanager
def interrupted_at(line: int) -> Iterator[list[int]]:
    """Raise `KeyboardInterrupt` at a line, counted from 1, of those that create and remove links; yield it then."""
    reached = 0
    interrupted: list[int] = []

    def trace(frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        nonlocal reached
        code = frame.f_code
        if code.co_filename != build_paths.__file__ or "BuildPaths" not in code.co_qualname:
            return None
        if event == "line":
            reached += 1
            if reached == line:
                interrupted.append(line)
                raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        yield interrupted
    finally:
        sys.settrace(None)


def test_links_of_a_killed_process_are_removed_without_the_build(tmp_path: Path) -> None:
    equal_builds = EqualBuilds(tmp_path)
    equal_builds.ready("one")
    equal_builds.links.mkdir()
    (equal_builds.links / "left").symlink_to(tmp_path / "builds" / "one")
    (equal_builds.links / "deep").mkdir()
    (equal_builds.links / "deep" / "left").symlink_to(tmp_path / "builds" / "one")
    equal_builds.invoke("one", draw=Draw(seed=5))
    assert list(equal_builds.links.iterdir()) == []
    assert (tmp_path / "builds" / "one" / "tree" / "work").read_text() == "one"


def test_a_failure_names_the_build_by_its_own_path(tmp_path: Path) -> None:
    equal_builds = EqualBuilds(tmp_path, code=3)
    outcomes = [equal_builds.invoke("one", draw=Draw(seed=seed), ordinal=seed) for seed in (5, 6)]
    failures = [each.failure for each in outcomes if isinstance(each, FailedInvocation)]
    assert [failure.message for failure in failures] == [
        f"exit code 3: {tmp_path}/builds/one/tree/work: broken"
    ] * 2


def test_a_build_runs_at_its_own_path_when_paths_are_not_varied(tmp_path: Path) -> None:
    equal_builds = EqualBuilds(tmp_path, varied=False)
    outcome = equal_builds.invoke("one", draw=Draw(seed=5))
    (command,) = equal_builds.starter.commands
    assert command.arguments[0] == str(tmp_path / "builds" / "one" / "tree" / "work")
    assert len(command.environment[PADDING]) == len(drawn_environment(5).environment[PADDING])
    assert outcome.draw == Draw(seed=5)


def test_variables_of_the_shell_do_not_reach_a_benchmark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    benchmark = replace(STUDY.benchmarks["work"], env={"LC_NUMERIC": "C"})
    equal_builds = EqualBuilds(tmp_path, study=replace(STUDY, benchmarks={"work": benchmark}))
    equal_builds.invoke("one", draw=Draw(seed=5))
    for name, value in {
        "LC_ALL": "de_DE.UTF-8",
        "LANG": "tr_TR",
        "TZ": "Asia/Tokyo",
        "GREETING": "hello",
    }.items():
        monkeypatch.setenv(name, value)
    equal_builds.invoke("two", draw=Draw(seed=5))
    here, there = (command.environment for command in equal_builds.starter.commands)
    assert here == there
    assert (here["LANG"], here["TZ"], here["LC_NUMERIC"]) == ("C.UTF-8", "UTC", "C")
    assert "LC_ALL" not in here


def test_a_study_that_sets_a_hash_seed_keeps_it(tmp_path: Path) -> None:
    benchmark = replace(STUDY.benchmarks["work"], env={"PYTHONHASHSEED": "0"})
    equal_builds = EqualBuilds(tmp_path, study=replace(STUDY, benchmarks={"work": benchmark}))
    equal_builds.invoke("one", draw=Draw(seed=5))
    assert equal_builds.starter.commands[0].environment["PYTHONHASHSEED"] == "0"


def prepared_in(home: Path) -> Prepared:
    (home / "tree").mkdir(parents=True)
    built = Built(key="k", artefact="a", directory=str(home / "tree"), seconds=0.0)
    return Prepared(built=built, out=str(home / "bench" / "l"), artefact="")


def test_paths_outside_of_the_build_stay_as_they_are(tmp_path: Path) -> None:
    home = tmp_path / "builds" / "one"
    outside = {"study": "/elsewhere/x", "cpus": "2", "other": f"{home}er/x"}
    with BuildPaths(tmp_path / "paths").linked(prepared_in(home), ("name",), outside) as seen:
        assert seen.placeholders == outside
        assert list((tmp_path / "paths").iterdir()) == []


def test_trees_of_other_sources_are_seen_at_paths_that_no_build_s_name_is_in(tmp_path: Path) -> None:
    home = tmp_path / "builds" / "one"
    prepared = prepared_in(home)
    values = {
        "build": f"{home}/tree",
        "out": prepared.out,
        "source.a": f"{home}/sources/a",
        "source.b": f"{prepared.out}.sources/b",
    }
    for path in values.values():
        Path(path).mkdir(parents=True, exist_ok=True)
        (Path(path) / "file").write_text(path)
    with BuildPaths(tmp_path / "paths").linked(prepared, ("name",), values) as seen:
        read = {name: (Path(path) / "file").read_text() for name, path in seen.placeholders.items()}
        reported = seen.with_original_paths(" ".join(seen.placeholders.values()))
    assert read == values
    assert reported == " ".join(values.values())
    assert seen.placeholders == {
        "build": f"{tmp_path}/paths/name/tree",
        "out": f"{tmp_path}/paths/name-out",
        "source.a": f"{tmp_path}/paths/name/sources/a",
        "source.b": f"{tmp_path}/paths/name-out.sources/b",
    }


def test_links_that_cannot_be_made_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "paths").write_text("a file in the way")
    prepared = prepared_in(tmp_path / "one")
    paths = BuildPaths(tmp_path / "paths")
    with pytest.raises(OSError, match="paths"), paths.linked(prepared, ("name",), {"build": str(tmp_path)}):
        pass


def test_a_file_system_without_links_is_reported_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(link: Path, target: str) -> None:
        raise OSError(errno.EPERM, "Operation not permitted", str(link))

    prepared = prepared_in(tmp_path / "one")
    monkeypatch.setattr(Path, "symlink_to", refused)  # no file system here refuses links to root
    build = {"build": str(tmp_path / "one" / "tree")}
    paths = BuildPaths(tmp_path / "paths")
    with pytest.raises(UsageError, match="vary_path = false"), paths.linked(prepared, ("name",), build):
        pass
