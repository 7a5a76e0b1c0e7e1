"""Commit messages that mention speed or memory guide a search a little, and mislead it less."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import mean, stdev

import pytest

from perftrail.find.answer import FindAnswer, FindRequest
from perftrail.find.find import Find
from perftrail.find.priors import NOTED_WEIGHT, RevisionPriors, performance_word, with_notes
from perftrail.model.study import Prior
from perftrail.model.subject import Revision
from perftrail.model.target import resolve
from perftrail.present.answer_details import note_words
from perftrail.search.budget import Budget
from tests.fakes.subject_builder import FakeSource, FakeStarter, number_of
from tests.measure.fake_session import a_session, a_study, drain

STUDY = a_study()
NOTHING = RevisionPriors(weights=None, reasons=())


@dataclass
class SourceWithMessages(FakeSource):
    """A history with these messages of some revisions."""

    messages: dict[int, str] = field(default_factory=dict)

    def history(self, range: str | None = None) -> tuple[Revision, ...]:
        return tuple(
            replace(each, summary=self.messages.get(int(each.id[1:]), each.summary))
            for each in super().history(range)
        )


def find(
    tmp_path: Path,
    messages: dict[int, str],
    *,
    culprit: int,
    priors: tuple[Prior, ...] = ("notes",),
    seed: int = 7,
) -> FindAnswer:
    starter = FakeStarter(
        seconds=lambda arguments: 0.1 if number_of(arguments) < culprit else 0.11, noise=0.02
    )
    starter.chance.seed(seed)
    source = SourceWithMessages(200, messages=messages)
    session = a_session(STUDY, tmp_path, source=source, starter=starter)
    request = FindRequest(
        goal=(resolve(STUDY, "wall"),),
        range=None,
        threshold=0.05,
        confidence=0.99,
        budget=Budget(invocations=600),
        priors=priors,
    )
    answer = drain(Find(session, request).events())[1]
    assert isinstance(answer, FindAnswer)
    return answer


@pytest.mark.parametrize(
    "message",
    [
        "Speed up the table",
        "perf: avoid a copy",
        "Optimise lookups",
        "fix a memory leak",
        "Make it FASTER",
        "cache headers",
        "revert: slows down start",
    ],
)
def test_messages_about_speed_or_memory_are_recognised(message: str) -> None:
    assert performance_word(message)


@pytest.mark.parametrize(
    "message", ["Fix a typo", "Make breakfast", "Speak of perfection", "Use ccache in CI", "steadfast", ""]
)
def test_messages_about_other_things_are_not_recognised(message: str) -> None:
    assert not performance_word(message)


def test_only_the_beginning_of_a_very_long_message_is_read() -> None:
    assert not performance_word("x " * 1_000_000 + "faster")


def test_a_revision_whose_message_mentions_speed_has_three_times_the_weight() -> None:
    revisions = SourceWithMessages(4, messages={2: "Cache it"}).history()
    known = with_notes(NOTHING, revisions)
    assert known.weights == (1.0, 1.0, NOTED_WEIGHT, 1.0)
    assert known.reasons == (
        "the messages of 1 of 3 revisions mention speed or memory; "
        "these revisions have three times the prior weight of the others",
    )


@pytest.mark.parametrize("messages", [{}, {0: "faster"}, dict.fromkeys(range(4), "faster")])
def test_messages_that_do_not_distinguish_revisions_are_ignored(messages: dict[int, str]) -> None:
    assert with_notes(NOTHING, SourceWithMessages(4, messages=messages).history()) == NOTHING


def test_right_and_wrong_messages_lead_to_the_same_answer(tmp_path: Path) -> None:
    guided = find(tmp_path, {150: "Cache the \x1b[31mtable"}, culprit=150)
    misled = find(tmp_path, {40: "Cache the table"}, culprit=150)
    for answer in (guided, misled):
        assert answer.answer.changes[0].positions == (150,)
        assert len(answer.as_json()["priors"]) == 1
    assert guided.as_json()["changes"][0]["notes"] == ["r150"]
    assert misled.as_json()["changes"][0]["notes"] == []
    reasons = note_words(guided, guided.answer.changes[0])
    assert reasons.startswith("its message mentions performance (Cache): “Cache the ")
    assert "\x1b" not in reasons
    assert note_words(misled, misled.answer.changes[0]) == ""


@pytest.mark.parametrize(
    "last_seed", [2, pytest.param(8, marks=[pytest.mark.long, pytest.mark.slow("simulation")])]
)
def test_misleading_messages_cost_at_most_two_samples(tmp_path: Path, last_seed: int) -> None:
    """Thirty of two hundred messages mention speed, and that of the culprit does not."""
    wrong = {number: "faster" for number in range(5, 155, 5) if number != 90}
    seeds = range(1, last_seed + 1)
    plain = [find(tmp_path, {}, culprit=91, seed=seed) for seed in seeds]
    misled = [find(tmp_path, wrong, culprit=91, seed=seed) for seed in seeds]
    assert all(answer.answer.changes[0].positions == (91,) for answer in misled)
    pairs = list(zip(misled, plain, strict=True))
    assert sum(one.builds - other.builds for one, other in pairs) / len(pairs) <= 0.5
    extra = [one.invocations - other.invocations for one, other in pairs]
    noise = stdev(extra) / math.sqrt(len(extra))  # the number of rounds differs by chance
    assert mean(extra) <= 2 + 2 * noise


def test_messages_are_ignored_without_the_prior_notes(tmp_path: Path) -> None:
    answer = find(tmp_path, {150: "Cache the table"}, culprit=150, priors=("suspect", "profile", "measured"))
    assert answer.priors == ()
    assert answer.as_json()["changes"][0]["notes"] == []
