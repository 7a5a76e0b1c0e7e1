"""A study with everything a workflow needs at hand.

The time of day, as it is written into the store.

What of a study's history is not measured, though it was asked for: builds that failed, and what is left out.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.measure.troubles import common
from perftrail.model.build import Failure
from perftrail.model.plan import subjects
from perftrail.model.source import ALONE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from perftrail.measure.bench import Bench
    from perftrail.measure.sources import LeftOut
    from perftrail.measure.subjects import Workshop
    from perftrail.measure.troubles import Trouble
    from perftrail.model.measurement import Machine
    from perftrail.model.source import Pins
    from perftrail.model.study import Study
    from perftrail.model.subject import Revision
    from perftrail.ports import Source, Store


def just_now() -> str:
    """Say of sources of which nothing is kept when they were asked."""
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A study, its source, its store and this machine: what a workflow needs that only looks.

    `source` is the one that is walked; `pins` say at which revisions the study's others are held. `asked` says
    when a source was asked for what it answers from what is kept: ISO 8601, empty when by this process.
    """

    study: Study
    machine: Machine
    source: Source
    store: Store
    workshop: Workshop
    pins: Pins = ALONE
    asked: Callable[[], str] = just_now


@dataclass(frozen=True, slots=True, kw_only=True)
class Session(View):
    """A view that may also make and measure.

    So many things of a search may be done `at_once`: one, where everything is done here.
    """

    bench: Bench
    at_once: int = 1


def now() -> str:
    """The time in UTC to the millisecond, ISO 8601."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class NotHad:
    """Builds that failed, one trouble each, and revisions that the study leaves out."""

    troubles: tuple[Trouble, ...]
    left_out: tuple[LeftOut, ...]


def not_had(view: View, revisions: Sequence[Revision]) -> NotHad:
    """Give what is known not to be had of the study's revisions. Makes nothing."""
    found = {
        subject: known
        for subject in subjects(view.study, view.workshop.wanted(revisions))
        if (known := view.workshop.known_build(subject)) is not None
    }
    failures = {subject: known for subject, known in found.items() if isinstance(known, Failure)}
    return NotHad(troubles=common(tuple(found), failures), left_out=view.workshop.left_out(revisions))
