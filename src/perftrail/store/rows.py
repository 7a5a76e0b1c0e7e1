"""Convert values of the model to columns and back, in the form that every kind of store accepts."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from perftrail.errors import StoreError
from perftrail.model.benchmark import Point
from perftrail.model.build import BuildRecord, Built, Failure, Prepared
from perftrail.model.measurement import Draw, FailedInvocation, Measurement, Origin, Runnable
from perftrail.model.reads import BuildReads
from perftrail.model.store_records import SearchRecord, StepRecord
from perftrail.model.subject import Revision
from perftrail.store.damage import DAMAGED

if TYPE_CHECKING:
    from collections.abc import Iterable

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
        origin=None if runnable.origin is None else storable_record(runnable.origin, "origin"),
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
    ((kind, values),) = object_from_json(text).items()
    outcome: Built | Prepared | Failure = _decoded(KINDS[kind], values)
    return outcome


RecordType = TypeVar("RecordType")


def record_to_json(record: object, what: str) -> str:
    """Return a record as a JSON object of its fields: texts in storable form, and equal records as equal texts."""
    return to_json(_encoded(record), what)


def record_from_json(kind: type[RecordType], text: str, where: str = "") -> RecordType:
    """Return a record from its JSON object; `where` names the store in later errors about its JSON data.

    Raises an error of `damage.UNREADABLE` for missing, unknown and mistyped fields.
    """
    return _decoded(kind, object_from_json(text, where))


def storable_record(record: RecordType, what: str) -> RecordType:
    """Return a record as a store returns it. Raises `StoreError` for data that is not plain."""
    return record_from_json(type(record), record_to_json(record, what))


def _encoded(record: Any) -> dict[str, Json]:  # noqa: ANN401 - any frozen record
    return {each.name: CODECS[str(each.type)].encode(getattr(record, each.name)) for each in fields(record)}


def _decoded(kind: type[RecordType], values: Mapping[str, Any]) -> RecordType:
    types = {each.name: str(each.type) for each in fields(kind)}  # type: ignore[arg-type] # a data class
    if not isinstance(values, dict) or values.keys() != types.keys():
        raise TypeError(f"not the fields of a {kind.__name__}")
    return kind(**{name: CODECS[types[name]].decode(value) for name, value in values.items()})


@dataclass(frozen=True, slots=True)
class Codec:
    """The conversion of the values of one type into plain data and back, which raises `TypeError` for others."""

    encode: Callable[[Any], Json]
    decode: Callable[[Any], Any]


def _checked(*kinds: type) -> Callable[[Any], Any]:
    def check(value: object) -> object:
        if not isinstance(value, kinds):
            raise TypeError(f"a {type(value).__name__} instead of a {kinds[0].__name__}")
        return value

    return check


def _as_is(value: Any) -> Any:  # noqa: ANN401 - a value that every type of JSON represents
    return value


def _texts(value: object) -> tuple[str, ...]:
    return _refuse_other_than_texts(_checked(list)(value))


def _text_by_text(value: object) -> dict[str, str]:
    found: dict[str, str] = _checked(dict)(value)
    _refuse_other_than_texts(found.values())
    return {**found}


CODECS: Mapping[str, Codec] = {
    "str": Codec(storable, _checked(str)),
    "Status": Codec(storable, _checked(str)),
    "Stage": Codec(storable, _checked(str)),
    "int": Codec(_as_is, _checked(int)),
    "float": Codec(_as_is, _checked(float, int)),
    "bool": Codec(_as_is, _checked(bool)),
    "tuple[str, ...]": Codec(lambda texts: [*map(storable, texts)], _texts),
    "frozenset[str]": Codec(
        lambda texts: [*sorted(map(storable, texts))], lambda value: frozenset(_texts(value))
    ),
    "Mapping[str, str]": Codec(
        lambda texts: {storable(name): storable(text) for name, text in sorted(texts.items())}, _text_by_text
    ),
    "Mapping[str, Json]": Codec(dict, _checked(dict)),
    "Mapping[str, Json] | None": Codec(
        lambda data: None if data is None else dict(data), _checked(dict, type(None))
    ),
    "Built": Codec(_encoded, lambda value: _decoded(Built, value)),
    "BuildReads": Codec(_encoded, lambda value: _decoded(BuildReads, value)),
}
"""The conversions of a record's fields, by their annotations."""


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
    return _text_by_text(object_from_json(text))


def texts_from_json(text: str) -> tuple[str, ...]:
    """Return the texts of a JSON array. Raises `TypeError` or `ValueError` for anything else."""
    return _texts(json.loads(text))


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
    return record_to_json(origin, f"origin {origin.recipe[:12]}")


@lru_cache(maxsize=1024)
def origin_from_json(text: str) -> Origin:
    """Return an origin from its JSON; most runnables share theirs with many others."""
    return record_from_json(Origin, text)


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


def step_from_row(row: Row[Any], where: str) -> StepRecord:
    """Return a step of a search from its row."""
    return StepRecord(
        number=row.number,
        action=object_from_json(row.action, where),
        observation=object_from_json(row.news, where),
        belief=object_from_json(row.belief, where),
        words=row.words,
    )
