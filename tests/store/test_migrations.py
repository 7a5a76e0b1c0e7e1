"""Migrations of a store to the newest schema: nothing is lost, also when one fails."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import create_engine, inspect

from perftrail import __version__
from perftrail.errors import StoreError
from perftrail.model.measurement import Draw, Origin
from perftrail.model.subject import Revision
from perftrail.store import open_store, schema
from perftrail.store.migrations import Migration, shipped
from perftrail.store.sqlite import open_to_read, open_to_write
from tests.store.examples import (
    BUILD,
    COMPARISON,
    DRAW,
    EXPLANATION,
    FAILED_BUILD,
    LINK,
    LISTING,
    MACHINE,
    OTHER_MACHINE,
    OTHER_RUNNABLE,
    READS,
    RUNNABLE,
    SEARCH,
    acquaint,
    failed,
    key,
    measurement,
    step,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection

    from perftrail.model.json_data import Json
    from perftrail.store.memory import MemoryStore
    from perftrail.store.sql import SqlStore

FILES = Path(__file__).parent / "files"

OUTCOMES = (
    measurement(key(0, phase="warmup")),
    measurement(key(0)),
    failed(key(1)),
    replace(measurement(key(2)), values={"wall": 0.1, "ratio": 5e-324}, methods={}, flags=(), log=""),
)
ANSWER: dict[str, Json] = {"verdict": "found", "changes": [{"confidence": 0.997}]}


def fill(store: SqlStore) -> None:
    """Fill a store with the content of `tests/store/files`, which has a file for each version of the schema."""
    acquaint(store)
    store.add_runnable(replace(RUNNABLE, revision="3" * 40))
    for record in (FAILED_BUILD, BUILD, LINK):
        store.add_build(record)
    store.add_all(OUTCOMES)
    store.add(measurement(key(machine=OTHER_MACHINE, runnable=OTHER_RUNNABLE)))
    store.open_search(SEARCH)
    store.add_step(SEARCH.key, MACHINE.id, step(1))
    store.close_search(SEARCH.key, MACHINE.id, ANSWER)


def assert_filled(store: SqlStore | MemoryStore) -> None:
    assert dict(store.machines()) == {MACHINE.id: MACHINE, OTHER_MACHINE.id: OTHER_MACHINE}
    stored = [replace(each, origin=None) for each in store.runnables()]
    assert stored == [RUNNABLE, OTHER_RUNNABLE, replace(RUNNABLE, revision="3" * 40)]
    assert store.build(BUILD.key) == BUILD
    assert store.build(LINK.key) == LINK
    assert store.outcomes([RUNNABLE.key], MACHINE.id) == {RUNNABLE.key: OUTCOMES}
    assert len(store.outcomes([OTHER_RUNNABLE.key], OTHER_MACHINE.id)[OTHER_RUNNABLE.key]) == 1
    assert store.searches() == [replace(SEARCH, answer=ANSWER)]
    assert store.steps(SEARCH.key, MACHINE.id) == [step(1)]


DRAWN = (
    replace(measurement(key(0, runnable=OTHER_RUNNABLE)), draw=DRAW),
    replace(failed(key(1, runnable=OTHER_RUNNABLE)), draw=replace(DRAW, turn=0, layout=0)),
    replace(measurement(key(2, runnable=OTHER_RUNNABLE)), draw=Draw(seed=1)),
)
"""Additional content of the files from version 3 on: invocations with drawn values."""


ORIGIN = Origin(recipe="7" * 32, lines=("make", "{build}/prog"), tools=("x86_64", "cc: cc 12.2.0"))
HISTORY = (Revision(id="2" * 40, label="v1"), Revision(id="1" * 40, summary="Faster", parents=("2" * 40,)))
"""Additional content of the files from version 5 on: an origin of one runnable, and the history."""


def structure(path: Path) -> dict[str, object]:
    """Return the columns, keys, references, indexes and options of each table of a store."""
    engine = create_engine(f"sqlite:///{path}")
    found = inspect(engine)
    described: dict[str, object] = {
        name: (
            [str(column) for column in found.get_columns(name)],
            found.get_pk_constraint(name)["constrained_columns"],
            sorted(map(str, found.get_foreign_keys(name))),
            sorted(map(str, found.get_unique_constraints(name))),
            sorted(map(str, found.get_indexes(name))),
            found.get_table_options(name),
        )
        for name in found.get_table_names()
        if name != "perftrail_schema"
    }
    engine.dispose()
    return described


def tables(path: Path) -> set[str]:
    """Give the statements that made a store's tables and indexes."""
    with closing(sqlite3.connect(path)) as database:
        rows = database.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
        return {" ".join(sql.split()) for (sql,) in rows}


