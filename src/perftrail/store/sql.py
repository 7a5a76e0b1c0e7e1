"""The store in a database, through SQLAlchemy Core: the same statements whatever the database is."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sqlalchemy import delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from perftrail import __version__
from perftrail.errors import StoreError
from perftrail.model.build import Failure
from perftrail.model.measurement import Machine
from perftrail.store import outcomes as kept
from perftrail.store import schema
from perftrail.store.accepted import (
    accepted,
    accepted_runnable,
    identifier,
    storable,
    taken,
    to_json,
    unknown_machine,
    unknown_search,
)
from perftrail.store.rows import (
    build_from_row,
    build_outcome_to_json,
    point_to_json,
    runnable_from_row,
    search_from_row,
    step_from_row,
)
from perftrail.store.samples import read_samples
from perftrail.store.sqlite import BEGIN, told

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from types import TracebackType
    from typing import Self

    from sqlalchemy import Connection, Engine

    from perftrail.model.build import BuildRecord
    from perftrail.model.measurement import Outcome, Runnable, Samples
    from perftrail.model.trail import Json, SearchRecord, StepRecord


class SqlStore:
    """A `perftrail.ports.Store` in a database: each call is one transaction, durable when it returns.

    `where` names the store in errors. `machine` is the id of the machine that builds are made on, when one is
    known; it must have been kept with `add_machine` before the first build is. With a `refusal` nothing can
    be written: every attempt raises `StoreError` with that text.
    """

    def __init__(self, engine: Engine, *, where: str, machine: str = "", refusal: str = "") -> None:
        self._engine = engine
        self._writing = engine.execution_options(**{BEGIN: "BEGIN IMMEDIATE"})
        self._where = where
        self._machine = machine
        self._refusal = refusal
        self._interned = kept.Interned()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection; the store is not used afterwards."""
        self._engine.dispose()

    def add_machine(self, machine: Machine) -> None:
        """Keep what a machine is; one that is there already keeps its first facts."""
        fingerprint = identifier(machine.id, "machine")
        facts = to_json(dict(machine.facts), f"machine {fingerprint}")
        with self._write() as connection:
            if self._interned.machines.find(connection, fingerprint) is None:
                connection.execute(insert(schema.machine).values(fingerprint=fingerprint, facts=facts))

    def machines(self) -> Mapping[str, Machine]:
        """Give every machine seen, by id, in the order they were first kept."""
        table = schema.machine
        with self._read() as connection:
            rows = connection.execute(select(table.c.fingerprint, table.c.facts).order_by(table.c.id))
            return {id: Machine(id=id, facts=json.loads(facts)) for id, facts in rows}

    def add_build(self, record: BuildRecord) -> None:
        """Keep what came of a build; a later record of the same key stands for it from then on."""
        row = {
            "key": identifier(record.key, "build"),
            "revision": storable(record.revision),
            "variant": storable(record.variant),
            "benchmark": storable(record.benchmark),
            "finished": storable(record.finished),
            "succeeded": not isinstance(record.outcome, Failure),
            "outcome": build_outcome_to_json(record),
        }
        with self._write() as connection:
            machine = self._machine_id(connection, self._machine) if self._machine else None
            connection.execute(
                insert(schema.build).values(
                    row | {"machine_id": machine, "perftrail_id": self._version_id(connection)}
                )
            )

    def build(self, key: str) -> BuildRecord | None:
        """Give what came of a build last, `None` when it was never tried."""
        table = schema.build
        latest = select(table).where(table.c.key == key).order_by(table.c.id.desc()).limit(1)
        with self._read() as connection:
            row = connection.execute(latest).one_or_none()
        return None if row is None else build_from_row(row)

    def builds(self) -> Mapping[str, BuildRecord]:
        """Give what came of every build last, by key."""
        table = schema.build
        with self._read() as connection:
            rows = {row.key: row for row in connection.execute(select(table).order_by(table.c.id))}
        return {key: build_from_row(row) for key, row in rows.items()}

    def add_runnable(self, runnable: Runnable) -> None:
        """Keep what a runnable stands for: every revision, variant, benchmark and point, each once."""
        plain = accepted_runnable(runnable)
        row = {
            "revision": plain.revision,
            "variant": plain.variant,
            "benchmark": plain.benchmark,
            "point": point_to_json(plain.point),
        }
        table = schema.stands_for
        with self._write() as connection:
            row_of = {"runnable_id": self._interned.runnables.intern(connection, plain.key), **row}
            there = select(table.c.id).where(*(table.c[name] == value for name, value in row_of.items()))
            if connection.scalar(there) is None:
                connection.execute(insert(table).values(**row_of, artefact=plain.artefact))

    def runnables(self, benchmark: str | None = None) -> Sequence[Runnable]:
        """Give every runnable, or those of one benchmark, in the order they were first kept.

        A key comes once for each revision, variant and point that it stands for.
        """
        table = schema.stands_for
        wanted = select(schema.runnable.c.key, table).join_from(table, schema.runnable).order_by(table.c.id)
        if benchmark is not None:
            wanted = wanted.where(table.c.benchmark == benchmark)
        with self._read() as connection:
            return [runnable_from_row(row) for row in connection.execute(wanted)]

    def revisions(self) -> frozenset[str]:
        """Give the ids of the revisions that runnables stand for."""
        with self._read() as connection:
            return frozenset(connection.scalars(select(schema.stands_for.c.revision).distinct()))

    def add(self, outcome: Outcome) -> None:
        """Keep an outcome, on disk when this returns. Raises `StoreError` when its key is there already."""
        self.add_all([outcome])

    def add_all(self, outcomes: Iterable[Outcome]) -> None:
        """Keep many outcomes in one transaction, all or none. Raises `StoreError` as `add` does."""
        plain = [accepted(outcome) for outcome in outcomes]
        try:
            with self._write() as connection:
                kept.write(connection, plain, self._interned, perftrail=__version__)
        except StoreError as error:
            if not isinstance(error.__cause__, IntegrityError):
                raise
            raise self._conflict(plain, error) from error

    def _conflict(self, outcomes: Sequence[Outcome], error: StoreError) -> StoreError:
        with self._read() as connection:
            culprit = kept.first_kept(connection, outcomes, self._interned)
        if culprit is None:
            return error
        return taken(culprit.key, self._where)

    def outcomes(self, runnables: Collection[str], machine: str) -> Mapping[str, tuple[Outcome, ...]]:
        """Give the outcomes of runnables on a machine: warm-ups first, then by ordinal.

        Every runnable asked for is there, with an empty tuple when it has none.
        """
        with self._read() as connection:
            return kept.read(connection, runnables, machine, self._interned)

    def samples(
        self, runnables: Collection[str], machine: str, metrics: Collection[str]
    ) -> Mapping[str, Samples]:
        """Give what the samples of runnables on a machine are of some metrics; nothing of what was never started."""
        with self._read() as connection:
            return read_samples(connection, runnables, machine, metrics, self._interned)

    def open_search(self, record: SearchRecord) -> None:
        """Keep that a search began; one that is there already is left as it is."""
        key = identifier(record.key, "search")
        row = {
            "key": key,
            "question": to_json(dict(record.question), f"search {key}"),
            "started": storable(record.started),
            "answer": None if record.answer is None else to_json(dict(record.answer), f"search {key}"),
        }
        with self._write() as connection:
            machine = self._machine_id(connection, record.machine)
            if self._search_id(connection, key, record.machine) is None:
                connection.execute(
                    insert(schema.search).values(
                        **row, machine_id=machine, perftrail_id=self._version_id(connection)
                    )
                )

    def close_search(self, key: str, machine: str, answer: Mapping[str, Json]) -> None:
        """Keep a search's answer; a later answer to the same question replaces it."""
        text = to_json(dict(answer), f"search {key}")
        with self._write() as connection:
            search = self._open_search_id(connection, key, machine)
            connection.execute(update(schema.search).where(schema.search.c.id == search).values(answer=text))

    def searches(self) -> Sequence[SearchRecord]:
        """Give every search, the one begun last at the end."""
        table = schema.search
        wanted = (
            select(table, schema.machine.c.fingerprint).join_from(table, schema.machine).order_by(table.c.id)
        )
        with self._read() as connection:
            return [search_from_row(row) for row in connection.execute(wanted)]

    def add_step(self, key: str, machine: str, step: StepRecord) -> None:
        """Keep a step of a search; the same number again replaces it."""
        where = f"search {key}, step {step.number}"
        table = schema.step
        row = {
            "action": to_json(dict(step.action), where),
            "news": to_json(dict(step.news), where),
            "belief": to_json(dict(step.belief), where),
            "words": storable(step.words),
        }
        with self._write() as connection:
            search = self._open_search_id(connection, key, machine)
            connection.execute(
                delete(table).where(table.c.search_id == search, table.c.number == step.number)
            )
            connection.execute(insert(table).values(**row, search_id=search, number=step.number))

    def steps(self, key: str, machine: str) -> Sequence[StepRecord]:
        """Give the steps of a search in order; none when there is no such search."""
        table = schema.step
        with self._read() as connection:
            search = self._search_id(connection, key, machine)
            rows = connection.execute(
                select(table).where(table.c.search_id == search).order_by(table.c.number)
            )
            return [step_from_row(row) for row in rows]

    @contextmanager
    def _write(self) -> Iterator[Connection]:
        """Give a transaction that is on disk at the end, or undone."""
        if self._refusal:
            raise StoreError(self._refusal)
        try:
            with told(self._where), self._writing.begin() as connection:
                yield connection
        except BaseException:
            self._interned.forget()
            raise

    @contextmanager
    def _read(self) -> Iterator[Connection]:
        """Give a connection that sees one state of the store throughout."""
        with told(self._where), self._engine.connect() as connection:
            yield connection

    def _version_id(self, connection: Connection) -> int:
        return self._interned.perftrails.intern(connection, __version__)

    def _machine_id(self, connection: Connection, machine: str) -> int:
        found = self._interned.machines.find(connection, machine)
        if found is None:
            raise unknown_machine(machine, self._where)
        return found

    def _search_id(self, connection: Connection, key: str, machine: str) -> int | None:
        table = schema.search
        machine_id = self._interned.machines.find(connection, machine)
        return connection.scalar(
            select(table.c.id).where(table.c.key == key, table.c.machine_id == machine_id)
        )

    def _open_search_id(self, connection: Connection, key: str, machine: str) -> int:
        found = self._search_id(connection, key, machine)
        if found is None:
            raise unknown_search(key, machine, self._where)
        return found
