"""Convert values of the model to columns and back, in the form that every kind of store accepts."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from perftrail.errors import StoreError
from perftrail.model.benchmark import Point
from perftrail.model.build import BuildRecord, Built, Failure, Prepared
from perftrail.model.measurement import Draw, FailedInvocation, Measurement, Origin, Runnable
from perftrail.model.store_records import STATUSES, RegressionNote, SearchRecord, StepRecord
from perftrail.model.subject import Revision
from perftrail.model.wording import listed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Row

    from perftrail.model.json_data import Json
    from perftrail.model.measurement import InvocationKey, Outcome


LARGEST_DRAWN = {"turn": 2**15 - 1, "seed": 2**63 - 1, "layout": 2**31 - 1}
"""Largest numbers of a draw that the columns of every database accept."""


def storable(text: str) -> str:
    r"""Return a text with everything escaped that a database could refuse.

    >>> storable("b\udce9b\x00")
    'b\\udce9b\\x00'
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\x00")


def identifier(text: str, what: str) -> str:
    """Return a text that is used as a key; raise `StoreError` if it would need escapes."""
    if text != storable(text):
        raise StoreError(f"{what} {text!r}: contains characters that no store can represent; rename it")
    return text


def finite(number: float, what: str) -> float:
    """Return a number as a float; raise `StoreError` if it is not finite."""
    try:
        plain = float(number) + 0.0
    except OverflowError:
        plain = math.inf
    if not math.isfinite(plain):
        raise StoreError(f"{what} is {plain}: a store accepts only finite numbers; record a failure instead")
    return plain


def to_json(value: Json | Mapping[str, Json], what: str) -> str:
    """Return plain data as ASCII JSON; raise `StoreError` for anything else."""
    try:
        return json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise StoreError(f"{what}: {error}; only JSON data can be stored") from error


def named(key: InvocationKey) -> str:
    """Return the name of an invocation for messages."""
    return f"{key.phase} {key.ordinal} of {key.runnable[:12]} on machine {key.machine[:12]}"


def unknown(key: InvocationKey, what: str) -> StoreError:
    """Return the error of an invocation whose machine or runnable (`what`) is not in the store."""
    return StoreError(f"{named(key)}: the store does not know this {what}; store it with add_{what} first")


def duplicate_key(key: InvocationKey, where: str) -> StoreError:
    """Return the error of an invocation that the store already has."""
    return StoreError(
        f"{where}: {named(key)} exists already; outcomes are never changed, use another ordinal"
    )


def unknown_machine(machine: str, where: str) -> StoreError:
    """Return the error of a machine that is not in the store."""
    return StoreError(f"{where}: machine {machine!r} is unknown; store it with add_machine first")


def unknown_search(key: str, machine: str, where: str) -> StoreError:
    """Return the error of a search that is not in the store."""
    return StoreError(
        f"{where}: search {key!r} on machine {machine!r} is unknown; open it with open_search first"
    )


def accepted(outcome: Outcome) -> Outcome:
    """Return an outcome in storable form; raise `StoreError` if that is impossible."""
    where = named(outcome.key)
    seconds = finite(outcome.seconds, f"{where}: its time")
    if isinstance(outcome, FailedInvocation):
        failure = Failure(
            stage=outcome.failure.stage,
            message=storable(outcome.failure.message),
            log=storable(outcome.failure.log),
            seconds=finite(outcome.failure.seconds, f"{where}: its failure's time"),
        )
        return replace(
            outcome,
            started=storable(outcome.started),
            seconds=seconds,
            failure=failure,
            draw=_accepted_draw(outcome.draw, where),
        )
    if without := set(outcome.methods) - set(outcome.values):
        raise StoreError(
            f"{where}: a method but no value for {', '.join(sorted(without))}; leave the method out"
        )
    return Measurement(
        key=outcome.key,
        started=storable(outcome.started),
        seconds=seconds,
        values={
            identifier(metric, "metric"): finite(value, f"{where}: metric {metric}")
            for metric, value in outcome.values.items()
        },
        methods={metric: storable(method) for metric, method in outcome.methods.items()},
        flags=tuple(storable(flag) for flag in outcome.flags),
        log=storable(outcome.log),
        draw=_accepted_draw(outcome.draw, where),
    )


def _accepted_draw(draw: Draw, where: str) -> Draw:
    """Return a draw in storable form; raise `StoreError` for numbers that no column accepts."""
    for name, most in LARGEST_DRAWN.items():
        if not 0 <= getattr(draw, name) <= most:
            raise StoreError(
                f"{where}: its {name} is {getattr(draw, name)}; a store accepts numbers from 0 to {most}"
            )
    return replace(draw, block=identifier(draw.block, "block"))


def accepted_runnable(runnable: Runnable) -> Runnable:
    """Return a runnable in storable form; raise `StoreError` if its key is not storable."""
    return replace(
        runnable,
        key=identifier(runnable.key, "runnable"),
        revision=storable(runnable.revision),
        variant=storable(runnable.variant),
        benchmark=storable(runnable.benchmark),
        artefact=storable(runnable.artefact),
        origin=None if runnable.origin is None else _accepted_origin(runnable.origin),
    )


def _accepted_origin(origin: Origin) -> Origin:
    return Origin(
        recipe=storable(origin.recipe),
        lines=tuple(map(storable, origin.lines)),
        tools=tuple(map(storable, origin.tools)),
    )


def accepted_note(note: RegressionNote) -> RegressionNote:
    """Return a note in storable form. Raises `StoreError` for an unknown status."""
    if note.status not in STATUSES:
        raise StoreError(f"note: the status {note.status!r} is not valid; choose {listed(STATUSES)}")
    return RegressionNote(
        regression=identifier(note.regression, "regression"),
        status=note.status,
        text=storable(note.text),
        author=storable(note.author),
        written=storable(note.written),
    )


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
        observation=json.loads(row.news),
        belief=json.loads(row.belief),
        words=row.words,
    )
