"""A real run waits while the server with its results restarts, and resumes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.needs import skip_for
from tests.starting import start
from tests.store.server import PASSWORD, running

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.store.server import Server

pytestmark = [pytest.mark.slow("postgresql"), pytest.mark.long]

STUDY = """\
[study]
title = "What does counting three times as far cost?"

[source]
kind = "directory"
location = "program"

[variants.near]
[variants.far]
rebuild = false
run.env = { TURNS = "3" }

[benchmark.count]
command = "sh {build}/count.sh 2000"

[measure]
invocations = 20
warmups = 1
"""

PROGRAM = "i=0\nwhile [ $i -lt $(($1 * ${TURNS:-1})) ]; do i=$((i + 1)); done\n"

ORDINALS = "SELECT runnable_id, phase, array_agg(ordinal ORDER BY ordinal) FROM invocation GROUP BY 1, 2 ORDER BY 1, 2"


@pytest.fixture
def server() -> Iterator[Server]:
    with running(durable=True) as started:
        if started is None:
            skip_for("postgres")
        yield started


@pytest.fixture
def study(tmp_path: Path) -> Path:
    (tmp_path / "study" / "program").mkdir(parents=True)
    (tmp_path / "study" / "perftrail.toml").write_text(STUDY)
    (tmp_path / "study" / "program" / "count.sh").write_text(PROGRAM)
    return tmp_path / "study"


def lines_until(process: subprocess.Popen[str], word: str) -> list[str]:
    """Read the standard error of a process, up to the line with a word."""
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if word in line:
            return lines
    raise AssertionError("".join(lines))


def test_a_run_waits_for_its_server_and_continues(server: Server, study: Path) -> None:
    url = server.database()
    command = [sys.executable, "-m", "perftrail", "run", str(study), "--store", url, "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        while not has_begun(server):
            assert process.poll() is None, process.communicate()
        server.stop()
        lines = lines_until(process, "does not answer")
        server.start()
        answer, rest = process.communicate(timeout=120)
    finally:
        process.kill()
    lines.append(rest)
    assert process.returncode == 0, lines
    assert "answers again, after" in rest
    assert json.loads(answer)["measured"] == 2
    ordinals_of_runnables = server.execute(ORDINALS, database="t1")
    assert [ordinals for _, _, ordinals in ordinals_of_runnables] == [[0], list(range(20))] * 2
    everything = "".join(lines) + answer
    assert "Traceback" not in everything
    assert_no_secret(everything, study)
    shown = start("show", study, "--store", url, "--json")
    assert shown.returncode == 0, shown.stderr
    assert {row["variant"] for row in json.loads(shown.stdout)} == {"near", "far"}
    assert_no_secret(shown.stdout + shown.stderr, study)


def has_begun(server: Server) -> bool:
    table = server.execute("SELECT to_regclass('invocation')", database="t1")
    return table != [(None,)] and server.execute("SELECT count(*) FROM invocation", database="t1") > [(3,)]


def assert_no_secret(output: str, study: Path) -> None:
    """Assert that neither the output nor a file in the study's directory contains the password."""
    parts = (PASSWORD, "se%20cret", "se cret")
    assert not any(part in output for part in parts)
    files = [file for file in study.rglob("*") if file.is_file()]
    assert any(file.parent.name != "study" for file in files)
    assert not [file for file in files if any(part.encode() in file.read_bytes() for part in parts)]
    assert not (study / ".perftrail" / "results.db").exists()
    assert (study / ".perftrail" / "builds").exists() or (study / ".perftrail").is_dir()
