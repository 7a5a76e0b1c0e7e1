"""The GitHub job in which perftrail runs: its runner executes no printed line, except perftrail's own annotations.

Builds, revisions, benchmarks and errors contain hostile text. From the first line that perftrail prints to the last,
the runner therefore executes no commands, except annotations. Only a secret token ends this state.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_tokens: list[str] = []
"""The token of the running block, or nothing."""


def on_github() -> bool:
    """Return whether this process runs in a job of GitHub Actions."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def annotate(lines: Iterable[str]) -> None:
    """Print commands that GitHub's runner executes. Their writer has escaped them."""
    stopped = _resume()
    for line in lines:
        click.echo(line, err=True)
    if stopped:
        _stop()


@contextmanager
def commands_stopped() -> Iterator[None]:
    """Stop GitHub's runner from executing what the block prints."""
    if not on_github():
        yield
        return
    _stop()
    try:
        yield
    finally:
        _resume()


def _stop() -> None:
    import secrets  # here: it imports more than --help, and only jobs need it

    _tokens.append(secrets.token_hex(16))
    click.echo(f"::stop-commands::{_tokens[-1]}", err=True)


def _resume() -> bool:
    """Let the runner execute commands again; return whether it did not."""
    if not _tokens:
        return False
    sys.stdout.flush()
    click.echo(f"::{_tokens.pop()}::", err=True)
    return True
