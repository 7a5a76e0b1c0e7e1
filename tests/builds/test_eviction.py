"""Builds stay within a disk quota."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from perftrail.builds import quota
from perftrail.builds.builder import LocalBuilder
from perftrail.builds.compiler_caches import CACHE_SHARE
from perftrail.builds.quota import Disk, RemovableBuild, Shrunk, bytes_below, items_to_remove, retention_value
from perftrail.model.build import Built, Recipe
from perftrail.model.source import Source as SourceTable
from perftrail.model.subject import Revision, Subject
from perftrail.process.launcher import Launcher
from perftrail.sources.git import GitSource
from tests.builds.subject_builder import PROJECT, Project, recipe

BIG = recipe("head -c 1000000 /dev/zero > big; cp README copy", outputs=("big", "copy"))
MIB = 1 << 20


def kept(
    name: str, *, size: float, seconds: float, last_used: float = 0.0, in_use: bool = False
) -> RemovableBuild:
    return RemovableBuild(
        home=Path(name),
        marker=Path(name),
        lock=Path(name),
        bytes=size,
        seconds=seconds,
        last_used=last_used,
        in_use=in_use,
    )


def builder(project: Project, *, disk_bytes: float) -> LocalBuilder:
    table = SourceTable(kind="git", location=str(project.repository.path))
    return LocalBuilder(
        GitSource(table, cache=str(project.root / "cache"), starter=project.launcher),
        project.launcher,
        builds=str(project.builds),
        logs=str(project.root / "logs"),
        study_directory=str(project.root),
        cpus=2,
        disk_bytes=disk_bytes,
    )


def build(project: Project, revision: Revision, how: Recipe, *, disk_mib: float) -> Built:
    own = builder(project, disk_bytes=disk_mib * MIB / (1 - CACHE_SHARE))
    built = own.build(Subject(revision=revision, variant="plain"), how)
    assert isinstance(built, Built), built
    own.close()
    return built


def there(built: Built) -> bool:
    return (Path(built.directory) / "big").is_file()


def test_cheap_large_and_long_unused_builds_are_removed_first() -> None:
    week = 7 * 86400.0
    cheap, dear = kept("cheap", size=10, seconds=1), kept("dear", size=10, seconds=9)
    large, old = kept("large", size=100, seconds=9), kept("old", size=10, seconds=9, last_used=-4 * week)
    assert retention_value(old, now=0.0) == retention_value(dear, now=0.0) / 16
    order = [each.home.name for each in items_to_remove([dear, old, cheap, large], budget_bytes=0, now=0.0)]
    assert order == ["old", "large", "cheap", "dear"]


def test_no_build_that_fits_or_is_needed_is_removed() -> None:
    some = [kept("a", size=4, seconds=1), kept("b", size=4, seconds=2)]
    assert items_to_remove(some, budget_bytes=8, now=0.0) == []
    assert items_to_remove(some, budget_bytes=7, now=0.0) == some[:1]
    assert items_to_remove([replace(each, in_use=True) for each in some], budget_bytes=0, now=0.0) == []


def test_builds_of_earlier_runs_are_removed_and_the_last_used_stays(project: Project) -> None:
    revisions = [project.commit({**PROJECT, "README": f"{number}\n"}) for number in range(3)]
    first, second = (build(project, each, BIG, disk_mib=100) for each in revisions[:2])
    for built, day in ((first, 86400 * 30), (second, 86400 * 31)):
        os.utime(Path(built.directory).parent / "built.json", (day, day))
    build(project, revisions[0], BIG, disk_mib=100)  # used again
    third = build(project, revisions[2], BIG, disk_mib=2.2)
    assert [there(each) for each in (first, second, third)] == [True, False, True]
    assert bytes_below(project.builds / "trash") == 0
    again = build(project, revisions[1], BIG, disk_mib=100)
    assert not again.reused
    assert there(again)


def test_files_of_sccache_count_against_the_quota(project: Project) -> None:
    revisions = [project.commit({**PROJECT, "README": f"{number}\n"}) for number in range(2)]
    first = build(project, revisions[0], BIG, disk_mib=2.2)
    (project.builds / "sccache").mkdir()
    (project.builds / "sccache" / "entry").write_bytes(b"x" * MIB)
    build(project, revisions[1], BIG, disk_mib=2.2)
    assert not there(first)


def test_builds_of_this_run_stay_beyond_the_quota(project: Project) -> None:
    revisions = [project.commit({**PROJECT, "README": f"{number}\n"}) for number in range(3)]
    earlier = build(project, revisions[0], BIG, disk_mib=100)
    own = builder(project, disk_bytes=0.5 * MIB)
    own.protect([(Subject(revision=revisions[0], variant="plain"), BIG)])
    builds = [own.build(Subject(revision=each, variant="plain"), BIG) for each in revisions[1:]]
    assert there(earlier)
    assert all(isinstance(each, Built) and there(each) for each in builds)
    (message,) = own.messages()
    assert "more than the quota of build.disk" in message
    own.close()


def test_builds_in_use_by_another_process_stay_until_it_ends(project: Project) -> None:
    one, two, three = (project.commit({**PROJECT, "README": f"{number}\n"}) for number in range(3))
    code = """
