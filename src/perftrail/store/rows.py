"""Convert values of the model to columns and back, in the form that every kind of store accepts."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from perftrail.errors import StoreError
from perftrail.model.benchmark import Point
from perftrail.model.build import BuildRecord, Built, Failure, Prepared
from perftrail.model.measurement import Draw, FailedInvocation, Measurement, Origin, Runnable
from perftrail.model.reads import BuildReads
from perftrail.model.store_records import (
    STATUSES,
    ExplanationRecord,
    ListingRecord,
    ReadsRecord,
    RegressionNote,
    SearchRecord,
    StepRecord,
)
from perftrail.model.subject import Revision
from perftrail.model.wording import listed
from perftrail.store.damage import DAMAGED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sqlalchemy import Row

    from perftrail.model.json_data import Json
    from perftrail.model.measurement import InvocationKey, Outcome


LARGEST_DRAWN = {"turn": 2**15 - 1, "seed": 2**63 - 1, "layout": 2**31 - 1}
"""Largest numbers of a draw that the columns of every database accept."""


def storable(text: str) -> str:
    r"""Return a text in which every character that a database could refuse is escaped.

    >>> storable("b\udce9b\x00")
    'b\\udce9b\\x00'
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\x00")


def identifier(text: str, what: str) -> str:
    """Return a text that is used as a key. Raises `StoreError` if a character would have to be escaped."""
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


def describe_invocation(key: InvocationKey) -> str:
    """Return the description of an invocation for messages."""
    return f"{key.phase} {key.ordinal} of {key.runnable[:12]} on machine {key.machine[:12]}"


def unknown(key: InvocationKey, what: str) -> StoreError:
    """Return the error of an invocation whose machine or runnable (`what`) is not in the store."""
    return StoreError(
        f"{describe_invocation(key)}: the store does not know this {what}; store it with add_{what} first"
    )


def duplicate_key(key: InvocationKey, where: str) -> StoreError:
    """Return the error of an invocation that the store already has."""
    return StoreError(
        f"{where}: {describe_invocation(key)} exists already; outcomes are never changed, use another ordinal"
    )


def unknown_machine(machine: str, where: str) -> StoreError:
    """Return the error of a machine that is not in the store."""
    return StoreError(f"{where}: machine {machine!r} is unknown; store it with add_machine first")


def unknown_search(key: str, machine: str, where: str) -> StoreError:
    """Return the error of a search that is not in the store."""
    return StoreError(
        f"{where}: search {key!r} on machine {machine!r} is unknown; open it with open_search first"
    )


def storable_outcome(outcome: Outcome) -> Outcome:
    """Return an outcome in storable form; raise `StoreError` if that is impossible."""
    where = describe_invocation(outcome.key)
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
            draw=_storable_draw(outcome.draw, where),
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
        draw=_storable_draw(outcome.draw, where),
    )


def _storable_draw(draw: Draw, where: str) -> Draw:
    """Return a draw in storable form; raise `StoreError` for numbers that no column accepts."""
    for name, largest in LARGEST_DRAWN.items():
        if not 0 <= getattr(draw, name) <= largest:
            raise StoreError(
                f"{where}: its {name} is {getattr(draw, name)}; a store accepts numbers from 0 to {largest}"
            )
    return replace(draw, block=identifier(draw.block, "block"))


def storable_runnable(runnable: Runnable) -> Runnable:
    """Return a runnable in storable form; raise `StoreError` if its key is not storable."""
    return replace(
        runnable,
        key=identifier(runnable.key, "runnable"),
        revision=storable(runnable.revision),
        variant=storable(runnable.variant),
        benchmark=storable(runnable.benchmark),
        artefact=storable(runnable.artefact),
        origin=None if runnable.origin is None else _storable_origin(runnable.origin),
    )


def _storable_origin(origin: Origin) -> Origin:
    return Origin(
        recipe=storable(origin.recipe),
        lines=tuple(map(storable, origin.lines)),
        tools=tuple(map(storable, origin.tools)),
    )


