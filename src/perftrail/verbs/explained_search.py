"""A stored search with the stored explanations of its culprits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from perftrail.results.changes import answers_of
from perftrail.results.show import SearchStepsJson
from perftrail.verbs.explain.functions import ExplanationJson, stored_explanation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from perftrail.model.json_data import Json
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
    named = {
        id_
        for answer in answers_of(search)
        for change in _mappings(answer.get("changes"))
        for id_ in _candidates(change)
    }
    found = [
        stored_explanation(record, most=MOST_FUNCTIONS)
        for record in reversed(stored)
        if record.revision in named
    ]
    return [each for each in found if each is not None]


def _candidates(change: Mapping[str, Json]) -> Iterator[str]:
    """Yield the ids of a change's candidates, also of those inside merges."""
    revisions = change.get("revisions")
    yield from (str(id_) for id_ in (revisions if isinstance(revisions, list) else []))
    inside = change.get("inside")
    if isinstance(inside, dict):
        yield from _candidates(inside)


def _mappings(data: Json) -> list[Mapping[str, Json]]:
    return [each for each in data if isinstance(each, dict)] if isinstance(data, list) else []
