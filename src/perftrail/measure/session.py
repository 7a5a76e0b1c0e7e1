"""Open views and sessions of a study: what workflows need to read, build and measure it.

A `View` reads; a `Session` also builds and measures. `missing_builds` lists failed builds and skipped revisions.
"""

from __future__ import annotations

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
    """Return an empty time: sources without a cache are always current."""
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A study with its source, its store and this machine, for workflows that only read.

    `source` is the one whose history is used; `pins` hold the revisions of the study's other sources. `asked`
    is the time of the last update of a cached source: ISO 8601, or empty when this process updated it.
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
    """A view that can also build and measure.

    A search may run `at_once` tasks in parallel: one where all tasks run on this machine.
    """

    bench: Bench
    at_once: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Failed builds, one trouble each, and revisions that the study skips."""

    troubles: tuple[Trouble, ...]
    left_out: tuple[LeftOut, ...]


def missing_builds(view: View, revisions: Sequence[Revision]) -> Missing:
    """Return the study's revisions that are known to be missing. Builds nothing."""
    found = {
        subject: known
        for subject in subjects(view.study, view.workshop.wanted(revisions))
        if (known := view.workshop.known_build(subject)) is not None
    }
    failures = {subject: known for subject, known in found.items() if isinstance(known, Failure)}
    return Missing(troubles=common(tuple(found), failures), left_out=view.workshop.left_out(revisions))