def versions(path: Path) -> list[tuple[int, str, str]]:
    with closing(sqlite3.connect(path)) as database:
        return database.execute("SELECT * FROM perftrail_schema ORDER BY version").fetchall()


def execute(*statements: str) -> Callable[[Connection], None]:
    def apply(connection: Connection) -> None:
        for statement in statements:
            connection.exec_driver_sql(statement)

    return apply


FIRST = Migration(number=1, name="0001_first", apply=execute("CREATE TABLE one (a INTEGER)"))
SECOND = Migration(
    number=2,
    name="0002_second",
    apply=execute("ALTER TABLE one ADD COLUMN b INTEGER", "UPDATE one SET b = a + 1"),
)
FAILING = Migration(
    number=3, name="0003_failing", apply=execute("DELETE FROM one", "DROP TABLE one", "CREATE TABLE (")
)

NEXT = shipped()[-1].number + 1
"""The number of the migration that is not shipped yet."""


# The schema as shipped


@pytest.mark.parametrize("start", ["missing", "empty"])
def test_a_new_store_gets_every_migration(tmp_path: Path, start: str) -> None:
    path = tmp_path / "results.db"
    if start == "empty":
        path.touch()
    open_store(str(path), access="write").close()
    assert versions(path) == [(each.number, each.name, __version__) for each in shipped()]


def test_the_migrations_end_in_the_schema_that_the_code_uses(tmp_path: Path) -> None:
    open_to_write(str(tmp_path / "migrated.db")).dispose()
    engine = create_engine(f"sqlite:///{tmp_path / 'made.db'}")
    schema.metadata.create_all(engine)
    engine.dispose()
    assert structure(tmp_path / "migrated.db") == structure(tmp_path / "made.db")


def test_migrations_are_numbered_without_gaps() -> None:
    migrations = shipped()
    assert [migration.number for migration in migrations] == list(range(1, len(migrations) + 1))


def test_opening_again_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    with open_store(str(path), access="write") as store:
        fill(store)
    content = path.read_bytes()
    with open_store(str(path), access="write") as store:
        assert_filled(store)
    assert path.read_bytes() == content


@pytest.mark.parametrize("file", sorted(FILES.glob("version-*.sql")), ids=lambda file: file.stem)
def test_a_store_of_every_version_so_far_is_read_whole(tmp_path: Path, file: Path) -> None:
    path = tmp_path / "results.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript(file.read_text())
    with open_store(str(path), access="write") as store:
        assert_filled(store)
        store.add(measurement(key(99)))
    assert versions(path)[-1][0] == shipped()[-1].number


