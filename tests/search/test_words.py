"""Words for the steps and answers of a search."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from perftrail.search import (
    Batch,
    Belief,
    BootSession,
    Built,
    CannotRelink,
    Question,
    Sample,
    Search,
    Summary,
    Unusable,
    words,
)
from perftrail.search.answer import Change, Effect, Suspicion
from tests.search.oracle import Oracle, batch, layouts, normal, step, steps

LABEL = "r{}".format
SUMMARY = Summary(
    blocks=10, invocations=33, error=0.005, layouts=10, is_only_change=True, possible=0.02, spread=None
)


def test_steps_are_worded() -> None:
    search = Search(Question(revisions=1000))
    lines = []
    for observation, detail in (
        (batch((0, 1.0)), "2.72 s"),
        (batch((999, 1.3), (0, 1.0), (999, 1.3), (0, 1.0), (999, 1.3)), "3.67 s"),
        (batch((512, 1.3), (0, 1.0), (512, 1.3)), "3.67 s"),
        (Unusable(position=511), "build"),
        (Built(position=510, same_as=0), ""),
    ):
        search.ask()
        search.tell(observation)
        lines.append(words.step(observation, search.belief, LABEL, what=detail))
    assert lines[0] == "measured r0 once: 2.72 s"
    assert lines[1].startswith("measured r999 three times and r0 twice: 3.67 s")
    assert lines[2] == "measured r512 twice and r0 once: 3.67 s, very likely after the change; 512 candidates"
    assert lines[3] == "r511 is not usable (build); 512 candidates"
    assert lines[4].startswith("built r510: the same artefact as r0; ")


def test_rounds_are_worded_with_layouts_and_failures() -> None:
    observation = batch((40, 1.0), (99, 1.1), (0, 1.0), (41, 1.1), certificate=True, layout=7)
    done = "round: ran r0, r40, r41 and r99 in random order, in a new layout"
    assert words.step(observation, None, LABEL) == done
    bad = Sample(position=40, value=None), Sample(position=41, value=1.0, noisy=True)
    assert words.step(replace(observation, samples=(*observation.samples, *bad)), None, LABEL) == (
        f"{done} (1 run failed, 1 noisy sample)"
    )


BELIEF = Belief(
    at_or_before=((0, 0.0), (40, 0.1), (99, 1.0)),
    no_change=0.01,
    candidates=9,
    before=1.0,
    after=1.1,
    sigma=0.01,
    tau=0.0,
    changes=1,
    span=(40, 49),
)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "9 candidates"),
        ({"candidates": 12, "span": (40, 52)}, "12 candidates instead of 9, after new samples of r40"),
        ({"candidates": 20, "span": (60, 80)}, "20 candidates"),
        (
            {"changes": 2, "candidates": 12, "span": (60, 72)},
            "2 changes likely; 12 candidates for the one between r60 and r72",
        ),
        ({"changes": 3, "candidates": 1}, "3 changes likely, 1 candidate each"),
        ({"no_change": 0.82}, "so far likely that nothing changed"),
        ({"no_change": 0.9999}, "so far very likely that nothing changed"),
    ],
)
def test_a_larger_number_of_candidates_has_its_reason(changes: dict[str, Any], expected: str) -> None:
    step_words = words.step(batch((40, 1.0)), replace(BELIEF, **changes), LABEL, before=BELIEF)
    assert step_words.partition("; ")[2] == expected


@pytest.mark.parametrize(
    ("observation", "reason"),
    [
        (batch((40, 1.0), (41, 1.0), certificate=True), "because the samples of this round fit them, too"),
        (batch((7, 1.0)), "because r7 is unlike the builds before"),
    ],
)
def test_the_reason_for_more_candidates_is_the_step(observation: Batch, reason: str) -> None:
    more = replace(BELIEF, candidates=10, span=(40, 50))
    assert words.step(observation, more, LABEL, before=BELIEF).endswith(
        f"; 10 candidates instead of 9, {reason}"
    )


def test_fewer_likely_changes_explain_another_number_of_candidates() -> None:
    two = replace(BELIEF, changes=2, candidates=1)
    assert words.step(batch((40, 1.0)), BELIEF, LABEL, before=two).endswith(
        "; 1 change likely now; 9 candidates"
    )


def test_equal_builds_are_one_candidate() -> None:
    """Revisions up to one whose artefact equals that of the old end cannot be the culprit, and are not counted."""
    search = Search(Question(revisions=20))
    counts = []
    for observation in (
        batch((0, 1.0)),
        batch((19, 1.3), (0, 1.0), (19, 1.3), (0, 1.0), (19, 1.3)),
        Built(position=9, same_as=0),
    ):
        search.ask()
        search.tell(observation)
        counts.append(0 if search.belief is None else search.belief.candidates)
    assert counts[1:] == [19, 10]


def test_a_step_does_not_place_a_build_around_a_change_that_is_unlikely() -> None:
    observation = batch((40, 1.0), (0, 1.0), (40, 1.0))
    likely = words.step(observation, BELIEF, LABEL)
    assert " likely before the change; " in likely
    unlikely = words.step(observation, replace(BELIEF, no_change=0.993), LABEL)
    assert unlikely == "measured r40 twice and r0 once; so far very likely that nothing changed"


def test_equal_ends_and_a_likely_change_are_worded() -> None:
    assert words.certified_equal(SUMMARY) == (
        "both ends have equal values within the threshold: certified in 10 rounds (33 runs) over 10 layouts, "
        "error probability at most 0.5 %"
    )
    doubt = Suspicion(
        positions=(7,), confidence=0.9, evidence=1.0, needed=400.0, blocks_left=5, possible=-0.0001
    )
    assert words.suspicion(doubt, LABEL).endswith("about 5 more rounds")


def test_boot_sessions_and_failed_relinks_are_worded() -> None:
    assert words.step(BootSession(name="x"), None, LABEL) == (
        "a new boot session begins: levels are compared within it"
    )
    assert words.step(CannotRelink(reason="the recipe has no relink"), None, LABEL) == (
        "no relink: the recipe has no relink"
    )


def test_answers_are_worded() -> None:
    found = words.verdict(Oracle(step(8, 0.2)).settle(Question(revisions=20)), LABEL)
    assert found.startswith("r8, 99.")
    assert ", times 1.22 [1.22, 1.22], certified in " in found
    assert (
        "error probability at most 0.96 %; the memory layouts of these builds may cause the difference"
        in found
    )
    broken = Oracle(step(8, 0.2, frozenset({7, 8}))).settle(Question(revisions=20))
    assert words.verdict(broken, LABEL).startswith("one of 3, r7 to r9, 99.")
    none = words.verdict(Oracle(step(8, 0.0)).settle(Question(revisions=20)), LABEL)
    assert none.startswith("the ends are equal")
    assert "certified in " in none
    several = Oracle(steps((6, 0.3), (14, 0.2))).settle(Question(revisions=20))
    assert words.verdict(several, LABEL).count("certified in ") == 2
    unclear = words.verdict(Oracle(lambda position: None).settle(Question(revisions=5)), LABEL)
    assert unclear == "unclear: all 5 tried revisions failed to build or run"


def test_changes_below_the_threshold_are_worded() -> None:
    answer = Oracle(step(15, -0.024), normal(1, 0.002)).settle(Question(revisions=30))
    assert re.search(
        r"; from end to end 2\.\d % less \(95 % interval × 0\.97.* to 0\.97.*\)$",
        words.verdict(answer, LABEL),
    )
    small = Change(
        positions=(4,),
        confidence=0.99,
        before=1.0,
        after=1.03,
        effect=Effect(value=1.03, low=1.02, high=1.04),
    )
    certain = words.verdict(replace(answer, below_threshold=(small,)), LABEL)
    assert "; a change below the threshold: r4, 99.0 % sure, times 1.03 [1.02, 1.04]" in certain


def test_the_account_of_several_changes_is_worded() -> None:
    answer = Oracle(steps((6, 0.3), (14, 0.2)), normal(1, 0.01)).settle(Question(revisions=20))
    account = r"; from end to end 6\d % more \(.*\); the rest, without these changes, is .* \(.* to .*\)"
    assert re.search(account, words.verdict(answer, LABEL))


def test_a_certificate_over_layouts_has_no_reservation() -> None:
    question = Question(revisions=20, relinks=True)
    answer = Oracle(step(8, 0.2), normal(1, 0.01), layouts(1, 0.01)).settle(question)
    verdict = words.verdict(answer, LABEL)
    assert " layouts, error probability at most " in verdict
    assert "relink" not in verdict


@pytest.mark.parametrize(
    ("summary", "expected"),
    [
        (SUMMARY, ()),
        (
            replace(SUMMARY, is_only_change=False, possible=0.042),
            ("another change up to 4.2 % between the measured builds is not excluded",),
        ),
        (
            replace(SUMMARY, is_only_change=False, possible=9.0),
            ("another change between the measured builds is not excluded",),
        ),
        (replace(SUMMARY, spread=3.1), ("samples scatter 3.1 times as much after the change",)),
        (replace(SUMMARY, spread=0.9), ()),
    ],
)
def test_reservations_of_a_certificate_are_worded(summary: Summary, expected: tuple[str, ...]) -> None:
    assert words.reservations(summary) == expected
    assert words.certified(summary) == (
        "certified in 10 rounds (33 runs) over 10 layouts, error probability at most 0.5 %"
    )
