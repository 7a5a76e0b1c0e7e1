"""Builds by workers: they are protected while in use, and count for the disk quota."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from perftrail.builds.compiler_caches import CACHE_SHARE
from perftrail.builds.in_use import BuildsInUse
from perftrail.builds.workers import RemoteBuilder
from perftrail.local_engine import LocalEngine
from perftrail.model.build import Built
from perftrail.model.source import Source as SourceTable
from perftrail.model.subject import Subject
from perftrail.sources.git import GitSource
from tests.builds.subject_builder import PROJECT, Project
from tests.builds.test_eviction import BIG, MIB, build, there

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perftrail.model.build import Failure, Recipe
    from perftrail.ports import Pending


class Others:
    """Implements `builder.RemoteBuildWorkers`: builds at the request of an outcome, and protects no builds."""

    parallel_builds = 2

    def __init__(self, project: Project) -> None:
        self._project = project

    def begin(self, key: str, subject: Subject, recipe: Recipe) -> Pending[Built | Failure]:
        def perform(subject: Subject) -> Built | Failure:
            own = self._project.builder()
            assert own.key(subject, recipe) == key
            outcome = own.build(subject, recipe)
            own.close()
            return outcome

        return LocalEngine().begin(perform, subject)

    def relink(
        self, built: Built, subject: Subject, recipe: Recipe, layouts: Mapping[int, str]
    ) -> Pending[Mapping[int, Built | Failure]]:
        def perform(subject: Subject) -> Mapping[int, Built | Failure]:
            own = self._project.builder()
            outcome = own.relink(subject, recipe, built, tuple(layouts))
            own.close()
            return outcome

        return LocalEngine().begin(perform, subject)


def test_layouts_that_workers_relink_are_used_like_local_ones(project: Project) -> None:
    how = replace(BIG, relink=("make -B && echo {layout} >> big",))
    subject = Subject(revision=project.commit(PROJECT), variant="plain")
    builder = away(project, disk_mib=100)
    built = builder.build(subject, how)
    assert isinstance(built, Built)
    found = builder.relink(subject, how, built, (1, 2))
    assert [each.key for each in found.values() if isinstance(each, Built)] == [
        builder.layout_key(built, how, layout) for layout in (1, 2)
    ]
    assert len({each.artefact for each in found.values() if isinstance(each, Built)}) == 2
    again = builder.relink(subject, how, built, (1, 2))
    assert all(isinstance(each, Built) and each.reused for each in again.values())


def test_builds_of_workers_are_in_use_here_and_count_for_the_quota(project: Project) -> None:
    old, new = (
        Subject(revision=project.commit({**PROJECT, "README": f"{number}\n"}), variant="plain")
        for number in range(2)
    )
    earlier = build(project, old.revision, BIG, disk_mib=100)
    builder = away(project, disk_mib=1.5)
    builder.begin([(new, BIG)])
    assert BuildsInUse(project.builds).claimed() == {builder.key(new, BIG)}
    built = builder.build(new, BIG)
    assert isinstance(built, Built)
    assert (there(earlier), there(built)) == (False, True)
    (message,) = builder.messages()
    assert message.startswith("1 build removed to free disk space (")
    assert "build.disk is " in message
    builder.close()
    assert not BuildsInUse(project.builds).claimed()


def away(project: Project, *, disk_mib: float) -> RemoteBuilder:
    table = SourceTable(kind="git", location=str(project.repository.path))
    return RemoteBuilder(
        GitSource(table, cache=str(project.root / "cache"), starter=project.launcher),
        project.launcher,
        workers=Others(project),
        builds=str(project.builds),
        logs=str(project.root / "logs"),
        study_directory=str(project.root),
        cpus=2,
        others={},
        folders={},
        isolation=None,
        disk_bytes=disk_mib * MIB / (1 - CACHE_SHARE),
    )