def storable_note(note: RegressionNote) -> RegressionNote:
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


def storable_explanation(explanation: ExplanationRecord) -> ExplanationRecord:
    """Return an explanation with storable texts and an unchanged result; raise `StoreError` for a key that is not."""
    return replace(
        explanation,
        key=identifier(explanation.key, "explanation"),
        revision=storable(explanation.revision),
        against=storable(explanation.against),
        finished=storable(explanation.finished),
    )


def storable_listing(listing: ListingRecord) -> ListingRecord:
    """Return a listing with storable texts and an unchanged result; raise `StoreError` for keys that are not."""
    return replace(
        listing,
        suite=identifier(listing.suite, "suite"),
        key=identifier(listing.key, "listing"),
        revision=storable(listing.revision),
        variant=storable(listing.variant),
        finished=storable(listing.finished),
    )


def storable_reads(record: ReadsRecord) -> ReadsRecord:
    """Return an observation with storable texts; raise `StoreError` for keys that are not."""
    return replace(
        record,
        key=identifier(record.key, "observation"),
        recipe=identifier(record.recipe, "observation"),
        revision=storable(record.revision),
        finished=storable(record.finished),
        reads=BuildReads(
            opened=frozenset(map(storable, record.reads.opened)),
            looked_up=frozenset(map(storable, record.reads.looked_up)),
            listed=frozenset(map(storable, record.reads.listed)),
            outside={storable(path): storable(text) for path, text in record.reads.outside.items()},
            incomplete=storable(record.reads.incomplete),
        ),
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
    ((kind, fields),) = object_from_json(text).items()
    if kind == "prepared":
        fields["built"] = _record(Built, fields["built"])
    return _record(KINDS[kind], fields)


FIELD_TYPES: dict[str, type | tuple[type, ...]] = {
    "str": str,
    "int": int,
    "float": (int, float),
    "bool": bool,
}
"""Types of JSON values for the plain types of fields."""

RecordType = TypeVar("RecordType", bound=Built | Prepared | Failure)


def _record(kind: type[RecordType], values: dict[str, Any]) -> RecordType:
    """Return a record with these values. Raises `TypeError` for missing, unknown and mistyped ones."""
    record = kind(**values)
    for each in fields(record):
        value = getattr(record, each.name)
        if not isinstance(value, FIELD_TYPES.get(str(each.type), object)):
            raise TypeError(f"{each.name} of a build is {type(value).__name__}")
    return record


class StoredObject(dict[str, Any]):
    """A JSON object of a store at `where`; a missing key is damage of the store."""

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        super().__init__(values)
        self._where = where

    def __missing__(self, key: str) -> Any:  # noqa: ANN401 - JSON
        raise StoreError(f"{self._where}: an object in one of its rows lacks {key!r}: {DAMAGED}")


def object_from_json(text: str, where: str = "") -> dict[str, Any]:
    """Return a JSON object; with `where`, one that names this store if a key is missing.

    Raises `TypeError` or `ValueError` for anything else.
    """
    hook = (lambda values: StoredObject(values, where)) if where else None
    found = json.loads(text, object_hook=hook)
    if not isinstance(found, dict):
        raise TypeError(f"a JSON {type(found).__name__} instead of an object")
    return found


def facts_from_json(text: str) -> dict[str, str]:
    """Return the facts of a machine. Raises `TypeError` or `ValueError` for anything else."""
    found = object_from_json(text)
    _refuse_other_than_texts(found.values())
    return found


def texts_from_json(text: str) -> tuple[str, ...]:
    """Return the texts of a JSON array. Raises `TypeError` or `ValueError` for anything else."""
    found = json.loads(text)
    if not isinstance(found, list):
        raise TypeError(f"a JSON {type(found).__name__} instead of an array")
    return _refuse_other_than_texts(found)


def _refuse_other_than_texts(values: Iterable[object]) -> tuple[str, ...]:
    texts = tuple(each for each in values if isinstance(each, str))
    if len(texts) != len(tuple(values)):
        raise TypeError("a JSON array or object has other items than texts")
    return texts


def point_to_json(point: Point) -> str:
    """Return a point as a JSON array of pairs, in the order of its parameters."""
    return to_json([[name, value] for name, value in point.values], f"point {point}")


def point_from_json(text: str) -> Point:
    """Return a point from its JSON."""
    pairs = tuple((name, value) for name, value in json.loads(text))
    if not all(isinstance(name, str) and isinstance(value, str | int | float) for name, value in pairs):
        raise TypeError("a parameter's name is not a text, or its value neither a number nor a text")
    return Point(pairs)


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
    found = object_from_json(text)
    (recipe,) = _refuse_other_than_texts([found["recipe"]])
    lines, tools = (_refuse_other_than_texts(list(found[name])) for name in ("lines", "tools"))
    return Origin(recipe=recipe, lines=lines, tools=tools)


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
        parents=texts_from_json(row.parents),
    )


