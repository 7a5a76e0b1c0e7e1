"""Backups while others write; a restore is complete or reports what is missing."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from perftrail.errors import NoAnswer, StoreError
from perftrail.model.measurement import Machine
from perftrail.store import open_store
from perftrail.store.backup import backup, restore
from perftrail.store.copying import digests
from perftrail.store.databases import open_snapshot
from tests.store.examples import LISTING, MACHINE, READS, RUNNABLE, assert_filled, fill, key, measurement
from tests.store.processes import heard, start
from tests.store.server import until_waiting

LATE = Machine(id="9" * 16, facts={})


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in a file and its backup, `source.db` and `saved`, to be copied."""
    directory = tmp_path_factory.mktemp("filled")
    with open_store(str(directory / "source.db"), access="write", machine=MACHINE.id) as store:
        fill(store)
    backup(str(directory / "source.db"), directory / "saved")
    return directory


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
def location(request: pytest.FixtureRequest, filled: Path, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(shutil.copyfile(filled / "source.db", tmp_path / "results.db"))
    url: str = request.getfixturevalue("postgresql")
    with open_store(url, access="write", machine=MACHINE.id) as store:
        fill(store)
    return url


@pytest.fixture
def saved(filled: Path, tmp_path: Path) -> Path:
    """A backup of a store in a file."""
    shutil.copyfile(filled / "source.db", tmp_path / "source.db")
    return shutil.copyfile(filled / "saved", tmp_path / "saved")


def change(file: Path, *statements: str) -> None:
    with closing(sqlite3.connect(file)) as database:
        for statement in statements:
            database.execute(statement)
        database.commit()


# There and back


def test_a_backup_restored_is_what_was_there(location: str, tmp_path: Path) -> None:
    noted = backup(location, tmp_path / "saved")
    assert noted.digests["invocations"].rows == 5
    again = restore(tmp_path / "saved", str(tmp_path / "again" / "results.db"))
    assert again.digests == noted.digests
    with open_store(str(tmp_path / "again" / "results.db"), access="write") as store:
        assert_filled(store)
        store.add(measurement(key(99)))
    files = sorted(file.name for file in (tmp_path / "again").iterdir())
    assert files == ["directory.id", "results.db", "results.db.lock"]


def test_listings_are_part_of_a_backup(location: str, tmp_path: Path) -> None:
    with open_store(location, access="write", machine=MACHINE.id) as store:
        store.add_listing(LISTING)
        store.add_build_reads(READS)
    assert backup(location, tmp_path / "saved").digests["listings"].rows == 1
    restore(tmp_path / "saved", str(tmp_path / "again.db"))
    with open_store(str(tmp_path / "again.db"), access="read") as store:
        assert store.listings() == [LISTING]
        assert store.build_reads(READS.recipe) == [READS]
    change(tmp_path / "saved", "UPDATE document SET json = '{}'")
    with pytest.raises(StoreError, match=r"saved: its listings differ from those of the backup of"):
        restore(tmp_path / "saved", str(tmp_path / "changed.db"))


def test_restoring_writes_nothing_beside_the_backup(saved: Path, tmp_path: Path) -> None:
    change(saved, "PRAGMA journal_mode=WAL")
    before = {path.name: path.stat().st_mtime_ns for path in (*tmp_path.iterdir(), tmp_path)}
    with TemporaryDirectory() as other:
        restore(saved, f"{other}/results.db")
    assert {path.name: path.stat().st_mtime_ns for path in (*tmp_path.iterdir(), tmp_path)} == before


def test_a_damaged_schema_that_is_not_even_text_is_refused(saved: Path, tmp_path: Path) -> None:
    saved.write_bytes(saved.read_bytes().replace(b"machinemachine", b"m\xc3chinemachine", 1))
    with pytest.raises(StoreError, match="the store is damaged"):
        restore(saved, str(tmp_path / "again.db"))


@pytest.mark.long
def test_a_backup_goes_back_into_a_server(saved: Path, postgresql: str) -> None:
    restore(saved, postgresql)
    with open_store(postgresql, access="read") as store:
        assert_filled(store)


def test_a_backup_says_nothing_of_an_address(location: str, tmp_path: Path) -> None:
    backup(location, tmp_path / "saved")
    assert b"cret" not in (tmp_path / "saved").read_bytes()


def test_a_backup_while_another_writes_is_of_one_moment(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    with start("writes", path) as writer:
        assert heard(writer) == "started"
        assert heard(writer) == "ready"
        for number in range(2):
            heard(writer)
            noted = backup(str(path), tmp_path / f"saved{number}")
            restore(tmp_path / f"saved{number}", str(tmp_path / f"again{number}.db"))
            with open_store(str(tmp_path / f"again{number}.db"), access="read") as store:
                kept = store.outcomes([RUNNABLE.key], MACHINE.id)[RUNNABLE.key]
            assert len(kept) == noted.digests["invocations"].rows
            assert kept == tuple(measurement(key(ordinal), wall=ordinal / 7) for ordinal in range(len(kept)))
        assert int(heard(writer)) > 0
        assert writer.poll() is None


@pytest.mark.long
def test_a_restore_that_was_cut_short_leaves_nothing_in_a_server(saved: Path, postgresql: str) -> None:
    def stop(done: int, total: int) -> None:
        assert done == total == 5
        raise InterruptedError

    with pytest.raises(InterruptedError):
        restore(saved, postgresql, on_progress=stop)
    with open_snapshot(postgresql) as connection:
        assert sum(digest.rows for digest in digests(connection).values()) == 0
    restore(saved, postgresql)
    with open_store(postgresql, access="read") as store:
        assert_filled(store)


@pytest.mark.long
def test_a_writer_waits_for_the_end_of_a_restore(saved: Path, postgresql: str) -> None:
    """A writer in between would mix its samples with those of the backup, or lose them."""

    def come(*_: int) -> None:
        writer.start()
        until_waiting(postgresql, writer)

    def write() -> None:
        with open_store(postgresql, access="write") as store:
            store.add_machine(LATE)

    writer = threading.Thread(target=write)
    restore(saved, postgresql, on_progress=come)
    writer.join(30)
    with open_store(postgresql, access="read") as store:
        assert list(store.machines())[-1] == LATE.id
        assert len(store.machines()) == 3


# What is no backup, or no whole one


def test_a_backup_with_a_row_less_is_refused_and_nothing_restored(saved: Path, tmp_path: Path) -> None:
    change(saved, "DELETE FROM value WHERE invocation_id = 5", "DELETE FROM invocation WHERE id = 5")
    with pytest.raises(StoreError, match=r"saved: 4 invocations instead of 5 as in the backup of"):
        restore(saved, str(tmp_path / "again.db"))
    assert not (tmp_path / "again.db").exists()


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM perftrail_backup",
        "INSERT INTO perftrail_backup SELECT * FROM perftrail_backup",
        "UPDATE perftrail_backup SET digests = '[1'",
        "UPDATE perftrail_backup SET digests = '[1]'",
        """UPDATE perftrail_backup SET digests = '{"builds": 7}'""",
        "UPDATE perftrail_backup SET version = 'none'",
    ],
)
def test_a_backup_whose_note_cannot_be_read_is_refused(saved: Path, tmp_path: Path, statement: str) -> None:
    change(saved, statement)
    with pytest.raises(
        StoreError, match=r"saved: this backup's description of its content is not readable .*another"
    ):
        restore(saved, str(tmp_path / "again.db"))


