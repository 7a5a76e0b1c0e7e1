"""Says how old an answer is that was kept, beside what rests on it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from perftrail.model.quantity import duration

if TYPE_CHECKING:
    from perftrail.workflows.session import View


def say_how_old(view: View) -> None:
    """Say how long ago a source was asked that answers from what it said then; nothing of one that was just asked."""
    if asked := view.asked():
        seconds = (datetime.now(tz=UTC) - datetime.fromisoformat(asked)).total_seconds()
        click.echo(
            f"what the source has is as it said {duration(max(0.0, seconds))} ago, at {asked}; "
            "perftrail run and find ask it again",
            err=True,
        )
