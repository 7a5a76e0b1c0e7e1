"""A search that stopped at its budget continues with the command that it suggests."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from perftrail.cli.main import cli
from perftrail.errors import PerftrailError
from tests.e2e.printing import BUILD, NOISE, perftrail, program, write_study
from tests.sources.repositories import Repository

pytestmark = pytest.mark.slow("starts")

CHANGED = 5


def test_the_suggested_command_is_complete_and_continues_the_search(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repository")
    commits = [
        repository.commit(
            program(100 if number < CHANGED else 150, name=str(number)), subject=f"change {number}"
        )
        for number in range(8)
    ]
    study = write_study(tmp_path / "my study", repository)
    options = ("--metric", "cost", "--range", f"{commits[0]}..{commits[6]}", "--threshold", "10%")
    short = perftrail("find", study, *options, "--budget", "1ms", expect=1).stdout
    (line,) = [line for line in short.splitlines() if line.startswith("Next: perftrail find ")]
    command, _, purpose = line.removeprefix("Next: ").partition("    ")
    assert purpose == "continue this search from what is stored"
    words = shlex.split(command)
    assert words == [
        *("perftrail", "find", str(study), "--metric", "cost", "--range", f"{commits[0]}..{commits[6]}"),
        *("--threshold", "0.1", "--budget", "1min"),
    ]
    full = perftrail(*words[1:])
    assert full.stdout.startswith(f"found: {commits[CHANGED][:10]} ")
    assert "continues after 1 stored step" in full.stderr
    assert "\nNew: " in full.stdout


def test_an_unclear_answer_names_the_minimum_detectable_change_and_what_would_settle_it(
    tmp_path: Path,
) -> None:
    repository = Repository(tmp_path / "repository")
    noise = f"{NOISE}echo cost $((100 + n))\necho size 1\n"
    for number in range(4):
        repository.commit(
            {"program.sh": f"# {number}\n{noise}", "build.sh": BUILD.format(extra="")},
            subject=f"change {number}",
        )
    limited = 'metric = "cost"\nthreshold = "1%"\nbudget_invocations = 20'
    study = write_study(tmp_path / "study", repository, find=limited)
    printed = perftrail("find", study, expect=1).stdout
    assert re.search(
        r"^Minimum detectable change with these samples: .+; the threshold is 1 %\.$", printed, re.M
    )
    (next_step,) = re.findall(
        r"^Next: set budget_invocations = (\d+) under \[find\], and run (.+): it continues", printed, re.M
    )
    assert int(next_step[0]) > 20
    assert next_step[1] == f"perftrail find {study}"
    larger = 'metric = "cost"\nthreshold = "1%"\nbudget_invocations = 60'
    write_study(tmp_path / "study", repository, find=larger)
    assert re.search(r"^continues after \d+ stored steps?$", perftrail("find", study, expect=1).stderr, re.M)


def test_a_fresh_search_has_no_stored_steps_although_some_of_its_builds_are_equal(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repository")
    for number in range(6):
        files = program(100 if number < 3 else 140, name="one" if number < 3 else "two")
        repository.commit({**files, "NOTES": str(number)}, subject=f"change {number}")
    study = write_study(tmp_path / "study", repository)
    perftrail("check", study, "--try", "6")
    fresh = perftrail("find", study)
    assert "the same artefact as" in fresh.stderr, "a step needs no build and no invocation"
    assert "stored step" not in fresh.stderr
    assert perftrail("find", study).stderr.splitlines()[-1].endswith(" stored steps, no new step")


def test_a_change_below_the_threshold_is_named_with_its_size(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repository")
    commits = [
        repository.commit(program(100 if number < 3 else 104, name=str(number)), subject=f"change {number}")
        for number in range(6)
    ]
    study = write_study(tmp_path / "study", repository, find='metric = "cost"\nthreshold = "4.4%"')
    first, *others = perftrail("find", study).stdout.splitlines()
    assert first.startswith("none: no revision changed cost by more than ")
    assert re.search(r"; a smaller change is certain: (3|4)\.\d % more$", first)
    below = f"a change below the threshold at {commits[3][:10]}: "
    (smaller,) = (each.strip() for each in others if below in each)
    report = perftrail("report", study, "--format", "markdown").stdout.replace("\\", "")
    assert f"- {smaller[0].upper()}{smaller[1:]}." in report


def test_a_mistake_in_a_range_names_the_option_or_line_of_the_range(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repository")
    commits = [repository.commit(program(100), subject=f"change {number}") for number in range(2)]
    study = write_study(tmp_path / "study", repository)
    backwards, forwards = f"{commits[1]}..{commits[0]}", f"{commits[0]}..{commits[1]}"
    for text, reason in (
        (backwards, f'is backwards; write "{forwards}"'),
        (f"{commits[0]}..nowhere", 'no revision "nowhere"'),
        (commits[0], 'is not a range; write "OLD..NEW"'),
    ):
        with pytest.raises(PerftrailError, match=f"^{re.escape(f'--range {text}: {reason}')}"):
            cli.main(["find", str(study), "--range", text], standalone_mode=False)
    line = f'range = "{commits[0]}..nowhere"'
    study = write_study(tmp_path / "study", repository, source=line)
    number = study.read_text().splitlines().index(line) + 1
    stderr = perftrail("find", study, expect=2).stderr
    assert f'{study}:{number}: source.range: no revision "nowhere"' in stderr
