"""The two ways to make every subject of a history, each timed by the clock on the wall."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.builds.artefact import content_of
from perftrail.builds.steps import build_environment
from perftrail.measure.build_workers import open_build_workers, open_builder
from perftrail.measure.sources import open_sources
from perftrail.model.build import Built, Recipe
from perftrail.model.placeholders import fill
from perftrail.model.source import Source as SourceTable
from perftrail.model.study import Study
from perftrail.model.subject import Revision, Subject

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftrail.builds.workers import BuildWorkers
    from perftrail.ports import Builder
    from perftrail.process.launcher import Launcher


@dataclass(frozen=True, slots=True, kw_only=True)
class Came:
    """What one way of making a revision came to: how long it took and where its tree lies, if it was made.

    `cpu_seconds` is what it and all that it started used; other work on the machine hardly changes that.
    """

    seconds: float
    cpu_seconds: float
    tree: Path | None
    checked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Two trees' outputs: how many files there are, and how many differ in a byte, or in one that counts."""

    files: int
    other_bytes: int
    other_content: int


class Stopwatch:
    """The time on the wall and the CPU time of this process and all that it started, since it was made."""

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher
        self._began = time.monotonic()
        self._cpu_before = self._cpu()

    def came(self, tree: Path | None, *, checked: bool = False) -> Came:
        """Stop, with what was made."""
        seconds = time.monotonic() - self._began
        return Came(seconds=seconds, cpu_seconds=self._cpu() - self._cpu_before, tree=tree, checked=checked)

    def _cpu(self) -> float:
        times = os.times()
        stat = Path(f"/proc/{self._launcher.start().server_pid}/stat").read_text().rpartition(")")[2].split()
        launched = sum(map(int, stat[11:15])) / os.sysconf("SC_CLK_TCK")
        return sum(times[:4]) + launched


class SeedLoop:
    """What the people of the paper did: delete the tree, check the revision out, run every line in it."""

    def __init__(self, repository: Path, recipe: Recipe, directory: Path, launcher: Launcher) -> None:
        self._launcher = launcher
        self._repository = repository
        self._recipe = recipe
        self._home = directory
        self._tree = directory / "tree"

    def make(self, revision: Revision) -> Came:
        """Make one revision from nothing."""
        watch = Stopwatch(self._launcher)
        shutil.rmtree(self._tree, ignore_errors=True)
        temporary = self._home / "tmp"
        temporary.mkdir(parents=True, exist_ok=True)
        for words in (
            ["clone", "--quiet", "--shared", "--no-checkout", "--", str(self._repository), str(self._tree)],
            ["-C", str(self._tree), "checkout", "--quiet", "--detach", revision.id],
        ):
            subprocess.run(["git", "-c", "safe.directory=*", *words], check=True, env=_git_environment())
        values = {"build": str(self._tree), "cpus": str(cpus())}
        environment = {
            **build_environment(temporary=temporary),
            **{name: fill(value, values) for name, value in self._recipe.env.items()},
        }
        with (self._home / "log").open("wb") as log:
            for line in self._recipe.steps:
                done = subprocess.run(
                    ["/bin/sh", "-eu", "-c", fill(line, values)],
                    cwd=self._tree / self._recipe.directory,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    check=False,
                )
                if done.returncode:
                    return watch.came(None)
        return watch.came(self._tree)


class OurLoop:
    """The builder as a study with `incremental = true` uses it, on an empty directory of its own."""

    def __init__(self, repository: Path, recipe: Recipe, directory: Path, launcher: Launcher) -> None:
        self._launcher = launcher
        self._recipe = recipe
        self._root = directory
        table = SourceTable(kind="git", location=str(repository), submodules=False)
        self._study = Study(title="", file="", directory=str(directory), source=table, benchmarks={})
        self._sources = open_sources(
            self._study, cache=str(directory / "sources"), starter=launcher, patched=None
        )
        self.source = self._sources.main
        self._builder = self._opened(None)

    def make(self, revision: Revision) -> Came:
        """Make one revision."""
        watch = Stopwatch(self._launcher)
        made = self._builder.build(Subject(revision=revision, variant="plain"), self._recipe)
        if not isinstance(made, Built):
            return watch.came(None)
        checked = "equal to the clean build" in Path(made.log).read_text(errors="replace")
        return watch.came(Path(made.directory), checked=checked)

    def confirm(self) -> Came:
        """Check what was not checked yet, as a run does at its end. Raises `StaleBuilds`."""
        watch = Stopwatch(self._launcher)
        self._builder.confirm()
        return watch.came(None, checked=True)

    def make_at_once(
        self, revisions: Sequence[Revision], hands: int
    ) -> tuple[float, tuple[Path | None, ...]]:
        """Make revisions with so many hands, check them, and give the seconds of it all and each one's tree."""
        began = time.monotonic()
        with open_build_workers(self._study, self._root, jobs=hands, patched=None) as several:
            builder = self._opened(several)
            subjects = [(Subject(revision=each, variant="plain"), self._recipe) for each in revisions]
            builder.begin(subjects)
            made = [builder.build(*each) for each in subjects]
            builder.confirm()
        seconds = time.monotonic() - began
        return seconds, tuple(Path(each.directory) if isinstance(each, Built) else None for each in made)

    def _opened(self, several: BuildWorkers | None) -> Builder:
        return open_builder(
            self._study, self._root, self._sources, self._launcher, isolation=None, workers=several
        )


def compare(one: Path, other: Path, outputs: tuple[str, ...]) -> Compared:
    """Compare two trees' outputs file by file."""
    mine, theirs = (content_of(tree, outputs, keys=()).parts for tree in (one, other))
    names = mine.keys() | theirs.keys()
    unlike = [name for name in names if mine.get(name) != theirs.get(name)]
    bytes_unlike = [name for name in names if name in unlike or not _same(one / name, other / name)]
    return Compared(files=len(names), other_bytes=len(bytes_unlike), other_content=len(unlike))


def cpus() -> int:
    """How many CPUs there are for us."""
    return len(os.sched_getaffinity(0))


def _same(one: Path, other: Path) -> bool:
    return one.is_symlink() or one.read_bytes() == other.read_bytes()


def _git_environment() -> Mapping[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
