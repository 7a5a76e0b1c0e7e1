"""A short run of the campaign over hostile clones, and its lists of commands and kinds."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import click
import pytest

from campaign import hostile_clone
from campaign.hostile_clone import KINDS, NOT_GIVEN, NOT_RUN
from perftrail import results_directory
from perftrail.cli import agent_server
from perftrail.cli.commands import store
from perftrail.cli.main import COMMANDS, cli


def test_every_command_is_run_or_the_reason_is_stated() -> None:
    every = {*COMMANDS, *(f"store {name}" for name in store.command.commands)} - {"store"}
    run = {name for name in every if any(each.partition(" -")[0] == name for each in hostile_clone.COMMANDS)}
    assert run | set(NOT_RUN) == every


def test_every_option_with_a_file_is_given_or_the_reason_is_stated() -> None:
    context = click.Context(cli)
    every = {name: cli.get_command(context, name) for name in set(COMMANDS) - {"store", *NOT_RUN}}
    every |= {f"store {name}": each for name, each in store.command.commands.items()}
    given = {
        (name, option)
        for name in every
        for line, words in hostile_clone.COMMANDS.items()
        if line.partition(" -")[0] == name
        for option in words
    }
    missing = [
        f"{name} {option.opts[-1]}"
        for name, command in every.items()
        for option in (command.params if command else ())
        if isinstance(option, click.Option)
        and re.search("FILE|DIRECTORY|PATH", option.metavar or "")
        and not any((name, each) in given or each in NOT_GIVEN for each in option.opts)
    ]
    assert missing == []


@pytest.mark.long
def test_every_command_line_does_its_work_in_a_study_that_nothing_replaced() -> None:
    assert hostile_clone.wrong_usage() == []


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_what_its_name_states(tmp_path: Path, kind: str) -> None:
    (tmp_path / "outside" / "below").mkdir(parents=True)
    KINDS[kind](tmp_path / "entry", tmp_path / "outside")
    assert os.path.lexists(tmp_path / "entry")


@pytest.mark.long
def test_a_short_run_has_no_losses() -> None:
    found = hostile_clone.run(10.0, 1)
    assert found.losses == ()
    assert found.trials >= len(KINDS)


@pytest.mark.long
def test_a_results_directory_that_is_trusted_wherever_it_comes_from_is_a_loss(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The planted defect: every directory is ours, whatever it contains."""
    monkeypatch.setattr(results_directory, "is_ours", lambda *_, **__: True)
    monkeypatch.setattr(results_directory, "_refuse_links", lambda _: None)
    only(monkeypatch, (".perftrail/scratch",), ("check --try", "compare"), "a link to a directory")
    found = hostile_clone.run(15.0, 1)
    assert any("was created or deleted" in loss for loss in found.losses), found


@pytest.mark.long
def test_a_module_of_the_current_directory_that_runs_is_a_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted defect: Python starts with the current directory on its path."""
    monkeypatch.setattr(agent_server, "own_python", lambda *words: [sys.executable, *words])
    only(monkeypatch, ("a.patch",), ("mcp",), "a file")
    found = hostile_clone.run(1.0, 1)
    assert any("outside/click was created" in loss for loss in found.losses), found


def only(
    monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...], commands: tuple[str, ...], kind: str
) -> None:
    """Restrict the trials."""
    monkeypatch.setattr(hostile_clone, "NAMES", names)
    monkeypatch.setattr(hostile_clone, "TRIED", commands)
    monkeypatch.setattr(hostile_clone, "KINDS", {kind: KINDS[kind]})
