"""Builds of a worker for a study are marked as in use only while they are."""

from __future__ import annotations

from pathlib import Path

from perftrail import studyfile
from perftrail.builds.in_use import BuildsInUse
from perftrail.builds.workers import CleanBuilder
from perftrail.cluster.fleet import token_of, write_marker
from perftrail.cluster.study_copy import study_digest
from perftrail.cluster.values import BuildRequest, RemoteStudy, WorkerOptions
from perftrail.cluster.worker import JobRunner
from perftrail.measure.build_workers import LocalBuildWorker
from perftrail.model.build import Built
from perftrail.model.measurement import Machine
from perftrail.model.plan import recipe_of
from perftrail.model.subject import Revision, Subject
from tests.e2e.printing import program, write_study
from tests.sources.repositories import Repository


def test_a_build_can_be_removed_after_its_worker_finished_with_it(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repository")
    subject = Subject(revision=Revision(id=repository.commit(program(100))), variant="plain")
    study = studyfile.load(str(write_study(tmp_path / "study", repository)))
    root = Path(study.directory) / ".perftrail"
    root.mkdir()
    token = token_of(root)
    site = RemoteStudy(
        study=study,
        root=str(root),
        token=token,
        marker=write_marker(root, token),
        digest=study_digest(Path(study.directory)),
        version="1",
    )
    machine = Machine(id="0123456789abcdef", facts={"name": "bench"})
    (tmp_path / "worker").mkdir()
    outpost = JobRunner(
        site,
        WorkerOptions(machine=machine, builds=1, directory=tmp_path / "worker", apart=False, version="1"),
    )
    how = recipe_of(study, "plain", ())
    asking = LocalBuildWorker(study, root, patched=None, cpus=1, kind=CleanBuilder)
    try:
        making = BuildRequest(key=asking.builder.key(subject, how), subject=subject, recipe=how)
        carried = outpost.build(making, job="one")
        assert isinstance(carried.outcome, Built)
        assert Path(carried.outcome.directory, "program").is_file()
        assert not BuildsInUse(root / "builds").claimed()
    finally:
        asking.close()
        outpost.stop()
        outpost.close()
