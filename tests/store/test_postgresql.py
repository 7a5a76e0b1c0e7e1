"""Opening a store in a PostgreSQL database, and the messages when it cannot be opened."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import quote

import psycopg
import pytest

from perftrail.errors import StoreError, StoreUnreachable, UsageError
from perftrail.store import open_store, parse_server, shown
from tests.store.examples import (
    BUILD,
    BUILT,
    MACHINE,
    OTHER_MACHINE,
    RUNNABLE,
    acquaint,
    assert_filled,
    fill,
    key,
    measurement,
)
from tests.store.server import PASSWORD

if TYPE_CHECKING:
    from pathlib import Path

    from perftrail.store import Access
    from tests.store.server import Server

ACCESSES: tuple[Access, Access] = ("read", "write")


def refusal(url: str, access: Access = "write") -> str:
    """Return the message of an attempt to open a store: one line without any part of the password."""
    with pytest.raises((StoreError, UsageError)) as refused:
        open_store(url, access=access)
    message = str(refused.value)
    assert "\n" not in message
    assert_secret_kept(message)
    return message


def assert_secret_kept(text: str) -> None:
    for part in (PASSWORD, quote(PASSWORD, safe=""), "se cret", "se%20cret"):
        assert part not in text


# Not there, or not yet


@pytest.mark.long
def test_a_database_without_tables_reads_as_empty_and_is_left_alone(postgresql: str) -> None:
    with open_store(postgresql, access="read") as store:
        assert store.machines() == {}
        with pytest.raises(StoreError, match="the store is open for reading only") as refused:
            store.add_machine(MACHINE)
    assert_secret_kept(str(refused.value))
    assert tables(postgresql) == []


@pytest.mark.long
def test_a_store_that_is_there_is_read_and_not_written(postgresql: str) -> None:
    with open_store(postgresql, access="write") as store:
        fill(store)
    with open_store(postgresql, access="read") as store:
        assert_filled(store)
        with pytest.raises(StoreError, match="the store is open for reading only"):
            store.add(measurement(key(99)))


# What cannot be opened


@pytest.mark.long
def test_a_wrong_password_is_reported_with_the_places_for_the_right_one(postgresql: str) -> None:
    wrong = postgresql.replace(quote(PASSWORD, safe=""), "guessed")
    for access in ACCESSES:
        message = refusal(wrong, access)
        assert 'password authentication failed for user "ada"' in message
        assert "PGPASSWORD" in message
        assert "guessed" not in message


@pytest.mark.long
def test_a_missing_password_is_reported(postgresql: str) -> None:
    assert "~/.pgpass" in refusal(postgresql.replace(f":{quote(PASSWORD, safe='')}", ""))


@pytest.mark.long
def test_the_password_may_come_from_the_environment(postgresql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    open_store(postgresql.replace(f":{quote(PASSWORD, safe='')}", ""), access="write").close()
    assert tables(postgresql) != []


@pytest.mark.long
def test_a_missing_database_is_reported_with_the_command_that_creates_it(postgresql_server: Server) -> None:
    message = refusal(postgresql_server.url("nowhere"))
    assert 'database "nowhere" does not exist: create it (createdb NAME)' in message


def test_a_missing_server_is_reported(tmp_path: Path) -> None:
    url = f"postgresql://ada:{quote(PASSWORD, safe='')}@/t1?host={tmp_path}"
    assert "check that the server runs, and its address" in refusal(url)
    with pytest.raises(StoreUnreachable):
        open_store(url, access="read")


def test_an_unknown_host_is_reported() -> None:
    assert "check the host's name" in refusal("postgresql://ada:se%20cret@host.invalid/t1")


@pytest.mark.long
def test_the_error_for_a_user_without_permission_names_the_missing_grant(postgresql_server: Server) -> None:
    postgresql_server.execute("CREATE DATABASE others")
    postgresql_server.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC", database="others")
    message = refusal(postgresql_server.url("others"))
    assert "permission denied for schema public" in message
    assert "GRANT CREATE, USAGE ON SCHEMA public" in message


@pytest.mark.long
def test_a_database_that_cannot_keep_every_name_is_refused(postgresql_server: Server) -> None:
    message = refusal(postgresql_server.database(encoding="SQL_ASCII"))
    assert "createdb --encoding UTF8 --template template0" in message


@pytest.mark.long
def test_a_database_of_something_else_is_refused_and_left_alone(postgresql: str) -> None:
    with psycopg.connect(postgresql) as connection:
        connection.execute("CREATE TABLE cookies (name text)")
    for access in ACCESSES:
        assert "belongs to another program, with tables cookies" in refusal(postgresql, access)
    assert tables(postgresql) == ["cookies"]


@pytest.mark.long
def test_a_store_of_a_newer_perftrail_is_refused(postgresql: str) -> None:
    open_store(postgresql, access="write").close()
    with psycopg.connect(postgresql) as connection:
        connection.execute("INSERT INTO perftrail_schema VALUES (999, '9')")
    for access in ACCESSES:
        assert "this store has the format of a newer perftrail" in refusal(postgresql, access)


@pytest.mark.long
def test_an_unknown_parameter_is_reported_with_the_nearest_one(postgresql: str) -> None:
    message = refusal(f"{postgresql}&sslmod=require")
    assert 'unknown parameter "sslmod"; did you mean "sslmode"?' in message


@pytest.mark.long
def test_a_parameter_with_an_unexpected_meaning_is_reported(postgresql: str) -> None:
    assert 'invalid sslmode value: "perhaps"' in refusal(f"{postgresql}&sslmode=perhaps")


def test_an_invalid_percent_escape_is_reported_without_printing_the_password() -> None:
    address = "postgresql://ada:%zz@127.0.0.1:1/t1"
    assert "write %25 for %" in refusal(address)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://ada:se/cret@host/db",
        "postgresql://ada:se@cret@host/db",
        "postgresql://ada:se?cret/@host/db",
        "postgresql://ada:secret/db",
        "postgresql://ada@host:secret/db",
        "postgresql://host/db?passwrd=a@secret",
        "postgresql://ho\nst/db",
    ],
)
def test_an_address_with_an_unrecognisable_password_is_refused_and_not_printed(address: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_server(address)
    assert "cret" not in str(refused.value)
    assert shown(address) == "postgresql://…"


def test_an_address_of_another_kind_is_refused() -> None:
    with pytest.raises(UsageError, match=r"--store mysql://…: results are in a directory, or in PostgreSQL"):
        parse_server("mysql://ada:secret@host/db")
    assert parse_server("some/directory") is None
    assert parse_server(None) is None


def test_without_psycopg_the_error_says_how_to_install_it() -> None:
    script = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from perftrail.cli.main import main\n"
        "main(['store', 'stats', '--store', 'postgresql://ada:secret@host/db'])"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    output = subprocess.run(
        [sys.executable, "-c", script], env=environment, check=False, capture_output=True, text=True
    )
    assert output.returncode == 1
    assert output.stderr == (
        "results in PostgreSQL need psycopg, which is not installed: pip install 'perftrail[postgresql]'\n"
    )


# Tables


def tables(url: str) -> list[str]:
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() ORDER BY 1"
        )
        return [name for (name,) in rows]


@pytest.mark.long
def test_an_older_store_is_refused_with_a_remedy(postgresql: str) -> None:
    open_store(postgresql, access="write").close()
    with psycopg.connect(postgresql) as connection:
        connection.execute("UPDATE perftrail_schema SET version = 9")
    for access in ACCESSES:
        message = refusal(postgresql, access)
        assert "this store has the format of an older perftrail: its schema is version 9" in message
        assert "move it away and measure again" in message


# What only a store of several machines has to decide


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
def test_of_builds_with_one_key_those_of_the_own_machine_count_first(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    location: str = (
        request.getfixturevalue("postgresql") if kind == "postgresql" else str(tmp_path / "results.db")
    )
    with open_store(location, access="write") as store:
        acquaint(store)
    own = replace(BUILD, outcome=replace(BUILT, artefact="1" * 32))
    others = replace(BUILD, outcome=replace(BUILT, artefact="2" * 32))
    for machine, record in ((MACHINE, own), (OTHER_MACHINE, others)):
        with open_store(location, access="write", machine=machine.id) as store:
            store.add_build(record)
    for asking, expected in ((MACHINE.id, own), (OTHER_MACHINE.id, others), ("", others)):
        with open_store(location, access="read", machine=asking) as store:
            assert store.build(BUILD.key) == expected
            assert store.builds() == {BUILD.key: expected}


@pytest.mark.long
def test_a_name_that_is_too_long_for_an_index_is_reported(postgresql: str) -> None:
    noise = "".join(chr(0x4E00 + number * 7919 % 20_000) for number in range(9000))
    with open_store(postgresql, access="write") as store, pytest.raises(StoreError, match="shorten them"):
        store.add_runnable(replace(RUNNABLE, variant=noise))