def test_draws_are_read_from_a_store_that_has_them(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript((FILES / "version-0009.sql").read_text())
    with open_store(str(path), access="read") as store:
        assert store.outcomes([OTHER_RUNNABLE.key], MACHINE.id) == {OTHER_RUNNABLE.key: DRAWN}


def test_origins_and_the_history_are_read_from_a_store_that_has_them(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript((FILES / "version-0009.sql").read_text())
    with open_store(str(path), access="read") as store:
        assert store.history() == list(HISTORY)
        assert store.runnables("st") == [replace(OTHER_RUNNABLE, origin=ORIGIN)]
        assert [each.origin for each in store.runnables("mt")] == [None, None]


def test_comparisons_are_read_from_a_store_that_has_them(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript((FILES / "version-0009.sql").read_text())
    with open_store(str(path), access="read") as store:
        assert store.comparisons() == [COMPARISON]


def test_listings_are_read_from_a_store_that_has_them(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript((FILES / "version-0009.sql").read_text())
    with open_store(str(path), access="read") as store:
        assert store.listings() == [LISTING]


def test_explanations_are_read_from_a_store_that_has_them(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript((FILES / "version-0009.sql").read_text())
    with open_store(str(path), access="read") as store:
        assert store.explanations() == [EXPLANATION]


def test_a_store_of_the_version_before_explanations_takes_them(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript((FILES / "version-0008.sql").read_text())
    with open_store(str(path), access="write", machine=MACHINE.id) as store:
        assert store.explanations() == []
        store.add_explanation(EXPLANATION)
        assert store.explanations() == [EXPLANATION]
        assert store.listings() == [LISTING]


def test_a_store_of_the_version_before_listings_takes_them(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript((FILES / "version-0006.sql").read_text())
    with open_store(str(path), access="write", machine=MACHINE.id) as store:
        assert store.listings() == []
        store.add_listing(LISTING)
        assert store.listings() == [LISTING]
        assert store.comparisons() == [COMPARISON]


def test_observations_are_read_from_a_store_that_has_them(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript((FILES / "version-0009.sql").read_text())
    with open_store(str(path), access="read") as store:
        assert store.build_reads(READS.recipe) == [READS]


def test_a_store_of_the_version_before_observations_takes_them(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript((FILES / "version-0007.sql").read_text())
    with open_store(str(path), access="write", machine=MACHINE.id) as store:
        assert store.build_reads(READS.recipe) == []
        store.add_build_reads(READS)
        assert store.build_reads(READS.recipe) == [READS]
        assert store.listings() == [LISTING]


def test_searches_of_older_versions_get_the_keys_of_today(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    answer = {"smallest_seen": 0.02, "strays": [], "set_aside": 1, "marked": 2, "broke": [], "elsewhere": []}
    question = {"metric": "wall", "smallest": 0.05}
    with closing(sqlite3.connect(path)) as database:
        database.executescript((FILES / "version-0003.sql").read_text())
        database.execute(
            "UPDATE search SET question = ?, answer = ?",
            (json.dumps(question), json.dumps({"answers": [answer]})),
        )
        database.commit()
    open_store(str(path), access="write").close()
    with open_store(str(path), access="read") as store:
        found = store.searches()[0]
    assert found.question == {"metric": "wall", "threshold": 0.05}
    assert found.answer == {
        "answers": [
            {
                "minimum_detectable": 0.02,
                "outliers": [],
                "discarded": 1,
                "noisy": 2,
                "broken_ranges": [],
                "other_machines": [],
            }
        ]
    }


def test_an_upgraded_store_takes_new_draws_beside_samples_without(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript((FILES / "version-0002.sql").read_text())
    with open_store(str(path), access="write") as store:
        store.add_all(DRAWN)
        assert_filled(store)
        assert store.outcomes([OTHER_RUNNABLE.key], MACHINE.id) == {OTHER_RUNNABLE.key: DRAWN}


def test_there_is_a_file_of_every_version_so_far() -> None:
    assert [file.name for file in sorted(FILES.glob("version-*.sql"))] == [
        f"version-{migration.number:04}.sql" for migration in shipped()
    ]


# The machinery


def test_an_older_store_gets_only_what_it_lacks(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    open_to_write(str(path), migrations=[FIRST]).dispose()
    with closing(sqlite3.connect(path)) as database:
        database.execute("INSERT INTO one VALUES (41)")
        database.commit()
    open_to_write(str(path), migrations=[FIRST, SECOND]).dispose()
    assert [number for number, _, _ in versions(path)] == [1, 2]
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("SELECT a, b FROM one").fetchall() == [(41, 42)]


def test_a_migration_that_fails_leaves_the_file_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    open_to_write(str(path), migrations=[FIRST]).dispose()
    with closing(sqlite3.connect(path)) as database:
        database.execute("INSERT INTO one VALUES (41)")
        database.commit()
    content = path.read_bytes()
    with pytest.raises(StoreError, match="syntax error"):
        open_to_write(str(path), migrations=[FIRST, SECOND, FAILING])
    assert path.read_bytes() == content
    assert [number for number, _, _ in versions(path)] == [1]
    open_to_write(str(path), migrations=[FIRST, SECOND]).dispose()
    assert [number for number, _, _ in versions(path)] == [1, 2]


def test_a_first_migration_that_fails_leaves_no_table(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    with pytest.raises(StoreError, match="no such table"):
        open_to_write(str(path), migrations=[FAILING])
    assert tables(path) == set()
    with open_store(str(path), access="write") as store:
        fill(store)


def test_a_migration_that_breaks_references_is_undone(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    with open_store(str(path), access="write") as store:
        fill(store)
    careless = Migration(number=NEXT, name="careless", apply=execute("DELETE FROM machine"))
    with pytest.raises(StoreError, match=r"would break \d+ references, so nothing was changed"):
        open_to_write(str(path), migrations=[*shipped(), careless])
    with open_store(str(path), access="write") as store:
        assert_filled(store)


def test_a_migration_may_remake_a_table_that_others_refer_to(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    with open_store(str(path), access="write") as store:
        fill(store)
    remake = Migration(
        number=NEXT,
        name="0002_remake",
        apply=execute(
            "CREATE TABLE new_machine (id INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL UNIQUE, "
            "facts TEXT NOT NULL, extra TEXT)",
            "INSERT INTO new_machine SELECT id, fingerprint, facts, NULL FROM machine",
            "DROP TABLE machine",
            "ALTER TABLE new_machine RENAME TO machine",
        ),
    )
    open_to_write(str(path), migrations=[*shipped(), remake]).dispose()
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("SELECT count(*) FROM machine").fetchone() == (2,)


def test_an_older_store_is_not_read_but_says_how_it_can_be(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    open_to_write(str(path), migrations=[FIRST]).dispose()
    with pytest.raises(StoreError, match="`perftrail run` upgrades it and keeps every sample"):
        open_to_read(str(path), newest=2)
