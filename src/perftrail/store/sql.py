"""The store in a database, through SQLAlchemy Core: the same statements for every database.

Observers query the store's progress and the last outcomes every second, so these queries read only a few rows.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from sqlalchemy import case, delete, exists, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from perftrail._version import __version__
from perftrail.errors import StoreError
from perftrail.model.build import Failure
from perftrail.model.measurement import Machine
from perftrail.model.store_records import ComparisonRecord, StoreProgress
from perftrail.store import outcomes as outcome_rows
from perftrail.store import schema
from perftrail.store.documents import KINDS, DocumentStore, document_from_json, document_row
from perftrail.store.identifiers import TextIds, chunks, insert_or_replace, insert_unless_exists
from perftrail.store.outcomes import read_recent, read_samples
from perftrail.store.retried_transactions import Transactions
from perftrail.store.rows import (
    build_from_row,
    build_outcome_to_json,
    duplicate_key,
    facts_from_json,
    identifier,
    origin_to_json,
    point_to_json,
    revision_from_row,
    revision_to_row,
    runnable_from_row,
    search_from_row,
    step_from_row,
    storable,
    storable_outcome,
    storable_runnable,
    to_json,
    unknown_machine,
    unknown_search,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from sqlalchemy import ColumnElement, Connection, Select, Table

    from perftrail.model.build import BuildRecord
    from perftrail.model.json_data import Json
    from perftrail.model.measurement import Outcome, Runnable, Samples
    from perftrail.model.store_records import SearchRecord, StepRecord
    from perftrail.model.subject import Revision
    from perftrail.store.documents import AnyDocument, Document
    from perftrail.store.outcomes import Interned
    from perftrail.store.retried_transactions import Database, ServerWait


def read_progress(connection: Connection) -> StoreProgress:
    """Return how much the store contains. Additions have the largest ids, so the last row suffices."""
    tables = (schema.invocation, schema.build, schema.search, schema.document)
    last = [select(func.coalesce(func.max(table.c.id), 0)).scalar_subquery() for table in tables]
    answers = select(func.count(schema.search.c.answer)).scalar_subquery()
    steps = select(func.count()).select_from(schema.step).scalar_subquery()
    row = connection.execute(select(*last, answers, steps)).one()
    return StoreProgress(
        invocations=row[0],
        builds=row[1],
        searches=row[2],
        documents=row[3],
        answers=row[4],
        steps=row[5],
    )


def _runnables() -> Select[Any]:
    """Select runnables with their keys and origins."""
    table = schema.runnable_subject
    return (
        select(schema.runnable.c.key, table, schema.origin.c.text.label("origin"))
        .join_from(table, schema.runnable)
        .outerjoin(schema.origin, table.c.origin_id == schema.origin.c.id)
    )


def recent(connection: Connection, most: int, interned: Interned) -> Sequence[tuple[Runnable, Outcome]]:
    """Return the last outcomes, newest first, each with its first runnable."""
    found = read_recent(connection, most, interned)
    table = schema.runnable_subject
    rows = connection.execute(
        _runnables()
        .where(table.c.runnable_id.in_({number for number, _ in found}))
        .order_by(table.c.id.desc())
    )
    first = {row.runnable_id: runnable_from_row(row) for row in rows}
    return [(first[number], outcome) for number, outcome in found if number in first]


def read_documents(
    connection: Connection, kind: type[AnyDocument], within: str, where: str
) -> Sequence[AnyDocument]:
    """Return the documents of a kind that count, in the order in which their keys were first stored."""
    table = schema.document
    chosen = [table.c.kind == KINDS[kind].name]
    if within:
        chosen.append(table.c.key.startswith(f"{storable(within)}/", autoescape=True))
    wanted = select(table.c.json)
    if KINDS[kind].replaces:
        first, last = func.min(table.c.id).label("first"), func.max(table.c.id).label("last")
        ids = select(first, last).where(*chosen).group_by(table.c.key).subquery()
        wanted = wanted.join(ids, table.c.id == ids.c.last).order_by(ids.c.first)
    else:
        wanted = wanted.where(*chosen).order_by(table.c.id)
    return [document_from_json(kind, text, where) for text in connection.scalars(wanted)]


def search_row(record: SearchRecord) -> dict[str, object]:
    """Return the columns of a search except ids. Raises `StoreError` for data that is not plain."""
    key = identifier(record.key, "search")
    what = f"search {key}"
    return {
        "key": key,
        "question": to_json(dict(record.question), what),
        "started": storable(record.started),
        "answer": None if record.answer is None else to_json(dict(record.answer), what),
    }


def answer_text(key: str, answer: Mapping[str, Json]) -> str:
    """Return an answer in storable form. Raises `StoreError` for data that is not plain."""
    return to_json(dict(answer), f"search {key}")


def step_row(key: str, step: StepRecord) -> dict[str, object]:
    """Return the columns of a step except ids. Raises `StoreError` for data that is not plain."""
    where = f"search {key}, step {step.number}"
    return {
        "action": to_json(dict(step.action), where),
        "news": to_json(dict(step.observation), where),
        "belief": to_json(dict(step.belief), where),
        "words": storable(step.words),
    }


class Searches:
    """The searches of a store; `where` names the store in errors."""

    def __init__(self, interned: Interned, *, where: str) -> None:
        self._interned = interned
        self._where = where

    def insert(self, connection: Connection, row: Mapping[str, object], machine: str, version: int) -> None:
        """Insert a search unless it exists. Raises `StoreError` for an unknown machine."""
        machine_id = self._interned.machines.find(connection, machine)
        if machine_id is None:
            raise unknown_machine(machine, self._where)
        if self._find(connection, str(row["key"]), machine) is None:
            new = insert_unless_exists(connection, schema.search)
            connection.execute(new.values(**row, machine_id=machine_id, perftrail_id=version))

    def set_answer(self, connection: Connection, key: str, machine: str, text: str) -> None:
        """Set a search's answer. Raises `StoreError` if the search does not exist."""
        table = schema.search
        search = self._existing(connection, key, machine)
        connection.execute(update(table).where(table.c.id == search).values(answer=text))

    def set_step(
        self, connection: Connection, key: str, machine: str, number: int, row: Mapping[str, object]
    ) -> None:
        """Insert or replace a step. Raises `StoreError` if its search does not exist."""
        search = self._existing(connection, key, machine)
        new = insert_or_replace(connection, schema.step, row)
        connection.execute(new.values(**row, search_id=search, number=number))

    def read_all(self, connection: Connection) -> Sequence[SearchRecord]:
        """Return every search, the latest last."""
        table = schema.search
        wanted = select(table, schema.machine.c.fingerprint).join_from(table, schema.machine)
        rows = connection.execute(wanted.order_by(table.c.id)).all()
        return [search_from_row(row, self._where) for row in rows]

    def steps(self, connection: Connection, key: str, machine: str) -> Sequence[StepRecord]:
        """Return the steps of a search in order; none if the search does not exist."""
        table = schema.step
        search = self._find(connection, key, machine)
        wanted = select(table).where(table.c.search_id == search).order_by(table.c.number)
        rows: Sequence[Any] = connection.execute(wanted).all()
        return [step_from_row(row, self._where) for row in rows]

    def _find(self, connection: Connection, key: str, machine: str) -> int | None:
        if key != storable(key):
            return None
        table = schema.search
        machine_id = self._interned.machines.find(connection, machine)
        return connection.scalar(
            select(table.c.id).where(table.c.key == key, table.c.machine_id == machine_id)
        )

    def _existing(self, connection: Connection, key: str, machine: str) -> int:
        found = self._find(connection, key, machine)
        if found is None:
            raise unknown_search(key, machine, self._where)
        return found


