"""A short run of kills and failed calls, and proof that a lost sample would be named."""

from __future__ import annotations

import itertools
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from campaign import command_line, faults, interruptions, kills
from campaign.command_line import Call
from campaign.scenarios import SCENARIOS
from perftrail.cli import main
from tests.needs import needs

pytestmark = [
    pytest.mark.slow("processor"),
    needs("strace"),
]


def test_every_operation_is_killed_once_and_loses_nothing() -> None:
    found = kills.run(8, seed=2)
    assert found.losses == ()
    assert found.trials >= len(SCENARIOS) == len(found.notes)


def test_calls_that_fail_lose_nothing() -> None:
    found = faults.run(8, seed=2, only=("run", "import", "backup"))
    assert found.losses == ()
    assert found.trials >= 3


def test_a_traceback_is_a_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted defect: the command line does not handle the errors of a full disk."""
    monkeypatch.setattr(main, "MACHINE_ERRORS", {})
    found = faults.run(1, seed=1, only=("import",))
    assert any("traceback: OSError" in loss for loss in found.losses)


def test_interrupted_calls_are_distinct_and_spread_over_the_run() -> None:
    calls = [Call(name="write", number=number, text="") for number in range(100)]
    order = interruptions.spread(calls, seed=1)
    assert sorted(order, key=lambda call: call.number) == calls
    first = sorted(call.number for call in order[:10])
    assert max(later - earlier for earlier, later in itertools.pairwise([0, *first, 100])) <= 20


def test_a_sample_that_disappears_is_a_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted defect: the second command begins with the deletion of a stored sample."""
    run = command_line.run
    monkeypatch.setattr(interruptions, "spread", lambda calls, _: list(reversed(calls)))

    def forgetful(arguments: tuple[str, ...], directory: Path, *, strace: tuple[str, ...] = ()) -> object:
        store = directory / SCENARIOS[0].store
        if not strace and store.exists():
            with closing(sqlite3.connect(store)) as database, database:
                database.execute("DELETE FROM value WHERE invocation_id = 1")
                database.execute("DELETE FROM invocation WHERE id = 1")
        return run(arguments, directory, strace=strace)

    monkeypatch.setattr(command_line, "run", forgetful)
    found = interruptions.interrupt(
        ("fsync", "fdatasync"),
        lambda call: f"inject={call.name}:signal=KILL:when={call.number}",
        seconds=1,
        seed=1,
        only=("run",),
    )
    assert any("are lost" in loss or "starts for" in loss for loss in found.losses)


def test_only_calls_on_files_of_the_study_are_interrupted(tmp_path: Path) -> None:
    (tmp_path / "perftrail.toml").write_text("[study]\n")
    command_line.import_all()
    found, ended = command_line.calls(("check",), tmp_path, ("openat",))
    assert ended.code == 2
    assert any("perftrail.toml" in call.text for call in found)
    assert not [call for call in found if "site-packages" in call.text or ".py" in call.text]
