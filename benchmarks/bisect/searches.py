"""Both searches of one history, and their answers."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.bisect.history import environment, git

if TYPE_CHECKING:
    from benchmarks.bisect.history import History

FIRST_BAD = re.compile(r"^([0-9a-f]{40}) is the first bad commit$", re.MULTILINE)

JUDGE = """\
#!/bin/sh
# Good (0), bad (1) or skipped (125): builds the revision and compares one sample with the middle.
make -s work || exit 125
./work | awk -v middle="$1" '/^milliseconds/ { exit $2 > middle }'
"""

STUDY = """\
[study]
title = "Which commit made the work slower?"

[source]
kind = "git"
location = {repository}

[build]
steps = ["make -s work"]
outputs = ["work"]

[benchmark.work]
command = "{{build}}/work"
timeout = "10s"
env = {{ NOISE_SEED = "{seed}", NOISE_COUNT = {count} }}
metrics = {{ milliseconds = {{ pattern = 'milliseconds ([0-9.]+)', unit = "ms" }} }}

[find]
metric = "work.milliseconds"
threshold = 0.05
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchAnswer:
    """The commits that a search names, its verdict, and its numbers of builds and runs."""

    commits: tuple[str, ...]
    verdict: str
    builds: int
    runs: int

    def is_right(self, history: History) -> bool:
        """Whether the one commit that it names is the culprit."""
        return self.commits == (history.commits[history.culprit],)

    def names_only_others(self, history: History) -> bool:
        """Whether it names commits without the culprit among them."""
        return bool(self.commits) and history.commits[history.culprit] not in self.commits


def bisect(history: History, seed: int) -> SearchAnswer:
    """Search with `git bisect run`, which compares one sample of each revision with the true middle."""
    directory = history.repository.parent
    judge, count = directory / "judge.sh", directory / "bisect.count"
    judge.write_text(JUDGE, encoding="utf-8")
    git(history.repository, "bisect", "start", history.commits[-1], history.commits[0])
    done = subprocess.run(
        ["git", "-C", str(history.repository), "bisect", "run", "/bin/sh", str(judge), str(history.middle)],
        env=environment(directory) | {"NOISE_SEED": str(seed), "NOISE_COUNT": str(count)},
        check=True,
        capture_output=True,
        text=True,
    )
    git(history.repository, "bisect", "reset")
    runs = int.from_bytes(count.read_bytes(), sys.byteorder)
    return SearchAnswer(
        commits=tuple(FIRST_BAD.findall(done.stdout)), verdict="found", builds=runs, runs=runs
    )


def find(history: History, seed: int) -> SearchAnswer:
    """Search with `perftrail find`, which knows neither the middle nor the noise."""
    directory = history.repository.parent
    study = directory / "study"
    study.mkdir()
    text = STUDY.format(
        repository=json.dumps(str(history.repository)),
        seed=seed,
        count=json.dumps(str(directory / "find.count")),
    )
    (study / "perftrail.toml").write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "perftrail", "find", str(study), "--json"],
        check=False,
        capture_output=True,
        text=True,
    )
    if not done.stdout:
        raise RuntimeError(f"perftrail find ended with {done.returncode}: {done.stderr.strip()}")
    answer = json.loads(done.stdout)
    commits = tuple(commit for change in answer["changes"] for commit in change["revisions"])
    return SearchAnswer(
        commits=commits, verdict=answer["verdict"], builds=answer["builds"], runs=answer["invocations"]
    )
