"""Search inside a merge for the origin of its change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from perftrail.search import (
    Answer,
    Batch,
    Budget,
    Built,
    Measure,
    MergeOrigin,
    MergeSearch,
    Origin,
    Question,
    Sample,
    Unusable,
    Verdict,
)
from perftrail.stats.scale import Scale
from tests.search.oracle import Oracle, batch, normal

if TYPE_CHECKING:
    from tests.search.oracle import Level

OLD, NEW = 1.0, 1.2


def settle(
    level: Level, branches: tuple[int, ...], *, budget: Budget | None = None, seed: int = 1
) -> tuple[Answer, MergeOrigin, Oracle]:
    """Report samples of the merge and its first parent, as the search along the trunk does, then settle."""
    oracle = Oracle(level, normal(seed, 0.02))
    revisions = 2 + sum(branches) + len(branches)
    inside = MergeSearch(Question(revisions=revisions, budget=budget or Budget()), branches=branches)
    samples = [oracle.sample(end) for end in (0, revisions - 1) * 5]
    oracle.built |= {0: 0, revisions - 1: revisions - 1}
    inside.tell(Batch(samples=tuple(samples), seconds=0.0))
    answer = oracle.settle(inside)
    found = inside.found
    assert found is not None
    return answer, found, oracle


def test_a_revision_of_the_branch_is_found() -> None:
    answer, found, oracle = settle(lambda position: NEW if position >= 31 else OLD, (50,))
    assert found.origin is Origin.BRANCH
    assert found.branch == 0
    assert answer.changes[0].positions == (31,)
    assert oracle.observations[0] == Built(position=51, seconds=10.0)
    assert oracle.builds <= 10


def test_a_change_only_in_the_merge_is_a_combination() -> None:
    answer, found, oracle = settle(lambda position: NEW if position == 52 else OLD, (50,))
    assert found.origin is Origin.COMBINATION
    assert answer.changes[0].positions == (52,)
    assert oracle.builds <= 3


def test_a_first_parent_at_the_new_level_means_a_change_on_the_trunk() -> None:
    answer, found, _ = settle(lambda position: NEW, (50,))
    assert found.origin is Origin.TRUNK
    assert answer.verdict is Verdict.NONE


@pytest.mark.parametrize(("level", "origin"), [(-4.0, Origin.TRUNK), (0.0, Origin.BRANCH)])
def test_differences_that_cancel_inside_a_branch_mean_a_change_on_the_trunk(
    level: float, origin: Origin
) -> None:
    """Below zero at the first parent and the merge, with the old level in between: two changes of opposite sign."""
    question = Question(revisions=10, scale=Scale.DIFFERENCE, threshold=0.5, linked=False)
    search, values = MergeSearch(question, branches=(7,)), [-4.0] * 3 + [1.0] * 4 + [level] * 3
    while isinstance(action := search.ask(), Measure):
        for position in action.positions:
            if position not in search.evidence.built:
                search.tell(Built(position=position, seconds=10.0))
        samples = tuple(Sample(position=each, value=values[each]) for each in action.order)
        search.tell(Batch(samples=samples, seconds=len(samples), certificate=action.certificate))
    assert [change.positions for change in action.answer.changes] == [(3,), (7,)]
    assert search.found is not None
    assert search.found.origin is origin


def test_a_change_of_the_trunk_after_the_branch_left_is_not_blamed_on_the_branch() -> None:
    answer, found, _ = settle(lambda position: OLD if position == 0 else NEW, (8,))
    assert found.origin is Origin.COMBINATION
    assert "changed after the branch left" in found.reason
    assert answer.changes[0].positions == (1,)


def test_two_changes_inside_one_branch_are_both_named() -> None:
    answer, found, _ = settle(lambda position: 1.0 + 0.2 * (position >= 6) + 0.2 * (position >= 15), (20,))
    assert found.origin is Origin.BRANCH
    assert [change.positions for change in answer.changes] == [(6,), (15,)]


@pytest.mark.parametrize(
    "branch", [pytest.param(0, marks=pytest.mark.long), 1, pytest.param(2, marks=pytest.mark.long)]
)
def test_in_an_octopus_the_branch_with_the_change_is_searched(branch: int) -> None:
    starts = (1, 12, 23)

    def level(position: int) -> float:
        own = starts[branch] + 6 <= position <= starts[branch] + 10
        return NEW if own or position == 34 else OLD

    answer, found, oracle = settle(level, (10, 10, 10))
    assert found.origin is Origin.BRANCH
    assert found.branch == branch
    assert answer.changes[0].positions == (starts[branch] + 6,)
    assert oracle.builds <= 9


@pytest.mark.parametrize(
    "seed", [1, pytest.param(4, marks=pytest.mark.long), pytest.param(6, marks=pytest.mark.long)]
)
def test_each_claim_of_a_round_is_in_positions_of_the_merge(seed: int) -> None:
    """The noise often makes an equal level likelier than the change that the rounds certify."""
    changed = 40

    def level(position: int) -> float:
        return 1.05 if position >= changed else 1.0

    oracle = Oracle(level, normal(seed, 0.045))
    inside = MergeSearch(Question(revisions=64, threshold=0.05), branches=(20, 40))
    inside.tell(Batch(samples=tuple(oracle.sample(end) for end in (0, 63) * 5), seconds=0.0))
    oracle.built |= {0: 0, 63: 63}
    claims = 0
    while isinstance(action := inside.ask(), Measure):
        belief = inside.belief
        if action.certificate and belief is not None and belief.claim is not None:
            around = belief.claim.around
            assert around is None or set(around) <= set(action.positions)
            claims += around is not None
        for observation in oracle.perform(action):
            inside.tell(observation)
    assert claims > 3


def test_an_octopus_without_the_change_in_any_branch_is_a_combination() -> None:
    _, found, _ = settle(lambda position: NEW if position == 23 else OLD, (10, 10))
    assert found.origin is Origin.COMBINATION


def test_a_branch_whose_end_cannot_be_built_is_not_distinguished_from_the_merge() -> None:
    answer, found, _ = settle(
        lambda position: None if position >= 8 and position < 12 else NEW if position == 12 else OLD, (10,)
    )
    assert found.origin is Origin.UNCLEAR
    assert set(answer.changes[0].positions) == {8, 9, 10, 11, 12}


def test_a_spent_budget_is_unclear_with_its_reason() -> None:
    _, found, oracle = settle(
        lambda position: NEW if position >= 31 else OLD, (50,), budget=Budget(invocations=22)
    )
    assert found.origin is Origin.UNCLEAR
    assert "invocations" in found.reason
    # Ten of the 22 samples are those of the search along the trunk.
    assert oracle.sample_count <= 12


def test_results_from_outside_the_branch_count_as_cost_but_not_as_evidence() -> None:
    inside = MergeSearch(Question(revisions=13 + 11), branches=(10, 10))
    inside.tell(batch((0, OLD), (23, NEW), (0, OLD), (23, NEW), (0, OLD), (23, NEW)))
    inside.tell(Built(position=15, seconds=30.0))
    assert inside.evidence.seconds == 36.0
    assert inside.evidence.builds == 3


def test_a_merge_without_a_merge_base_is_searched_from_its_first_parent() -> None:
    answer, found, _ = settle(
        lambda position: None if position == 1 else NEW if position >= 5 else OLD, (10,)
    )
    assert found.origin is Origin.BRANCH
    assert answer.changes[0].positions == (5,)


def test_questions_that_do_not_fit_the_branches_are_rejected() -> None:
    with pytest.raises(ValueError, match="13 positions"):
        MergeSearch(Question(revisions=12), branches=(10,))
    with pytest.raises(ValueError, match="one revision or more"):
        MergeSearch(Question(revisions=12), branches=())
    with pytest.raises(ValueError, match="positions 0 to 12"):
        MergeSearch(Question(revisions=13), branches=(10,)).tell(Unusable(position=13))
