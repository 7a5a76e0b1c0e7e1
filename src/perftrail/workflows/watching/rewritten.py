"""A branch that was rewritten: what is known of it, as far as it still is what it was."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from perftrail.workflows.watching.batch import level

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.workflows.watching.state import WatchState


def kept(state: WatchState, branch: Sequence[str]) -> WatchState | None:
    """Go back to the newest revision of a branch that was measured before it was rewritten; `None` where none is left.

    What was measured of revisions that the branch lost is forgotten. Where the reference is one of them, the newest one
    left takes its place, at the level that it had itself.
    """
    there = set(branch)
    measured = {state.reference, *(each.revision for every in state.levels.values() for each in every)}
    last = next((revision for revision in reversed(branch) if revision in measured), None)
    if last is None:
        return None
    levels = {
        name: tuple(each for each in every if each.revision in there) for name, every in state.levels.items()
    }
    state = replace(state, last=last, levels=levels)
    if state.reference in there:
        return state
    offsets = {name: level(every[-1].logs) for name, every in levels.items() if every}
    return replace(state, reference=last, offsets=offsets)
