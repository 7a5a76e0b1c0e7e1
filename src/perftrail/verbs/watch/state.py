"""What a watch knows from one look to the next, in a file beside the results.

All of it is written at once, or not at all: a watch that is killed goes on from its last batch of revisions, whose
samples are in the store. A change and the message about it come into the file together, so that none is told twice.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from perftrail.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path

    from perftrail.model.search_record import Json

VERSION = 1
MOST_REMEMBERED = 2000
"""So many revisions of each figure's history are kept; change points need no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """Where a figure lay at a revision: the logarithms of its ratios to where watching began."""

    revision: str
    logs: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A message that some receivers have not had yet, each as ``KIND WHERE``; it is told in words and as data."""

    id: str
    subject: str
    text: str
    data: dict[str, Json]
    left: tuple[str, ...]
    failed: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchState:
    """What is known: which revision others are compared with, which was seen last, and every figure's levels.

    `offsets` say where the reference lies for each figure, as logarithms of the ratio to where watching began. `told`
    are the changes about which there is, or was, a message. `doubted` are those that a search did not confirm.
    """

    reference: str = ""
    last: str = ""
    levels: dict[str, tuple[Level, ...]] = field(default_factory=dict)
    offsets: dict[str, float] = field(default_factory=dict)
    told: tuple[str, ...] = ()
    doubted: tuple[str, ...] = ()
    pending: tuple[Pending, ...] = ()


def read_state(file: Path) -> WatchState:
    """Read what is known; nothing yet where there is no file. Raises `StoreError` for a file that is none of ours."""
    try:
        told = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return WatchState()
    except (OSError, ValueError) as error:
        raise StoreError(
            f"{file}: what was watched cannot be read: {error}; remove it to begin anew"
        ) from error
    if not isinstance(told, dict) or told.pop("version", None) != VERSION:
        raise StoreError(f"{file}: was written by another version of perftrail; remove it to begin anew")
    try:
        return _state(told)
    except (KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"{file}: is not what was watched; remove it to begin anew") from error


def write_state(file: Path, state: WatchState) -> None:
    """Write what is known, durably, for its owner alone: whoever has a webhook's address may post to it.

    Raises `StoreError`.
    """
    fresh = file.with_name(f"{file.name}.new")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with fresh.open("w", encoding="utf-8") as opened:
            os.fchmod(opened.fileno(), 0o600)
            json.dump({"version": VERSION, **asdict(state)}, opened)
            opened.flush()
            os.fsync(opened.fileno())
        fresh.replace(file)
    except OSError as error:
        raise StoreError(f"{file}: what was watched cannot be written: {error.strerror}") from error


def _state(told: dict[str, Any]) -> WatchState:
    """Give the values that plain data holds; only `write_state` writes such files."""
    return WatchState(
        reference=told["reference"],
        last=told["last"],
        levels={
            name: tuple(Level(revision=each["revision"], logs=tuple(each["logs"])) for each in levels)
            for name, levels in told["levels"].items()
        },
        offsets=told["offsets"],
        told=tuple(told["told"]),
        doubted=tuple(told["doubted"]),
        pending=tuple(Pending(**{**each, "left": tuple(each["left"])}) for each in told["pending"]),
    )
