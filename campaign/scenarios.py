"""Small studies and the commands that campaigns interrupt, with what must hold afterwards."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from campaign import command_line

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

STUDY = """\
[source]
kind = "git"
location = "repository"

[build]
steps = ["cp program.sh program"]
outputs = ["program"]

[benchmark.work]
command = "{build}/program"
metrics = { cost = { pattern = 'cost ([0-9]+)' } }

[measure]
warmups = 1
invocations = 2

[find]
metric = "cost"
"""
PROGRAM = """\
#!/bin/sh
here=$(readlink -f "$0")
echo start >> "${{here%/.perftrail/*}}/starts"
echo cost {cost}
"""
REVISIONS = 6
CULPRIT = 3

Row = tuple[object, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A command that writes, the commands before it, and the path of the store that it writes in the study."""

    name: str
    command: tuple[str, ...]
    before: tuple[tuple[str, ...], ...] = ()
    store: str = ".perftrail/results.db"


SCENARIOS = (
    Scenario(name="run", command=("run", ".")),
    Scenario(name="find", command=("find", ".", "--json")),
    Scenario(name="backup", command=("store", "backup", "copy.db"), before=(("run", "."),), store="copy.db"),
    Scenario(
        name="restore",
        command=("store", "restore", "copy.db", "--store", "new.db"),
        before=(("run", "."), ("store", "backup", "copy.db")),
        store="new.db",
    ),
    Scenario(
        name="copy",
        command=("store", "copy", ".perftrail/results.db", "other.db"),
        before=(("run", "."),),
        store="other.db",
    ),
)


def write_study(directory: Path) -> None:
    """Create the repository and the study file."""
    repository = directory / "repository"
    repository.mkdir(parents=True)
    (directory / "perftrail.toml").write_text(STUDY)
    (directory / "starts").touch()
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-C", str(repository)]
    subprocess.run([*git, "init", "-q"], check=True)
    for number in range(REVISIONS):
        (repository / "program.sh").write_text(
            PROGRAM.format(cost=200 if number >= CULPRIT else 100) + f"# {number}\n"
        )
        (repository / "program.sh").chmod(0o755)
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "-q", "-m", f"Commit {number}"], check=True)


def prepare(scenario: Scenario, template: Path, directory: Path) -> None:
    """Create a study in which the scenario's command can start."""
    shutil.copytree(template, directory, symlinks=True)
    for command in scenario.before:
        ended = command_line.run(command, directory)
        if ended.code:
            raise RuntimeError(f"{' '.join(command)}: exit {ended.code}: {ended.stderr}")


def invocations(store: Path) -> Mapping[Row, Row]:
    """Return the stored invocations by identity, each with its values; empty without a readable store."""
    if not store.exists():
        return {}
    with closing(sqlite3.connect(store)) as database:
        try:
            rows = database.execute(
                "SELECT runnable_id, machine_id, phase, ordinal, id FROM invocation"
            ).fetchall()
            values = database.execute(
                "SELECT invocation_id, metric_id, value FROM value ORDER BY 1, 2"
            ).fetchall()
        except sqlite3.OperationalError as error:
            if "no such table" in str(error):
                return {}
            raise
    found: dict[object, list[object]] = {}
    for invocation, metric, value in values:
        found.setdefault(invocation, []).append((metric, value))
    result: dict[Row, Row] = {}
    for *identity, number in rows:
        if tuple(identity) in result:
            raise RuntimeError(f"stored twice: {identity}")
        result[tuple(identity)] = tuple(found.get(number, ()))
    return result


def starts(directory: Path) -> int:
    """Return how often the program started."""
    return len((directory / "starts").read_text().splitlines())
