"""What every source promises, over one planted history kept in eight ways."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from perftrail.errors import CheckoutFailed, SourceError
from perftrail.model.benchmark import Benchmark
from perftrail.model.source import Archive
from perftrail.model.source import Source as Asked
from perftrail.model.study import Study
from perftrail.model.subject import Revision
from perftrail.ports import Source
from perftrail.process.launcher import Launcher
from perftrail.sources import open_source
from tests.fakes.source import InMemorySource
from tests.sources.archives import tar_of
from tests.sources.crates import CrateRegistry, needs_cargo
from tests.sources.crates import serving as serving_crates
from tests.sources.debian_archive import DebianArchive, needs_apt
from tests.sources.fossil_repositories import FossilRepository, needs_fossil
from tests.sources.packages import PackageIndex, serving
from tests.sources.repositories import Repository

PLANTED = tuple((f"1.{number}", f"SPEED = {number // 2}\n") for number in range(5))
"""The planted history: what one file holds at each of five versions; two neighbours may be equal."""


@dataclass(frozen=True)
class Case:
    """A source under test, how its ends are named, the file it holds, and whether it has a history at all."""

    source: Source
    file: str
    texts: tuple[str, ...]
    ends: tuple[str, ...]


def study(asked: Asked, directory: Path) -> Study:
    return Study(
        title="",
        file=str(directory / "perftrail.toml"),
        directory=str(directory),
        source=asked,
        benchmarks={"b": Benchmark(command="true")},
    )


def in_git(tmp_path: Path, launcher: Launcher, _: ExitStack) -> Case:
    repository = Repository(tmp_path / "repository")
    for name, text in PLANTED:
        repository.tag(name, repository.commit({"planted.py": text}, subject=name))
    asked = Asked(kind="git", location=str(repository.path))
    source = open_source(study(asked, tmp_path), cache=str(tmp_path / "cache"), starter=launcher)
    return Case(source, "planted.py", tuple(text for _, text in PLANTED), tuple(name for name, _ in PLANTED))


def in_git_elsewhere(tmp_path: Path, launcher: Launcher, _: ExitStack) -> Case:
    """At an address, and only the one file of it."""
    repository = Repository(tmp_path / "repository")
    for name, text in PLANTED:
        repository.tag(name, repository.commit({"planted.py": text, "docs/a": "a"}, subject=name))
    asked = Asked(kind="git", location=f"file://{repository.path}", sparse=("*.py",))
    source = open_source(study(asked, tmp_path), cache=str(tmp_path / "cache"), starter=launcher)
    return Case(source, "planted.py", tuple(text for _, text in PLANTED), tuple(name for name, _ in PLANTED))


def in_fossil(tmp_path: Path, launcher: Launcher, _: ExitStack) -> Case:
    repository = FossilRepository(tmp_path / "project.fossil")
    for name, text in PLANTED:
        repository.commit({"planted.py": text}, subject=name, tags=[name])
    asked = Asked(kind="fossil", location=str(repository.make()))
    source = open_source(study(asked, tmp_path), cache=str(tmp_path / "cache"), starter=launcher)
    return Case(source, "planted.py", tuple(text for _, text in PLANTED), tuple(name for name, _ in PLANTED))


def in_archives(tmp_path: Path, launcher: Launcher, _: ExitStack) -> Case:
    for name, text in PLANTED:
        (tmp_path / f"{name}.tar.gz").write_bytes(tar_of({f"planted-{name}/planted.py": text}))
    archives = tuple(Archive(version=name, file=f"{name}.tar.gz") for name, _ in PLANTED)
    asked = Asked(kind="release", location=str(tmp_path), archives=archives)
    source = open_source(study(asked, tmp_path), cache=str(tmp_path / "cache"), starter=launcher)
    return Case(source, "planted.py", tuple(text for _, text in PLANTED), tuple(name for name, _ in PLANTED))


def in_an_index(tmp_path: Path, launcher: Launcher, stack: ExitStack) -> Case:
    index = stack.enter_context(serving(PackageIndex()))
    for name, text in PLANTED:
        index.add("perftrail_planted", name, text)
    asked = Asked(kind="release", location="pypi:perftrail-planted", index=index.url)
    source = open_source(study(asked, tmp_path), cache=str(tmp_path / "cache"), starter=launcher)
    names = tuple(name for name, _ in PLANTED)
    return Case(source, "perftrail_planted.py", tuple(text for _, text in PLANTED), names)


def in_crates(tmp_path: Path, launcher: Launcher, stack: ExitStack) -> Case:
    registry = stack.enter_context(serving_crates(CrateRegistry()))
    for name, text in PLANTED:
        registry.add("perftrail-planted", f"{name}.0", {"planted.py": text})
    asked = Asked(kind="release", location="crates:perftrail-planted", index=registry.index)
    source = open_source(study(asked, tmp_path), cache=str(tmp_path / "cache"), starter=launcher)
    return Case(source, "planted.py", tuple(text for _, text in PLANTED), tuple(name for name, _ in PLANTED))


def in_debian(tmp_path: Path, launcher: Launcher, _: ExitStack) -> Case:
    archive = DebianArchive(tmp_path / "archive")
    for name, text in PLANTED:
        archive.add("perftrail-planted", name, {"planted.py": text})
    asked = Asked(kind="release", location="debian:perftrail-planted", index=archive.index)
    source = open_source(study(asked, tmp_path), cache=str(tmp_path / "cache"), starter=launcher)
    return Case(source, "planted.py", tuple(text for _, text in PLANTED), tuple(name for name, _ in PLANTED))


def in_a_directory(tmp_path: Path, launcher: Launcher, _: ExitStack) -> Case:
    directory = tmp_path / "tree"
    directory.mkdir()
    (directory / "planted.py").write_text(PLANTED[0][1])
    asked = Asked(kind="directory", location=str(directory))
    source = open_source(study(asked, tmp_path), cache=str(tmp_path / "cache"), starter=launcher)
    return Case(source, "planted.py", (PLANTED[0][1],), ())


def in_memory(tmp_path: Path, launcher: Launcher, _: ExitStack) -> Case:
    source = InMemorySource([(name, {"planted.py": text}) for name, text in PLANTED])
    return Case(source, "planted.py", tuple(text for _, text in PLANTED), tuple(name for name, _ in PLANTED))


Make = Callable[[Path, Launcher, ExitStack], Case]
MAKERS: tuple[Make, ...] = (
    in_git,
    in_git_elsewhere,
    in_fossil,
    in_archives,
    in_an_index,
    in_crates,
    in_debian,
    in_a_directory,
    in_memory,
)


def cases(*makers: Make) -> pytest.MarkDecorator:
    # pip takes a second to start
    marks: Mapping[Make, list[pytest.MarkDecorator]] = {
        in_an_index: [pytest.mark.slow],
        in_fossil: [needs_fossil],
        in_crates: [needs_cargo],
        in_debian: [needs_apt],
    }
    params = [pytest.param(maker, id=maker.__name__, marks=marks.get(maker, [])) for maker in makers]
    return pytest.mark.parametrize("case", params, indirect=True)


@pytest.fixture
def case(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Case]:
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    with ExitStack() as stack:
        yield request.param(tmp_path, stack.enter_context(Launcher()), stack)


every_source = cases(*MAKERS)
with_history = cases(in_git, in_fossil, in_archives, in_an_index, in_crates, in_debian, in_memory)


@every_source
def test_history_is_whole_and_puts_parents_before_children(case: Case) -> None:
    history = case.source.history()
    places = {revision.id: place for place, revision in enumerate(history)}
    assert len(places) == len(history) == len(case.texts)
    for revision in history:
        assert all(places[parent] < places[revision.id] for parent in revision.parents if parent in places)


@every_source
def test_history_says_the_same_again(case: Case) -> None:
    assert case.source.history() == case.source.history()


@with_history
def test_a_straight_history_names_each_revisions_parent(case: Case) -> None:
    for parent, child in pairwise(case.source.history()):
        assert child.parents == (parent.id,)


@with_history
def test_both_ends_belong_to_a_range(case: Case) -> None:
    whole = case.source.history()
    assert case.source.history(f"{case.ends[1]}..{case.ends[3]}") == whole[1:4]
    assert case.source.history(f"{case.ends[2]}..{case.ends[2]}") == whole[2:3]


@with_history
def test_within_agrees_with_history_and_takes_open_ends(case: Case) -> None:
    ids = [revision.id for revision in case.source.history()]
    assert case.source.within(f"{case.ends[1]}..{case.ends[3]}") == set(ids[1:4])
    assert case.source.within(f"..{case.ends[2]}") == set(ids[:3])
    assert case.source.within(f"{case.ends[2]}..") == set(ids[2:])


@with_history
@pytest.mark.parametrize("range", ["{0}..9.9", "9.9..{0}", "{3}..{1}"])
def test_a_range_that_cannot_be_had_is_an_error_in_words(case: Case, range: str) -> None:
    with pytest.raises(SourceError, match=r"9\.9|backwards"):
        case.source.history(range.format(*case.ends))


@every_source
def test_equal_contents_name_equal_trees(case: Case) -> None:
    contents = [case.source.content(revision) for revision in case.source.history()]
    for one, text in zip(contents, case.texts, strict=True):
        same = {other for other, its in zip(case.texts, contents, strict=True) if its == one}
        assert same == {text}


@every_source
def test_materialise_puts_the_whole_tree_into_a_new_directory(case: Case, tmp_path: Path) -> None:
    revision = case.source.history()[-1]
    directory, log = tmp_path / "not" / "there" / "yet", tmp_path / "log"
    log.write_text("before\n")
    case.source.materialise(revision, str(directory), str(log))
    assert (directory / case.file).read_text() == case.texts[-1]
    assert log.read_text().startswith("before\n")
    assert str(directory) in log.read_text()


@with_history
def test_materialise_again_after_the_directory_was_removed(case: Case, tmp_path: Path) -> None:
    history = case.source.history()
    directory, log = tmp_path / "tree-of-one", str(tmp_path / "log")
    case.source.materialise(history[0], str(directory), log)
    directory.rename(tmp_path / "other_machines")
    case.source.materialise(history[-1], str(directory), log)
    assert (directory / case.file).read_text() == case.texts[-1]


@every_source
def test_a_directory_that_is_there_is_left_alone(case: Case, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("mine")
    with pytest.raises(CheckoutFailed):
        case.source.materialise(case.source.history()[0], str(tmp_path / "full"), str(tmp_path / "log"))
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["mine"]


@every_source
def test_a_revision_that_cannot_be_had_leaves_nothing_behind(case: Case, tmp_path: Path) -> None:
    missing = Revision(id="7" * 40)
    with pytest.raises(CheckoutFailed):
        case.source.materialise(missing, str(tmp_path / "none"), str(tmp_path / "log"))
    assert not (tmp_path / "none").exists()


@every_source
def test_the_paths_that_revisions_touch_are_given_for_each(case: Case) -> None:
    revisions = case.source.history()
    touched = case.source.touched(revisions)
    assert len(touched) == len(revisions)
    assert touched[0] == ()
    assert all(set(paths) <= {case.file} for paths in touched)


@every_source
def test_a_straight_line_joined_nothing(case: Case) -> None:
    assert [case.source.merge(revision) for revision in case.source.history()] == [None] * len(
        case.source.history()
    )
