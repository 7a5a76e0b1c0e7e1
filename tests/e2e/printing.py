"""Real git histories of a program that prints its cost, so that tests need no clock."""

from __future__ import annotations

import io
import json
import os
import subprocess
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from perftrail.cli.main import main
from tests.starting import Started, start

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
metrics = {{ cost = {{ pattern = 'cost ([-0-9.]+)' }}, size = {{ pattern = 'size ([0-9.]+)' }} }}

[measure]
warmups = 0

[find]
{find}
"""

BUILD = "set -eu\n{{ echo '#!/bin/sh'; cat program.sh; }} > program\nchmod +x program\n{extra}\n"
NOISE = "n=$(od -An -N1 -tu1 /dev/urandom)\n"


def program(
    cost: int, *, size: int = 1000, name: str = "", body: str = "", build: str = ""
) -> dict[str, str]:
    """Return the files of a revision whose program prints this cost plus at most 0.9.

    Revisions with different names have different builds.
    """
    prints = f'echo "cost {cost}.$((n % 10))"\necho "size {size}.$((n % 7))"\n'
    return {"program.sh": f"# {name}\n{NOISE}{body}{prints}", "build.sh": BUILD.format(extra=build)}


def mean_ratio(before: int, after: int) -> float:
    """Return the ratio of two programs' mean costs, which both print random tenths on top."""
    tenths = sum(byte % 10 for byte in range(256)) / 2560
    return (after + tenths) / (before + tenths)


def write_study(
    directory: Path, repository: Repository, *, find: str = 'metric = "cost"', source: str = ""
) -> Path:
    """Write a study of a repository into a directory."""
    directory.mkdir(exist_ok=True)
    file = directory / "perftrail.toml"
    file.write_text(STUDY.format(location=repository.path, find=find, source=source))
    return file


def perftrail(*arguments: str | Path, expect: int = 0) -> subprocess.CompletedProcess[str]:
    """Run perftrail, which must exit with the code `expect` and never print a traceback."""
    done = start(*arguments, timeout=300)
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode == expect, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def perftrail_here(*arguments: str | Path, expect: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command that only reads or refuses, as `perftrail` does, but in this process, which costs less."""
    words = [str(each) for each in arguments]
    stdout, stderr = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with redirect_stdout(stdout), redirect_stderr(stderr), pytest.raises(SystemExit) as ended:
        main(words)
    output, errors = (each.detach().getvalue().decode() for each in (stdout, stderr))
    code = int(str(ended.value.code))
    assert "Traceback" not in errors, errors
    assert code == expect, f"exit {code}\n{output}\n{errors}"
    return subprocess.CompletedProcess(words, code, stdout=output, stderr=errors)


def begin(*arguments: str | Path, errors: Path = Path(os.devnull), session: bool = False) -> Started:
    """Start perftrail in a process that goes on; `errors` gets its standard error."""
    with Path(os.devnull).open("wb") as nothing, errors.open("wb") as stderr:
        words = [str(each) for each in arguments]
        return Started(words, nothing.fileno(), stderr.fileno(), session=session)


def find_answer(*arguments: str | Path, expect: int = 0) -> dict[str, Any]:
    """Run `perftrail find --json` and return its answer."""
    answer: dict[str, Any] = json.loads(perftrail("find", *arguments, "--json", expect=expect).stdout)
    return answer


def revisions(answer: Mapping[str, Any]) -> list[list[str]]:
    """Return the candidate revisions of each change."""
    return [change["revisions"] for change in answer["changes"]]
