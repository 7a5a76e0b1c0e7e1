"""Contract of sources about their history: order, ids, ranges and content keys."""

from __future__ import annotations

from itertools import pairwise
from typing import get_args

import pytest

from perftrail.errors import SourceError
from perftrail.model.source import SourceKind
from tests.contracts.sources import KINDS, WITHOUT_HISTORY, Case, cases

every_source = cases()
with_history = cases(without=WITHOUT_HISTORY)


def test_every_kind_that_can_be_built_is_under_contract() -> None:
    assert {*get_args(SourceKind)} - {"samples", "release"} <= {*KINDS}


@every_source
def test_history_is_complete_with_parents_before_children(case: Case) -> None:
    history = case.source.history()
    positions = {revision.id: position for position, revision in enumerate(history)}
    assert len(positions) == len(history) == len(case.texts)
    for revision in history:
        assert all(
            positions[parent] < positions[revision.id] for parent in revision.parents if parent in positions
        )


@every_source
def test_a_repeated_history_is_equal(case: Case) -> None:
    assert case.source.history() == case.source.history() == case.again.history()


@with_history
def test_a_linear_history_names_each_revisions_parent(case: Case) -> None:
    for parent, child in pairwise(case.source.history()):
        assert child.parents == (parent.id,)


@with_history
def test_both_ends_belong_to_a_range(case: Case) -> None:
    whole = case.source.history()
    assert case.source.history(f"{case.versions[1]}..{case.versions[3]}") == whole[1:4]
    assert case.source.history(f"{case.versions[2]}..{case.versions[2]}") == whole[2:3]


@with_history
def test_within_agrees_with_history_and_accepts_open_ends(case: Case) -> None:
    ids = [revision.id for revision in case.source.history()]
    assert case.source.within(f"{case.versions[1]}..{case.versions[3]}") == set(ids[1:4])
    assert case.source.within(f"..{case.versions[2]}") == set(ids[:3])
    assert case.source.within(f"{case.versions[2]}..") == set(ids[2:])


@with_history
@pytest.mark.parametrize("range", ["{0}..9.9", "9.9..{0}", "{3}..{1}"])
def test_an_invalid_range_is_an_error_with_its_reason(case: Case, range: str) -> None:
    with pytest.raises(SourceError, match=r"9\.9|backwards"):
        case.source.history(range.format(*case.versions))


@every_source
def test_content_keys_are_equal_exactly_for_equal_trees(case: Case) -> None:
    contents = [case.source.content(revision) for revision in case.source.history()]
    for key, text in zip(contents, case.texts, strict=True):
        texts_of_key = {other for other, its in zip(case.texts, contents, strict=True) if its == key}
        assert texts_of_key == {text}
    assert [case.again.content(revision) for revision in case.again.history()] == contents


@every_source
def test_each_revision_has_its_changed_paths(case: Case) -> None:
    revisions = case.source.history()
    touched = case.source.touched(revisions)
    assert len(touched) == len(revisions)
    assert touched[0] == ()
    assert all(set(paths) <= {case.file} for paths in touched)


@every_source
def test_a_linear_history_has_no_merges(case: Case) -> None:
    assert [case.source.merge(revision) for revision in case.source.history()] == [None] * len(
        case.source.history()
    )
