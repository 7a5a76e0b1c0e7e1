"""Real git histories of a small C program, for the end-to-end tests."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

HOSTILE = (
    "$(touch pwned)",
    "`touch pwned`",
    "--upload-pack=touch pwned",
    "\x1b[31mred\x1b[0m \x07",
    "<script>alert(1)</script>",
    "[bold]markup[/bold]",
    "'; DROP TABLE invocation; --",
    "right \u202eto left",
)

PROGRAM = """\
#include <stdio.h>
#include <stdint.h>
/* revision {number} */
{extra}
int main(void) {{
    uint64_t state = 88172645463325252ULL, sum = {number};
    for (uint64_t step = 0; step < {steps}ULL; step++) {{
        state ^= state << 13; state ^= state >> 7; state ^= state << 17;
        sum += state;
    }}
    printf("sum %llu\\n", (unsigned long long)sum);
    return 0;
}}
"""

MAKEFILE = "work: work.c\n\t$(CC) -O2 -o $@ $<\n"

STUDY = """\
[study]
title = "Which commit made the work heavier?"

[source]
kind = "git"
location = "{repository}"

[build]
steps = ["make"]
pin = false
outputs = ["work"]

[benchmark.work]
command = "{{build}}/work"
timeout = "20s"
metrics = {{ sum = {{ pattern = 'sum ([0-9]+)' }} }}

[find]
metric = "work.cpu"
threshold = 0.2
"""


@dataclass(frozen=True)
class History:
    """A repository, its commits oldest first, and which of them do not compile."""

    repository: Path
    commits: tuple[str, ...]
    unbuildable: frozenset[str]


def make_history(
    repository: Path,
    *,
    commits: int,
    culprit: int | None,
    unbuildable: range,
    steps: int = 8_000_000,
    factor: float = 1.6,
) -> History:
    """Commit a C program `commits` times; from `culprit` on it does `factor` times the work.

    Dates run out of order, messages are hostile, every seventh commit touches only the docs.
    """
    repository.mkdir()
    _git(repository, "init", "-q", "-b", "main")
    ids, broken = [], []
    for number in range(commits):
        docs_only = number % 7 == 3 and number not in (culprit, commits - 1) and number not in unbuildable
        heavier = culprit is not None and number >= culprit
        if docs_only:
            (repository / "NOTES").write_text(f"note {number}\n")
        else:
            text = PROGRAM.format(
                number=number,
                extra="this does not compile" if number in unbuildable else "",
                steps=round(steps * factor) if heavier else steps,
            )
            (repository / "work.c").write_text(text)
            (repository / "Makefile").write_text(MAKEFILE)
        _git(repository, "add", "-A")
        # Some later commits have earlier dates: only the parents define the order.
        date = 1_600_000_000 + (number * 37 % commits) * 86_400
        message = HOSTILE[number % len(HOSTILE)] if number % 3 == 0 else f"change {number}"
        _git(repository, "commit", "-q", "-m", message, date=date)
        commit = _git(repository, "rev-parse", "HEAD").strip()
        ids.append(commit)
        # A docs-only commit on top of one that does not compile does not compile either.
        if number in unbuildable:
            broken.append(commit)
    return History(repository=repository, commits=tuple(ids), unbuildable=frozenset(broken))


def write_study(directory: Path, history: History, text: str = STUDY) -> Path:
    """Write a study of a history into a new directory."""
    directory.mkdir()
    file = directory / "perftrail.toml"
    file.write_text(text.format(repository=history.repository))
    return file


def _git(repository: Path, *arguments: str, date: int | None = None) -> str:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(repository.parent),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "A U Thor",
        "GIT_AUTHOR_EMAIL": "author@example.invalid",
        "GIT_COMMITTER_NAME": "A U Thor",
        "GIT_COMMITTER_EMAIL": "author@example.invalid",
    }
    if date is not None:
        environment |= {"GIT_AUTHOR_DATE": f"{date} +0000", "GIT_COMMITTER_DATE": f"{date} +0000"}
    return subprocess.run(
        ["git", "-C", str(repository), *arguments],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
