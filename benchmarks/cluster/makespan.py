"""How long it takes to build many subjects with one worker, and with more."""

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
    """Build so many subjects, each of which waits so long, with so many workers; give the times as a table."""
    lines = [["workers", "subjects", "time against one worker", "time against the waiting alone"]]
    first = None
    with tempfile.TemporaryDirectory(dir=scratch) as home:
        repository = history.make(Path(home, "repository"), revisions=count)
        for number in workers:
            took = _built(Path(home, f"with-{number}"), repository, workers=number, seconds=seconds)
            first = first or took
            alone = -(-count // number) * seconds
            lines.append([f"{number}", f"{count}", f"{took / first:.2f}", f"{took / alone:.2f}"])
    return as_table(lines)


def _built(home: Path, repository: Path, *, workers: int, seconds: float) -> float:
    """Build all revisions with workers of their own, and give how long that took, the workers being there."""
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
