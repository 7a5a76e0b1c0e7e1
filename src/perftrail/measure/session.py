"""Views and sessions of a study: what commands need to read, build and measure it.

A `View` reads; a `Session` also builds and measures. `missing_builds` lists failed builds and skipped revisions.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

from perftrail.measure.failure_groups import FailureGroupJson, group_failures
from perftrail.measure.sources import SkippedRevisionJson, skips_json
from perftrail.model.build import Failure, Prepared
from perftrail.model.plan import subjects
from perftrail.model.source import NO_PINS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.measure.build_inputs import BuildInputs
    from perftrail.measure.failure_groups import FailureGroup
    from perftrail.measure.invocation_runner import InvocationRunner
    from perftrail.measure.sources import SkippedRevisions
    from perftrail.measure.subjects import SubjectBuilder
    from perftrail.model.build import Built
    from perftrail.model.measurement import Machine
    from perftrail.model.source import Pins
    from perftrail.model.study import Study
    from perftrail.model.subject import Revision, Subject
    from perftrail.ports import Source, Store


def always_current() -> str:
    """Return an empty time: sources without a cache are always current."""
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A study with its source, its store and a machine's samples, for commands that only read.

    `source` is the one whose history is used; `pins` are the revisions of the study's other sources. `last_updated`
    is the time of the last update of a cached source: ISO 8601, or empty when this process updated it.
    `inputs` are what the present study would build and run; `None` if a source cannot be
    read. `notes` are sentences about what is shown: other machine, source that cannot be read.
    """

    study: Study
    machine: Machine
    source: Source
    store: Store
    pins: Pins = NO_PINS
    last_updated: Callable[[], str] = always_current
    inputs: BuildInputs | None = None
    notes: tuple[str, ...] = ()

    def wanted(self, revisions: Sequence[Revision]) -> tuple[Revision, ...]:
        """Return the revisions that the study does not skip."""
        return tuple(revisions) if self.inputs is None else self.inputs.eras.wanted(revisions)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildView(View):
    """A view that also knows the builds of the present study."""

    subject_builder: SubjectBuilder


@dataclass(frozen=True, slots=True, kw_only=True)
class Session(BuildView):
    """A view that can also build and measure.

    A search may run `at_once` tasks in parallel: one where all tasks run on this machine. With `keep_going`, work
    continues although everything so far failed for one reason. `clock` returns seconds; budgets of time use it.
    """

    runner: InvocationRunner
    at_once: int = 1
    keep_going: bool = False
    clock: Callable[[], float] = time.monotonic


class MissingJson(TypedDict):
    """Failed builds, one group for each cause, and revisions that the study skips."""

    failures: list[FailureGroupJson]
    skipped: list[SkippedRevisionJson]


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Failed builds, one group each, and revisions that the study skips."""

    failure_groups: tuple[FailureGroup, ...]
    skipped_revisions: tuple[SkippedRevisions, ...]

    def as_json(self) -> MissingJson:
        """Return it as `show --failures --json` prints it."""
        return {
            "failures": [group.as_json() for group in self.failure_groups],
            "skipped": skips_json(self.skipped_revisions),
        }


def missing_builds(view: View, revisions: Sequence[Revision]) -> Missing:
    """Return the study's revisions that are known to be missing. Builds nothing."""
    found = stored_builds(view, revisions)
    failures = {subject: known for subject, known in found.items() if isinstance(known, Failure)}
    skipped_revisions = () if view.inputs is None else view.inputs.eras.skipped_revisions(revisions)
    return Missing(failure_groups=group_failures(tuple(found), failures), skipped_revisions=skipped_revisions)


def stored_builds(view: View, revisions: Sequence[Revision]) -> dict[Subject, Built | Failure]:
    """Return the last stored build of every subject; no failures of a recipe that changed since."""
    records = view.store.subject_builds()
    found: dict[Subject, Built | Failure] = {}
    for subject in subjects(view.study, view.wanted(revisions)):
        record = records.get((subject.revision.id, subject.variant))
        if record is None or isinstance(record.outcome, Prepared):
            continue
        if isinstance(record.outcome, Failure) and view.inputs is not None and record.recipe:
            now = view.inputs.recipe_key(view.inputs.recipe(subject))
            if now not in ("", record.recipe):
                continue
        found[subject] = record.outcome
    return found
