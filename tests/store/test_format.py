"""The format of a store: created once, and refused with a remedy if it is another one."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import fields
from pathlib import Path

import pytest

from perftrail import __version__
from perftrail.errors import StoreError
from perftrail.model.build import Built, Failure, Prepared, content_key
from perftrail.model.measurement import Origin
from perftrail.model.reads import BuildReads
from perftrail.store import format_version, open_store, schema
from perftrail.store.backup import restore
from perftrail.store.copying import copy_store
from perftrail.store.documents import KINDS
from perftrail.store.format_version import FORMAT
from tests.store.examples import assert_filled, fill

OLDER = Path(__file__).parent / "files" / "older.sql"
"""A store of version 9, with samples."""

REFUSED = (
    rf"this store has the format of an older perftrail: its schema is version 9, perftrail \S+ supports {FORMAT}; "
    r"move it away and measure again, .*perftrail export"
)


def versions(path: Path) -> list[tuple[int, str]]:
    with closing(sqlite3.connect(path)) as database:
        return database.execute("SELECT * FROM perftrail_schema").fetchall()


@pytest.mark.parametrize("start", ["missing", "empty"])
def test_a_new_store_has_the_version_of_its_format(tmp_path: Path, start: str) -> None:
    path = tmp_path / "results.db"
    if start == "empty":
        path.touch()
    open_store(str(path), access="write").close()
    assert versions(path) == [(FORMAT, __version__)]


RECORDS = (Built, Prepared, Failure, Origin, BuildReads, *KINDS)
"""Records that a store has as JSON."""


def test_a_change_of_tables_or_stored_records_gets_a_new_version() -> None:
    """Otherwise a store of yesterday would be reported as damaged."""
    tables = {name: [str(column) for column in table.c] for name, table in schema.metadata.tables.items()}
    records = {kind.__name__: [f"{each.name}: {each.type}" for each in fields(kind)] for kind in RECORDS}
    assert (FORMAT, content_key(tables, records)) == (11, "176288d0f4b9ee51ed4a7776180f2773"), (
        "raise format_version.FORMAT, and write its number and the new digest here"
    )


def test_opening_again_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    with open_store(str(path), access="write") as store:
        fill(store)
    content = path.read_bytes()
    with open_store(str(path), access="write") as store:
        assert_filled(store)
    assert path.read_bytes() == content


def test_a_store_that_another_process_creates_meanwhile_is_used(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    with open_store(str(path), access="write") as store:
        fill(store)
        with store._transactions._database.writing.begin() as connection:
            format_version.create(connection, where=str(path))
        assert_filled(store)


def test_tables_that_cannot_be_created_leave_no_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "results.db"
    monkeypatch.setattr(format_version, "__version__", None)
    with pytest.raises(StoreError, match="NOT NULL"):
        open_store(str(path), access="write")
    monkeypatch.undo()
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("SELECT name FROM sqlite_master").fetchall() == []
    with open_store(str(path), access="write") as store:
        fill(store)


def test_an_older_store_is_refused_with_a_remedy_and_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript(OLDER.read_text())
    content = path.read_bytes()
    for access in ("read", "write"):
        with pytest.raises(StoreError, match=REFUSED):
            open_store(str(path), access=access)
    with pytest.raises(StoreError, match=REFUSED):
        copy_store(str(path), str(tmp_path / "new.db"))
    assert path.read_bytes() == content


def test_an_older_backup_is_refused_with_a_remedy(tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    with closing(sqlite3.connect(saved)) as database:
        database.executescript(OLDER.read_text())
        database.execute(
            "CREATE TABLE perftrail_backup (made TEXT, perftrail TEXT, version INTEGER, digests TEXT)"
        )
        database.execute("INSERT INTO perftrail_backup VALUES ('2026-01-31', '0.1.0', 9, '{}')")
        database.commit()
    with pytest.raises(StoreError, match=REFUSED):
        restore(saved, str(tmp_path / "again.db"))
    assert not (tmp_path / "again.db").exists()
