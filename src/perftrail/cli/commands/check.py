"""`perftrail check`: validate a study and show what it would take."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from perftrail.cli.options import json_option, load_study, only_option, store_option, study_argument

if TYPE_CHECKING:
    from perftrail.model.study import Study
    from perftrail.workflows.selection import Selection


@click.command("check")
@study_argument
@only_option
@click.option("--schema", is_flag=True, help="Print the JSON Schema of study files, for editors.")
@store_option
@json_option
def command(study: str | None, only: tuple[str, ...], schema: bool, store: str | None, as_json: bool) -> None:
    """Validate a study and print its plan: subjects, builds, points, invocations, what is stored, the time.

    Every mistake of a study file is told at once, as FILE:LINE: key.path: message.
    """
    from perftrail.workflows.selection import select

    if schema:
        from perftrail import studyfile

        click.echo(json.dumps(studyfile.schema(), indent=2))
        return
    loaded = load_study(study)
    show_plan(loaded, select(loaded, only), store=store, as_json=as_json, named=study)


def show_plan(
    study: Study, selection: Selection, *, store: str | None, as_json: bool, named: str | None
) -> None:
    """Work out a study's plan and print it."""
    from perftrail.workflows.check import survey
    from perftrail.workflows.opening import open_view

    with open_view(study, store=store) as view:
        plan = survey(view, selection)
    if as_json:
        click.echo(json.dumps(plan.as_json(), indent=1))
        return
    from perftrail.cli.plans import print_survey

    print_survey(study, plan, named=named)
