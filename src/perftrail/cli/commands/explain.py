"""`perftrail explain`: what differs between a revision and the one before it."""

from __future__ import annotations

import json

import click

from perftrail.cli.options import (
    json_option,
    load_study,
    only_option,
    store_option,
    study_argument,
    writing_options,
)


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
@writing_options
@store_option
@json_option
def command(
    culprit: str,
    study: str | None,
    against: str | None,
    starts: int,
    only: tuple[str, ...],
    retry_failed: bool,
    no_wait: bool,
    store: str | None,
    as_json: bool,
) -> None:
    """Say what differs between a revision and the one before it, what differs most first.

    Both are started in turn at every point of the study: plainly, with pthread locks counted, under strace for
    their system calls and under Valgrind for the instructions of each function. What this machine lacks is said.
    A difference is told when noise does not explain it. The lines that differ are summed up by file.

    Builds are kept. Exits 1 when neither could be looked at.
    """
    from perftrail.cli.console import Watcher
    from perftrail.cli.explained import print_explained
    from perftrail.workflows.explain import Explain
    from perftrail.workflows.explain.looks import every_look
    from perftrail.workflows.explain.pairing import pair_up
    from perftrail.workflows.opening import open_session
    from perftrail.workflows.selection import select

    loaded = load_study(study)
    selection = select(loaded, only)
    with (
        Watcher() as watcher,
        open_session(
            loaded,
            store=store,
            wait=not no_wait,
            on_wait=watcher.waiting,
            on_noise=watcher.noisy,
            retry_failed=retry_failed,
        ) as session,
    ):
        pair = pair_up(session, culprit=culprit, against=against, store=store)
        looks = every_look(loaded, session.bench.invoker, starts=starts)
        explained = watcher.follow(Explain(session, pair, looks=looks, selection=selection).events())
    if as_json:
        click.echo(json.dumps(explained.as_json(), indent=1))
    else:
        print_explained(explained, named=study)
    if not explained.seen:
        raise click.exceptions.Exit(1)
