"""A short run of the campaign over hostile clones, and its lists of commands and kinds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from campaign import hostile_clone
from campaign.hostile_clone import KINDS, NOT_RUN
from perftrail import results_directory
from perftrail.cli.commands import store
from perftrail.cli.main import COMMANDS


def test_every_command_is_run_or_the_reason_is_stated() -> None:
    every = {*COMMANDS, *(f"store {name}" for name in store.command.commands)} - {"store"}
    run = {name for name in every if any(each.partition(" -")[0] == name for each in hostile_clone.COMMANDS)}
    assert run | set(NOT_RUN) == every


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_what_its_name_states(tmp_path: Path, kind: str) -> None:
    (tmp_path / "outside" / "below").mkdir(parents=True)
    KINDS[kind](tmp_path / "entry", tmp_path / "outside")
    assert os.path.lexists(tmp_path / "entry")


@pytest.mark.long
def test_a_short_run_has_no_losses() -> None:
    found = hostile_clone.run(20.0, 1)
    assert found.losses == ()
    assert found.trials >= len(KINDS)


@pytest.mark.long
def test_a_results_directory_that_is_trusted_wherever_it_comes_from_is_a_loss(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The planted defect: every directory is ours, whatever it contains."""
    monkeypatch.setattr(results_directory, "is_ours", lambda *_, **__: True)
    monkeypatch.setattr(results_directory, "_refuse_links", lambda _: None)
    monkeypatch.setattr(hostile_clone, "NAMES", (".perftrail/scratch",))
    commands = {name: hostile_clone.COMMANDS[name] for name in ("check --try", "compare")}
    monkeypatch.setattr(hostile_clone, "COMMANDS", commands)
    monkeypatch.setattr(hostile_clone, "KINDS", {"a link to a directory": KINDS["a link to a directory"]})
    found = hostile_clone.run(15.0, 1)
    assert any("was created or deleted" in loss for loss in found.losses), found
