"""`perftrail explain`: what differs between a revision and the one before it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from perftrail.cli.options import (
    json_option,
    only_option,
    study_argument,
    walking_options,
    writing_options,
)

if TYPE_CHECKING:
    from collections.abc import Generator

    from perftrail.cli.options import Walking, Writing
    from perftrail.measure.events import Event
    from perftrail.measure.session import Session
    from perftrail.verbs.explain.result import Explained


@click.command("explain")
@click.argument("culprit")
@study_argument
@click.option("--against", metavar="REV", help="Hold it against this revision instead of its first parent.")
@click.option(
    "--starts",
    type=click.IntRange(min=2),
    default=5,
    show_default=True,
    help="Plain starts of each revision.",
)
@only_option
@walking_options
@writing_options
@json_option
def command(
    culprit: str,
    study: str | None,
    against: str | None,
    starts: int,
    only: tuple[str, ...],
    walking: Walking,
    writing: Writing,
    as_json: bool,
) -> None:
    """Say what differs between a revision and the one before it, what differs most first.

    Both are started in turn at every point of the study: plainly, with pthread locks counted, under strace for
    their system calls and under Valgrind for the instructions of each function. What this machine lacks is said.
    A difference is told when noise does not explain it. The lines that differ are summed up by file.

    Builds are kept. Exits 1 when neither could be looked at.
    """
    from perftrail.present.explain import print_explained
    from perftrail.results.selection import select
    from perftrail.verbs.explain.explain import Explain, pair_up
    from perftrail.verbs.explain.profilers import every_look

    loaded = writing.contained(walking.load(study))
    selection = select(loaded, only)

    def work(session: Session) -> Generator[Event, None, Explained]:
        pair = pair_up(session, culprit=culprit, against=against, store=writing.store)
        looks = every_look(loaded, session.bench.invoker, starts=starts)
        return Explain(session, pair, looks=looks, selection=selection).events()

    explained = writing.follow(loaded, work)
    if as_json:
        click.echo(json.dumps(explained.as_json(), indent=1))
    else:
        print_explained(explained, named=study)
    if not explained.seen:
        raise click.exceptions.Exit(1)
