"""Record the steps and the cost of one search.

Each step is recorded with the machine's boot session, because levels of different boot sessions are not
comparable. A search that resumes after a reboot learns of it before its next request.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypedDict, TypeVar

from perftrail.measure.events import BuildFinished, Stepped
from perftrail.model.build import Built, Failure
from perftrail.model.json_data import json_of
from perftrail.model.measurement import tool_version
from perftrail.model.store_records import StepRecord
from perftrail.model.subject import Subject
from perftrail.process.machine.facts import FINGERPRINT
from perftrail.search import Budget

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping, Sequence

    from perftrail.measure.events import Event
    from perftrail.measure.session import Session
    from perftrail.measure.subjects import Ready
    from perftrail.model.json_data import Json
    from perftrail.model.measurement import InvocationKey, Machine
    from perftrail.model.plan import Cell
    from perftrail.model.store_records import SearchRecord
    from perftrail.model.subject import Revision
    from perftrail.ports import Store


Result = TypeVar("Result")


class MachineBootJson(TypedDict):
    """One boot session of a machine."""

    boot: str
    kernel: str
    since: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineBoot:
    """One boot session of the machine: its id, its kernel, and when it began (ISO 8601, as the store writes it).

    All fields are empty if the machine does not report them, or if they are irrelevant.
    """

    id: str = ""
    kernel: str = ""
    since: str = ""

    def as_json(self) -> MachineBootJson:
        """Return it as a step records it."""
        return {"boot": self.id, "kernel": self.kernel, "since": self.since}


NO_BOOT = MachineBoot()
"""The boot session of values that do not depend on it, for example counted instructions."""


def boot_of(machine: Machine) -> MachineBoot:
    """Return the current boot session of a machine."""
    facts = machine.facts
    return MachineBoot(
        id=facts.get("boot_id", ""), kernel=facts.get("kernel", ""), since=facts.get("booted", "")
    )


def stored_boot(action: Mapping[str, Json]) -> MachineBoot:
    """Read the boot session of a recorded step; steps of older versions have none."""
    recorded = action.get("boot_session", action.get("block"))
    if not isinstance(recorded, dict):
        return NO_BOOT
    return MachineBoot(
        id=str(recorded.get("boot", "")),
        kernel=str(recorded.get("kernel", "")),
        since=str(recorded.get("since", "")),
    )


def other_machines(store: Store, machine: Machine, record: SearchRecord) -> tuple[str, ...]:
    """Describe how each other machine with the same search differs from this one."""
    known = store.machines()
    others = [each.machine for each in store.searches() if each.key == record.key]
    return tuple(
        f"The same search ran on another machine before ({_differing(known[other], machine)}): "
        "its samples were not used"
        for other in dict.fromkeys(others)
        if other != machine.id and other in known
    )


def _differing(there: Machine, here: Machine) -> str:
    differences = [
        f"{name.replace('_', ' ')} {there.facts.get(name, 'unknown')} there, {here.facts.get(name, 'unknown')} here"
        for name in FINGERPRINT
        if there.facts.get(name) != here.facts.get(name)
    ]
    return "; ".join(differences) or f"{there.id} there, {here.id} here"


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Builds, invocations, and their time in seconds."""

    builds: int = 0
    invocations: int = 0
    seconds: float = 0.0


NO_WORK = Work()
"""No work: everything was stored before, or nothing was counted."""


