"""The two ways to build every revision of a history, with their wall time and CPU time."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.builds.artefact import content_of
from perftrail.builds.environment import build_environment
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
class BuildTime:
    """How long one build of a revision took, and where its tree is, if the build succeeded.

    `cpu_seconds` includes all processes that it started; other work on the machine hardly changes it.
    """

    seconds: float
    cpu_seconds: float
    tree: Path | None
    checked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The outputs of two trees: how many files there are, how many differ in any byte, and how many in content."""

    files: int
    other_bytes: int
    other_content: int


class Stopwatch:
    """Measures the wall time, and the CPU time of this process and all that it started, since its creation."""

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher
        self._began = time.monotonic()
        self._cpu_before = self._cpu()

    def stop(self, tree: Path | None, *, checked: bool = False) -> BuildTime:
        """Return the times until now, with the tree that was built."""
        seconds = time.monotonic() - self._began
        return BuildTime(
            seconds=seconds, cpu_seconds=self._cpu() - self._cpu_before, tree=tree, checked=checked
        )

    def _cpu(self) -> float:
        times = os.times()
        stat = Path(f"/proc/{self._launcher.start().server_pid}/stat").read_text().rpartition(")")[2].split()
        launched = sum(map(int, stat[11:15])) / os.sysconf("SC_CLK_TCK")
        return sum(times[:4]) + launched


class CleanBuilds:
    """Clean builds: delete the tree, check the revision out, run every line in it."""

    def __init__(self, repository: Path, recipe: Recipe, directory: Path, launcher: Launcher) -> None:
        self._launcher = launcher
        self._repository = repository
        self._recipe = recipe
        self._home = directory
        self._tree = directory / "tree"

    def build(self, revision: Revision) -> BuildTime:
        """Build one revision from nothing."""
        watch = Stopwatch(self._launcher)
        shutil.rmtree(self._tree, ignore_errors=True)
        temporary = self._home / "tmp"
        temporary.mkdir(parents=True, exist_ok=True)
        for arguments in (
            ["clone", "--quiet", "--shared", "--no-checkout", "--", str(self._repository), str(self._tree)],
            ["-C", str(self._tree), "checkout", "--quiet", "--detach", revision.id],
        ):
            subprocess.run(["git", "-c", "safe.directory=*", *arguments], check=True, env=_git_environment())
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
                    return watch.stop(None)
        return watch.stop(self._tree)


class PerftrailBuilds:
    """The builder of a study with `incremental = true`, in an empty directory."""

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
        self._builder = self._open_builder(None)

    def build(self, revision: Revision) -> BuildTime:
        """Build one revision."""
        watch = Stopwatch(self._launcher)
        built = self._builder.build(Subject(revision=revision, variant="plain"), self._recipe)
        if not isinstance(built, Built):
            return watch.stop(None)
        checked = "equal to the clean build" in Path(built.log).read_text(errors="replace")
        return watch.stop(Path(built.directory), checked=checked)

    def confirm(self) -> BuildTime:
        """Verify the builds that were not verified yet, as a run does at its end. Raises `StaleBuilds`."""
        watch = Stopwatch(self._launcher)
        self._builder.confirm()
        return watch.stop(None, checked=True)

    def build_in_parallel(
        self, revisions: Sequence[Revision], jobs: int
    ) -> tuple[float, tuple[Path | None, ...]]:
        """Build revisions with parallel jobs and verify them; return the seconds of it all and each revision's tree."""
        began = time.monotonic()
        with open_build_workers(self._study, self._root, jobs=jobs, patched=None) as workers:
            builder = self._open_builder(workers)
            subjects = [(Subject(revision=each, variant="plain"), self._recipe) for each in revisions]
            builder.begin(subjects)
            results = [builder.build(*each) for each in subjects]
            builder.confirm()
        seconds = time.monotonic() - began
        return seconds, tuple(Path(each.directory) if isinstance(each, Built) else None for each in results)

    def _open_builder(self, workers: BuildWorkers | None) -> Builder:
        return open_builder(
            self._study, self._root, self._sources, self._launcher, isolation=None, workers=workers
        )


def compare(one: Path, other: Path, outputs: tuple[str, ...]) -> Comparison:
    """Compare the outputs of two trees file by file."""
    first, second = (content_of(tree, outputs, keys=()).parts for tree in (one, other))
    names = first.keys() | second.keys()
    different = [name for name in names if first.get(name) != second.get(name)]
    other_bytes = [name for name in names if name in different or not _same(one / name, other / name)]
    return Comparison(files=len(names), other_bytes=len(other_bytes), other_content=len(different))


def cpus() -> int:
    """Return the number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0))


def _same(one: Path, other: Path) -> bool:
    return one.is_symlink() or one.read_bytes() == other.read_bytes()


def _git_environment() -> Mapping[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
