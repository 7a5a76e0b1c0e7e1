"""Damaged stores: each reading command and each page names the file, the damage and the remedy, without a traceback."""

from __future__ import annotations

import random
import sqlite3
import time
from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING

import httpx2 as httpx
import pytest

from perftrail import local_engine
from perftrail.cli.main import main
from perftrail.errors import StoreError
from perftrail.local_engine import LocalEngine
from perftrail.model.subject import Revision
from perftrail.store import open_store
from tests.copied import copy_study
from tests.store.examples import COMPARISON, LISTING, READS, acquaint
from tests.web.conftest import PATIENCE_SECONDS, Client, served
from tests.web.studies import Hostile, make_studies

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from perftrail.ports import Engine, Store

    Damage = Callable[[Path], None]


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Hostile:
    return make_studies(tmp_path_factory.mktemp("studies"), revisions=12)


@pytest.fixture(autouse=True)
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compute reports in this process: to start another takes longer than a report."""

    @contextmanager
    def here() -> Iterator[Engine]:
        yield LocalEngine()

    monkeypatch.setattr(local_engine, "second_process", here)


def statement(*statements: str) -> Damage:
    def damage(file: Path) -> None:
        with closing(sqlite3.connect(file)) as database:
            database.execute("PRAGMA foreign_keys=OFF")
            for each in statements:
                database.execute(each)
            database.commit()

    return damage


def random_bytes(file: Path) -> None:
    file.write_bytes(random.Random(1).randbytes(20_000))


def truncated(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def random_pages(file: Path) -> None:
    whole = file.read_bytes()
    file.write_bytes(whole[:8192] + random.Random(1).randbytes(len(whole) - 8192))


UNREADABLE: dict[str, tuple[Damage, str]] = {
    "random bytes": (random_bytes, "not a database"),
    "truncated": (truncated, "malformed"),
    "random pages": (random_pages, "malformed|damaged"),
    "newer version": (
        statement("UPDATE perftrail_schema SET version = version + 900"),
        "schema is version 911",
    ),
    "no version": (statement("DELETE FROM perftrail_schema"), "schema version"),
    "negative version": (statement("UPDATE perftrail_schema SET version = -version"), "schema version"),
    "version is text": (
        statement("DROP TABLE perftrail_schema", "CREATE TABLE perftrail_schema AS SELECT 'six' AS version"),
        "schema version",
    ),
}
"""Damage that no command can ignore, and a part of its error."""

GARBAGE = ("not JSON", "", "7", "null", "[]", "[[[1]]]", "{}", '{"a": {"b": [null]}}', "[" * 100_000, "\x00")

JSON_COLUMNS = (
    "machine.facts",
    "build.outcome",
    "stands_for.point",
    "origin.text",
    "revision.parents",
    "invocation.flags",
    "search.question",
    "search.answer",
    "step.action",
    "step.news",
    "step.belief",
    "document.json",
)


def garbage(column: str) -> Damage:
    """Return damage that sets a column to each garbage in turn, as far as there are rows."""
    table, _, name = column.partition(".")

    def damage(file: Path) -> None:
        with closing(sqlite3.connect(file)) as database:
            database.execute("PRAGMA foreign_keys=OFF")
            database.commit()
            rows = [row[0] for row in database.execute(f"SELECT {key(table)} FROM {table}")]
            for number, row in enumerate(rows):
                database.execute(
                    f"UPDATE {table} SET {name} = ? WHERE {key(table)} = ?",
                    (GARBAGE[number % len(GARBAGE)], row),
                )
            database.commit()

    return damage


def key(table: str) -> str:
    return "number" if table == "step" else "id"


IN_ROWS: dict[str, Damage] = {
    "missing table": statement("DROP TABLE invocation"),
    "missing column": statement("ALTER TABLE value DROP COLUMN value"),
    **{f"garbage in {column}": garbage(column) for column in JSON_COLUMNS},
    "text as value": statement("UPDATE value SET value = 'fast'"),
    "unknown phase": statement("UPDATE invocation SET phase = 7"),
    "invalid UTF-8": statement("UPDATE stands_for SET benchmark = CAST(x'ff80' AS TEXT)"),
    "dangling metric": statement("DELETE FROM metric"),
}
"""Damage of some rows, tables and columns, which concerns only the commands that read them."""

UNUSED = ("garbage in document.json", "garbage in step.action", "garbage in revision.parents")
"""Damage of columns that none of these commands reads from this store."""

COMMANDS = (
    "show {study}",
    "show {study} --search 1",
    "report {study} -o {out}/page.html",
    "export {study} -o {out}/samples.csv",
    "export {study} --format otava -o {out}/otava",
    "store stats {study}",
    "store backup {out}/saved {study}",
    "store copy {file} {out}/copy.db",
)

PAGES = ("", "/history", "/regressions", "/searches", "/compare", "/samples/{runnable}")


def damaged(healthy: Hostile, tmp_path: Path, damage: Damage) -> Path:
    study = tmp_path / "alpha"
    copy_study(healthy.root / "alpha", study)
    file = study / ".perftrail" / "results.db"
    statement("PRAGMA wal_checkpoint(TRUNCATE)", "PRAGMA journal_mode=DELETE")(file)
    damage(file)
    return study


def command_results(study: Path, out: Path, capsys: pytest.CaptureFixture[str]) -> list[tuple[str, int, str]]:
    out.mkdir()
    found = []
    for command in COMMANDS:
        words = command.format(study=study, out=out, file=study / ".perftrail" / "results.db").split()
        with pytest.raises(SystemExit) as ended:
            main(words)
        found.append((command, int(str(ended.value.code)), capsys.readouterr().err))
    return found


def once_read(client: Client, path: str) -> httpx.Response:
    """Get a page when the study was read, or could not be."""
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        response = client.get(path)
        if response.status_code == 503 or "refresh" not in response.headers or time.monotonic() > until:
            return response
        time.sleep(0.05)


MANY = [pytest.mark.long, pytest.mark.slow("processor")]
SOME = ("missing column", "garbage in machine.facts", "garbage in search.answer")
"""Damage in rows that all commands and pages meet in each test run."""


def readings(store: Store, healthy: Hostile) -> Iterator[Callable[[], object]]:
    """Each reading of rows that have columns with JSON or numbers."""
    keys = [runnable.key for runnable in store.runnables()]
    yield store.machines
    yield store.builds
    yield store.history
    yield store.comparisons
    yield store.explanations
    yield store.searches
    for machine in (healthy.machine, healthy.other_machine):
        yield partial(store.outcomes, keys, machine)
        yield partial(store.steps, healthy.search, machine)


@pytest.mark.parametrize("kind", IN_ROWS)
def test_a_damaged_row_is_an_error_with_file_and_remedy(healthy: Hostile, tmp_path: Path, kind: str) -> None:
    file = damaged(healthy, tmp_path, lambda _: None) / ".perftrail" / "results.db"
    with open_store(str(file), access="write") as store:
        acquaint(store)
        store.add_comparison(COMPARISON)
        store.add_revisions([(0, Revision(id="1" * 40, parents=("2" * 40,)))])
    IN_ROWS[kind](file)
    errors = []
    with open_store(str(file), access="read") as store:
        try:
            for read in readings(store, healthy):
                read()
        except StoreError as error:
            errors.append(str(error))
    assert all("results.db: " in error and "restore a copy" in error for error in errors), errors
    assert errors


@pytest.mark.parametrize(
    "kind", [*UNREADABLE, *(pytest.param(kind, marks=[] if kind in SOME else MANY) for kind in IN_ROWS)]
)
def test_a_damaged_store_is_an_error_with_file_reason_and_remedy(
    healthy: Hostile, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    damage, reason = UNREADABLE[kind] if kind in UNREADABLE else (IN_ROWS[kind], "")
    study = damaged(healthy, tmp_path, damage)
    results = command_results(study, tmp_path / "out", capsys)
    assert any(code for _, code, _ in results) or kind in UNUSED
    for command, code, error in results:
        if kind in UNREADABLE or code:
            assert code == 1, (command, error)
            assert "results.db" in error, (command, error)
            assert "with --store" in error or "restore a copy" in error, (command, error)
            assert any(each in error for each in reason.split("|")), (command, error)
            assert "defect" not in error, (command, error)
    with served(tmp_path) as client:
        for page in PAGES:
            response = once_read(client, f"/s/alpha{page.format(runnable=healthy.runnable)}")
            assert response.status_code in ({503} if kind in UNREADABLE else {200, 404, 503}), (
                page,
                response,
            )
            if response.status_code == 503:
                assert "results.db" in response.text
        assert client.get("/").status_code in {200, 303}


@pytest.mark.parametrize("result", ["not JSON", "", "7", "null", "[]", "[" * 100_000])
def test_a_damaged_listing_is_an_error_with_file_and_remedy(tmp_path: Path, result: str) -> None:
    path = tmp_path / "results.db"
    with open_store(str(path), access="write") as store:
        store.add_listing(LISTING)
    with closing(sqlite3.connect(path)) as database:
        database.execute("UPDATE document SET json = ?", (result,))
        database.commit()
    with (
        open_store(str(path), access="read") as store,
        pytest.raises(StoreError, match=r"results\.db: .*the store is damaged; restore a copy"),
    ):
        store.listings()


@pytest.mark.parametrize(
    "reads",
    ["7", "[]", "{}", '{"opened": 1, "looked_up": [], "listed": [], "incomplete": ""}',
     '{"opened": [1], "looked_up": [], "listed": [], "incomplete": ""}',
     '{"opened": [], "looked_up": [], "listed": [], "outside": 1, "incomplete": ""}'],
)  # fmt: skip
def test_a_damaged_observation_is_an_error_with_file_and_remedy(tmp_path: Path, reads: str) -> None:
    path = tmp_path / "results.db"
    with open_store(str(path), access="write") as store:
        store.add_build_reads(READS)
    with closing(sqlite3.connect(path)) as database:
        database.execute("UPDATE document SET json = json_set(json, '$.reads', json(?))", (reads,))
        database.commit()
    with (
        open_store(str(path), access="read") as store,
        pytest.raises(StoreError, match=r"results\.db: .*the store is damaged; restore a copy"),
    ):
        store.build_reads(READS.recipe)


def test_a_healthy_store_is_read_by_all_of_these_commands(
    healthy: Hostile, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = damaged(healthy, tmp_path, lambda _: None)
    for command, code, error in command_results(study, tmp_path / "out", capsys):
        assert code == 0, (command, error)
