"""A short run of kills and failed calls, and proof that a lost sample would be named."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from campaign import command_line, faults, interruptions, kills
from campaign.scenarios import SCENARIOS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed"),
]


@pytest.mark.parametrize("campaign", [kills, faults], ids=["kills", "faults"])
def test_a_short_campaign_loses_nothing(campaign: object) -> None:
    found = campaign.run(8, seed=2)  # type: ignore[attr-defined] # a module
    assert found.losses == ()
    assert found.trials >= 2


def test_a_sample_that_disappears_is_a_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted defect: the second command begins with the deletion of a stored sample."""
    run = command_line.run
    monkeypatch.setattr(interruptions, "SCENARIOS", SCENARIOS[:1])

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
        seconds=15,
        seed=1,
        may_print=False,
    )
    assert any("are lost" in loss or "starts for" in loss for loss in found.losses)
