"""A stored search with the stored explanations of its culprits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from perftrail.results.changes import answers_of, candidate_ids
from perftrail.results.show import SearchStepsJson
from perftrail.verbs.explain.functions import ExplanationJson, stored_explanation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.model.store_records import ExplanationRecord, SearchRecord

MOST_FUNCTIONS = 3
"""Functions of each point."""


class ExplainedSearchJson(SearchStepsJson):
    """All searches on this machine, the steps of one of them, and the explanations of its culprits."""

    explanations: Annotated[
        list[ExplanationJson], "of its culprits, the latest first, with the functions that changed most"
    ]


def explanations_of(stored: Sequence[ExplanationRecord], search: SearchRecord) -> list[ExplanationJson]:
    """Return the explanations of the revisions that a search names, the latest first."""
    named = {id_ for answer in answers_of(search) for id_ in candidate_ids(answer)}
    found = [
        stored_explanation(record, most=MOST_FUNCTIONS)
        for record in reversed(stored)
        if record.revision in named
    ]
    return [each for each in found if each is not None]
