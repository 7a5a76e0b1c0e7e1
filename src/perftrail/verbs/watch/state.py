"""The state of a watch: what it has seen, and its pending messages, in one file.

The file is written atomically: a killed watch resumes from its last batch of revisions, whose samples are in the
store. A change and its message are written together, so that no message is sent twice.
"""

from __future__ import annotations

import json
import os
import statistics
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from perftrail.errors import StoreError
from perftrail.file_tree import publish

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from perftrail.model.json_data import Json


VERSION = 1
MOST_LEVELS = 2000
"""Maximum number of stored levels of each metric; change points need no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """The level of a metric at a revision: the logarithms of its ratios to the level at the start of the watch."""

    revision: str
    log_ratios: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingMessage:
    """A message in words and as data, with its remaining receivers, each as ``KIND ADDRESS``."""

    id: str
    subject: str
    text: str
    data: dict[str, Json]
    left: tuple[str, ...]
    failed: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchState:
    """The state of a watch: the reference, the last revision seen, and every metric's levels.

    `offsets` are the reference's levels of each metric, as logarithms of the ratio to the start of the watch.
    `reported` are the ids of changes with a message, sent or pending. `unconfirmed` are alarms that a search did not
    confirm.
    """

    reference: str = ""
    last: str = ""
    levels: dict[str, tuple[Level, ...]] = field(default_factory=dict)
    offsets: dict[str, float] = field(default_factory=dict)
    reported: tuple[str, ...] = ()
    unconfirmed: tuple[str, ...] = ()
    pending: tuple[PendingMessage, ...] = ()


def read_state(file: Path) -> WatchState:
    """Read the state, empty if there is no file. Raises `StoreError` for a file that is not the state of a watch."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return WatchState()
    except (OSError, ValueError) as error:
        raise StoreError(
            f"{file}: cannot read the state of the watch: {error}; remove the file to start again"
        ) from error
    if not isinstance(data, dict) or data.pop("version", None) != VERSION:
        raise StoreError(
            f"{file}: was written by another version of perftrail; remove the file to start again"
        )
    try:
        return _state(data)
    except (KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"{file}: is not the state of a watch; remove the file to start again") from error


def write_state(file: Path, state: WatchState) -> None:
    """Write the state durably, readable only by its owner, because anyone with a webhook's address can post to it.

    Raises `StoreError`.
    """
    temporary = file.with_name(f"{file.name}.new")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("w", encoding="utf-8") as opened:
            os.fchmod(opened.fileno(), 0o600)
            json.dump({"version": VERSION, **asdict(state)}, opened)
        publish(temporary, file)
    except OSError as error:
        raise StoreError(f"{file}: cannot write the state of the watch: {error.strerror}") from error


def _state(data: dict[str, Any]) -> WatchState:
    """Return the state from plain data; only `write_state` writes such files."""
    # Older files have `logs`, `told` and `doubted`.
    return WatchState(
        reference=data["reference"],
        last=data["last"],
        levels={
            name: tuple(
                Level(
                    revision=each["revision"],
                    log_ratios=tuple(each["log_ratios" if "log_ratios" in each else "logs"]),
                )
                for each in levels
            )
            for name, levels in data["levels"].items()
        },
        offsets=data["offsets"],
        reported=tuple(data["reported" if "reported" in data else "told"]),
        unconfirmed=tuple(data["unconfirmed" if "unconfirmed" in data else "doubted"]),
        pending=tuple(PendingMessage(**{**each, "left": tuple(each["left"])}) for each in data["pending"]),
    )


def state_on_branch(state: WatchState, branch: Sequence[str]) -> WatchState | None:
    """Return the state at the newest measured revision that is still on a rewritten branch; `None` without one.

    Levels of lost revisions are removed. If the reference is lost, the newest measured revision replaces it, at its
    own level.
    """
    remaining = set(branch)
    measured = {state.reference, *(each.revision for every in state.levels.values() for each in every)}
    last = next((revision for revision in reversed(branch) if revision in measured), None)
    if last is None:
        return None
    levels = {
        name: tuple(each for each in every if each.revision in remaining)
        for name, every in state.levels.items()
    }
    state = replace(state, last=last, levels=levels)
    if state.reference in remaining:
        return state
    offsets = {name: level(every[-1].log_ratios) for name, every in levels.items() if every}
    return replace(state, reference=last, offsets=offsets)


def level(log_ratios: Sequence[float]) -> float:
    """Return the level of a metric, as a logarithm."""
    return statistics.median(log_ratios) if log_ratios else 0.0
