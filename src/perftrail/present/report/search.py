"""A report's section on how its search went: the belief after each step, and the steps in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.charts.posterior import Believed, belief
from perftrail.model.quantity import probability
from perftrail.present.page import Section, Table
from perftrail.present.report.history import culprits, records
from perftrail.present.report.words import shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perftrail.model.search_record import Json, StepRecord
    from perftrail.present.report.gathered import Gathered


def search_section(gathered: Gathered) -> Section | None:
    """Tell how the search went: its belief step by step, and each step in words."""
    if gathered.search is None or not gathered.steps:
        return None
    believed = [each for step in gathered.steps if (each := _believed(gathered, step)) is not None]
    drawn = any(each.changed for each in believed)
    question = gathered.search.question
    asked = f"What changed {question['metric']} between {question['first']} and {question['last']}?"
    return Section(
        name="search",
        title="How the search went",
        paragraphs=(shown(asked, longest=400), *(f"{str(each).capitalize()}." for each in _priors(question))),
        figure=belief(believed, length=len(gathered.revisions), culprits=culprits(gathered))
        if drawn
        else None,
        tables=(
            Table(
                name="search-steps",
                head=("step", "what it did and what was believed then"),
                rows=tuple((str(step.number), shown(step.words, longest=400)) for step in gathered.steps),
                numbers=frozenset({0}),
            ),
        ),
    )


def _believed(gathered: Gathered, step: StepRecord) -> Believed | None:
    """A step as it is drawn; none of a search inside a merge, whose revisions are not of this history."""
    id_ = str(step.action.get("measure"))
    built = records(step.belief.get("built"))
    if id_ not in gathered.positions or any(
        str(each["revision"]) not in gathered.positions for each in built
    ):
        return None
    no_change = step.belief.get("no_change")
    return Believed(
        number=step.number,
        position=gathered.positions[id_],
        words=shown(step.words, longest=200),
        changed=tuple(
            (gathered.positions[str(each["revision"])], share)
            for each in built
            if isinstance(share := each["changed"], float)
        ),
        no_change=no_change if isinstance(no_change, float) else 0.0,
    )


def _priors(question: Mapping[str, Json]) -> list[str]:
    confidence, smallest = question.get("confidence"), question.get("smallest")
    told = []
    if isinstance(confidence, float) and isinstance(smallest, float):
        told.append(f"asked for changes of {smallest:.0%} or more, to be {probability(confidence)} sure")
    priors = question.get("priors")
    return [*told, *(shown(str(each), longest=300) for each in (priors if isinstance(priors, list) else []))]
