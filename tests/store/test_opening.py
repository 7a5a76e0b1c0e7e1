"""Opening a store that exists or not, or is damaged, foreign, newer or inaccessible."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from perftrail import __version__
from perftrail.errors import StoreError
from perftrail.store import open_store
from perftrail.store.sqlite import open_to_write
from tests.store.examples import BUILD, MACHINE, RUNNABLE, SEARCH, acquaint, key, measurement, step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from perftrail.ports import Store

NOBODY = 65534


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "results.db"


@pytest.fixture
def filled(path: Path) -> Path:
    with open_store(str(path), access="write") as store:
        acquaint(store)
        store.add_all([measurement(key(ordinal)) for ordinal in range(500)])
    return path


@pytest.fixture
def public_directory() -> Iterator[Path]:
    """Give a directory that a user without rights can reach, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@contextmanager
def without_rights() -> Iterator[None]:
    """Run as a user whom write protection stops, since it does not stop root."""
    was = os.geteuid()
    if was == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if was == 0:
            os.seteuid(was)


# Not there, or not yet


def test_a_store_that_is_not_there_reads_as_empty_and_is_not_made(path: Path) -> None:
    with open_store(str(path), access="read") as store:
        assert store.outcomes([RUNNABLE.key], MACHINE.id) == {RUNNABLE.key: ()}
        assert store.searches() == []
    assert list(path.parent.iterdir()) == []


def test_a_file_with_nothing_in_it_yet_reads_as_empty_and_stays_so(path: Path) -> None:
    path.touch()
    with open_store(str(path), access="read") as store:
        assert store.machines() == {}
    assert path.read_bytes() == b""
    with open_store(str(path), access="write") as store:
        store.add_machine(MACHINE)
    with open_store(str(path), access="read") as store:
        assert list(store.machines()) == [MACHINE.id]


def test_the_directories_of_a_new_store_are_made(tmp_path: Path) -> None:
    path = tmp_path / "a/b?c#d%41/results.db"
    open_store(str(path), access="write").close()
    assert path.exists()
    with open_store(str(path), access="read") as store:
        assert store.machines() == {}


WRITES: list[Callable[[Store], None]] = [
    lambda store: store.add_machine(MACHINE),
    lambda store: store.add_build(BUILD),
    lambda store: store.add_runnable(RUNNABLE),
    lambda store: store.add(measurement(key(9999))),
    lambda store: store.open_search(SEARCH),
    lambda store: store.close_search(SEARCH.key, MACHINE.id, {}),
    lambda store: store.add_step(SEARCH.key, MACHINE.id, step(1)),
]


@pytest.mark.parametrize("write", WRITES)
def test_a_store_opened_for_reading_cannot_be_written(filled: Path, write: Callable[[Store], None]) -> None:
    for path in (filled, filled.with_name("missing.db")):
        with (
            open_store(str(path), access="read") as store,
            pytest.raises(StoreError, match="the store is open for reading only"),
        ):
            write(store)
    assert not filled.with_name("missing.db").exists()


