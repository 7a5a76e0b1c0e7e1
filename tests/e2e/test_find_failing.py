"""Searches for the beginning of a failure on real git histories, also of flaky failures."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.e2e.printing import find_answer, perftrail, program, revisions, write_study
from tests.sources.repositories import Repository

pytestmark = pytest.mark.slow("starts")

FLAKY = """\
echo started >> {starts}
[ $(($(wc -l < {starts}) % 3)) -eq 0 ] || {{ echo 'lost a race' >&2; exit 1; }}
"""
"""Works at every third start. Simulations test the certainty of answers under random failures; one search cannot."""


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repository")


def history(repository: Repository, count: int, **broken: dict[int, str]) -> list[str]:
    """Commit `count` revisions; `build` and `body` add lines to the builds and programs of some of them."""
    return [
        repository.commit(
            program(
                100,
                name=str(number),
                build=broken.get("build", {}).get(number, ""),
                body=broken.get("body", {}).get(number, ""),
            ),
            subject=f"change {number}",
        )
        for number in range(count)
    ]


def test_the_revision_where_the_program_began_to_fail_is_found(
    repository: Repository, tmp_path: Path
) -> None:
    commits = history(repository, 12, body=dict.fromkeys(range(7, 12), "exit 7\n"))
    study = write_study(tmp_path / "study", repository, find='metric = "works"')
    answer = find_answer(study)
    assert (answer["verdict"], revisions(answer)) == ("found", [[commits[7]]])
    [change] = answer["changes"]
    assert change["confidence"] >= 0.99
    assert change["before"] > 0.9
    assert change["after"] < 0.1
    assert {failure["stage"] for failure in answer["failures"]} == {"crash"}
    first = perftrail("find", study).stdout.splitlines()[0]
    assert first.startswith(f"found: {commits[7][:10]} “change 7” began to fail (crash), probability ")


def test_builds_that_begin_to_fail_are_not_built_for_each_run(repository: Repository, tmp_path: Path) -> None:
    log = tmp_path / "builds"
    failing = {number: f"echo {number} >> {log}\nexit 1" for number in range(4, 12)}
    commits = history(repository, 12, build=failing)
    study = write_study(tmp_path / "study", repository, find='metric = "works"')
    answer = find_answer(study)
    assert revisions(answer) == [[commits[4]]]
    assert answer["builds"] <= 7
    # A failed build is built once more, and not again for each run of a round.
    assert max(Counter(log.read_text().split()).values()) <= 2


def test_a_flaky_failure_is_repeated_until_the_answer_is_certain(
    repository: Repository, tmp_path: Path
) -> None:
    flaky = {number: FLAKY.format(starts=tmp_path / f"starts-{number}") for number in range(3, 7)}
    commits = history(repository, 7, body=flaky)
    study = write_study(tmp_path / "study", repository, find='metric = "works"')
    answer = find_answer(study)
    assert revisions(answer) == [[commits[3]]]
    [change] = answer["changes"]
    assert change["confidence"] >= 0.99
    assert change["after"] < 0.6 < change["before"]


def test_a_history_without_failures_has_no_culprit(repository: Repository, tmp_path: Path) -> None:
    history(repository, 4)
    study = write_study(tmp_path / "study", repository, find='metric = "works"')
    assert perftrail("find", study).stdout.startswith(
        "none: the program did not begin to fail, probability 99"
    )


def test_a_broken_range_next_to_the_change_is_reported_with_its_stage(
    repository: Repository, tmp_path: Path
) -> None:
    commits = [
        repository.commit(
            program(100 if number < 5 else 150, name=str(number), build="exit 1" if 3 <= number < 7 else "")
        )
        for number in range(10)
    ]
    study = write_study(tmp_path / "study", repository)
    answer = find_answer(study)
    assert (answer["verdict"], revisions(answer)) == ("range", [commits[3:8]])
    [broken_range] = answer["broken_ranges"]
    assert (broken_range["stage"], broken_range["usable_before"], broken_range["usable_after"]) == (
        "build",
        commits[2],
        commits[7],
    )
    assert broken_range["revisions"][0] in commits[3:7]
    assert set(answer["unbuildable"]) <= set(commits[3:7])
    assert {failure["stage"] for failure in answer["failures"]} == {"build"}
    assert "Broken (build): " in perftrail("find", study).stdout


def test_a_history_that_ends_broken_is_unclear_with_its_broken_range(
    repository: Repository, tmp_path: Path
) -> None:
    commits = history(repository, 6, body=dict.fromkeys(range(4, 6), "kill -9 $$\n"))
    study = write_study(tmp_path / "study", repository)
    answer = find_answer(study, expect=1)
    assert answer["verdict"] == "unclear"
    assert "revisions beyond the outermost ones that could be built are unknown" in answer["reason"]
    [broken_range] = answer["broken_ranges"]
    assert (broken_range["stage"], broken_range["usable_after"]) == ("crash", None)
    assert broken_range["revisions"][1] == commits[5]
    assert "and no later revision is usable" in perftrail("find", study, expect=1).stdout
