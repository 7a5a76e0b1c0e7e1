"""Open the builder of a study: one build at a time, or several parallel build workers."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import replace
from threading import Event
from typing import TYPE_CHECKING

from perftrail.builds.builder import LocalBuilder
from perftrail.builds.workers import (
    BuilderOptions,
    BuildWorkers,
    ParallelBuilder,
    RemoteBuilder,
    Stoppable,
    StoppableIsolation,
)
from perftrail.measure.sandboxes import Sandboxes
from perftrail.measure.sources import open_sources
from perftrail.model.build import Failure
from perftrail.process.launcher import Launcher

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from perftrail.builds.workers import RemoteBuildWorkers
    from perftrail.measure.sources import Sources
    from perftrail.model.build import Built, Recipe
    from perftrail.model.patch import Patched
    from perftrail.model.study import Study
    from perftrail.model.subject import Subject
    from perftrail.ports import Builder, Isolation, Starter


class LocalBuildWorker:
    """A `builds.workers.BuildWorker` with its own sources and launcher, opened on first use.

    `kind` is the builder that it uses. Its sandboxes are in `sandbox_directory`, or below the results.
    """

    def __init__(
        self,
        study: Study,
        root: Path,
        *,
        patched: Patched | None,
        cpus: int,
        kind: type[LocalBuilder] = LocalBuilder,
        sandbox_directory: Path | None = None,
    ) -> None:
        self._study = study
        self._kind = kind
        self._sandbox_directory = sandbox_directory
        self._root = root
        self._patched = patched
        self._cpus = cpus
        self._stop = Event()
        self._launcher = Launcher()
        self._sandboxes: Sandboxes | None = None
        self._builder: LocalBuilder | None = None

    def build(self, subject: Subject, recipe: Recipe) -> Built | Failure:
        """Build a subject."""
        return self.builder.build(subject, recipe)

    def relink(
        self, subject: Subject, recipe: Recipe, layouts: Sequence[int], *, artefact: str
    ) -> Mapping[int, Built | Failure]:
        """Link a subject with several layout seeds; build the subject first if necessary.

        `artefact` names the build that the layouts belong to. This worker's build can differ from it when a
        compiler writes the time into its output.
        """
        built = self.builder.build(subject, recipe)
        if isinstance(built, Failure):
            return {layouts[0]: replace(built, stage="relink")}
        return self.builder.relink(subject, recipe, replace(built, artefact=artefact), layouts)

    @property
    def builder(self) -> LocalBuilder:
        """The builder of this worker."""
        if self._builder is None:
            self._builder = self._opened()
        return self._builder

    def confirm(self) -> None:
        """Compare builds from reused trees with clean builds. Raises `StaleBuilds` when they differ."""
        if self._builder is not None:
            self._builder.confirm()

    def messages(self) -> tuple[str, ...]:
        """Return messages about work other than builds, for example removed builds."""
        return () if self._builder is None else self._builder.messages()

    def release_builds(self) -> None:
        """Release the builds of this worker; clients mark builds that they use, or have copied them."""
        if self._builder is not None:
            self._builder.close()

    def cancel(self) -> None:
        """Kill the current build, from any thread, because its result is no longer needed."""
        self._launcher.cancel()
        if self._sandboxes is not None:
            self._sandboxes.cancel()

    def stop(self) -> None:
        """Kill running processes, and start no more."""
        self._stop.set()
        self._launcher.close()
        if self._sandboxes is not None:
            self._sandboxes.end()

    def close(self) -> None:
        """Release the builds and end the launcher."""
        self.release_builds()
        self._launcher.close()

    def _opened(self) -> LocalBuilder:
        starter = Stoppable(self._launcher, self._stop)
        self._sandboxes = sandboxes(
            self._study, self._root, self._launcher, sandbox_directory=self._sandbox_directory
        )
        isolation = None if self._sandboxes is None else StoppableIsolation(self._sandboxes, self._stop)
        opened = open_sources(
            self._study, cache=str(self._root / "sources"), starter=starter, patched=self._patched
        )
        return self._kind(
            opened.main,
            starter,
            **_builder_options(self._study, self._root, opened, isolation, cpus=self._cpus),
        )


@contextmanager
def open_build_workers(
    study: Study, root: Path, *, jobs: int, patched: Patched | None
) -> Iterator[BuildWorkers | None]:
    """Yield `jobs` build workers that share the CPUs; `None` for one build at a time."""
    if jobs == 1:
        yield None
        return
    cpus = len(os.sched_getaffinity(0))
    each = max(1, cpus // jobs)
    announcement = (
        f"{jobs} parallel builds, each with {each} of {cpus} CPUs; measurements wait until they end"
    )
    workers = BuildWorkers(
        [LocalBuildWorker(study, root, patched=patched, cpus=each) for _ in range(jobs)],
        announcement=announcement,
    )
    try:
        yield workers
    finally:
        workers.close()


def open_builder(
    study: Study,
    root: Path,
    sources: Sources,
    starter: Starter,
    *,
    isolation: Isolation | None,
    workers: BuildWorkers | RemoteBuildWorkers | None = None,
) -> Builder:
    """Open the builder of a study's subjects, with local or remote build workers if there are any."""
    named = _builder_options(study, root, sources, isolation, cpus=len(os.sched_getaffinity(0)))
    if workers is None:
        return LocalBuilder(sources.main, starter, **named)
    if isinstance(workers, BuildWorkers):
        return ParallelBuilder(sources.main, starter, workers=workers, **named)
    return RemoteBuilder(sources.main, starter, workers=workers, **named)


def sandboxes(
    study: Study, root: Path, starter: Launcher, *, sandbox_directory: Path | None = None
) -> Sandboxes | None:
    """Return the sandboxes of builds and runs, or `None` if the study does not use sandboxes."""
    if not study.sandbox.always:
        return None
    outside = starter.start()
    return Sandboxes(
        study.sandbox,
        study_directory=study.directory,
        results=root,
        outside=outside,
        sandbox_directory=sandbox_directory,
    )


def _builder_options(
    study: Study, root: Path, sources: Sources, isolation: Isolation | None, *, cpus: int
) -> BuilderOptions:
    return BuilderOptions(
        builds=str(root / "builds"),
        logs=str(root / "logs"),
        study_directory=study.directory,
        cpus=cpus,
        others=sources.others,
        folders=sources.folders,
        isolation=isolation,
        disk_bytes=study.build.disk_bytes,
    )