def test_a_backup_with_invalid_rows_is_refused(saved: Path, tmp_path: Path) -> None:
    change(saved, "UPDATE invocation SET phase = 7 WHERE id = 1")
    with pytest.raises(StoreError, match=r"saved: some of its rows cannot be read .*use another backup"):
        restore(saved, str(tmp_path / "again.db"))


def test_a_backup_that_notes_rows_of_an_unknown_kind_is_refused(saved: Path, tmp_path: Path) -> None:
    added = """json_set(digests, '$.spells', json('[3, "0"]'))"""
    change(saved, f"UPDATE perftrail_backup SET digests = {added}")
    with pytest.raises(StoreError, match=r"saved: 0 spells instead of 3 as in the backup of"):
        restore(saved, str(tmp_path / "again.db"))


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE value SET value = value + 1e-16 WHERE metric_id = (SELECT id FROM metric WHERE name = 'wall')",
        "UPDATE invocation SET started = '' WHERE id = 3",
        "UPDATE build SET outcome = replace(outcome, 'file', 'directory') WHERE id = 1",
        "UPDATE step SET words = 'others'",
        "UPDATE machine SET facts = '{}' WHERE id = 1",
        "DELETE FROM value WHERE invocation_id = 2 AND metric_id = 2",
    ],
)
def test_a_backup_with_a_row_that_was_changed_is_refused(saved: Path, tmp_path: Path, statement: str) -> None:
    change(saved, statement)
    with pytest.raises(StoreError, match=r"saved: its \w+ differ from those of the backup of"):
        restore(saved, str(tmp_path / "again.db"))


def test_a_backup_whose_rows_refer_to_missing_ones_is_refused(saved: Path, tmp_path: Path) -> None:
    change(saved, "DELETE FROM machine WHERE id = 1")
    with pytest.raises(StoreError, match="this backup is incomplete, rows refer to missing ones"):
        restore(saved, str(tmp_path / "again.db"))


