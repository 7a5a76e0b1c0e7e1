"""What happened along a history, as its figure marks it: changes, releases, failures, stretches, steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.charts.history import Events, Gap, Mark
from perftrail.model.quantity import change
from perftrail.workflows.reporting.words import shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from perftrail.model.search_record import Json
    from perftrail.model.subject import Revision
    from perftrail.workflows.reporting.gathered import Followed, Gathered


def events(gathered: Gathered, followed: Followed) -> Events:
    """What happened along the history: found and seen changes, releases, what failed, the search's steps."""
    is_lead = followed == gathered.lead
    told = [
        Mark(position=gathered.positions[id_], word=word)
        for id_, word in (_told(gathered) if is_lead else ())
        if id_ in gathered.positions
    ]
    seen = [
        Mark(
            position=each.point.position,
            word=f"{each.row.subject.revision.short} {change(each.point.effect)}",
        )
        for each in gathered.changes
        if followed.is_of(each.row)
    ]
    return Events(
        length=len(gathered.revisions),
        changes=tuple(told or seen),
        releases=tuple(_releases(gathered.revisions)),
        failed=tuple(_failed(gathered)),
        gaps=tuple(_gaps(gathered)),
        steps=tuple(_steps(gathered)) if is_lead else (),
    )


def _told(gathered: Gathered) -> Iterator[tuple[str, str]]:
    """The culprits of the answers: of a range, its last revision."""
    lead = gathered.lead
    for answer in gathered.answers:
        if lead is not None and str(answer["benchmark"]) != lead.benchmark:
            continue
        for each in records(answer.get("changes")):
            ids, effect = each["revisions"], each.get("effect")
            if isinstance(ids, list) and ids:
                value = effect["value"] if isinstance(effect, dict) else None
                size = f" {change(value)}" if isinstance(value, float) else ""
                yield str(ids[-1]), f"{str(ids[-1])[:10]}{size}"


def culprits(gathered: Gathered) -> list[int]:
    """Where the culprits of the answers stand in the history."""
    return [gathered.positions[id_] for id_, _ in _told(gathered) if id_ in gathered.positions]


def _releases(revisions: Sequence[Revision]) -> Iterator[Mark]:
    """Where the label changes along the history."""
    before = ""
    for position, revision in enumerate(revisions):
        if revision.label not in {"", before, revision.id}:
            yield Mark(position=position, word=shown(revision.label, longest=24))
            before = revision.label


def _failed(gathered: Gathered) -> Iterator[Mark]:
    for trouble in gathered.lacking.troubles:
        for subject in trouble.subjects:
            if subject.revision.id in gathered.positions and trouble.failure.stage != "skipped":
                position = gathered.positions[subject.revision.id]
                yield Mark(position=position, word=f"{subject.revision.short}: {trouble.failure.stage}")


def _gaps(gathered: Gathered) -> Iterator[Gap]:
    """Stretches that could not be had: those that a search met, and those that the study leaves out."""
    for answer in gathered.answers[:1]:
        for each in records(answer.get("broke")):
            ends = each.get("revisions")
            if isinstance(ends, list) and all(str(end) in gathered.positions for end in ends):
                first, last = (gathered.positions[str(end)] for end in ends)
                yield Gap(first=first, last=last, why=f"{each['stage']}, {each['tried']} tried")
    for left_out in gathered.lacking.left_out:
        places = sorted(gathered.positions[revision.id] for revision in left_out.revisions)
        yield from _runs(places, f"skipped: {shown(left_out.reason)}")


def _runs(places: Sequence[int], why: str) -> Iterator[Gap]:
    first = 0
    for number, place in enumerate(places):
        if number + 1 == len(places) or places[number + 1] != place + 1:
            yield Gap(first=places[first], last=place, why=why)
            first = number + 1


def _steps(gathered: Gathered) -> Iterator[Mark]:
    """In which step of the search each revision was measured first."""
    seen: set[str] = set()
    for step in gathered.steps:
        id_ = str(step.action.get("measure"))
        if id_ in gathered.positions and id_ not in seen:
            seen.add(id_)
            yield Mark(position=gathered.positions[id_], word=str(step.number))


def records(value: Json) -> list[dict[str, Json]]:
    """Give the objects of a list in JSON."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
