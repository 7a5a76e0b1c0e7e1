"""The sentence of a search's answer, and the account below it."""

from __future__ import annotations

from typing import Any

import pytest

from perftrail.present.answer_sentence import AnswerFacts, further_doubts, headline_of, stored_answers


def difference(ratio: float, width: float = 0.01) -> dict[str, float]:
    return {"ratio": ratio, "low": ratio - width, "high": ratio + width}


def change(revision: str, ratio: float, *, kind: str = "step") -> dict[str, Any]:
    effect = {"value": ratio, "low": ratio - 0.01, "high": ratio + 0.01, "confidence": 0.95}
    return {"revisions": [revision * 10], "confidence": 0.995, "effect": effect, "kind": kind}


def suspicion(revision: str, **changes: Any) -> dict[str, Any]:
    likely = {
        "revisions": [revision * 10],
        "evidence": 14.0,
        "needed": 200.0,
        "blocks_left": 9,
        "observed": 1.05,
    }
    return {**likely, "confidence": 0.9, "possible": 0.06, **changes}


def facts(verdict: str, **answer: Any) -> AnswerFacts:
    common: dict[str, Any] = {
        "metric": "wall",
        "confidence": 0.99,
        "minimum_detectable": 0.02,
        "better": "lower",
    }
    (found,) = stored_answers({**common, "verdict": verdict, **answer}, {})
    return found


def test_the_account_of_one_change_has_the_whole_difference_and_the_rest() -> None:
    found = facts("found", changes=[change("a", 1.4)], ends=difference(1.5), rest=difference(1.07))
    assert found.account_below_sentence == (
        "from end to end 50 % more (95 % interval × 1.490 to 1.510); "
        "the rest, without this change, is 7.0 % more (95 % interval × 1.060 to 1.080)"
    )


def test_the_sentence_of_several_changes_has_the_whole_difference_and_the_largest_change_first() -> None:
    changes = [change("a", 1.1), change("b", 0.5)]
    found = facts("several", changes=changes, ends=difference(0.55), rest=difference(1.0))
    assert headline_of([found]) == (
        "several: 2 changes of wall, from end to end 45 % less (95 % interval × 0.540 to 0.560): "
        "bbbbbbbbbb (50 % less), aaaaaaaaaa (10 % more)"
    )
    assert found.account_below_sentence.startswith("the rest, without these changes, is ")


@pytest.mark.parametrize("missing", ["ends", "rest"])
def test_an_answer_without_rounds_has_no_account(missing: str) -> None:
    known = {"ends": difference(1.5), "rest": difference(1.1), missing: None}
    assert facts("found", changes=[change("a", 1.4)], **known).account == ""


def test_no_account_contradicts_a_gradual_change() -> None:
    ramp = change("a", 1.5, kind="ramp")
    assert facts("range", changes=[ramp], ends=difference(1.5), rest=difference(1.5)).account == ""


def test_an_answer_of_none_states_how_equal_the_ends_are_and_what_was_not_measured() -> None:
    unseen = {"revisions": 38, "after": "a" * 40, "before": "b" * 40}
    equal = {
        "blocks": 8,
        "invocations": 16,
        "error": 0.01,
        "layouts": 1,
        "possible": 0.02,
        "single_change": True,
    }
    assert headline_of([facts("none", unseen=unseen, certificate=equal)]) == (
        "none: both ends are equal in wall within 2 %, probability 99 %; 38 revisions between aaaaaaaaaa and "
        "bbbbbbbbbb are unmeasured: a change there that a later revision reverted would not have been seen"
    )
    assert headline_of([facts("none", unseen=unseen)]).startswith(
        "none: no measured revision changed wall by more than 2 %, probability 99 %; 38 revisions between aaaaaaaaaa"
    ), "small changes add up"
    whole = "none: no revision changed wall by more than 2 %, probability 99 %"
    assert headline_of([facts("none", unseen=None)]) == whole


def test_an_answer_of_none_names_certain_changes_below_the_threshold() -> None:
    found = facts("none", below_threshold=[change("a", 1.03), change("b", 0.98)])
    assert headline_of([found]).endswith("; smaller changes are certain: 3.0 % more and 2.0 % less")
    assert further_doubts(found)[0].startswith("a change below the threshold at aaaaaaaaaa: 3.0 % more (")


def test_an_unclear_answer_begins_with_the_likely_change_and_does_not_repeat_it() -> None:
    found = facts("unclear", suspected=[suspicion("a"), suspicion("b", evidence=300.0, doubted=True)])
    assert headline_of([found]) == (
        "unclear: likely aaaaaaaaaa changed wall (5.0 % more), not certified: evidence 14 of the 200 needed, "
        "about 9 more rounds"
    )
    assert further_doubts(found) == (
        "likely bbbbbbbbbb (5.0 % more), but memory layouts may explain the difference",
    )


def test_an_unclear_answer_without_a_likely_change_states_how_large_one_may_be() -> None:
    assert headline_of([facts("unclear")]) == (
        "unclear: a change of wall by 2 % or more between measured builds is excluded, one of the threshold is not"
    )


def test_an_unclear_answer_about_several_metrics_names_those_with_a_likely_change() -> None:
    likely = facts("unclear", suspected=[suspicion("a")])
    unclear = facts("unclear", metric="cpu")
    assert headline_of([likely, unclear]) == "unclear: whether any of 2 metrics changed; likely wall"
