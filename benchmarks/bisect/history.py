"""A real git repository with a step: a small C program with one commit for each revision."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

PROGRAM = Path(__file__).with_name("work.c")
MAKEFILE = "work: work.c level.h\n\t$(CC) -O1 -o $@ $<\n"
BEFORE = 100.0
AFTER = 110.5
"""With noise of 5 % of the level this is a step of about two standard deviations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """A repository, its commits oldest first, and which of them is the culprit."""

    repository: Path
    commits: tuple[str, ...]
    culprit: int

    @property
    def middle(self) -> float:
        """The value halfway between both levels. A real search does not know it."""
        return (BEFORE + AFTER) / 2


def create_history(repository: Path, *, commits: int, culprit: int) -> History:
    """Create the repository, its default branch at the last commit."""
    repository.mkdir(parents=True)
    git(repository, "init", "--quiet", "--initial-branch=main")
    git(repository, "fast-import", "--quiet", stdin=_stream(commits, culprit))
    git(repository, "checkout", "--quiet", "main")
    ids = git(repository, "rev-list", "--reverse", "main").split()
    return History(repository=repository, commits=tuple(ids), culprit=culprit)


def _stream(commits: int, culprit: int) -> str:
    """Return the history as input of git fast-import."""
    parts = []
    for number in range(commits):
        level = AFTER if number >= culprit else BEFORE
        parts += [
            "commit refs/heads/main",
            f"committer A U Thor <author@example.invalid> {1_600_000_000 + number * 3600} +0000",
            *_data(f"Revision {number}\n"),
        ]
        files = {"level.h": f"#define REVISION {number}\n#define LEVEL {level}\n"}
        if number == 0:
            files |= {"work.c": PROGRAM.read_text(encoding="utf-8"), "Makefile": MAKEFILE}
        for name, text in files.items():
            parts += [f"M 100644 inline {name}", *_data(text)]
    return "\n".join(parts) + "\n"


def _data(text: str) -> tuple[str, str]:
    return f"data {len(text.encode())}", text


def git(repository: Path, *arguments: str, stdin: str | None = None) -> str:
    """Run git and return what it prints; raise `CalledProcessError` if it fails."""
    return subprocess.run(
        ["git", "-C", str(repository), *arguments],
        input=stdin,
        env=environment(repository.parent),
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def environment(home: Path) -> dict[str, str]:
    """Return an environment in which git reads no settings of a user or the system."""
    return {"PATH": os.environ["PATH"], "HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}
