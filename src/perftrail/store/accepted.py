"""Convert values to the form in which every kind of store accepts them.

Text is valid Unicode without NUL, because PostgreSQL refuses anything else. Other content of benchmarks' outputs
and file names (lone surrogates of `os.fsdecode`, NUL) is stored as a backslash escape. Inside JSON it is escaped
anyway and comes back unchanged.

Numbers are finite. A negative zero comes back as zero: both are equal, and SQLite stores integers in less space.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import TYPE_CHECKING

from perftrail.errors import StoreError
from perftrail.model.build import Failure
from perftrail.model.measurement import Draw, FailedInvocation, Measurement, Origin
from perftrail.model.search_record import STATUSES, RegressionNote

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perftrail.model.measurement import InvocationKey, Outcome, Runnable
    from perftrail.model.search_record import Json


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
        raise StoreError(f"{what} {text!r}: it holds characters that no store can keep; give it another name")
    return text


def finite(number: float, what: str) -> float:
    """Return a number as a float; raise `StoreError` if it is not finite."""
    try:
        plain = float(number) + 0.0
    except OverflowError:
        plain = math.inf
    if not math.isfinite(plain):
        raise StoreError(f"{what} is {plain}: a store keeps finite numbers only; record a failure instead")
    return plain


def to_json(value: Json | Mapping[str, Json], what: str) -> str:
    """Return plain data as ASCII JSON; raise `StoreError` for anything else."""
    try:
        return json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise StoreError(f"{what}: {error}; only plain data can be kept") from error


def named(key: InvocationKey) -> str:
    """Return the name of an invocation for messages."""
    return f"{key.phase} {key.ordinal} of {key.runnable[:12]} on machine {key.machine[:12]}"


def unknown(key: InvocationKey, what: str) -> StoreError:
    """Return the error of an invocation whose machine or runnable (`what`) is not in the store."""
    return StoreError(f"{named(key)}: the store does not know this {what}; keep it with add_{what} first")


def taken(key: InvocationKey, where: str) -> StoreError:
    """Return the error of an invocation that the store already has."""
    return StoreError(
        f"{where}: {named(key)} is there already; outcomes are never changed, give it another ordinal"
    )


def unknown_machine(machine: str, where: str) -> StoreError:
    """Return the error of a machine that is not in the store."""
    return StoreError(f"{where}: machine {machine!r} is unknown; keep it with add_machine first")


def unknown_search(key: str, machine: str, where: str) -> StoreError:
    """Return the error of a search that is not in the store."""
    return StoreError(
        f"{where}: search {key!r} on machine {machine!r} was never begun; open it with open_search first"
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
                f"{where}: its {name} is {getattr(draw, name)}; a store keeps numbers from 0 to {most}"
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
        raise StoreError(f"note: the status {note.status!r} is none of {', '.join(STATUSES)}")
    return RegressionNote(
        regression=identifier(note.regression, "regression"),
        status=note.status,
        text=storable(note.text),
        author=storable(note.author),
        written=storable(note.written),
    )
