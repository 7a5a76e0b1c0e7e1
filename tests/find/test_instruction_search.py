"""A search by instructions that is certified by time: pure decisions, and whole searches of programs in C."""

from __future__ import annotations

import math
import shutil
from typing import TYPE_CHECKING

import pytest

from perftrail import studyfile
from perftrail.find import instruction_search
from perftrail.find.answer import FindAnswer, FindRequest
from perftrail.find.find import Find
from perftrail.find.instruction_search import (
    NO_COUNTS,
    Forecast,
    InstructionCounts,
    explains,
    instruction_priors,
    next_to_count,
)
from perftrail.measure.events import BuildCounted, Counting
from perftrail.model.subject import Revision
from perftrail.model.target import resolve
from perftrail.opening import open_session
from perftrail.search import Budget
from tests.measure.fake_session import drain
from tests.needs import skip_for
from tests.sources.repositories import Repository

if TYPE_CHECKING:
    from pathlib import Path

    from perftrail.measure.events import Event


@pytest.mark.parametrize(
    ("pairs", "instructions", "scatter", "expected"),
    [
        ((0.30, 0.28, 0.31), 0.33, 0.0, True),
        ((-0.30, -0.28, -0.31), -0.20, 0.0, True),
        ((0.30, 0.28, 0.31), -0.33, 0.0, False),  # the other direction
        ((0.30, 0.28, 0.31), 0.05, 0.0, False),  # too little
        ((0.30, 0.28, 0.31), 1.20, 0.0, False),  # too much
        ((0.30, -0.02, 0.31), 0.33, 0.0, False),  # the time may not have changed at all
        ((0.02, 0.03, 0.01), 0.02, 0.0, False),  # below the threshold
        ((0.30, 0.28, 0.31), 0.33, 0.05, False),  # counts do not repeat
    ],
)
def test_instructions_explain_a_change_of_similar_size_in_the_same_direction(
    pairs: tuple[float, ...], instructions: float, scatter: float, *, expected: bool
) -> None:
    assert explains(pairs, instructions=instructions, scatter=scatter, threshold=0.05) is expected


def test_counting_pays_for_slow_builds_noise_and_cheap_counts() -> None:
    quick = Forecast(revisions=200, build_seconds=0.5, count_seconds=4.3, invocation_seconds=0.2, noise=0.05)
    assert not quick.pays(None)
    slow_builds = Forecast(revisions=200, build_seconds=20, count_seconds=4.3, invocation_seconds=0.2)
    assert slow_builds.pays(None)
    assert slow_builds.pays(slow_builds.cost + 1)
    assert not slow_builds.pays(slow_builds.cost - 1)
    hardware = Forecast(revisions=200, build_seconds=0, count_seconds=0.2, invocation_seconds=0.2)
    assert hardware.pays(None)


def search(levels: list[float], *, broken: tuple[int, ...] = ()) -> tuple[InstructionCounts, int]:
    """Count as a search does; return the counts and the number of builds."""
    counts = {0: levels[0], len(levels) - 1: levels[-1]}
    unusable: set[int] = set()
    while (position := next_to_count(counts, unusable)) is not None:
        if position in broken:
            unusable.add(position)
        else:
            counts[position] = levels[position]
    found = InstructionCounts(counts=tuple(sorted(counts.items())), unusable=tuple(sorted(unusable)))
    return found, len(counts) + len(unusable)


@pytest.mark.parametrize("culprit", [1, 37, 64, 99])
def test_a_step_needs_a_count_for_each_halving(culprit: int) -> None:
    found, builds = search([100.0] * culprit + [130.0] * (100 - culprit))
    assert found.located() == (culprit,)
    assert builds <= 2 + math.ceil(math.log2(100))


def test_two_large_steps_are_both_located_and_small_ones_ignored() -> None:
    found, _ = search([100.0] * 20 + [105.0] * 20 + [130.0] * 30 + [160.0] * 30)
    assert found.located() == (40, 70)


def test_a_revision_without_a_build_is_a_candidate_with_the_next_one() -> None:
    found, _ = search([100.0] * 30 + [200.0] * 30, broken=(29, 30))
    assert dict(found.counts)[28] == 100.0
    assert found.located() == (31,)
    weights = instruction_priors(found, revisions(60)).weights
    assert weights is not None
    assert weights[29] == weights[30] == weights[31] > 10 * weights[32]


