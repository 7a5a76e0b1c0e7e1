"""Relinking on the machines of a cluster: builders also relink, and measurers start the result."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.cluster.machines import machines
from perftrail import studyfile
from perftrail.measure.subjects import Ready
from perftrail.model.measurement import Measurement
from perftrail.model.plan import cells, subjects
from perftrail.opening import open_session
from tests.measure.fake_session import drain
from tests.sources.repositories import Repository

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.long, pytest.mark.slow("cluster")]

STUDY = """\
[source]
kind = "git"
location = "{location}"

[build]
steps = ["cc -c main.c one.c two.c", "cc -o program main.o one.o two.o", "pwd > where"]
outputs = ["program"]
relink = [
    "test \\"$(cat where)\\" = \\"$PWD\\"",
    "set -- one.o two.o; [ $(( {{layout}} % 2 )) = 0 ] || set -- two.o one.o; cc -o program $@ main.o",
]

[benchmark.work]
command = "{{build}}/program"
metrics = {{ apart = {{ pattern = 'apart (-?[0-9]+)' }} }}

[measure]
warmups = 0
"""

FILES = {
    "main.c": "#include <stdio.h>\nint one(void); int two(void);\n"
    'int main(void) { printf("apart %ld\\n", (long)one - (long)two); return 0; }\n',
    "one.c": "int one(void) { return 1; }\n",
    "two.c": "int two(void) { return 2; }\n",
}


def apart(study: Path, engine: str) -> list[float]:
    """Return the distance between two functions as linked and in two other orders, as printed on an engine."""
    loaded = studyfile.load(str(study))
    with open_session(loaded, store=None, engine=engine) as session:
        (subject,) = subjects(loaded, session.source.history())
        (cell,) = cells(loaded, subject)
        drain(session.subject_builder.relink([cell], (1, 2)))
        found = []
        for layout in (0, 1, 2):
            _, ready = drain(session.subject_builder.ready(cell, layout=layout))
            assert isinstance(ready, Ready), ready
            session.runner.load_outcomes((ready,))
            start = session.runner.plan(ready, "sample", layout)
            drain(session.runner.perform((start,)))
            outcome = session.runner.known(ready)["sample", layout]
            assert isinstance(outcome, Measurement), outcome
            assert outcome.draw.layout == layout
            found.append(outcome.values["apart"])
        return found


def relinking_study(directory: Path) -> Path:
    """Write a repository and a study that relinks its program in two orders."""
    repository = Repository(directory / "repository")
    repository.commit(FILES)
    study = directory / "study" / "perftrail.toml"
    study.parent.mkdir()
    study.write_text(STUDY.format(location=repository.path))
    return study


def test_layouts_made_by_workers_run_on_workers(tmp_path: Path) -> None:
    """Machines with directories of their own: `test_own_directories`."""
    study = relinking_study(tmp_path)
    with machines(tmp_path / "machines", ("one", "two")) as two:
        linked, first, second = apart(study, two.address.replace("tcp://", "dask://"))
    assert first > 0 > second
    assert linked < 0
