"""A command whose measuring machine leaves opens its session again, and measures on another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import pytest

from perftrail import studyfile
from perftrail.cli.options import SessionOptions
from perftrail.errors import MachineLeft
from tests.e2e.printing import program, write_study
from tests.sources.repositories import Repository

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from perftrail.measure.events import Event
    from perftrail.measure.session import Session


def test_work_is_repeated_in_a_new_session_until_no_machine_leaves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    repository = Repository(tmp_path / "repository")
    repository.commit(program(100))
    study = studyfile.load(str(write_study(tmp_path / "study", repository)))
    sessions: list[Session] = []

    def work(session: Session) -> Generator[Event, None, int]:
        sessions.append(session)
        if len(sessions) < 3:
            raise MachineLeft(f"machine {len(sessions)} has no worker")
        yield from ()
        return 7

    options = SessionOptions(store=None, wait=True, retry_failed=False, sandbox=None)
    with click.Context(click.Command("run")):
        assert options.run(study, work) == 7
    assert len({id(session) for session in sessions}) == 3, "each attempt has a session of its own"
    printed = capsys.readouterr().err
    assert "machine 1 has no worker" in printed
    assert "machine 2 has no worker" in printed
