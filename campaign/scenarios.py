"""Small studies and the commands that campaigns interrupt, with what must hold afterwards."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from campaign import command_line

if TYPE_CHECKING:
    from campaign.command_line import Ended

STUDY = """\
[source]
kind = "git"
location = "repository"

[build]
steps = ["cp program.sh program", "head -c 300000 program.sh /dev/zero > filler; truncate -s 300000 filler"]
outputs = ["program", "filler"]

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
FILLER = 300_000
"""Bytes of a file of each build."""

REVISIONS = 6
CULPRIT = 3

Row = tuple[object, ...]
Content = Mapping[Row, Row]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A command that writes, and what must hold after it was interrupted and repeated.

    `prepare` changes the study before the commands in `before`, `change` after them. `store` is the store that the
    command writes. `finished` yields what is wrong at the end, from the study's directory, the repeated command and
    the same study without an interruption. With `once`, a finished result is never overwritten: repeating the command
    may be refused.
    """

    name: str
    command: tuple[str, ...]
    before: tuple[tuple[str, ...], ...] = ()
    prepare: Callable[[Path], None] = lambda _: None
    change: Callable[[Path], None] = lambda _: None
    store: str = ".perftrail/results.db"
    finished: Callable[[Path, Ended, Path], Iterator[str]]
    once: bool = False


def _run_finished(directory: Path, _: Ended, __: Path) -> Iterator[str]:
    stored = invocations(directory / RESULTS)
    if len(stored) != 3 * len({key[0] for key in stored}) or not stored:
        yield f"{len(stored)} invocations at the end"
    yield from _too_many_starts(directory, stored)


def _find_finished(directory: Path, ended: Ended, _: Path) -> Iterator[str]:
    yield from _too_many_starts(directory, invocations(directory / RESULTS))
    changes = json.loads(ended.stdout)["changes"]
    if [each["revisions"] for each in changes] != [[_revision(directory, CULPRIT)]]:
        yield f"another answer: {changes}"


def _watch_finished(directory: Path, _: Ended, __: Path) -> Iterator[str]:
    again = command_line.run(WATCH, directory)
    if again.code or json.loads(again.stdout)["new"] or json.loads(again.stdout)["searches"]:
        yield f"the branch is checked again: exit {again.code}: {again.stdout[:200]}{again.stderr[-200:]}"
    told = directory / "messages"
    count = told.read_text().count(_revision(directory, CULPRIT)) if told.exists() else 0
    if not count:
        yield "nobody was told of the change"


def _same_files(directory: Path, _: Ended, expected: Path) -> Iterator[str]:
    one, other = (
        {
            path.relative_to(base): path.read_bytes()
            for path in (base / "imported").rglob("*")
            if path.is_file()
        }
        for base in (directory, expected)
    )
    if one != other:
        yield f"the imported files differ: {[str(name) for name in one.keys() ^ other.keys()]}"


def _evicted(directory: Path, _: Ended, expected: Path) -> Iterator[str]:
    """Yield damaged builds, and builds that should be gone; a kill between two removals may leave one more."""
    kept, wanted = (
        [path.parent for path in (base / ".perftrail" / "builds").glob("*/built.json")]
        for base in (directory, expected)
    )
    if len(kept) > len(wanted) + 1:
        yield f"{len(kept)} builds are left, not {len(wanted)}"
    for home in kept:
        if not any(path.stat().st_size == FILLER for path in home.rglob("filler")):
            yield f"the build {home.name} has lost a file"
    if trash := list((directory / ".perftrail" / "builds" / "trash").glob("*")):
        yield f"the trash has {len(trash)} entries"


def _too_many_starts(directory: Path, stored: Content) -> Iterator[str]:
    observed = len({key[0] for key in stored})  # one more start of each runnable shows which files it opens
    killed = 1
    if (count := starts(directory)) > len(stored) + observed + killed:
        yield f"{count} starts for {len(stored)} invocations"


def _revision(directory: Path, number: int) -> str:
    """Return the id of a commit of the branch, from 0."""
    words = ["git", "-C", str(directory / "repository"), "rev-list", "--reverse", "HEAD"]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()[number]


def _same_content(store: str) -> Callable[[Path, Ended, Path], Iterator[str]]:
    """Return the check that a store has the same invocations as without an interruption."""

    def check(directory: Path, _: Ended, expected: Path) -> Iterator[str]:
        one, other = (invocations(base / store) for base in (directory, expected))
        if one != other:
            yield f"{store} has {len(one)} invocations, not the {len(other)} of its source"
        with closing(sqlite3.connect(directory / store)) as database:
            if (result := database.execute("PRAGMA integrity_check").fetchone()) != ("ok",):
                yield f"{store} is damaged: {result}"

    return check


def _leave_out_some(directory: Path) -> None:
    """Reduce the plan to two revisions: each step of a run is there, and a trial is short."""
    file = directory / "perftrail.toml"
    file.write_text(file.read_text().replace('"repository"\n', '"repository"\nrange = "HEAD~1.."\n'))


def _leave_out_most(directory: Path) -> None:
    """Reduce the plan to the last two revisions, and the quota to as many builds."""
    _leave_out_some(directory)
    file = directory / "perftrail.toml"
    file.write_text(file.read_text().replace("[build]\n", '[build]\ndisk = "1500KiB"\n'))


def _write_results(directory: Path) -> None:
    """Write results of hyperfine of several nights."""
    (directory / "nights").mkdir()
    for night in range(6):
        result = {
            "command": "tool",
            "mean": 0.1,
            "user": 0.01,
            "system": 0.01,
            "times": [0.1 + night / 100] * 5,
        }
        (directory / "nights" / f"night-{night}.json").write_text(json.dumps({"results": [result]}))


def _grow(directory: Path) -> None:
    """Add the commits that the watch has not seen."""
    for number in range(SEEN, REVISIONS):
        _commit(directory / "repository", number)


def _shorten(directory: Path) -> None:
    """Let the branch end where the watch begins."""
    repository = directory / "repository"
    subprocess.run(
        ["git", "-C", str(repository), "reset", "-q", "--hard", f"HEAD~{REVISIONS - SEEN}"], check=True
    )


RESULTS = ".perftrail/results.db"
SEEN = 2
"""Revisions of the branch at the first check of a watch."""

WATCH = ("watch", ".", "--once", "--json", "--notify", "tee -a messages")

SCENARIOS = (
    Scenario(name="run", command=("run", "."), prepare=_leave_out_some, finished=_run_finished),
    Scenario(name="find", command=("find", ".", "--json"), finished=_find_finished),
    Scenario(
        name="watch", command=WATCH, prepare=_shorten, before=(WATCH,), change=_grow, finished=_watch_finished
    ),
    Scenario(
        name="import",
        command=("import", "nights", "-o", "imported"),
        change=_write_results,
        finished=_same_files,
    ),
    Scenario(
        name="evict", command=("run", "."), before=(("run", "."),), change=_leave_out_most, finished=_evicted
    ),
    Scenario(
        name="backup",
        command=("store", "backup", "copy.db"),
        prepare=_leave_out_some,
        before=(("run", "."),),
        store="copy.db",
        finished=_same_content("copy.db"),
        once=True,
    ),
    Scenario(
        name="restore",
        command=("store", "restore", "copy.db", "--store", "new.db"),
        prepare=_leave_out_some,
        before=(("run", "."), ("store", "backup", "copy.db")),
        store="new.db",
        finished=_same_content("new.db"),
        once=True,
    ),
    Scenario(
        name="copy",
        command=("store", "copy", RESULTS, "other.db"),
        prepare=_leave_out_some,
        before=(("run", "."),),
        store="other.db",
        finished=_same_content("other.db"),
    ),
)


def write_study(directory: Path) -> None:
    """Create the repository and the study file."""
    repository = directory / "repository"
    repository.mkdir(parents=True)
    (directory / "perftrail.toml").write_text(STUDY)
    (directory / "starts").touch()
    subprocess.run(["git", "init", "-q", "--template=", "-b", "main", str(repository)], check=True)
    for number in range(REVISIONS):
        _commit(repository, number)


def _commit(repository: Path, number: int) -> None:
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-C", str(repository)]
    (repository / "program.sh").write_text(
        PROGRAM.format(cost=200 if number >= CULPRIT else 100) + f"# {number}\n"
    )
    (repository / "program.sh").chmod(0o755)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-q", "-m", f"Commit {number}"], check=True)


def prepare(scenario: Scenario, template: Path, directory: Path) -> None:
    """Create a study in which the scenario's command can start."""
    shutil.copytree(template, directory, symlinks=True)
    scenario.prepare(directory)
    for command in scenario.before:
        ended = command_line.run(command, directory)
        if ended.code:
            raise RuntimeError(f"{' '.join(command)}: exit {ended.code}: {ended.stderr}")
    scenario.change(directory)


def invocations(store: Path) -> Content:
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
            if "no such table" in str(error) or "no such column" in str(error):
                return {}  # a store that is new, or of an older version
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