class SqlStore(DocumentStore):
    """A `perftrail.ports.Store` in a database: each call is one transaction, durable when it returns.

    `machine` is the id of the machine of builds and listings, if known; `add_machine` must store it before. Among
    builds with one key, those of this machine take precedence. With a `refusal`, every attempt to write raises
    `StoreError` with that text. `server_wait` states how long to wait for a server that does not answer.
    """

    def __init__(
        self,
        database: Database,
        *,
        machine: str = "",
        refusal: str = "",
        server_wait: ServerWait | None = None,
    ) -> None:
        self._interned = outcome_rows.Interned()
        self._transactions = Transactions(
            database, on_rollback=self._interned.forget, refusal=refusal, server_wait=server_wait
        )
        self._searches = Searches(self._interned, where=database.where)
        self._machine = machine

    def close(self) -> None:
        """Close every connection; the store cannot be used afterwards."""
        self._transactions.close()

    def add_machine(self, machine: Machine) -> None:
        """Store a machine's facts; a known machine keeps its first facts."""
        fingerprint = identifier(machine.id, "machine")
        facts = to_json(dict(machine.facts), f"machine {fingerprint}")

        def store_row(connection: Connection) -> None:
            if self._interned.machines.find(connection, fingerprint) is None:
                new = insert_unless_exists(connection, schema.machine)
                connection.execute(new.values(fingerprint=fingerprint, facts=facts))

        self._transactions.write(store_row)

    def machines(self) -> Mapping[str, Machine]:
        """Return every machine by id, in the order in which they were stored."""
        table = schema.machine
        wanted = select(table.c.fingerprint, table.c.facts).order_by(table.c.id)
        return self._transactions.read(
            lambda connection: {
                id: Machine(id=id, facts=facts_from_json(facts)) for id, facts in connection.execute(wanted)
            }
        )

    def add_build(self, record: BuildRecord) -> None:
        """Store the outcome of a build; the last record of a key counts."""
        row: dict[str, object] = {
            "key": identifier(record.key, "build"),
            "revision": storable(record.revision),
            "variant": storable(record.variant),
            "benchmark": storable(record.benchmark),
            "finished": storable(record.finished),
            "succeeded": not isinstance(record.outcome, Failure),
            "outcome": build_outcome_to_json(record),
            "recipe": storable(record.recipe),
        }
        self._append(schema.build, row, machine=self._machine)

    def build(self, key: str) -> BuildRecord | None:
        """Return the last record of a build, one of this machine if there is one; `None` if it was never tried."""
        if key != storable(key):
            return None
        table = schema.build

        def latest(connection: Connection) -> BuildRecord | None:
            order = [each.desc() for each in self._builds_order(connection)]
            row = connection.execute(
                select(table).where(table.c.key == key).order_by(*order).limit(1)
            ).first()
            return None if row is None else build_from_row(row)

        return self._transactions.read(latest)

    def builds(self) -> Mapping[str, BuildRecord]:
        """Return the last record of every build by key, one of this machine if there is one."""

        def query(connection: Connection) -> Mapping[str, BuildRecord]:
            found = connection.execute(select(schema.build).order_by(*self._builds_order(connection)))
            rows = {row.key: row for row in found}
            return {key: build_from_row(row) for key, row in rows.items()}

        return self._transactions.read(query)

    def subject_builds(self) -> Mapping[tuple[str, str], BuildRecord]:
        """Return the last build of every subject, by revision and variant; one of this machine if there is one."""
        table = schema.build

        def query(connection: Connection) -> Mapping[tuple[str, str], BuildRecord]:
            own = select(table).where(table.c.benchmark == "")
            found = connection.execute(own.order_by(*self._builds_order(connection)))
            rows = {(row.revision, row.variant): row for row in found}
            return {name: build_from_row(row) for name, row in rows.items()}

        return self._transactions.read(query)

    def first_finished(self) -> Mapping[tuple[str, str, str], str]:
        """Return when each build of a subject was first stored, by revision, variant and key."""
        table = schema.build
        name = (table.c.revision, table.c.variant, table.c.key)
        wanted = select(*name, func.min(table.c.finished)).where(table.c.benchmark == "").group_by(*name)
        return self._transactions.read(
            lambda connection: {
                (revision, variant, key): first
                for revision, variant, key, first in connection.execute(wanted)
            }
        )

    def _builds_order(self, connection: Connection) -> Sequence[ColumnElement[int]]:
        """Return an order in which the build that counts comes last: builds of other machines may differ."""
        table = schema.build
        here = self._interned.machines.find(connection, self._machine) if self._machine else None
        return (table.c.id,) if here is None else (case((table.c.machine_id == here, 1), else_=0), table.c.id)

    def add_runnable(self, runnable: Runnable, *, last: bool = False) -> None:
        """Store a runnable with its revision, variant, benchmark and point, and its last origin.

        With `last`, it comes after all others from then on.
        """
        plain = storable_runnable(runnable)
        row = {
            "revision": plain.revision,
            "variant": plain.variant,
            "benchmark": plain.benchmark,
            "point": point_to_json(plain.point),
        }
        table = schema.runnable_subject

        def store_row(connection: Connection) -> None:
            row_of = {"runnable_id": self._interned.runnables.intern(connection, plain.key), **row}
            origin = plain.origin
            origin_id = origin and self._interned.origins.intern(connection, origin_to_json(origin))
            same = [table.c[name] == value for name, value in row_of.items()]
            existing = connection.execute(select(table.c.id, table.c.origin_id).where(*same)).one_or_none()
            if last and existing is not None:
                connection.execute(delete(table).where(table.c.id == existing.id))
                origin_id = existing.origin_id if origin_id is None else origin_id
            if last or existing is None:
                new = insert_unless_exists(connection, table)
                connection.execute(new.values(**row_of, artefact=plain.artefact, origin_id=origin_id))
            elif origin_id not in (None, existing.origin_id):
                connection.execute(update(table).where(*same).values(origin_id=origin_id))

        self._transactions.write(store_row)

    def runnables(self, benchmark: str | None = None) -> Sequence[Runnable]:
        """Return every runnable, or those of one benchmark, in the order in which they were stored.

        A key occurs once for each of its revisions, variants and points.
        """
        table = schema.runnable_subject
        wanted = _runnables().order_by(table.c.id)
        if benchmark is not None:
            wanted = wanted.where(table.c.benchmark == storable(benchmark))
        return self._transactions.read(
            lambda connection: [runnable_from_row(row) for row in connection.execute(wanted)]
        )

    def revisions(self) -> frozenset[str]:
        """Return the ids of the revisions of all runnables."""
        wanted = select(schema.runnable_subject.c.revision).distinct()
        return frozenset(self._transactions.read(lambda connection: connection.scalars(wanted).all()))

    def add_revisions(self, revisions: Iterable[tuple[int, Revision]]) -> None:
        """Store revisions, each with its position in the history; a known one gets its new position and label."""
        rows = [revision_to_row(revision, position) for position, revision in revisions]

        def store_row(connection: Connection) -> None:
            names = TextIds(schema.revision, schema.revision.c.name)
            existing = names.find_all(connection, [str(row["name"]) for row in rows])
            for row in rows:
                if row["name"] in existing:
                    table = schema.revision
                    connection.execute(update(table).where(table.c.name == row["name"]).values(row))
                else:
                    connection.execute(insert_unless_exists(connection, schema.revision).values(row))

        self._transactions.write(store_row)

    def history(self) -> Sequence[Revision]:
        """Return the stored revisions in the order of the history."""
        table = schema.revision
        wanted = select(table).order_by(table.c.position, table.c.id)
        return self._transactions.read(
            lambda connection: [revision_from_row(row) for row in connection.execute(wanted)]
        )

    def sampled_machines(self) -> frozenset[str]:
        """Return the ids of the machines with at least one invocation."""
        table, names = schema.invocation, schema.runnable

        def query(connection: Connection) -> frozenset[str]:
            found = set()
            for row in connection.execute(select(schema.machine.c.id, schema.machine.c.fingerprint)).all():
                one = exists().where(table.c.runnable_id == names.c.id, table.c.machine_id == row.id)
                if connection.scalar(select(names.c.id).where(one).limit(1)) is not None:
                    found.add(row.fingerprint)
            return frozenset(found)

        return self._transactions.read(query)

    def ran(self, runnables: Collection[str], machine: str) -> frozenset[str]:
        """Return the runnables, among these, that have an invocation on a machine."""
        table, names = schema.invocation, schema.runnable

        def query(connection: Connection) -> frozenset[str]:
            at = self._interned.machines.find(connection, machine)
            if at is None:
                return frozenset()
            one = exists().where(table.c.runnable_id == names.c.id, table.c.machine_id == at)
            wanted = [key for key in runnables if key == storable(key)]
            return frozenset(
                key
                for chunk in chunks(wanted)
                for key in connection.scalars(select(names.c.key).where(names.c.key.in_(chunk), one))
            )

        return self._transactions.read(query)

    def add(self, outcome: Outcome) -> None:
        """Store an outcome durably. Raises `StoreError` if its key exists."""
        self.add_all([outcome])

    def add_all(self, outcomes: Iterable[Outcome]) -> None:
        """Store many outcomes in one transaction, all or none. Raises `StoreError` as `add` does."""
        plain = [storable_outcome(outcome) for outcome in outcomes]
        try:
            self._transactions.write(
                lambda connection: outcome_rows.write(
                    connection, plain, self._interned, perftrail=__version__
                ),
                is_stored=lambda connection: outcome_rows.all_stored(connection, plain, self._interned),
            )
        except StoreError as error:
            if not isinstance(error.__cause__, IntegrityError):
                raise
            raise self._conflict(plain, error) from error

    def _conflict(self, outcomes: Sequence[Outcome], error: StoreError) -> StoreError:
        culprit = self._transactions.read(
            lambda connection: outcome_rows.first_stored(connection, outcomes, self._interned)
        )
        return error if culprit is None else duplicate_key(culprit.key, self._transactions.where)

    def outcomes(self, runnables: Collection[str], machine: str) -> Mapping[str, tuple[Outcome, ...]]:
        """Return the outcomes of runnables on a machine: warm-ups first, then by ordinal.

        Every requested runnable is in the result, with an empty tuple if it has no outcomes.
        """
        return self._transactions.read(
            lambda connection: outcome_rows.read(connection, runnables, machine, self._interned)
        )

    def samples(
        self, runnables: Collection[str], machine: str, metrics: Collection[str]
    ) -> Mapping[str, Samples]:
        """Return the samples of runnables on a machine for some metrics; runnables that never ran are missing."""
        return self._transactions.read(
            lambda connection: read_samples(connection, runnables, machine, metrics, self._interned)
        )

    def open_search(self, record: SearchRecord) -> None:
        """Store the start of a search; an existing search does not change."""
        row = search_row(record)
        self._transactions.write(
            lambda connection: self._searches.insert(
                connection, row, record.machine, self._version_id(connection)
            )
        )

    def close_search(self, key: str, machine: str, answer: Mapping[str, Json]) -> None:
        """Store a search's answer; a later answer to the same question replaces it."""
        text = answer_text(key, answer)
        self._transactions.write(lambda connection: self._searches.set_answer(connection, key, machine, text))

    def searches(self) -> Sequence[SearchRecord]:
        """Return every search, the latest last."""
        return self._transactions.read(self._searches.read_all)

    def add_step(self, key: str, machine: str, step: StepRecord) -> None:
        """Store a step of a search; a step with the same number is replaced."""
        row = step_row(key, step)
        self._transactions.write(
            lambda connection: self._searches.set_step(connection, key, machine, step.number, row)
        )

    def steps(self, key: str, machine: str) -> Sequence[StepRecord]:
        """Return the steps of a search in order; none if the search does not exist."""
        return self._transactions.read(lambda connection: self._searches.steps(connection, key, machine))

    def add_document(self, document: Document) -> None:
        """Store a document, which may replace the last one with its key."""
        machine = document.machine if isinstance(document, ComparisonRecord) else self._machine
        self._append(schema.document, asdict(document_row(document)), machine=machine)

    def documents(self, kind: type[AnyDocument], within: str = "") -> Sequence[AnyDocument]:
        """Return the documents of a kind that count, or those whose first key field is `within`."""
        where = self._transactions.where
        return self._transactions.read(lambda connection: read_documents(connection, kind, within, where))

    def progress(self) -> StoreProgress:
        """Return how much the store contains; cheap."""
        return self._transactions.read(read_progress)

    def recent(self, most: int) -> Sequence[tuple[Runnable, Outcome]]:
        """Return the last outcomes, newest first, each with its first runnable."""
        return self._transactions.read(lambda connection: recent(connection, most, self._interned))

    def _append(self, table: Table, row: dict[str, object], *, machine: str) -> None:
        """Append a row with a machine, if known, and this version of perftrail."""

        def exists_already(connection: Connection) -> bool:
            same = (table.c[name] == value for name, value in row.items())
            return connection.scalar(select(table.c.id).where(*same).limit(1)) is not None

        def store_row(connection: Connection) -> None:
            machine_id = self._machine_id(connection, machine) if machine else None
            about = {"machine_id": machine_id, "perftrail_id": self._version_id(connection)}
            connection.execute(insert(table).values(row | about))

        self._transactions.write(store_row, is_stored=exists_already)

    def _version_id(self, connection: Connection) -> int:
        return self._interned.perftrails.intern(connection, __version__)

    def _machine_id(self, connection: Connection, machine: str) -> int:
        found = self._interned.machines.find(connection, machine)
        if found is None:
            raise unknown_machine(machine, self._transactions.where)
        return found
