"""A search that its budget stopped, continued with the very command that it suggests."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.e2e.printing import perftrail, program, write
from tests.sources.repositories import Repository

pytestmark = pytest.mark.slow

CHANGED = 9


def test_the_suggested_command_is_complete_and_continues_the_search(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repository")
    made = [
        repository.commit(
            program(100 if number < CHANGED else 150, name=str(number)), subject=f"change {number}"
        )
        for number in range(16)
    ]
    study = write(tmp_path / "my study", repository)
    asked = ("--metric", "cost", "--range", f"{made[0]}..{made[14]}", "--threshold", "10%")
    short = perftrail("find", study, *asked, "--budget", "1ms", expect=1).stdout
    (line,) = [line for line in short.splitlines() if line.startswith("Next: perftrail find ")]
    command, _, does = line.removeprefix("Next: ").partition("    ")
    assert does == "continue this search; stored samples cost no budget"
    words = shlex.split(command)
    assert words == [
        *("perftrail", "find", str(study), "--metric", "cost", "--range", f"{made[0]}..{made[14]}"),
        *("--threshold", "0.1", "--budget", "1min"),
    ]
    full = perftrail(*words[1:])
    assert full.stdout.startswith(f"found: {made[CHANGED][:10]} ")
    assert "continues after 1 stored step" in full.stderr
    assert "\nNew: " in full.stdout


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("{1}..{0}", 'is backwards; write "{0}..{1}"'),
        ("{0}..nowhere", 'no revision "nowhere"'),
        ("{0}", 'is not a range; write "OLD..NEW"'),
    ],
)
def test_a_mistake_in_a_range_names_the_option_or_line_of_the_range(
    tmp_path: Path, given: str, why: str
) -> None:
    repository = Repository(tmp_path / "repository")
    made = [repository.commit(program(100), subject=f"change {number}") for number in range(2)]
    study = write(tmp_path / "study", repository)
    said = perftrail("find", study, "--range", given.format(*made), expect=2).stderr
    assert said.splitlines()[-1].startswith(f"--range {given.format(*made)}: {why.format(*made)}"), said
    line = f'range = "{made[0]}..nowhere"'
    study = write(tmp_path / "study", repository, source=line)
    number = study.read_text().splitlines().index(line) + 1
    said = perftrail("find", study, expect=2).stderr
    assert f'{study}:{number}: source.range: no revision "nowhere"' in said
