"""The time to build many subjects with one worker, and with more."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.cluster import history
from benchmarks.cluster.machines import machines
from benchmarks.markdown import table as as_table
from perftrail.model.build import Failure
from perftrail.model.plan import subjects
from perftrail.opening import open_session

if TYPE_CHECKING:
    from collections.abc import Sequence


def table(count: int, workers: Sequence[int], *, seconds: float, scratch: Path) -> str:
    """Build `count` subjects, which wait for `seconds` each, with each number of workers; return a table."""
    lines = [["workers", "subjects", "time against one worker", "time against the waiting only"]]
    first = None
    with tempfile.TemporaryDirectory(dir=scratch) as home:
        repository = history.create_repository(Path(home, "repository"), revisions=count)
        for number in workers:
            duration = _build(Path(home, f"with-{number}"), repository, workers=number, seconds=seconds)
            first = first or duration
            alone = -(-count // number) * seconds
            lines.append([f"{number}", f"{count}", f"{duration / first:.2f}", f"{duration / alone:.2f}"])
    return as_table(lines)


def _build(home: Path, repository: Path, *, workers: int, seconds: float) -> float:
    """Build all revisions with new workers; return the time from the moment when all workers are ready."""
    study = history.study(home / "study", repository, seconds=seconds)
    names = [f"machine-{number}" for number in range(workers)]
    with (
        machines(home / "machines", names) as started,
        open_session(study, store=None, engine=started.address.replace("tcp://", "dask://")) as session,
    ):
        wanted = subjects(study, session.source.history())
        began = time.monotonic()
        for _ in session.subject_builder.build_in_parallel(wanted):
            pass
        for subject in wanted:
            for event in session.subject_builder.build(subject):
                outcome = getattr(event, "outcome", None)
                assert not isinstance(outcome, Failure), outcome
        return time.monotonic() - began
