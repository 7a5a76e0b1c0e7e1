"""A database as a fixture: a real server with the configuration of each commit, and the commit that made it slower.

The repository contains the server's configuration and the schema. One of twenty commits switches index scans off.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.printing import find_answer, revisions
from tests.needs import reason
from tests.sources.repositories import Repository
from tests.store.server import NOBODY, programs

PROGRAMS = programs()

pytestmark = [
    pytest.mark.long,
    pytest.mark.slow("postgresql"),
    pytest.mark.skipif(
        PROGRAMS is None or not (PROGRAMS / "pgbench").exists(),
        reason=reason(["postgres", "pgbench"]),
    ),
]

COMMITS = 20
CULPRIT = 13

SCHEMA = """\
CREATE TABLE item (id integer PRIMARY KEY, owner integer, body text);
INSERT INTO item SELECT n, n % 1000, repeat('x', 40) FROM generate_series(1, 40000) AS n;
CREATE INDEX item_owner ON item (owner);
ANALYZE item;
"""

CONFIGURATION = """\
shared_buffers = {buffers}MB
work_mem = {work}MB
max_connections = {connections}
jit = off
fsync = off
autovacuum = off
"""

STUDY = '''\
[source]
kind = "git"
location = "{repository}"

[service.db]
setup = [
  "{own}",
  "{user} {programs}/initdb --no-sync --pgdata={{data}}/cluster --username=postgres --auth=trust --locale=C",
]
command = """{user} {programs}/postgres -D {{data}}/cluster -k {{data}}
  -c config_file={{build}}/postgresql.conf -c listen_addresses="""
ready = {{ line = "ready to accept connections" }}
stop = "SIGINT"

[benchmark.query]
services = ["db"]
setup = ["{programs}/psql --quiet --set=ON_ERROR_STOP=1 --file={{build}}/schema.sql"]
command = "{programs}/pgbench --no-vacuum --transactions=40 --file={{study}}/query.sql postgres"
env = {{ PGHOST = "{{data}}", PGUSER = "postgres" }}
measure = "server"

[benchmark.query.metrics]
latency = {{ pattern = 'latency average = ([0-9.]+) ms', unit = "ms" }}

[find]
metric = "query.cpu"
threshold = 0.3
'''


def configuration(number: int) -> str:
    """Return the server's configuration at a commit, from 1 on."""
    text = CONFIGURATION.format(
        buffers=48 if number >= 9 else 32,
        work=8 if number >= 5 else 4,
        connections=30 if number >= 16 else 20,
    )
    if number >= CULPRIT:
        text += "enable_indexscan = off\nenable_bitmapscan = off\n"
    return text + f"# edition {number}\n"


@pytest.fixture
def directory() -> Iterator[Path]:
    """A directory that the server's user can enter, with a short path: a socket's name has at most 107 bytes."""
    path = Path(tempfile.mkdtemp(prefix="perftrail-pg-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def test_find_names_the_commit_that_switched_index_scans_off(directory: Path) -> None:
    repository = Repository(directory / "repository")
    commits = [
        repository.commit(
            {"postgresql.conf": configuration(number), "schema.sql": SCHEMA}, subject=f"edition {number}"
        )
        for number in range(1, COMMITS + 1)
    ]
    is_root = os.geteuid() == 0
    study = directory / "study"
    study.mkdir()
    (study / "query.sql").write_text("SELECT count(*), max(length(body)) FROM item WHERE owner = 17;\n")
    (study / "perftrail.toml").write_text(
        STUDY.format(
            repository=repository.path,
            programs=PROGRAMS,
            own=f"chown {NOBODY} {{data}}" if is_root else "true",
            user=f"setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups" if is_root else "env",
        )
    )
    answer = find_answer(study)
    assert answer["verdict"] == "found"
    assert revisions(answer) == [[commits[CULPRIT - 1]]]
    [change] = answer["changes"]
    assert change["after"] > 3.0 * change["before"], change
    assert list((study / ".perftrail/fixtures").iterdir()) == []
