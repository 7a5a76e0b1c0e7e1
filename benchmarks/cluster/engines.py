"""Searches on a busy machine with each engine: their time, their noisy samples and their wrong answers.

Each trial creates a history of C programs with one slower revision, whose builds use a processor, and searches it with
every engine, in a random order. Meanwhile another process uses half of one processor.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.markdown import table as as_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

ENGINES: Mapping[str, tuple[str, ...]] = {
    "this process": (),
    "this process, --jobs 2": ("--jobs", "2"),
    "dask:local:2": ("--engine", "dask:local:2"),
}

LOAD = "import time\nwhile True:\n    end = time.time() + 0.25\n    while time.time() < end: pass\n    time.sleep(0.25)"

REVISIONS = 24
SLOWER = 1.25

PROGRAM = """\
#include <stdio.h>
int main(void) {{
    volatile double sum = {number};
    for (long each = 0; each < {work}L; each++) sum += each;
    printf("%f\\n", sum);
    return 0;
}}
"""

STUDY = """\
[source]
kind = "git"
location = "{repository}"

[build]
steps = ["for part in 1 2 3 4 5 6 7 8; do cc -O2 -c -o part.o program.c; done", "cc -O2 -o program program.c"]

[benchmark.work]
command = "{{build}}/program"

[find]
metric = "wall"
threshold = 0.1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """The result of one search: its seconds, invocations, noisy samples, and whether its answer is right or wrong."""

    seconds: float
    invocations: int
    noisy: int
    right: bool
    wrong: bool


def table(trials: int, *, seed: int, scratch: Path) -> str:
    """Search histories with each engine, and return the results as a table."""
    chance = random.Random(seed)
    found: dict[str, list[Search]] = {name: [] for name in ENGINES}
    with load():
        for _ in range(trials):
            culprit = chance.randrange(2, REVISIONS - 1)
            with tempfile.TemporaryDirectory(dir=scratch) as home:
                repository = create_repository(Path(home, "repository"), culprit)
                for name in chance.sample(list(ENGINES), len(ENGINES)):
                    directory = Path(home, name.replace(" ", "-").replace(":", "-"))
                    found[name].append(_search(directory, repository, ENGINES[name], culprit))
                    print(f"{name}: {found[name][-1]}", file=sys.stderr)
    lines = [["engine", "searches", "right", "wrong", "time, median", "invocations, median", "noisy samples"]]
    for name, searches in found.items():
        noisy = sum(each.noisy for each in searches) / max(1, sum(each.invocations for each in searches))
        lines.append(
            [
                name,
                f"{len(searches)}",
                f"{sum(each.right for each in searches)}",
                f"{sum(each.wrong for each in searches)}",
                f"{median(each.seconds for each in searches):.0f} s",
                f"{median(each.invocations for each in searches):.0f}",
                f"{noisy:.0%}",
            ]
        )
    return as_table(lines)


@contextmanager
def load() -> Iterator[None]:
    """Run another process that uses half of one processor."""
    with subprocess.Popen([sys.executable, "-c", LOAD]) as process:
        try:
            yield
        finally:
            process.kill()


def create_repository(repository: Path, culprit: int) -> list[str]:
    """Commit a history in which one revision becomes slower; return its path and the ids."""
    subprocess.run(["git", "init", "--quiet", "--initial-branch=main", repository], check=True)
    ids = []
    for number in range(REVISIONS):
        work = round(20e6 * (SLOWER if number >= culprit else 1.0))
        (repository / "program.c").write_text(PROGRAM.format(number=number, work=work))
        subprocess.run(["git", "-C", repository, "add", "."], check=True)
        author = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
        subprocess.run(
            ["git", "-C", repository, *author, "commit", "--quiet", "-m", f"change {number}"], check=True
        )
        head = subprocess.run(
            ["git", "-C", repository, "rev-parse", "HEAD"], check=True, capture_output=True, text=True
        )
        ids.append(head.stdout.strip())
    return [str(repository), *ids]


def _search(directory: Path, history: Sequence[str], options: Sequence[str], culprit: int) -> Search:
    directory.mkdir()
    (directory / "perftrail.toml").write_text(STUDY.format(repository=history[0]))
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "perftrail", "find", directory, "--json", *options],
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - began
    answer = json.loads(done.stdout) if done.stdout else {}
    named = [change["revisions"] for change in answer.get("changes", ())]
    truth = history[1 + culprit]
    right = answer.get("verdict") == "found" and named == [[truth]]
    wrong = answer.get("verdict") == "none" or any(truth not in revisions for revisions in named)
    return Search(
        seconds=seconds,
        invocations=answer.get("invocations", 0),
        noisy=answer.get("noisy", 0) + answer.get("discarded", 0),
        right=right,
        wrong=wrong,
    )
