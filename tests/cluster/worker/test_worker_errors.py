"""Errors of a worker: they can be sent over the network and name the machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from perftrail.cluster.study_copy import STUDY, pack_study
from perftrail.cluster.values import BuildRequest, PackedFiles, WorkerOptions
from perftrail.cluster.worker import StudyWorker, check_programs, work
from perftrail.errors import ClusterError, UsageError
from perftrail.model.build import Recipe
from perftrail.model.measurement import Machine
from perftrail.model.source import Source
from perftrail.model.subject import Revision, Subject
from tests.cluster.worker.test_study_copy import site

if TYPE_CHECKING:
    from pathlib import Path

MACHINE = Machine(id="0123456789abcdef", facts={"name": "bench"})


def test_a_full_disk_is_reported_with_its_machine(tmp_path: Path) -> None:
    remote_study = site(
        tmp_path / "study", Source(kind="git", location="https://example.org/x"), token="another"
    )
    (tmp_path / "file").touch()
    desk = StudyWorker(
        WorkerOptions(
            machine=MACHINE, builds=1, directory=tmp_path / "file" / "worker", apart=True, version="1"
        )
    )
    making = BuildRequest(
        key="k",
        subject=Subject(revision=Revision(id="r"), variant="plain"),
        recipe=Recipe(directory="", steps=()),
    )
    parcel = PackedFiles(name=STUDY, packed=pack_study(tmp_path / "study"))
    with pytest.raises(ClusterError, match=r'machine "bench": .*file.*--directory'):
        desk.build(remote_study, [parcel], making)
    desk.close()


def start(directory: Path) -> None:
    """Start a worker in a directory that it refuses."""
    work(
        "tcp://127.0.0.1:1",
        builds=1,
        machine=None,
        directory=str(directory),
        apart=False,
        on_begin=lambda _: None,
    )


@pytest.mark.parametrize("name", ["", "studies", "sandboxes", "studies/0123", "studies/0123/builds"])
def test_a_link_in_a_workers_directory_is_refused(tmp_path: Path, name: str) -> None:
    victim, directory = tmp_path / "victim", tmp_path / "work"
    victim.mkdir()
    link = directory / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(victim)
    with pytest.raises(UsageError, match="is a link or a special file"):
        start(directory)
    assert not list(victim.iterdir())


def test_a_directory_that_cannot_be_made_or_that_others_can_change_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    for name, reported in (("file/below", "cannot be created"), ("open", "other users can write there")):
        with pytest.raises(UsageError, match=rf'--directory ".*{name}": {reported}'):
            start(tmp_path / name)


def test_a_program_that_is_another_one_here_is_refused() -> None:
    """The command's program is part of the samples' key; the worker starts its own."""
    python = "python3: Python 3.11.2\npython3 is /usr/bin/python3, content 0123"
    sort = "sort is /usr/bin/sort, content 4567"
    check_programs("work", [python, sort, "x86_64"], [python, sort])
    check_programs("work", [python], [python, sort])  # no part of the key: only this machine has it
    for other in (python.replace("0123", "89ab"), python.replace("/bin", "/local/bin")):
        with pytest.raises(
            ClusterError, match=r"work: python3 here is not the command's program.*/bin/python3"
        ):
            check_programs("work", [sort, python], [other])