class Ledger:
    """Counts each invocation and each build once, even if several parts of a search use it.

    `seconds` is the time of those invocations and builds, in this process or an earlier one. `new` is the part that
    this process performed.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._began = session.clock()
        self._seconds_of_new_builds: dict[tuple[str, str], float] = {}
        self._timed: set[str] = set()
        self._tools: tuple[str, ...] | None = None
        self.invocations: set[InvocationKey] = set()
        self.attempted: set[str] = set()
        self.seconds = 0.0
        self._invoking = 0.0
        self._new_invocations = 0
        self._new_seconds = 0.0

    @property
    def done(self) -> tuple[int, int]:
        """Builds and invocations that this process performed, without those known before."""
        return (len(self._seconds_of_new_builds), self._session.runner.started)

    def seconds_left(self, budget: Budget) -> float:
        """Return the seconds of this process that a budget has left; infinite without a limit of time.

        All of them before the first result, so that any budget allows a first step.
        """
        if budget.seconds is None:
            return math.inf
        allowed = max(budget.seconds, budget.builds_in_time * self.mean_build)
        if not self._new_seconds:
            return allowed
        return max(0.0, allowed - (self._session.clock() - self._began))

    @property
    def new(self) -> Work:
        """The builds, invocations and seconds of the search that this process performed."""
        return Work(
            builds=len(self.attempted & {revision for revision, _ in self._seconds_of_new_builds}),
            invocations=self._new_invocations,
            seconds=self._new_seconds,
        )

    def count(self, key: InvocationKey, seconds: float) -> None:
        """Count an invocation."""
        if key not in self.invocations:
            self.invocations.add(key)
            self.seconds += seconds
            self._invoking += seconds
            if self._session.runner.performed(key):
                self._new_invocations += 1
                self._new_seconds += seconds

    @property
    def mean_build(self) -> float:
        """Mean seconds of a build."""
        return (self.seconds - self._invoking) / max(len(self._timed), 1)

    @property
    def mean_invocation(self) -> float:
        """Mean seconds of an invocation."""
        return self._invoking / max(len(self.invocations), 1)

    def ready(self, cell: Cell, *, layout: int = 0) -> Generator[Event, None, Ready | Failure]:
        """Build a cell in a layout, or return the failure; count the build, unless the study skips it."""
        result = yield from self._counted(self._session.subject_builder.ready(cell, layout=layout))
        if not (isinstance(result, Failure) and result.stage == "skipped"):
            self.attempted.add(cell.subject.revision.id)
        if not isinstance(result, Failure) and (origin := result.runnable.origin) is not None:
            every = origin.tools if self._tools is None else self._tools
            self._tools = tuple(tool for tool in every if tool in origin.tools)
        return result

    @property
    def tools(self) -> tuple[str, ...]:
        """The versions of the tools that all builds and benchmarks use."""
        return tuple(filter(None, map(tool_version, self._tools or ())))

    def build_all(self, revisions: Iterable[Revision], *, variant: str) -> Generator[Event, None, None]:
        """Build several revisions in parallel; a build counts, with its seconds, once the search requests it."""
        yield from self._counted(
            self._session.subject_builder.build_in_parallel(
                _subject(revision, variant) for revision in revisions
            )
        )

    def _counted(self, building: Generator[Event, None, Result]) -> Generator[Event, None, Result]:
        """Count the builds that a generator really performs."""
        while True:
            try:
                event = next(building)
            except StopIteration as stop:
                result: Result = stop.value
                return result
            if isinstance(event, BuildFinished) and not event.known and not _existed(event.outcome):
                self._seconds_of_new_builds[event.subject.revision.id, event.subject.variant] = (
                    event.outcome.seconds
                )
            yield event

    def count_build(self, revision: Revision, variant: str, seconds: float) -> None:
        """Count the seconds of a subject's build, once."""
        name = f"{revision.id} {variant}"
        if name not in self._timed:
            self._timed.add(name)
            self.seconds += seconds
            self._new_seconds += self._seconds_of_new_builds.get((revision.id, variant), 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchProgress:
    """How many of a search's metrics are decided, and the least and the most seconds until all are, if known."""

    metrics: int = 1
    decided: int = 0
    seconds_left: tuple[float, float] | None = None


ONE_METRIC = SearchProgress()


class Journal:
    """Records the steps of one search in the store as they happen, numbered through all its parts.

    `per_boot_session`: values differ between boot sessions, so each step is recorded with its boot session.
    """

    def __init__(
        self, session: Session, record: SearchRecord, ledger: Ledger, *, per_boot_session: bool
    ) -> None:
        self._store = session.store
        self._record = record
        self._ledger = ledger
        self._number = 0
        self._done = ledger.done
        self._store.open_search(record)
        self._current_boot = boot_of(session.machine) if per_boot_session else NO_BOOT
        self._recorded = {step.number: step.action for step in self._store.steps(record.key, record.machine)}
        self._boots: dict[str, MachineBoot] = {}

    @property
    def name(self) -> str:
        """Name of the search in the blocks of its draws."""
        return self._record.key[:12]

    @property
    def seconds(self) -> float:
        """Total seconds of the search so far, in all its parts."""
        return self._ledger.seconds

    @property
    def boot(self) -> MachineBoot:
        """The boot session of the next step: the recorded one if the step exists, else the current one."""
        recorded = self._recorded.get(self._number + 1)
        return self._current_boot if recorded is None else stored_boot(recorded)

    @property
    def boots(self) -> tuple[MachineBoot, ...]:
        """The known boot sessions of the steps so far, the first one first."""
        return tuple(boot for id_, boot in self._boots.items() if id_)

    @property
    def next_step(self) -> int:
        """The number of the next step."""
        return self._number + 1

    def budgets(self, given: Budget) -> tuple[Budget, ...]:
        """Return the budgets to try for the next step, until one gives the recorded step; the last is `given`.

        Repeating a recorded step costs nothing, so that no limit applies to it. But a search that had reached
        a limit of builds asked for other steps. A time limit applies to this process: all of its time, and none of
        earlier ones.
        """
        if given.seconds is not None:
            given = replace(given, seconds=self._ledger.seconds + self._ledger.seconds_left(given))
        return (Budget(), Budget(builds=given.builds), given) if self._is_next_recorded else (given,)

    @property
    def _is_next_recorded(self) -> bool:
        return self._number + 1 in self._recorded

    def is_recorded(self, order: Sequence[str], layout: int) -> bool:
        """Whether the next step is recorded with this request."""
        recorded = self._recorded.get(self._number + 1, {})
        return (recorded.get("order"), recorded.get("layout", 0)) == (list(order), layout)

    def accepts(self, order: Sequence[str], layout: int) -> bool:
        """Whether the next step is not recorded, or recorded with the same request.

        Otherwise the record no longer applies: all later steps are new, and `boot` is the current boot
        session.
        """
        if not self._is_next_recorded or self.is_recorded(order, layout):
            return True
        self._recorded = {}
        return False

    def step(
        self,
        *,
        action: Mapping[str, Json],
        observation: Mapping[str, Json],
        belief: Mapping[str, Json],
        words: str,
        purpose: str = "",
        progress: SearchProgress = ONE_METRIC,
    ) -> Stepped:
        """Record a step, and return its event."""
        boot = self.boot
        if self._boots and boot.id not in self._boots:
            words = f"the machine was rebooted; {words}"
        self._boots.setdefault(boot.id, boot)
        # A new step can need nothing new, for example for a revision with an equal build.
        resumed = self._is_next_recorded and self._ledger.done == self._done
        self._number += 1
        self._done = self._ledger.done
        self._store.add_step(
            self._record.key,
            self._record.machine,
            StepRecord(
                number=self._number,
                action={**action, "boot_session": json_of(boot.as_json())} if boot.id else action,
                observation=observation,
                belief=belief,
                words=words,
            ),
        )
        return Stepped(
            number=self._number,
            words=words,
            purpose=purpose,
            belief=belief,
            resumed=resumed,
            metrics=progress.metrics,
            decided=progress.decided,
            seconds_left=progress.seconds_left,
        )

    def end(self, answer: Mapping[str, Json]) -> None:
        """Record the answer."""
        self._store.close_search(self._record.key, self._record.machine, answer)


def _existed(outcome: Built | Failure) -> bool:
    """Whether a build existed on the disk although the store did not know it."""
    return isinstance(outcome, Built) and outcome.reused


def _subject(revision: Revision, variant: str) -> Subject:
    return Subject(revision=revision, variant=variant)
