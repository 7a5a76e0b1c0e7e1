"""The planted history in every kind of source, for the contract of sources: a new kind is one more line of `KINDS`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

from perftrail.model.source import Archive
from perftrail.model.source import Source as SourceTable
from perftrail.ports import Source
from tests.contracts.pages import example
from tests.fakes.source import InMemorySource
from tests.sources.archives import tar_of
from tests.sources.crates import CrateRegistry, needs_cargo
from tests.sources.crates import serving as serving_crates
from tests.sources.debian_archive import DebianArchive, needs_apt
from tests.sources.fossil_repositories import FossilRepository, needs_fossil
from tests.sources.npm_packages import NpmRegistry, needs_npm
from tests.sources.npm_packages import serving as serving_npm
from tests.sources.packages import PackageIndex, serving
from tests.sources.repositories import Repository

PLANTED = tuple((f"1.{number}", f"SPEED = {number // 2}\n") for number in range(5))
"""The planted history: the name and the content of one file at five versions, some of which are equal."""

FILE = "planted.py"
CACHE = "cache"


@dataclass(frozen=True)
class Case:
    """A source under test, and its expected answers; `versions` is empty for a source of one revision."""

    open: Callable[[], Source]
    directory: Path
    """With the planted history, and what the source writes for itself: `CACHE`."""
    file: str = FILE
    texts: tuple[str, ...] = tuple(text for _, text in PLANTED)
    versions: tuple[str, ...] = tuple(name for name, _ in PLANTED)
    extra_files: tuple[str, ...] = ()
    """Files that this kind of source adds to a tree: beginnings of their paths. An empty one permits any file."""

    @cached_property
    def source(self) -> Source:
        return self.open()

    @cached_property
    def again(self) -> Source:
        """The same source, opened once more."""
        return self.open()


def in_git(tmp_path: Path, _: ExitStack) -> SourceTable:
    repository = Repository(tmp_path / "repository")
    for name, text in PLANTED:
        repository.tag(name, repository.commit({FILE: text}, subject=name))
    return SourceTable(kind="git", location=str(repository.path))


def in_remote_git(tmp_path: Path, _: ExitStack) -> SourceTable:
    """At a URL, with a sparse checkout of the one file."""
    repository = Repository(tmp_path / "repository")
    for name, text in PLANTED:
        repository.tag(name, repository.commit({FILE: text, "docs/a": "a"}, subject=name))
    return SourceTable(kind="git", location=f"file://{repository.path}", sparse=("*.py",))


def in_fossil(tmp_path: Path, _: ExitStack) -> SourceTable:
    repository = FossilRepository(tmp_path / "project.fossil")
    for name, text in PLANTED:
        repository.commit({FILE: text}, subject=name, tags=[name])
    return SourceTable(kind="fossil", location=str(repository.make()))


def in_archives(tmp_path: Path, _: ExitStack) -> SourceTable:
    for name, text in PLANTED:
        (tmp_path / f"{name}.tar.gz").write_bytes(tar_of({f"planted-{name}/{FILE}": text}))
    archives = tuple(Archive(version=name, file=f"{name}.tar.gz") for name, _ in PLANTED)
    return SourceTable(kind="release", location=str(tmp_path), archives=archives)


def in_an_index(_: Path, stack: ExitStack) -> SourceTable:
    index = stack.enter_context(serving(PackageIndex()))
    for name, text in PLANTED:
        index.add("perftrail_planted", name, text)
    return SourceTable(kind="release", location="pypi:perftrail-planted", index=index.url)


def in_crates(_: Path, stack: ExitStack) -> SourceTable:
    registry = stack.enter_context(serving_crates(CrateRegistry()))
    for name, text in PLANTED:
        registry.add("perftrail-planted", f"{name}.0", {FILE: text})
    return SourceTable(kind="release", location="crates:perftrail-planted", index=registry.index)


def in_npm(_: Path, stack: ExitStack) -> SourceTable:
    registry = stack.enter_context(serving_npm(NpmRegistry()))
    for name, text in PLANTED:
        registry.add("perftrail-planted", f"{name}.0", {FILE: text})
    return SourceTable(kind="release", location="npm:perftrail-planted", index=registry.url)


def in_debian(tmp_path: Path, _: ExitStack) -> SourceTable:
    archive = DebianArchive(tmp_path / "archive")
    for name, text in PLANTED:
        archive.add("perftrail-planted", name, {FILE: text})
    return SourceTable(kind="release", location="debian:perftrail-planted", index=archive.index)


def in_a_directory(tmp_path: Path, _: ExitStack) -> SourceTable:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / FILE).write_text(PLANTED[0][1])
    return SourceTable(kind="directory", location=str(tmp_path / "tree"))


def in_snapshots(tmp_path: Path, _: ExitStack) -> SourceTable:
    """The example of docs/contributing/new-source.md."""
    example("new-source.md", "perftrail.sources.snapshots")
    for name, text in PLANTED:
        (tmp_path / "snapshots" / name).mkdir(parents=True)
        (tmp_path / "snapshots" / name / FILE).write_text(text)
    return SourceTable(kind="snapshots", location=str(tmp_path / "snapshots"))  # type: ignore[arg-type] # not registered


def in_memory(_path: Path, _: ExitStack) -> Callable[[], Source]:
    return lambda: InMemorySource([(name, {FILE: text}) for name, text in PLANTED])


Plant = Callable[[Path, ExitStack], SourceTable | Callable[[], Source]]

KINDS: Mapping[str, tuple[Plant, *tuple[pytest.MarkDecorator, ...]]] = {
    "git": (in_git,),
    "git-remote": (in_remote_git,),
    "fossil": (in_fossil, needs_fossil),
    "archives": (in_archives,),
    "pypi": (in_an_index,),
    "crates": (in_crates, needs_cargo),
    "npm": (in_npm, needs_npm),
    "debian": (in_debian, needs_apt),
    "directory": (in_a_directory,),
    "snapshots": (in_snapshots,),
    "memory": (in_memory,),
}
"""Every kind of source by its name in test ids: the function that plants the history in it, and its marks."""

PROPERTIES: Mapping[str, Mapping[str, object]] = {
    "git": {"extra_files": (".git",)},
    "git-remote": {"extra_files": (".git",)},
    "pypi": {"file": "perftrail_planted.py", "extra_files": ("",)},
    "npm": {"extra_files": ("package.json",)},
    "debian": {"extra_files": ("debian/",)},
    "directory": {"texts": (PLANTED[0][1],), "versions": ()},
}
"""Fields of the cases whose kind differs from the others."""

WITHOUT_HISTORY = ("directory",)
"""Kinds of sources with one revision, and so without ranges."""


def cases(*, without: tuple[str, ...] = ()) -> pytest.MarkDecorator:
    """Parametrise a test over the kinds."""
    params = [
        pytest.param(name, id=name, marks=marks) for name, (_, *marks) in KINDS.items() if name not in without
    ]
    return pytest.mark.parametrize("case", params, indirect=True)
