"""The lock that allows one process to write."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import threading
from typing import TYPE_CHECKING

import pytest

from perftrail.errors import StoreError, StoreLocked
from perftrail.store import Holder, lock_for_writing, open_store
from tests.store.processes import heard, start, tell

if TYPE_CHECKING:
    from pathlib import Path


def test_a_second_writer_learns_which_process_has_the_lock_and_since_when(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    with start("holds", path) as holder:
        assert heard(holder) == "held"
        with pytest.raises(StoreLocked) as refusal, lock_for_writing(str(path), wait=False):
            pass
    assert re.fullmatch(
        rf"{re.escape(str(path))}: process {holder.pid} \(.*processes\.py holds .*\), started 20\d\d-.*, "
        "writes to it; wait until it ends, or name another store with --store",
        str(refusal.value),
    )


def test_a_writer_that_is_just_leaving_is_waited_for(tmp_path: Path) -> None:
    with (tmp_path / "results.db.lock").open("ab") as leaving:  # it has wiped out its name already
        fcntl.flock(leaving, fcntl.LOCK_EX)
        threading.Timer(0.1, fcntl.flock, (leaving.fileno(), fcntl.LOCK_UN)).start()
        with lock_for_writing(str(tmp_path / "results.db"), wait=False):
            pass


def test_a_waiting_second_writer_is_notified_once_and_starts_when_the_first_ends(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    events: list[Holder] = []
    with start("holds", path) as holder:
        assert heard(holder) == "held"

        def let_go(who: Holder) -> None:
            events.append(who)
            tell(holder, "let go")

        with lock_for_writing(str(path), wait=True, on_wait=let_go):
            assert heard(holder) == "free"
    assert [who.pid for who in events] == [holder.pid]


def test_two_stores_in_one_directory_do_not_wait_for_each_other(tmp_path: Path) -> None:
    with (
        lock_for_writing(str(tmp_path / "a.db"), wait=False),
        lock_for_writing(str(tmp_path / "b.db"), wait=False),
    ):
        pass


def test_a_store_has_one_lock_whatever_name_it_is_reached_by(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "results.db")
    with start("holds", tmp_path / "results.db") as holder:
        assert heard(holder) == "held"
        with pytest.raises(StoreLocked), lock_for_writing(str(tmp_path / "link.db"), wait=False):
            pass


def test_a_killed_holder_frees_the_store(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    with start("holds", path) as holder:
        assert heard(holder) == "held"
    assert holder.returncode == -signal.SIGKILL
    with lock_for_writing(str(path), wait=False):
        pass


def test_a_killed_holder_frees_the_store_even_if_a_child_of_its_own_lives_on(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    with start("forks", path) as holder:
        child = int(heard(holder).removeprefix("child "))
        holder.kill()
        holder.wait()
        os.kill(child, 0)
        with lock_for_writing(str(path), wait=False):
            pass


def test_a_wait_ends_at_ctrl_c(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    with start("holds", path) as holder:
        assert heard(holder) == "held"
        with start("waits", path) as waiting:
            assert heard(waiting) == f"waiting for {holder.pid}"
            waiting.send_signal(signal.SIGINT)
            waiting.wait(10)
            assert waiting.returncode == -signal.SIGINT
        tell(holder, "let go")
        assert heard(holder) == "free"


def test_a_process_that_locks_twice_is_refused_instead_of_waiting_for_itself(tmp_path: Path) -> None:
    path = str(tmp_path / "results.db")
    with (
        lock_for_writing(path, wait=False),
        pytest.raises(StoreLocked, match="this process already writes to it"),
        lock_for_writing(path, wait=True),
    ):
        pass


def test_the_lock_file_names_its_owner_and_is_empty_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    lock = tmp_path / "results.db.lock"

    def measure_in_vain() -> None:
        with lock_for_writing(str(path), wait=False):
            words = json.loads(lock.read_text())
            assert set(words) == {"pid", "command", "started"}
            assert words["pid"] == os.getpid()
            raise InterruptedError

    with pytest.raises(InterruptedError):
        measure_in_vain()
    assert lock.read_text() == ""
    with lock_for_writing(str(path), wait=False):
        pass
    assert lock.read_text() == ""


def test_a_refused_process_does_not_change_the_entry_of_the_holder(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    with start("holds", path) as holder:
        assert heard(holder) == "held"
        for _ in range(2):
            with (
                pytest.raises(StoreLocked, match=f"process {holder.pid} "),
                lock_for_writing(str(path), wait=False),
            ):
                pass


@pytest.mark.parametrize("content", ["", "{", "[]", '{"pid": 0, "command": [], "started": ""}'])
def test_the_lock_of_an_unnamed_holder_is_respected(tmp_path: Path, content: str) -> None:
    path = tmp_path / "results.db"
    with start("holds", path) as holder:
        assert heard(holder) == "held"
        (tmp_path / "results.db.lock").write_text(content)
        with (
            pytest.raises(StoreLocked, match="another process"),
            lock_for_writing(str(path), wait=False),
        ):
            pass


def test_reading_needs_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    open_store(str(path), access="write").close()
    with start("holds", path) as holder:
        assert heard(holder) == "held"
        with open_store(str(path), access="read") as store:
            assert store.machines() == {}


def test_a_lock_file_that_cannot_be_created_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(StoreError, match=r"the lock file cannot be created: .*with --store"),
        lock_for_writing(str(tmp_path / "file/results.db"), wait=False),
    ):
        pass


def test_the_lock_file_contains_no_password_of_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = "postgresql://ada:secret@host/db?sslmode=require"
    monkeypatch.setattr("sys.argv", ["perftrail", "run", "--store", address, f"--store={address}"])
    with lock_for_writing(str(tmp_path / "results.db"), wait=False):
        words = json.loads((tmp_path / "results.db.lock").read_text())["command"]
    shown = "postgresql://ada@host/db?sslmode=require"
    assert words == ["perftrail", "run", "--store", shown, f"--store={shown}"]