def test_asking_for_the_package_or_for_a_missing_store_does_not_import_sqlalchemy(path: Path) -> None:
    script = (
        "import sys\n"
        "from perftrail.store import lock_for_writing, open_store\n"
        f"open_store({str(path)!r}, access='read').close()\n"
        "print(sorted({name.split('.')[0] for name in sys.modules} & {'sqlalchemy', 'numpy', 'asyncio'}))"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    output = subprocess.run(
        [sys.executable, "-c", script], env=environment, check=True, capture_output=True, text=True
    )
    assert output.stdout == "[]\n"


# Reading during a write


def test_a_reader_sees_each_outcome_as_soon_as_it_is_added_and_does_not_stop_the_writer(path: Path) -> None:
    with open_store(str(path), access="write") as writer, open_store(str(path), access="read") as reader:
        acquaint(writer)
        for ordinal in range(5):
            writer.add(measurement(key(ordinal)))
            assert len(reader.outcomes([RUNNABLE.key], MACHINE.id)[RUNNABLE.key]) == ordinal + 1


def test_an_outcome_is_forced_to_disk_before_add_returns(path: Path) -> None:
    engine = open_to_write(str(path))
    with engine.connect() as connection:
        for setting, wanted in (("journal_mode", "wal"), ("synchronous", 2), ("foreign_keys", 1)):
            assert connection.exec_driver_sql(f"PRAGMA {setting}").scalar() == wanted
    engine.dispose()


def test_the_version_and_the_machine_are_kept_with_each_outcome(path: Path) -> None:
    with open_store(str(path), access="write", machine=MACHINE.id) as store:
        acquaint(store)
        store.add(measurement(key()))
        store.add_build(BUILD)
        store.open_search(SEARCH)
    with closing(sqlite3.connect(path)) as database:
        for table in ("invocation", "build", "search"):
            kept = database.execute(
                f"SELECT version, fingerprint FROM {table} JOIN machine ON machine.id = machine_id "
                "JOIN perftrail ON perftrail.id = perftrail_id"
            )
            assert kept.fetchall() == [(__version__, MACHINE.id)]


def test_builds_are_not_kept_for_a_machine_that_is_unknown(path: Path) -> None:
    with open_store(str(path), access="write", machine="unheard-of") as store:
        with pytest.raises(StoreError, match="machine 'unheard-of' is unknown"):
            store.add_build(BUILD)
        assert store.build(BUILD.key) is None


def test_a_store_in_a_directory_that_may_not_be_written_can_be_read(public_directory: Path) -> None:
    path = public_directory / "results.db"
    with open_store(str(path), access="write") as store:
        acquaint(store)
        store.add(measurement(key()))
    files = sorted(public_directory.iterdir())
    public_directory.chmod(0o555)
    with without_rights(), open_store(str(path), access="read") as store:
        assert store.outcomes([RUNNABLE.key], MACHINE.id) == {RUNNABLE.key: (measurement(key()),)}
    public_directory.chmod(0o755)
    assert sorted(public_directory.iterdir()) == files


# What cannot be opened


@pytest.mark.parametrize("again", [False, True])
def test_a_file_that_is_removed_while_it_is_open_is_an_error(path: Path, again: bool) -> None:
    with open_store(str(path), access="write") as store:
        acquaint(store)
        for file in path.parent.glob(f"{path.name}*"):
            file.unlink()
        if again:
            open_store(str(path), access="write").close()
        with pytest.raises(
            StoreError, match="was removed or replaced while perftrail used it; later samples"
        ):
            store.add(measurement(key(0)))


def test_a_file_that_is_no_database_is_refused_and_left_alone(path: Path) -> None:
    content = b"REAL TIME=1.5\n" * 500
    path.write_bytes(content)
    for access in ("read", "write"):
        with pytest.raises(
            StoreError, match=rf"^{re.escape(str(path))}: .*: this is not a store, or it is damaged"
        ):
            open_store(str(path), access=access)
    assert path.read_bytes() == content


def test_a_database_of_something_else_is_refused_and_left_alone(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE cookies (name TEXT)")
        database.commit()
    content = path.read_bytes()
    for access in ("read", "write"):
        with pytest.raises(StoreError, match="belongs to another program, with tables cookies"):
            open_store(str(path), access=access)
    assert path.read_bytes() == content


def test_a_store_of_a_newer_perftrail_is_refused_and_left_alone(filled: Path) -> None:
    with closing(sqlite3.connect(filled)) as database:
        database.execute("INSERT INTO perftrail_schema VALUES (999, '9.9')")
        database.commit()
    content = filled.read_bytes()
    for access in ("read", "write"):
        with pytest.raises(
            StoreError, match=r"this store has the format of a newer perftrail: .*install a newer one"
        ):
            open_store(str(filled), access=access)
    assert filled.read_bytes() == content


def test_a_damaged_store_is_reported_as_damaged(filled: Path) -> None:
    whole = filled.read_bytes()
    filled.write_bytes(whole[: 4096 * 2] + b"\xff" * (len(whole) - 4096 * 2))
    with pytest.raises(StoreError, match="damaged"), open_store(str(filled), access="read") as store:
        store.outcomes([RUNNABLE.key], MACHINE.id)


def test_a_directory_in_place_of_the_file_is_refused(path: Path) -> None:
    path.mkdir()
    for access in ("read", "write"):
        with pytest.raises(StoreError, match="this is a directory, not a store's file"):
            open_store(str(path), access=access)


def test_a_directory_without_write_permission_is_reported(public_directory: Path) -> None:
    public_directory.chmod(0o555)
    with without_rights():
        with pytest.raises(StoreError, match="is writable"):
            open_store(str(public_directory / "results.db"), access="write")
        with pytest.raises(StoreError, match="its directory cannot be created: Permission denied"):
            open_store(str(public_directory / "new/results.db"), access="write")
    public_directory.chmod(0o755)
