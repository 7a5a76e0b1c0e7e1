"""`python -m benchmarks.asv_history --asv PATH`: an asv suite over a history, by `asv run` and by `perftrail find`.

The history has one revision that makes one of the benchmarks slower. asv measures every revision, and its own analysis
of the results names the regression; perftrail searches for it. Both get the same repository, benchmarks and
configuration, and begin with nothing built. With `--of N`, asv measures every Nth revision only: the table then shows
its time for these, and that time multiplied by N.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import click

from benchmarks.machine import measured_on
from benchmarks.markdown import table

PACKAGE = """\
from hashlib import md5

SIZES = %(sizes)r
REVISION = %(revision)d


def work(number):
    md5(bytes(SIZES[number]))
"""

PROJECT = """\
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "hashing"
version = "1.0"

[tool.setuptools]
py-modules = ["hashing"]
"""

BENCHMARK = """\


def time_work_%(number)02d():
    work(%(number)d)
"""

AUTHOR = ("-c", "user.name=A U Thor", "-c", "user.email=author@example.invalid")


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """A repository with a suite of asv. `revisions` are its commits, the oldest first; `culprit` is one of them."""

    path: Path
    revisions: tuple[str, ...]
    culprit: str
    benchmark: str


@click.command()
@click.option("--asv", required=True, help="Path of the program asv.")
@click.option("--benchmarks", default=30, help="Number of benchmarks of the suite.")
@click.option("--commits", default=60, help="Number of revisions.")
@click.option("--of", "every", default=1, help="asv measures one revision of this many.")
@click.option("--effect", default=0.2, help="How much more one benchmark works since the culprit.")
@click.option("--size", default=1_000_000, help="Bytes that a benchmark hashes.")
@click.option(
    "--quiet-threshold", default=0.1, help="CPU cores that other processes may use while a pair is measured."
)
def main(
    asv: str, benchmarks: int, commits: int, every: int, effect: float, size: int, quiet_threshold: float
) -> None:
    """Find one regression in a history with both tools, and print their answers and times."""
    with tempfile.TemporaryDirectory() as scratch:
        history = _history(Path(scratch, "repository"), benchmarks, commits, effect, size)
        began = time.monotonic()
        answer, builds = _found(history, Path(scratch, "study"), quiet_threshold)
        searched = time.monotonic() - began
        sys.stderr.write(f"perftrail: {searched:.0f} s, {answer}\n")
        began = time.monotonic()
        regressions = _measured(history, asv, every)
        measured = time.monotonic() - began
        sys.stderr.write(f"asv: {measured:.0f} s, {regressions}\n")
    rows = [
        ("tool", "revisions measured", "answer", "seconds", "all revisions, seconds"),
        ("`perftrail find`", str(builds), answer, f"{searched:.0f}", f"{searched:.0f}"),
        (
            "`asv run` and `asv publish`",
            str(len(history.revisions[::-every])),
            regressions,
            f"{measured:.0f}",
            f"{measured * every:.0f}",
        ),
    ]  # fmt: skip
    times = measured * every / searched
    title = (
        f"{benchmarks} benchmarks, {commits} revisions, one of which makes one benchmark {effect:.0%} slower"
    )
    click.echo(
        f"{title}. {measured_on()}.\n\n{table(rows)}\n\n`perftrail find` takes 1/{times:.1f} of the time."
    )


def _history(path: Path, benchmarks: int, commits: int, effect: float, size: int) -> History:
    (path / "benchmarks").mkdir(parents=True)
    names = range(benchmarks)
    suite = ["from hashing import work\n", *(BENCHMARK % {"number": number} for number in names)]
    (path / "benchmarks" / "__init__.py").write_text("")
    (path / "benchmarks" / "bench_work.py").write_text("".join(suite))
    (path / "pyproject.toml").write_text(PROJECT)
    configuration = {
        "version": 1,
        "project": "hashing",
        "repo": ".",
        "branches": ["main"],
        "environment_type": "virtualenv",
        "pythons": [f"{sys.version_info.major}.{sys.version_info.minor}"],
        "show_commit_url": "https://example.invalid/commit/",
    }
    (path / "asv.conf.json").write_text(json.dumps(configuration))
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=path, check=True)
    revisions = []
    slower, since = benchmarks // 3, commits * 3 // 5
    for revision in range(commits):
        work = [round(size * (1.0 + effect * (number == slower and revision >= since))) for number in names]
        (path / "hashing.py").write_text(PACKAGE % {"sizes": work, "revision": revision})
        # asv's analysis has a point for each date.
        date = f"{1_700_000_000 + revision * 86400} +0000"
        environment = {**os.environ, "GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        subprocess.run(["git", "add", "-A"], cwd=path, check=True)
        commit = ["git", *AUTHOR, "commit", "-q", "-m", f"Revision {revision}"]
        subprocess.run(commit, cwd=path, check=True, env=environment)
        revisions.append(_output(["git", "rev-parse", "HEAD"], path).strip())
    return History(
        path=path,
        revisions=tuple(revisions),
        culprit=revisions[since],
        benchmark=f"bench_work.time_work_{slower:02d}",
    )


def _found(history: History, study: Path, quiet_threshold: float) -> tuple[str, int]:
    """Return what perftrail says and how many builds it needed, after the two commands that a user of asv starts."""
    perftrail = [sys.executable, "-m", "perftrail"]
    configuration = str(history.path / "asv.conf.json")
    _output([*perftrail, "init", "--from", configuration, "-o", str(study)], history.path)
    with (study / "perftrail.toml").open("a") as file:
        file.write(f"\n[measure]\nquiet_threshold = {quiet_threshold}\n")
    first, last = history.revisions[0], history.revisions[-1]
    command = [*perftrail, "find", ".*", "--range", f"{first}..{last}", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=study)
    if done.returncode not in {0, 1}:
        raise click.ClickException(f"exit {done.returncode}: {done.stderr}")
    document = json.loads(done.stdout)
    named = [
        f"{each['benchmark']} at {_of(history, ' or '.join(revision['revision'] for revision in change['named']))}"
        for each in document.get("metrics", [document])
        for change in each["changes"]
    ]
    return "; ".join(named) or "no change", document["builds"]


def _of(history: History, revision: str) -> str:
    """Return the revision's name for the table: whether it is the planted one."""
    if revision == history.culprit:
        return "the planted revision"
    number = history.revisions.index(revision) if revision in history.revisions else -1
    return f"revision {number - history.revisions.index(history.culprit):+d} from the planted one"


def _measured(history: History, asv: str, every: int) -> str:
    """Return the regressions that asv names after it measured the revisions."""
    _output([asv, "machine", "--yes"], history.path)
    hashes = history.path / "hashes"
    hashes.write_text("\n".join(history.revisions[::-every][::-1]) + "\n")
    _output([asv, "run", f"HASHFILE:{hashes}"], history.path)
    _output([asv, "publish", "--no-pull"], history.path)
    pages = history.path / "html"
    hashes_of = json.loads((pages / "index.json").read_text())["revision_to_hash"]
    stored = json.loads((pages / "regressions.json").read_text())["regressions"]
    named = [
        f"{name} at {_of(history, hashes_of[str(jump[1])])}"
        for name, _path, _parameters, _index, _last, _best, jumps in stored
        for jump in jumps
    ]
    return "; ".join(named) or "no regression"


def _output(command: list[str], directory: Path) -> str:
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    if done.returncode:
        raise click.ClickException(f"{command[0]}: exit {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


if __name__ == "__main__":
    main()