import sys
from pathlib import Path
from perftrail.process import Launcher
from perftrail.model.subject import Revision
from perftrail.model.subject import Subject
from tests.builds.test_eviction import BIG, builder
from tests.builds.subject_builder import Project
project = Project.__new__(Project)
project.root, project.launcher = Path(sys.argv[1]), Launcher()
project.repository = type("There", (), {"path": Path(sys.argv[1]) / "repository"})
own = builder(project, disk_bytes=1e9)
built = own.build(Subject(revision=Revision(id=sys.argv[2]), variant="plain"), BIG)
print(built.directory, flush=True)
sys.stdin.read()
"""
    other = subprocess.Popen(
        [sys.executable, "-c", code, project.root, one.id],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert other.stdout is not None
    used = Path(other.stdout.readline().strip()) / "big"
    build(project, two, BIG, disk_mib=0.5)
    assert used.is_file()
    other.kill()
    other.communicate()
    build(project, three, BIG, disk_mib=0.5)
    assert not used.exists()


def test_an_artefact_goes_with_the_last_build_that_leads_to_it(project: Project) -> None:
    how = replace(recipe("head -c 1000000 /dev/zero > big", outputs=("big",)), incremental=True)
    one, two, other = (project.commit({**PROJECT, "README": f"{number}\n"}) for number in range(3))
    shared = [build(project, each, how, disk_mib=100) for each in (one, two)]
    (artefact,) = (project.builds / "artefacts").iterdir()
    assert [Path(each.directory).resolve() for each in shared] == [artefact / "tree"] * 2
    build(project, other, BIG, disk_mib=0.1)
    assert not artefact.exists()
    assert [Path(each.directory).is_symlink() for each in shared] == [False, False]
    assert there(build(project, one, how, disk_mib=100))


def build_until_killed(project: Project, revision: Revision, *, steps: int) -> None:
    """Build beyond the quota, and kill this process after this number of steps of the removal of other builds."""
    left = steps

    def counted(act: Callable[..., object]) -> Callable[..., object]:
        def acting(*words: object, **more: object) -> object:
            nonlocal left
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return act(*words, **more)

        return acting

    patch = pytest.MonkeyPatch()
    for owner, name in ((quota, "remove_tree"), (quota, "sync_directory"), (Path, "rename")):
        patch.setattr(owner, name, counted(getattr(owner, name)))
    project.launcher = Launcher()  # the other one is that of the process that was forked
    build(project, revision, BIG, disk_mib=0.5)


def test_a_kill_while_builds_are_removed_leaves_no_partial_build_that_looks_finished(
    project: Project,
) -> None:
    revisions = [project.commit({**PROJECT, "README": f"{number}\n"}) for number in range(4)]
    half = 0
    for moment, revision in enumerate(revisions[1:]):
        build(project, revisions[0], BIG, disk_mib=100)
        child = os.fork()
        if child == 0:
            try:
                build_until_killed(project, revision, steps=moment)
            finally:
                os._exit(1)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL
        homes = [each for each in project.builds.iterdir() if len(each.name) == 32]
        finished = [each for each in homes if (each / "built.json").is_file()]
        assert all((each / "tree" / "big").stat().st_size == 1_000_000 for each in finished)
        trash = project.builds / "trash"
        half += len(homes) - len(finished) + (len(list(trash.iterdir())) if trash.is_dir() else 0)
    assert half > 0
    assert all(there(build(project, each, BIG, disk_mib=100)) for each in revisions)
    assert list((project.builds / "trash").iterdir()) == []


def test_the_compiler_cache_is_given_its_share(project: Project) -> None:
    with Launcher():
        builder(project, disk_bytes=8 * MIB)
    assert (project.builds / "ccache" / "ccache.conf").read_text() == "max_size = 2048Ki\n"


def test_builds_that_fit_are_not_added_up_each_time(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    revisions = [project.commit({**PROJECT, "README": f"{number}\n"}) for number in range(4)]
    shrunk: list[Path] = []
    shrink = Disk.shrink

    def counted(disk: Disk) -> Shrunk | None:
        shrunk.append(project.builds)
        return shrink(disk)

    monkeypatch.setattr(Disk, "shrink", counted)
    own = builder(project, disk_bytes=100 * MIB)
    for revision in revisions:
        assert isinstance(own.build(Subject(revision=revision, variant="plain"), BIG), Built)
    assert len(shrunk) == 1
    own.close()
