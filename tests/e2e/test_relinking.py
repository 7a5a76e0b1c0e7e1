"""Relinking end to end: a real C project of three object files, its study file, and the output of `check --try`."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from perftrail import studyfile
from perftrail.measure.subjects import Ready
from perftrail.model.measurement import Measurement
from perftrail.model.plan import cells, subjects
from perftrail.opening import open_session
from tests.e2e.printing import perftrail
from tests.measure.fake_session import drain
from tests.process.sandbox.sandboxes import needs_sandbox
from tests.sources.repositories import Repository

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.slow("starts")

STUDY = """\
[source]
kind = "git"
location = "{location}"

[build]
steps = ["make"]
outputs = [{outputs}]
{build}

[benchmark.work]
{benchmark}
metrics = {{ cost = {{ pattern = 'cost ([0-9]+)' }} }}

[measure]
invocations = 2
warmups = 0
{more}
"""

SHUFFLE = (
    "ls {objects} | awk -v seed={{layout}} 'BEGIN {{ srand(seed) }} {{ print rand(), $0 }}' | sort -n"
    " | cut -d' ' -f2 > order"
)
PROJECT = {
    "Makefile": (
        "OBJECTS = main.o one.o two.o\nCFLAGS = -O1 -g\n"
        "all: program lib.a\n"
        "program: $(OBJECTS)\n\t$(CC) -o $@ $(OBJECTS)\n"
        "lib.a: one.o two.o\n\tar rc $@ one.o two.o\n"
    ),
    "main.c": "#include <stdio.h>\nint one(int); int two(int);\n"
    'int main(void) { printf("cost %d\\n", one(20) + two(30)); return 0; }\n',
    "one.c": "int one(int n) { return n * 3; }\n",
    "two.c": "int two(int n) { return n * 5; }\n",
}
RELINK = [SHUFFLE.format(objects="main.o one.o two.o"), "cc -o program $(cat order)"]
RELINKED_BUILD: Mapping[str, str] = {
    "outputs": '"program"',
    "build": f"relink = {json.dumps(RELINK)}",
    "benchmark": 'command = "{build}/program"',
}
RELINKED_BENCHMARK: Mapping[str, str] = {
    "outputs": '"*.o"',
    "build": "",
    "benchmark": (
        'build = ["cp {build}/main.o {build}/one.o {build}/two.o .", "cc -o program main.o one.o two.o"]\n'
        f"relink = {json.dumps(RELINK)}\n"
        'command = "{out}/program"'
    ),
}


def a_study(
    tmp_path: Path, tables: Mapping[str, str] = RELINKED_BUILD, *, build: str = "", more: str = ""
) -> Path:
    repository = Repository(tmp_path / "repository")
    for text in ("one\n", "two\n"):
        repository.commit({**PROJECT, "README": text})
    study = tmp_path / "study"
    study.mkdir()
    fields = {**tables, "build": f"{tables['build']}\n{build}", "more": more}
    (study / "perftrail.toml").write_text(STUDY.format(location=repository.path, **fields))
    return study


def symbols(program: Path) -> tuple[str, ...]:
    """Return the functions of the project in the order of their addresses."""
    listing = subprocess.run(["nm", "-n", program], check=True, capture_output=True, text=True).stdout
    names = [line.split()[-1] for line in listing.splitlines()]
    return tuple(name for name in names if name in {"main", "one", "two"})


def layouts_of(study: Path, layouts: range) -> list[tuple[Ready, Measurement]]:
    """Link these layouts of the newest revision, run each once, and return them with their outcomes."""
    loaded = studyfile.load(str(study))
    found = []
    with open_session(loaded, store=None) as session:
        cell = cells(loaded, subjects(loaded, session.source.history())[-1])[0]
        drain(session.subject_builder.relink([cell], layouts))
        for layout in layouts:
            _, ready = drain(session.subject_builder.ready(cell, layout=layout))
            assert isinstance(ready, Ready), ready
            session.runner.load_outcomes((ready,))
            ordinal = 100 + layout
            start = session.runner.plan(ready, "sample", ordinal)
            drain(session.runner.perform((start,)))
            outcome = session.runner.known(ready)["sample", ordinal]
            assert isinstance(outcome, Measurement), outcome
            found.append((ready, outcome))
    return found


@pytest.mark.parametrize("incremental", [False, True], ids=["clean", "incremental"])
def test_relinked_programs_differ_run_and_are_stored_with_their_layout(
    tmp_path: Path, incremental: bool
) -> None:
    study = a_study(tmp_path, build=f"incremental = {str(incremental).lower()}")
    before = json.loads(perftrail("run", study, "--json").stdout)
    assert before["measured"] == 2
    found = layouts_of(study, range(1, 7))
    orders = {symbols(Path(ready.prepared.built.directory, "program")) for ready, _ in found}
    assert len(orders) >= 3
    assert len({ready.content for ready, _ in found}) == len(orders)
    assert [outcome.draw.layout for _, outcome in found] == list(range(1, 7))
    assert {outcome.values["cost"] for _, outcome in found} == {210.0}
    assert len({ready.runnable.key for ready, _ in found}) == 1
    again = json.loads(perftrail("run", study, "--json").stdout)
    assert again["invocations"] == 0


def test_check_try_relinks_and_reports_the_number(tmp_path: Path) -> None:
    study = a_study(tmp_path)
    tried = perftrail("check", "--try", "2", study)
    assert "2 of 2 builds succeeded (100 %), 2 of them work, 2 of these were relinked" in tried.stdout
    assert "no effect" not in tried.stderr
    report = json.loads(perftrail("check", "--try", "2", "--json", study).stdout)
    assert report["relinked"] == 2


def test_check_try_reports_a_relink_without_effect(tmp_path: Path) -> None:
    study = a_study(tmp_path, {**RELINKED_BUILD, "build": 'relink = ["make LAYOUT={layout}"]'})
    tried = perftrail("check", "--try", "1", study)
    assert "work is identical in layouts 1, 2 and 3: relink has no effect" in tried.stderr


def test_check_try_reports_a_failed_relink_with_its_log(tmp_path: Path) -> None:
    study = a_study(tmp_path, {**RELINKED_BUILD, "build": 'relink = ["cc -o program no-{layout}.o"]'})
    report = json.loads(perftrail("check", "--try", "1", "--json", study).stdout)
    (failure,) = report["failures"]
    assert (report["built"], report["usable"], report["relinked"]) == (1, 1, 0)
    assert failure["stage"] == "relink"
    assert "no-1.o" in Path(failure["log"]).read_text()


def test_a_benchmark_that_links_by_itself_is_relinked(tmp_path: Path) -> None:
    found = layouts_of(a_study(tmp_path, RELINKED_BENCHMARK), range(1, 7))
    orders = {symbols(Path(ready.prepared.out, "program")) for ready, _ in found}
    assert len(orders) >= 3
    assert {ready.prepared.built.layout for ready, _ in found} == {0}
    assert [outcome.draw.layout for _, outcome in found] == list(range(1, 7))


@needs_sandbox
@pytest.mark.parametrize(
    "incremental", [False, pytest.param(True, marks=pytest.mark.long)], ids=["clean", "incremental"]
)
def test_relinking_works_in_a_sandbox(tmp_path: Path, incremental: bool) -> None:
    build = f"incremental = {str(incremental).lower()}"
    study = a_study(tmp_path, build=build, more="\n[sandbox]\nmemory = '1GiB'")
    found = layouts_of(study, range(1, 7))
    assert len({symbols(Path(ready.prepared.built.directory, "program")) for ready, _ in found}) >= 3
    assert {outcome.values["cost"] for _, outcome in found} == {210.0}
