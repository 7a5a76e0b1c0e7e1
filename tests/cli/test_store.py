"""The commands of `perftrail store`: their output, which ends with the next useful command."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from perftrail.cli.commands.store import store_at, time_before
from perftrail.cli.options import SessionOptions, SourceOptions, repeated_options
from perftrail.errors import UsageError
from perftrail.store import open_store
from tests.cli.calling import called
from tests.starting import start
from tests.store.examples import acquaint, fill, key, measurement

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A directory of results."""
    with open_store(str(tmp_path / "one" / "results.db"), access="write") as store:
        fill(store)
    return tmp_path / "one"


def last_line(text: str) -> str:
    return text.splitlines()[-1]


def test_statistics_have_a_line_and_tables_by_machine_and_by_benchmark(results: Path) -> None:
    done = start("store", "stats", "--store", results)
    assert done.returncode == 0, done.stderr
    assert f"{results}/results.db: SQLite, schema " in done.stdout
    assert "rows: value 11, invocation 5, " in done.stdout
    assert "0123456789abcdef            4        2       1  2025-11-21T02:37:00" in done.stdout
    assert (
        last_line(done.stdout)
        == f"Next: perftrail store backup FILE --store {results}    copy it into one file"
    )
    data = json.loads(called("store", "stats", "--store", results, "--json").stdout)
    assert data["rows"]["invocation"] == 5
    assert data["machines"][0]["samples"] == 2


@pytest.mark.long
@pytest.mark.slow("postgresql")
def test_a_store_copied_to_a_server_and_back_is_complete(results: Path, postgresql: str) -> None:
    there = copied_there_and_back(results, postgresql)
    assert last_line(there.stdout).startswith("Next: perftrail store stats --store 'postgresql://ada@/t")


def test_a_store_copied_to_another_and_back_is_complete(results: Path, tmp_path: Path) -> None:
    there = copied_there_and_back(results, tmp_path / "two")
    assert last_line(there.stdout).startswith(f"Next: perftrail store stats --store {tmp_path}/two")


def copied_there_and_back(results: Path, other: str | Path) -> subprocess.CompletedProcess[str]:
    there = called("store", "copy", results, other)
    assert there.returncode == 0, there.stderr
    assert "5 invocations" in there.stdout
    back = called("store", "copy", other, results, "--json")
    data = json.loads(back.stdout)
    assert data["existing"]["invocations"] == 5
    assert not any(data["added"].values())
    assert "cret" not in there.stdout + there.stderr + back.stdout + back.stderr
    return there


def test_a_copy_with_a_conflict_exits_1_and_names_it(results: Path, tmp_path: Path) -> None:
    with open_store(str(tmp_path / "other.db"), access="write") as store:
        acquaint(store)
        store.add(measurement(key(0), wall=9.0))
    done = called("store", "copy", results, tmp_path / "other.db")
    assert done.returncode == 1
    assert "other.db: its content differs for sample 0 of aaaaaaaaaaaa" in done.stderr


def test_the_printed_command_restores_a_backup(results: Path, tmp_path: Path) -> None:
    saved = called("store", "backup", tmp_path / "a copy", "--store", results)
    assert saved.returncode == 0, saved.stderr
    assert "5 invocations" in saved.stdout
    assert (
        last_line(saved.stdout)
        == f"Next: perftrail store restore '{tmp_path}/a copy' --store DIRECTORY    restore it"
    )
    back = called("store", "restore", tmp_path / "a copy", "--store", tmp_path / "new")
    assert back.returncode == 0, back.stderr
    assert "identical to the backup" in back.stdout
    again = called("store", "restore", tmp_path / "a copy", "--store", tmp_path / "new")
    assert again.returncode == 1
    assert "this store is not empty" in again.stderr


def test_nothing_is_deleted_without_yes(results: Path) -> None:
    requested = called("store", "forget", "--older-than", "1d", "--store", results)
    assert requested.returncode == 0, requested.stderr
    assert "5 invocations with 11 values" in requested.stdout
    assert "would delete" in requested.stdout
    assert last_line(requested.stdout).startswith(
        "Delete them with --yes; to back them up before: perftrail store backup FILE"
    )
    done = called("store", "forget", "--older-than", "1d", "--yes", "--store", results, "--json")
    assert json.loads(done.stdout)["invocations"] == 5
    assert (
        json.loads(called("store", "stats", "--store", results, "--json").stdout)["rows"]["invocation"] == 0
    )
    small = called("store", "compact", "--store", results)
    assert small.returncode == 0, small.stderr
    assert last_line(small.stdout) == f"Next: perftrail store stats --store {results}    count its content"


def test_an_unreachable_server_is_reported_in_one_sentence_with_its_remedy(tmp_path: Path) -> None:
    done = called("store", "stats", "--store", f"postgresql://ada:secret@/t1?host={tmp_path}")
    assert done.returncode == 1
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert "check that the server runs, and its address" in done.stderr
    assert "secret" not in done.stderr


def test_an_invalid_address_is_wrong_usage() -> None:
    for address in ("mysql://ada:secret@host/db", "postgresql://ada:se/cret@host/db"):
        done = called("store", "stats", "--store", address)
        assert done.returncode == 2
        assert "cret" not in done.stderr


def test_a_store_is_named_by_its_directory_its_file_or_its_study(results: Path, tmp_path: Path) -> None:
    study = tmp_path / "study"
    study.mkdir()
    (study / "perftrail.toml").touch()
    (tmp_path / "empty").mkdir()
    expected = {
        results: results / "results.db",
        results / "results.db": results / "results.db",
        tmp_path / "empty": tmp_path / "empty" / "results.db",
        study: study / ".perftrail" / "results.db",
        tmp_path / "new": tmp_path / "new" / "results.db",
        tmp_path / "new.db": tmp_path / "new.db",
    }
    for word, location in expected.items():
        assert store_at(str(word)).location == str(location)


def test_an_age_is_days_weeks_or_years() -> None:
    assert time_before("1y") < time_before("26w") < time_before("90d") < time_before("1d")
    assert time_before("1 y")[:16] == time_before("365d")[:16]
    for odd in ("", "0d", "1", "y", "1m", "-1d", "1d2d", "9999999y", "999999y"):
        with pytest.raises(UsageError, match="--older-than"):
            time_before(odd)


def test_a_printed_command_names_a_server_without_its_password() -> None:
    options = SessionOptions(
        store="postgresql://ada:secret@host/db", wait=True, retry_failed=False, sandbox=None
    )
    assert repeated_options("study", SourceOptions(along=None, at=()), options) == (
        "study",
        "--store",
        "postgresql://ada@host/db",
    )
