"""Changed settings are restored, whichever process is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import pytest

from perftrail.errors import SettingsError, UsageError
from perftrail.process.machine.settings import (
    Change,
    ChangedSettings,
    restore_abandoned_settings,
    run_attached,
)

HOLDER = """\
import json, sys, time
from pathlib import Path
from perftrail.process.machine.settings import ChangedSettings
from perftrail.process.machine.settings import Change
changes = [Change(**each) for each in json.loads(sys.argv[1])]
with ChangedSettings(changes, record=Path(sys.argv[2])) as held:
    print(held._guard.pid, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def knobs(tmp_path: Path) -> tuple[Change, ...]:
    changes = []
    for name, was, wanted in (("governor", "powersave", "performance"), ("no_turbo", "0", "1")):
        (tmp_path / name).write_text(f"{was}\n")
        changes.append(Change(setting=name, file=str(tmp_path / name), was=was, wanted=wanted))
    return tuple(changes)


@pytest.fixture
def record(tmp_path: Path) -> Path:
    return tmp_path / "state" / "record.json"


def says(knobs: tuple[Change, ...]) -> list[str]:
    return [Path(change.file).read_text().strip() for change in knobs]


def eventually_says(knobs: tuple[Change, ...], wanted: list[str]) -> None:
    deadline = time.monotonic() + 60.0
    while says(knobs) != wanted:
        assert time.monotonic() < deadline, says(knobs)
        time.sleep(0.01)


def start_holder(knobs: tuple[Change, ...], record: Path) -> tuple[subprocess.Popen[str], int]:
    """Start a process that holds settings; return it and its guard's process id."""
    serialised = json.dumps([asdict(change) for change in knobs])
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, serialised, str(record)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    return holder, int(holder.stdout.readline())


def end(holder: subprocess.Popen[str]) -> None:
    with holder:
        holder.kill()


def test_settings_are_changed_in_the_context_and_restored_after_it(
    knobs: tuple[Change, ...], record: Path
) -> None:
    with ChangedSettings(knobs, record=record):
        assert says(knobs) == ["performance", "1"]
    assert says(knobs) == ["powersave", "0"]
    assert restore_abandoned_settings(record) == ()


def test_settings_are_restored_after_an_error(knobs: tuple[Change, ...], record: Path) -> None:
    with pytest.raises(KeyboardInterrupt), ChangedSettings(knobs, record=record):
        raise KeyboardInterrupt
    assert says(knobs) == ["powersave", "0"]


def test_if_one_setting_cannot_be_changed_none_is(knobs: tuple[Change, ...], record: Path) -> None:
    impossible = Change(setting="x", file=str(record.parent / "no" / "such"), was="0", wanted="1")
    with (
        pytest.raises(SettingsError, match="such — cannot be set to 1"),
        ChangedSettings((*knobs, impossible), record=record),
    ):
        pass
    assert says(knobs) == ["powersave", "0"]


def test_a_setting_that_another_process_changed_stays(knobs: tuple[Change, ...], record: Path) -> None:
    with ChangedSettings(knobs, record=record):
        Path(knobs[0].file).write_text("schedutil")
    assert says(knobs) == ["schedutil", "0"]


def test_the_guard_restores_settings_that_a_killed_process_had_changed(
    knobs: tuple[Change, ...], record: Path
) -> None:
    holder, _ = start_holder(knobs, record)
    assert says(knobs) == ["performance", "1"]
    os.kill(holder.pid, signal.SIGKILL)
    eventually_says(knobs, ["powersave", "0"])
    end(holder)


def test_the_guard_ignores_a_request_to_end(knobs: tuple[Change, ...], record: Path) -> None:
    holder, guard = start_holder(knobs, record)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        os.kill(guard, number)
    os.kill(holder.pid, signal.SIGKILL)
    eventually_says(knobs, ["powersave", "0"])
    end(holder)


def test_the_next_start_restores_settings_when_both_were_killed(
    knobs: tuple[Change, ...], record: Path
) -> None:
    holder, guard = start_holder(knobs, record)
    os.kill(guard, signal.SIGKILL)
    os.kill(holder.pid, signal.SIGKILL)
    end(holder)
    assert says(knobs) == ["performance", "1"]
    deadline = time.monotonic() + 60.0
    while not (
        put_back := restore_abandoned_settings(record)
    ):  # its lock lasts until the guard is really gone
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert put_back == tuple(reversed(knobs))
    assert says(knobs) == ["powersave", "0"]


def test_settings_of_a_living_process_stay(knobs: tuple[Change, ...], record: Path) -> None:
    with ChangedSettings(knobs, record=record):
        assert restore_abandoned_settings(record) == ()
        with pytest.raises(SettingsError, match="another perftrail"), ChangedSettings(knobs, record=record):
            pass
        assert says(knobs) == ["performance", "1"]
    assert says(knobs) == ["powersave", "0"]


def test_a_record_that_other_users_could_have_written_is_ignored(
    knobs: tuple[Change, ...], record: Path
) -> None:
    record.parent.mkdir()
    Path(knobs[0].file).write_text("performance")
    record.write_text(json.dumps([asdict(knobs[0])]))
    record.chmod(0o666)
    assert restore_abandoned_settings(record) == ()
    with pytest.raises(SettingsError, match="others may write"), ChangedSettings(knobs, record=record):
        pass
    assert says(knobs)[0] == "performance"


@pytest.mark.parametrize("text", ["", "[", '[{"file": "x"}]', "7"])
def test_a_truncated_record_is_ignored(record: Path, text: str) -> None:
    record.parent.mkdir()
    record.write_text(text)
    record.chmod(0o600)
    assert restore_abandoned_settings(record) == ()


def test_nothing_to_change_needs_no_guard(record: Path) -> None:
    with ChangedSettings((), record=record):
        assert not record.exists()


@pytest.mark.parametrize(("line", "code"), [("exit 3", 3), ("kill -9 $$", 137), ("true", 0)])
def test_a_command_ends_as_in_a_shell(line: str, code: int) -> None:
    assert run_attached(["/bin/sh", "-c", line]) == code


def test_a_command_that_is_not_there_is_wrong_usage() -> None:
    with pytest.raises(UsageError, match="no-such-program"):
        run_attached(["no-such-program"])
