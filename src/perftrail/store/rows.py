"""Convert values of the model to columns and back."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from perftrail.model.benchmark import Point
from perftrail.model.build import BuildRecord, Built, Failure, Prepared
from perftrail.model.measurement import Origin, Runnable
from perftrail.model.search_record import SearchRecord, StepRecord
from perftrail.model.subject import Revision
from perftrail.store.accepted import finite, storable, to_json

if TYPE_CHECKING:
    from sqlalchemy import Row

KINDS: dict[str, type[Built] | type[Prepared] | type[Failure]] = {
    "built": Built,
    "prepared": Prepared,
    "failure": Failure,
}


def build_outcome_to_json(record: BuildRecord) -> str:
    """Return the outcome of a build as a JSON object with one key: its kind."""
    outcome = record.outcome
    built = outcome.built if isinstance(outcome, Prepared) else outcome
    finite(built.seconds, f"build {record.key[:12]}: its time")
    kind = next(name for name, of in KINDS.items() if isinstance(outcome, of))
    return to_json({kind: asdict(outcome)}, f"build {record.key[:12]}")


def build_outcome_from_json(text: str) -> Built | Prepared | Failure:
    """Return the outcome of a build from its JSON."""
    # Parsed JSON has no type; `build_outcome_to_json` is its only writer.
    ((kind, fields),) = cast("dict[str, dict[str, Any]]", json.loads(text)).items()
    if kind == "prepared":
        fields["built"] = Built(**fields["built"])
    return KINDS[kind](**fields)


def point_to_json(point: Point) -> str:
    """Return a point as a JSON array of pairs, in the order of its parameters."""
    return to_json([[name, value] for name, value in point.values], f"point {point}")


def point_from_json(text: str) -> Point:
    """Return a point from its JSON."""
    return Point(tuple((name, value) for name, value in json.loads(text)))


def build_from_row(row: Row[Any]) -> BuildRecord:
    """Return a build from its row."""
    return BuildRecord(
        key=row.key,
        revision=row.revision,
        variant=row.variant,
        benchmark=row.benchmark,
        finished=row.finished,
        recipe=row.recipe or "",
        outcome=build_outcome_from_json(row.outcome),
    )


def runnable_from_row(row: Row[Any]) -> Runnable:
    """Return a runnable from its row."""
    return Runnable(
        key=row.key,
        revision=row.revision,
        variant=row.variant,
        benchmark=row.benchmark,
        point=point_from_json(row.point),
        artefact=row.artefact,
        origin=None if row.origin is None else origin_from_json(row.origin),
    )


def origin_to_json(origin: Origin) -> str:
    """Return an origin as a JSON object."""
    return to_json(asdict(origin), f"origin {origin.recipe[:12]}")


@lru_cache(maxsize=1024)
def origin_from_json(text: str) -> Origin:
    """Return an origin from its JSON; most runnables share theirs with many others."""
    fields = json.loads(text)
    return Origin(recipe=fields["recipe"], lines=tuple(fields["lines"]), tools=tuple(fields["tools"]))


def revision_to_row(revision: Revision, position: int) -> dict[str, object]:
    """Return the row of a revision."""
    return {
        "name": storable(revision.id),
        "position": position,
        "summary": storable(revision.summary),
        "label": storable(revision.label),
        "time": storable(revision.time),
        "parents": to_json(list(revision.parents), f"revision {revision.id}"),
    }


def revision_from_row(row: Row[Any]) -> Revision:
    """Return a revision from its row."""
    return Revision(
        id=row.name,
        summary=row.summary,
        label=row.label,
        time=row.time,
        parents=tuple(json.loads(row.parents)),
    )


def search_from_row(row: Row[Any]) -> SearchRecord:
    """Return a search from its row."""
    return SearchRecord(
        key=row.key,
        machine=row.fingerprint,
        question=json.loads(row.question),
        started=row.started,
        answer=None if row.answer is None else json.loads(row.answer),
    )


def step_from_row(row: Row[Any]) -> StepRecord:
    """Return a step of a search from its row."""
    return StepRecord(
        number=row.number,
        action=json.loads(row.action),
        news=json.loads(row.news),
        belief=json.loads(row.belief),
        words=row.words,
    )
