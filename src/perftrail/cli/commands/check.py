"""`perftrail check`: validate a study and print its plan."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from perftrail.cli.help import Command
from perftrail.cli.json_output import print_json
from perftrail.cli.options import (
    again,
    jobs_option,
    json_option,
    only_option,
    study_argument,
    walking_options,
    writing_options,
)
from perftrail.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.cli.options import Walking, Writing
    from perftrail.model.study import Study
    from perftrail.results.selection import Selection


@click.command("check", cls=Command)
@study_argument
@only_option
@click.option(
    "--try",
    "attempts",
    type=click.IntRange(min=1),
    metavar="N",
    help="Build N revisions, spread over the range; start and relink each once. Report what fails.",
)
@click.option("--schema", is_flag=True, help="Print the JSON Schema of study files, for editors.")
@jobs_option
@walking_options
@writing_options
@json_option
def command(
    study: str | None,
    only: tuple[str, ...],
    attempts: int | None,
    schema: bool,
    jobs: int,
    walking: Walking,
    writing: Writing,
    as_json: bool,
) -> None:
    """Validate a study and print its plan: builds, points, invocations, stored samples and time.

    All mistakes of the study file are printed at once, as FILE:LINE: key.path: message. With --try, perftrail also
    builds and starts some revisions, and keeps the builds for run and find; it then exits with 1 if none works.
    """
    from perftrail.results.selection import select

    if schema:
        from perftrail import studyfile

        click.echo(json.dumps(studyfile.schema(), indent=2))
        return
    if attempts is None and (writing.retry_failed or not writing.wait or jobs > 1):
        raise UsageError("--retry-failed, --no-wait and --jobs are for --try N; without it nothing is made")
    loaded = writing.contained(walking.load(study))
    selection = select(loaded, only)
    if attempts is None:
        show_plan(
            loaded, selection, store=writing.store, as_json=as_json, repeat=again(study, walking, writing)
        )
        return
    from perftrail.present.plan import print_attempt
    from perftrail.verbs.check import Attempt, as_tried

    report = writing.follow(
        as_tried(loaded), lambda session: Attempt(session, selection, count=attempts).events(), jobs=jobs
    )
    if as_json:
        print_json("check --try", report.as_json())
    else:
        print_attempt(loaded, report, repeat=again(study, walking, writing))
    if not report.useful:
        raise click.exceptions.Exit(1)


def show_plan(
    study: Study, selection: Selection, *, store: str | None, as_json: bool, repeat: Sequence[str]
) -> None:
    """Compute a study's plan and print it."""
    from perftrail.opening import open_build_view
    from perftrail.present.speech import say_how_old
    from perftrail.verbs.check import survey

    if study.searched_source.kind == "samples":
        from perftrail.present.exported import print_held
        from perftrail.verbs.import_ import held

        found = held(study)
        if as_json:
            print_json("check", found.as_json())
        else:
            print_held(found)
        return
    with open_build_view(study, store=store) as view:
        plan = survey(view, selection)
        say_how_old(view)
    if as_json:
        print_json("check", plan.as_json())
        return
    from perftrail.present.plan import print_survey

    print_survey(study, plan, repeat=repeat)
