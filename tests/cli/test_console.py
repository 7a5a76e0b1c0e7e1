"""What is told while a workflow runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.cli.console import Watcher
from perftrail.model.build import Failure
from perftrail.model.subject import Revision, Subject
from perftrail.workflows.events import BuildFinished

if TYPE_CHECKING:
    from collections.abc import Generator

    import pytest

    from perftrail.workflows.events import Event


def test_revisions_that_fail_alike_tell_why_once(capsys: pytest.CaptureFixture[str]) -> None:
    def failing() -> Generator[Event, None, None]:
        for number, message in enumerate(["no header\nremedy", "no header\nremedy", "no library"]):
            yield BuildFinished(
                subject=Subject(revision=Revision(id=f"r{number}"), variant="plain"),
                outcome=Failure(stage="build", message=message, log=f"{number}.log"),
                known=False,
            )

    with Watcher() as watcher:
        watcher.follow(failing())
    assert capsys.readouterr().err.splitlines() == [
        "r0 does not build: no header (log: 0.log)",
        "r1 does not build: likewise (log: 1.log)",
        "r2 does not build: no library (log: 2.log)",
    ]