def test_a_damaged_backup_is_refused(saved: Path, tmp_path: Path) -> None:
    whole = saved.read_bytes()
    for damaged in (
        whole[: len(whole) // 2],
        whole[:8192] + b"\xff" * (len(whole) - 8192),
        b"no database" * 99,
    ):
        saved.write_bytes(damaged)
        with pytest.raises(StoreError, match=r"damaged|no such table|malformed|is not a complete backup"):
            restore(saved, str(tmp_path / "again.db"))
    assert not (tmp_path / "again.db").exists()


def test_a_damaged_store_has_no_backup_that_cannot_be_restored(saved: Path, tmp_path: Path) -> None:
    whole = saved.with_name("source.db").read_bytes()
    store, copy = tmp_path / "store.db", tmp_path / "copy"
    refused = 0
    for page in range(1, len(whole) // 4096):
        store.write_bytes(whole[: page * 4096] + b"\xa5" * 4096 + whole[(page + 1) * 4096 :])
        try:
            backup(str(store), copy)
        except StoreError as error:
            assert "damaged" in str(error)
            assert not copy.exists()
            refused += 1
        else:
            restore(copy, str(tmp_path / f"again-{page}.db"))
            copy.unlink()
    assert refused > 2


def test_a_journal_without_its_store_is_not_overwritten(saved: Path, tmp_path: Path) -> None:
    journal = tmp_path / "again.db-wal"
    journal.write_bytes(b"samples")
    with pytest.raises(StoreError, match="the journal of a store whose file is missing"):
        restore(saved, str(tmp_path / "again.db"))
    assert journal.read_bytes() == b"samples"


@pytest.mark.parametrize(
    ("kind", "name", "statement"),
    [
        ("trigger", "evil", "CREATE TRIGGER evil AFTER INSERT ON invocation BEGIN DELETE FROM value; END"),
        ("view", "evil", "CREATE VIEW evil AS SELECT 1"),
        ("table", "evil", "CREATE TABLE evil (a)"),
        ("table", "evil", "CREATE VIRTUAL TABLE evil USING fts5(a)"),
        ("index", "evil", "CREATE INDEX evil ON value (value)"),
        ("table", "value", "ALTER TABLE value ADD COLUMN evil INTEGER AS (1) VIRTUAL"),
    ],
)
def test_a_backup_with_an_object_that_is_not_of_a_store_is_refused(
    saved: Path, tmp_path: Path, kind: str, name: str, statement: str
) -> None:
    change(saved, statement)
    with pytest.raises(
        StoreError, match=rf"saved: this backup contains the {kind} '{name}', which is not part"
    ):
        restore(saved, str(tmp_path / "again.db"))
    assert not (tmp_path / "again.db").exists()


def test_a_backup_with_a_view_as_description_is_refused(saved: Path, tmp_path: Path) -> None:
    change(
        saved,
        "ALTER TABLE perftrail_backup RENAME TO other",
        "CREATE VIEW perftrail_backup AS SELECT * FROM other",
    )
    with pytest.raises(StoreError, match="contains the view 'perftrail_backup'"):
        restore(saved, str(tmp_path / "again.db"))


def test_a_store_is_no_backup_and_a_missing_file_neither(saved: Path, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="this is not a complete backup"):
        restore(tmp_path / "source.db", str(tmp_path / "again.db"))
    with pytest.raises(StoreError, match="no such file"):
        restore(tmp_path / "nowhere", str(tmp_path / "again.db"))


def test_a_backup_of_a_newer_schema_is_refused(saved: Path, tmp_path: Path) -> None:
    change(saved, "UPDATE perftrail_backup SET version = 999")
    with pytest.raises(StoreError, match="this store has the format of a newer perftrail"):
        restore(saved, str(tmp_path / "again.db"))


# Where a backup and a restore go


def test_a_store_with_content_is_not_overwritten_by_a_restore(saved: Path, location: str) -> None:
    with pytest.raises(
        StoreError, match="this store is not empty; move its whole directory away, restore to another"
    ):
        restore(saved, location)
    with open_store(location, access="read") as store:
        assert_filled(store)


def test_an_empty_store_is_restored_over(saved: Path, tmp_path: Path) -> None:
    with open_store(str(tmp_path / "again.db"), access="write"):
        pass
    restore(saved, str(tmp_path / "again.db"))
    with open_store(str(tmp_path / "again.db"), access="read") as store:
        assert_filled(store)


def test_a_file_that_is_there_is_not_written_over(saved: Path, tmp_path: Path) -> None:
    content = saved.read_bytes()
    with pytest.raises(StoreError, match="exists already; name another file"):
        backup(str(tmp_path / "source.db"), saved)
    assert saved.read_bytes() == content


def test_a_backup_of_nothing_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(NoAnswer, match="the store is empty"):
        backup(str(tmp_path / "results.db"), tmp_path / "saved")
    assert list(tmp_path.iterdir()) == []


def test_a_backup_to_a_place_without_write_permission_is_reported(saved: Path, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be created"):
        backup(str(tmp_path / "source.db"), saved / "below")
