"""`perftrail show`: what was measured, and how a search went."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from perftrail.cli.options import json_option, load_study, store_option, study_argument
from perftrail.errors import NoAnswer

if TYPE_CHECKING:
    from perftrail.workflows.session import View


@click.command("show")
@study_argument
@click.option("--metric", "metrics", multiple=True, metavar="NAME", help="Show this metric; may be repeated.")
@click.option("--search", is_flag=True, help="Replay the latest search in words, step by step.")
@store_option
@json_option
def command(
    study: str | None, metrics: tuple[str, ...], search: bool, store: str | None, as_json: bool
) -> None:
    """Show what was measured: each subject's median with its 95 % interval, in the order of history.

    Below it stand the revisions at which a metric has changed along that history.
    """
    from perftrail.cli.tables import print_changes, print_rows
    from perftrail.workflows.history import history_changes
    from perftrail.workflows.opening import open_view
    from perftrail.workflows.show import rows

    with open_view(load_study(study), store=store) as view:
        if search:
            _show_search(view, as_json=as_json)
            return
        found = rows(view, metrics=metrics or None)
        changes = history_changes(view.source.history(), found)
    if as_json:
        begun = {change.row: change.as_json() for change in changes}
        told = [{**row.as_json(), "change": begun.get(row)} for row in found]
        click.echo(json.dumps(told, indent=1))
    elif found:
        print_rows(found)
        print_changes(changes)
    else:
        raise NoAnswer("nothing was measured on this machine yet; perftrail run or perftrail find does")


def _show_search(view: View, *, as_json: bool) -> None:
    from perftrail.cli.tables import print_search
    from perftrail.workflows.show import latest_search, steps

    record = latest_search(view)
    if record is None:
        raise NoAnswer("no search was begun on this machine yet; perftrail find does")
    taken = steps(view, record)
    if as_json:
        plain = [
            {"number": s.number, "words": s.words, "action": s.action, "news": s.news, "belief": s.belief}
            for s in taken
        ]
        click.echo(
            json.dumps({"question": record.question, "steps": plain, "answer": record.answer}, indent=1)
        )
    else:
        print_search(record, taken)