def search_from_row(row: Row[Any], where: str) -> SearchRecord:
    """Return a search from its row."""
    return SearchRecord(
        key=row.key,
        machine=row.fingerprint,
        question=object_from_json(row.question, where),
        started=row.started,
        answer=None if row.answer is None else object_from_json(row.answer, where),
    )


def explanation_from_row(row: Row[Any], where: str) -> ExplanationRecord:
    """Return an explanation from its row."""
    return ExplanationRecord(
        key=row.key,
        revision=row.revision,
        against=row.against,
        finished=row.finished,
        result=object_from_json(row.result, where),
    )


def listing_from_row(row: Row[Any], where: str) -> ListingRecord:
    """Return a listing from its row."""
    return ListingRecord(
        suite=row.suite,
        key=row.key,
        revision=row.revision,
        variant=row.variant,
        finished=row.finished,
        result=object_from_json(row.result, where),
    )


def reads_to_json(reads: BuildReads) -> dict[str, Json]:
    """Return the paths of an observation as plain data, sorted, so that equal ones have equal texts."""
    return {
        "opened": [*sorted(reads.opened)],
        "looked_up": [*sorted(reads.looked_up)],
        "listed": [*sorted(reads.listed)],
        "outside": dict(sorted(reads.outside.items())),
        "incomplete": reads.incomplete,
    }


def reads_from_row(row: Row[Any], where: str) -> ReadsRecord:
    """Return an observation from its row. Raises `StoreError` for damaged data."""
    found = object_from_json(row.reads, where)
    incomplete, outside = found.get("incomplete"), found.get("outside", {})
    if not (isinstance(incomplete, str) and isinstance(outside, dict)):
        raise StoreError(f"{where}: the observation of a build is not valid: {DAMAGED}")
    return ReadsRecord(
        key=row.key,
        recipe=row.recipe,
        revision=row.revision,
        finished=row.finished,
        reads=BuildReads(
            opened=_paths(found, "opened", where),
            looked_up=_paths(found, "looked_up", where),
            listed=_paths(found, "listed", where),
            outside={path: str(content) for path, content in outside.items()},
            incomplete=incomplete,
        ),
    )


def _paths(found: Mapping[str, Json], name: str, where: str) -> frozenset[str]:
    paths = found.get(name)
    texts = [path for path in paths if isinstance(path, str)] if isinstance(paths, list) else []
    if not isinstance(paths, list) or len(texts) != len(paths):
        raise StoreError(f"{where}: the observation of a build is not valid: {DAMAGED}")
    return frozenset(texts)


def step_from_row(row: Row[Any], where: str) -> StepRecord:
    """Return a step of a search from its row."""
    return StepRecord(
        number=row.number,
        action=object_from_json(row.action, where),
        observation=object_from_json(row.news, where),
        belief=object_from_json(row.belief, where),
        words=row.words,
    )
