"""Real git histories of a program that prints its cost, so that tests need no clock."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.starting import start

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.sources.repositories import Repository

STUDY = """\
[source]
kind = "git"
location = "{location}"
{source}
[build]
steps = ["sh ./build.sh"]
outputs = ["program"]

[benchmark.work]
command = "{{build}}/program"
timeout = "5s"
metrics = {{ cost = {{ pattern = 'cost ([-0-9.]+)' }}, room = {{ pattern = 'room ([0-9.]+)' }} }}

[measure]
warmups = 0

[find]
{find}
"""

BUILD = "set -eu\n{{ echo '#!/bin/sh'; cat program.sh; }} > program\nchmod +x program\n{extra}\n"
NOISE = "n=$(od -An -N1 -tu1 /dev/urandom)\n"


def program(
    cost: int, *, room: int = 1000, name: str = "", body: str = "", build: str = ""
) -> dict[str, str]:
    """The files of a revision that costs so much and at most 0.9 more; `name` makes it unlike others."""
    says = f'echo "cost {cost}.$((n % 10))"\necho "room {room}.$((n % 7))"\n'
    return {"program.sh": f"# {name}\n{NOISE}{body}{says}", "build.sh": BUILD.format(extra=build)}


def change(before: int, after: int) -> float:
    """By which factor two programs' mean costs differ: not `after / before`, for both have the tenths on top."""
    tenths = sum(byte % 10 for byte in range(256)) / 2560
    return (after + tenths) / (before + tenths)


def write(
    directory: Path, repository: Repository, *, find: str = 'metric = "cost"', source: str = ""
) -> Path:
    """Write a study of a repository."""
    directory.mkdir(exist_ok=True)
    file = directory / "perftrail.toml"
    file.write_text(STUDY.format(location=repository.path, find=find, source=source))
    return file


def perftrail(*arguments: str | Path, expect: int = 0) -> subprocess.CompletedProcess[str]:
    """Run the command line; no traceback, whatever happens."""
    done = start(*arguments, timeout=300)
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode == expect, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def found(*arguments: str | Path, expect: int = 0) -> dict[str, Any]:
    """Run find and give its answer as plain data."""
    answer: dict[str, Any] = json.loads(perftrail("find", *arguments, "--json", expect=expect).stdout)
    return answer


def revisions(answer: Mapping[str, Any]) -> list[list[str]]:
    """Who may have made each change."""
    return [change["revisions"] for change in answer["changes"]]
