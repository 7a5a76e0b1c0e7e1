"""A store in memory that behaves like the others."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from perftrail.model.measurement import FailedInvocation, Machine, Measurement, Samples
from perftrail.model.store_records import ComparisonRecord, StepRecord, StoreProgress
from perftrail.store.documents import DocumentStore, counting, document_from_json, document_row
from perftrail.store.rows import (
    build_outcome_from_json,
    build_outcome_to_json,
    duplicate_key,
    identifier,
    storable,
    storable_outcome,
    storable_record,
    storable_runnable,
    to_json,
    unknown,
    unknown_machine,
    unknown_search,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from perftrail.model.build import BuildRecord
    from perftrail.model.json_data import Json
    from perftrail.model.measurement import InvocationKey, Outcome, Runnable
    from perftrail.model.store_records import SearchRecord
    from perftrail.model.subject import Revision
    from perftrail.store.documents import AnyDocument, Document, DocumentRow

WHERE = "store in memory"


@dataclass(slots=True)
class _Search:
    """A search and its steps by number."""

    record: SearchRecord
    steps: dict[int, StepRecord] = field(default_factory=dict)


class MemoryStore(DocumentStore):
    """A `perftrail.ports.Store` without a file, which passes the contract of stores."""

    def __init__(self) -> None:
        self._machines: dict[str, Machine] = {}
        self._builds: dict[str, BuildRecord] = {}
        self._by_subject: dict[tuple[str, str], BuildRecord] = {}
        self._first_finished: dict[tuple[str, str, str], str] = {}
        self._revisions: dict[str, tuple[int, Revision]] = {}
        self._keys: set[str] = set()
        self._runnables: dict[Runnable, Runnable] = {}
        self._outcomes: dict[str, dict[InvocationKey, Outcome]] = {}
        self._searches: list[_Search] = []
        self._order: list[Outcome] = []
        self._build_count = 0
        self._documents: list[DocumentRow] = []

    def close(self) -> None:
        """Do nothing: the content lives as long as the object."""

    def add_machine(self, machine: Machine) -> None:
        """Store a machine's facts; a known machine keeps its first facts."""
        facts = _copy(dict(machine.facts), f"machine {machine.id}")
        self._machines.setdefault(identifier(machine.id, "machine"), Machine(id=machine.id, facts=facts))

    def machines(self) -> Mapping[str, Machine]:
        """Return every machine by id, in the order in which they were stored."""
        return dict(self._machines)

    def add_build(self, record: BuildRecord) -> None:
        """Store the outcome of a build; the last record of a key counts."""
        self._build_count += 1
        plain = replace(
            record,
            revision=storable(record.revision),
            variant=storable(record.variant),
            benchmark=storable(record.benchmark),
            finished=storable(record.finished),
            recipe=storable(record.recipe),
            outcome=build_outcome_from_json(build_outcome_to_json(record)),
        )
        self._builds[identifier(record.key, "build")] = plain
        if not plain.benchmark:
            self._by_subject[plain.revision, plain.variant] = plain
            name = (plain.revision, plain.variant, plain.key)
            self._first_finished[name] = min(self._first_finished.get(name, plain.finished), plain.finished)

    def build(self, key: str) -> BuildRecord | None:
        """Return the last record of a build; `None` if it was never tried."""
        return self._builds.get(key)

    def builds(self) -> Mapping[str, BuildRecord]:
        """Return the last record of every build, by key."""
        return dict(self._builds)

    def subject_builds(self) -> Mapping[tuple[str, str], BuildRecord]:
        """Return the last build of every subject, by revision and variant."""
        return dict(self._by_subject)

    def first_finished(self) -> Mapping[tuple[str, str, str], str]:
        """Return when each build of a subject was first stored, by revision, variant and key."""
        return dict(self._first_finished)

    def add_runnable(self, runnable: Runnable, *, last: bool = False) -> None:
        """Store a runnable with its revision, variant, benchmark and point, and its last origin.

        With `last`, it comes after all others from then on.
        """
        plain = storable_runnable(runnable)
        self._keys.add(plain.key)
        name = replace(plain, artefact="", origin=None)
        known = self._runnables.pop(name, plain) if last else self._runnables.get(name, plain)
        self._runnables[name] = known
        if plain.origin not in (None, known.origin):
            self._runnables[name] = replace(known, origin=plain.origin)

    def runnables(self, benchmark: str | None = None) -> Sequence[Runnable]:
        """Return every runnable, or those of one benchmark, in the order in which they were stored."""
        return [each for each in self._runnables.values() if benchmark in (None, each.benchmark)]

    def revisions(self) -> frozenset[str]:
        """Return the ids of the revisions of all runnables."""
        return frozenset(each.revision for each in self._runnables.values())

    def add_revisions(self, revisions: Iterable[tuple[int, Revision]]) -> None:
        """Store revisions, each with its position in the history; a known one gets its new position and label."""
        for position, revision in revisions:
            plain = storable_record(revision, f"revision {revision.id}")
            self._revisions[plain.id] = (position, plain)

    def history(self) -> Sequence[Revision]:
        """Return the stored revisions in the order of the history."""
        return [revision for _, revision in sorted(self._revisions.values(), key=lambda each: each[0])]

    def sampled_machines(self) -> frozenset[str]:
        """Return the ids of the machines with at least one invocation."""
        return frozenset(each.key.machine for each in self._order)

    def ran(self, runnables: Collection[str], machine: str) -> frozenset[str]:
        """Return the runnables, among these, that have an invocation on a machine."""
        return frozenset(key for key in runnables if self._outcomes_of(key, machine))

    def add(self, outcome: Outcome) -> None:
        """Store an outcome. Raises `StoreError` if its key exists."""
        self.add_all([outcome])

    def add_all(self, outcomes: Iterable[Outcome]) -> None:
        """Store many outcomes, all or none. Raises `StoreError` as `add` does."""
        new: dict[InvocationKey, Outcome] = {}
        for outcome in map(storable_outcome, outcomes):
            key = outcome.key
            if key.machine not in self._machines:
                raise unknown(key, "machine")
            if key.runnable not in self._keys:
                raise unknown(key, "runnable")
            if key in new or key in self._outcomes.get(key.runnable, {}):
                raise duplicate_key(key, WHERE)
            new[key] = outcome
        for key, outcome in new.items():
            self._outcomes.setdefault(key.runnable, {})[key] = outcome
        self._order.extend(new.values())

    def outcomes(self, runnables: Collection[str], machine: str) -> Mapping[str, tuple[Outcome, ...]]:
        """Return the outcomes of runnables on a machine: warm-ups first, then by ordinal."""
        return {runnable: self._outcomes_of(runnable, machine) for runnable in runnables}

    def samples(
        self, runnables: Collection[str], machine: str, metrics: Collection[str]
    ) -> Mapping[str, Samples]:
        """Return the samples of runnables on a machine for some metrics; runnables that never ran are missing."""
        outcomes = {runnable: self._outcomes_of(runnable, machine) for runnable in runnables}
        return {runnable: _samples(each, metrics) for runnable, each in outcomes.items() if each}

    def _outcomes_of(self, runnable: str, machine: str) -> tuple[Outcome, ...]:
        every = self._outcomes.get(runnable, {}).values()
        here = [outcome for outcome in every if outcome.key.machine == machine]
        return tuple(sorted(here, key=lambda outcome: (outcome.key.phase != "warmup", outcome.key.ordinal)))

    def open_search(self, record: SearchRecord) -> None:
        """Store the start of a search; an existing search does not change."""
        where = f"search {identifier(record.key, 'search')}"
        if record.machine not in self._machines:
            raise unknown_machine(record.machine, WHERE)
        plain = storable_record(record, where)
        if self._find(record.key, record.machine) is None:
            self._searches.append(_Search(plain))

    def close_search(self, key: str, machine: str, answer: Mapping[str, Json]) -> None:
        """Store a search's answer; a later answer to the same question replaces it."""
        search = self._open(key, machine)
        search.record = replace(search.record, answer=_copy(dict(answer), f"search {key}"))

    def searches(self) -> Sequence[SearchRecord]:
        """Return every search, the latest last."""
        return [search.record for search in self._searches]

    def add_step(self, key: str, machine: str, step: StepRecord) -> None:
        """Store a step of a search; a step with the same number is replaced."""
        plain = storable_record(step, f"search {key}, step {step.number}")
        self._open(key, machine).steps[step.number] = plain

    def steps(self, key: str, machine: str) -> Sequence[StepRecord]:
        """Return the steps of a search in order; none if the search does not exist."""
        search = self._find(key, machine)
        return [] if search is None else [search.steps[number] for number in sorted(search.steps)]

    def add_document(self, document: Document) -> None:
        """Store a document, which may replace the last one with its key."""
        if isinstance(document, ComparisonRecord) and document.machine not in self._machines:
            raise unknown_machine(document.machine, WHERE)
        self._documents.append(document_row(document))

    def documents(self, kind: type[AnyDocument], within: str = "") -> Sequence[AnyDocument]:
        """Return the documents of a kind that count, or those whose first key field is `within`."""
        return [
            document_from_json(kind, row.json, WHERE)
            for row in counting(kind, self._documents)
            if not within or row.key.startswith(f"{within}/")
        ]

    def progress(self) -> StoreProgress:
        """Return how much the store contains."""
        return StoreProgress(
            invocations=len(self._order),
            builds=self._build_count,
            searches=len(self._searches),
            answers=sum(search.record.answer is not None for search in self._searches),
            steps=sum(len(search.steps) for search in self._searches),
            documents=len(self._documents),
        )

    def recent(self, most: int) -> Sequence[tuple[Runnable, Outcome]]:
        """Return the last outcomes, newest first, each with its first runnable."""
        first: dict[str, Runnable] = {}
        for runnable in self._runnables.values():
            first.setdefault(runnable.key, runnable)
        latest = reversed(self._order[-most:])
        return [(first[each.key.runnable], each) for each in latest if each.key.runnable in first]

    def _find(self, key: str, machine: str) -> _Search | None:
        for search in self._searches:
            if (search.record.key, search.record.machine) == (key, machine):
                return search
        return None

    def _open(self, key: str, machine: str) -> _Search:
        found = self._find(key, machine)
        if found is None:
            raise unknown_search(key, machine, WHERE)
        return found


def _samples(outcomes: Sequence[Outcome], metrics: Collection[str]) -> Samples:
    samples = [each for each in outcomes if isinstance(each, Measurement) and each.key.phase == "sample"]
    values = {
        name: {each.key.ordinal: each.values[name] for each in samples if name in each.values}
        for name in metrics
    }
    return Samples(
        values={name: by_ordinal for name, by_ordinal in values.items() if by_ordinal},
        flags={each.key.ordinal: each.flags for each in samples if each.flags},
        failures=tuple(each.failure.stage for each in outcomes if isinstance(each, FailedInvocation)),
        blocks={each.key.ordinal: each.draw.block for each in samples if each.draw.block},
    )


Plain = TypeVar("Plain", bound="Mapping[str, Json]")


def _copy(value: Plain, what: str) -> Plain:
    """Return plain data as a database would return it, independent of the caller's object."""
    copied: Plain = json.loads(to_json(value, what))
    return copied