def revisions(count: int) -> list[Revision]:
    return [Revision(id=f"{number:040x}") for number in range(count)]


def test_the_prior_follows_the_counts_and_stays_positive_everywhere() -> None:
    found, _ = search([100.0] * 40 + [130.0] * 60)
    prior = instruction_priors(found, revisions(100))
    assert prior.weights is not None
    share = prior.weights[40] / sum(prior.weights[1:])
    assert share == pytest.approx(0.9, abs=0.01)
    assert min(prior.weights) > 0.0
    assert prior.reasons == (
        f"counted the instructions of {len(found.counts)} builds: they change at 0000000000 (+30 %)",
    )
    assert instruction_priors(NO_COUNTS, revisions(100)).weights is None


def program(loops: int, *, milliseconds: int, number: int) -> dict[str, str]:
    return {
        "main.c": "#include <stdio.h>\n#include <unistd.h>\nint main(void)\n{\n    unsigned long sum = 0;\n"
        f"    for (long i = 0; i < {loops}L; i++)\n        sum += i ^ (sum >> 3);\n"
        f'    usleep({1000 * milliseconds});\n    printf("%lu {number}\\n", sum);\n    return 0;\n}}\n'
    }


STUDY = """\
[source]
kind = "git"
location = "repository"

[build]
steps = ["cc -O1 -o work main.c"]
pin = false
outputs = ["work"]

[benchmark.work]
command = "{build}/work"

[measure]
warmups = 0
quiet_threshold = 100

[find]
threshold = "30%"
"""


def find(directory: Path, metric: str) -> tuple[list[Event], FindAnswer]:
    (directory / "perftrail.toml").write_text(STUDY)
    study = studyfile.load(str(directory / "perftrail.toml"))
    with open_session(study, store=str(directory / "store")) as session:
        request = FindRequest(
            goal=(resolve(study, metric),),
            range=None,
            threshold=0.3,
            confidence=0.99,
            budget=Budget(),
            priors=("instructions",),
        )
        events, answer = drain(Find(session, request).events())
    assert isinstance(answer, FindAnswer)
    return events, answer


@pytest.fixture
def _counting_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("valgrind") is None:
        skip_for("valgrind")
    monkeypatch.setattr(instruction_search, "SAVED_BUILDS", 1e6)


@pytest.mark.slow("processor")
@pytest.mark.usefixtures("_counting_pays")
def test_instructions_locate_the_culprit_and_time_certifies_it(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repository")
    history = [
        repository.commit(program(500_000 if number < 8 else 4_000_000, milliseconds=0, number=number))
        for number in range(14)
    ]
    events, answer = find(tmp_path, "cpu")
    said = answer.as_json()
    [change] = said["changes"]
    assert change["revisions"] == [history[8]]
    assert (said["searched_metric"], said["certified_metric"]) == ("instructions", "cpu")
    assert said["priors"][-1] == "searched by instructions and certified by cpu"
    assert "they change at" in said["priors"][0]
    [counting] = [event for event in events if isinstance(event, Counting)]
    assert counting.metric == "cpu"
    counted = [event.revision.id for event in events if isinstance(event, BuildCounted)]
    assert len(counted) == len(set(counted)) <= 5
    assert {history[7], history[8]} <= {*counted, history[0], history[13]}
    assert answer.builds <= 12
    again, repeated = find(tmp_path, "cpu")
    assert not [event for event in again if isinstance(event, (Counting, BuildCounted))]
    assert repeated.as_json() == said


@pytest.mark.slow("processor")
@pytest.mark.usefixtures("_counting_pays")
def test_where_instructions_mislead_the_requested_metric_decides(tmp_path: Path) -> None:
    """Revision 4 needs eight times the instructions, in a millisecond; revision 8 only waits longer."""
    repository = Repository(tmp_path / "repository")
    history = [
        repository.commit(
            program(100_000 if number < 4 else 800_000, milliseconds=6 if number < 8 else 60, number=number)
        )
        for number in range(12)
    ]
    _, answer = find(tmp_path, "wall")
    assert answer.counts.located() == (4,)
    said = answer.as_json()
    assert all(history[8] in change["revisions"] for change in said["changes"]), (
        "or unclear, on a busy machine"
    )
    assert said["searched_metric"] == "wall"
    assert said["priors"][-1] == (
        "the counts did not locate the answer, so perftrail searched and certified by wall"
    )
