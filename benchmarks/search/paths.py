"""Programs whose time depends on their path: `python -m benchmarks.search paths`.

Real commits that change only an unused text, real builds, real runs. The time and the pages of the program depend on
the length and the address of its path, as with tables that use file names as keys. Any named change is wrong. With
`--fixed` the path is not random (`vary_path = false`), so each build runs at the path where it was built.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM = """\
/* Allocates blocks whose sizes depend on the path of the program, and reads them in an order that depends on it too. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *volatile revision = "%03d";

int main(int count, char **arguments)
{
    uint32_t hash = 2166136261u;
    uint64_t steps = 0, sum = 0;
    for (const char *at = arguments[0]; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 16777619u;
    for (size_t block = 0; block < 40; block++, hash = hash * 1664525u + 1013904223u) {
        size_t bytes = 65536 + (hash ^ (uint32_t)(uintptr_t)arguments[0]) %% 262144;
        char *memory = malloc(bytes);
        if (memory == NULL || count != 1)
            return 1;
        memset(memory, (int)block, bytes);
        for (size_t at = 0; at < bytes; at += 16 + strlen(arguments[0]) %% 48)
            sum += (unsigned char)memory[at], steps++;
    }
    printf("steps %%llu %%llu\\n", (unsigned long long)steps, (unsigned long long)sum);
    return 0;
}
"""

STUDY = """\
[source]
kind = "git"
location = "{location}"

[build]
steps = ["cc -O1 -o program program.c"]
outputs = ["program"]

[benchmark.work]
command = "{{build}}/program"
metrics = {{ steps = {{ pattern = 'steps ([0-9]+)' }} }}

[measure]
vary_path = {vary}

[find]
metric = ["{metric}"]
threshold = 0.05
"""


def main(arguments: Sequence[str]) -> None:
    """Search repeatedly; print how often a change was named."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search paths", description=__doc__)
    parser.add_argument("--searches", type=int, default=50)
    parser.add_argument("--commits", type=int, default=12)
    parser.add_argument("--metric", default="wall", choices=("wall", "steps"))
    parser.add_argument("--fixed", action="store_true", help="do not vary the path")
    options = parser.parse_args(arguments)
    verdicts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as directory:
        for number in range(options.searches):
            search_directory = Path(directory, str(number))
            answer = _search(
                search_directory, commits=options.commits, metric=options.metric, vary=not options.fixed
            )
            verdicts[str(answer["verdict"])] += 1
            print(f"{number + 1}: {answer['verdict']}, {answer['invocations']} runs", flush=True)
    named = sum(count for verdict, count in verdicts.items() if verdict not in {"none", "unclear"})
    print(
        f"a change that does not exist was named in {named} of {options.searches} searches; {dict(verdicts)}"
    )


def _search(directory: Path, *, commits: int, metric: str, vary: bool) -> dict[str, object]:
    repository, study = directory / "repository", directory / "study"
    repository.mkdir(parents=True)
    study.mkdir()
    _git(repository, "init", "--quiet")
    for number in range(commits):
        (repository / "program.c").write_text(PROGRAM % number)
        _git(repository, "add", "program.c")
        _git(repository, "commit", "--quiet", "--message", f"text {number}")
    text = STUDY.format(location=repository, vary=str(vary).lower(), metric=metric)
    (study / "perftrail.toml").write_text(text)
    command = [sys.executable, "-m", "perftrail", "find", str(study), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in {0, 1}:
        raise RuntimeError(done.stderr)
    found: dict[str, object] = json.loads(done.stdout)
    return found


def _git(directory: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.org"]
    subprocess.run(["git", "-C", str(directory), *identity, *arguments], check=True)
