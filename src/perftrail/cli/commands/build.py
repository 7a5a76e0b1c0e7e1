"""`perftrail build`: make one subject, or go through its recipe by hand."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from perftrail.cli.again import again
from perftrail.cli.options import json_option, study_argument
from perftrail.cli.walking import walking_options
from perftrail.cli.writing import writing_options
from perftrail.errors import UsageError
from perftrail.model.build import Failure

if TYPE_CHECKING:
    from perftrail.cli.walking import Walking
    from perftrail.cli.writing import Writing
    from perftrail.model.study import Study


@click.command("build")
@click.argument("revision", metavar="REV")
@study_argument
@click.option("--variant", metavar="NAME", help="Make it in this variant; plain, or the only one, without.")
@click.option(
    "--shell",
    is_flag=True,
    help="Open a shell where the recipe would run, nothing run yet; commands may come through a pipe.",
)
@walking_options
@writing_options
@json_option
def command(
    revision: str,
    study: str | None,
    variant: str | None,
    shell: bool,
    walking: Walking,
    writing: Writing,
    as_json: bool,
) -> None:
    """Make one revision and say where it is, what is in its log, or what failed.

    Also one that the study skips is made. With --shell the tree is put into a directory of its own, repairs are
    made, and a shell opens there in the environment of the steps, which are shown; all of it is removed when the
    shell ends, and what is stored of the revision stays as it is. Without a
    sandbox the shell has all your rights; with one it is in there, and no limit of memory, disk or processes holds.

    Exits 1 when it does not build, or when commands from a pipe end with a failure.
    """
    loaded = writing.contained(walking.load(study))
    if shell:
        if as_json or writing.retry_failed or not writing.wait:
            raise UsageError("--shell stores nothing: --json, --retry-failed and --no-wait are not for it")
        _shell(loaded, revision, variant=variant, store=writing.store)
        return
    from perftrail.cli.made import print_made
    from perftrail.workflows.make import make

    report = writing.follow(loaded, lambda session: make(session, revision, variant=variant))
    if as_json:
        click.echo(json.dumps(report.as_json(), indent=1))
    else:
        print_made(report, repeat=again(study, walking, writing))
    if isinstance(report.outcome, Failure):
        raise click.exceptions.Exit(1)


def _shell(study: Study, revision: str, *, variant: str | None, store: str | None) -> None:
    from perftrail.builds.recipe_shell import go_through, standard_input
    from perftrail.cli.made import print_laid_out
    from perftrail.workflows.make import laid_out, subject_named
    from perftrail.workflows.opening import open_view, results_directory, shell_prefix

    given = standard_input()
    if given == "nothing":
        raise UsageError(
            "--shell needs a terminal, or commands through a pipe: echo make | perftrail build …"
        )
    with open_view(study, store=store) as view:
        subject = subject_named(view, revision, variant=variant)
        with (
            laid_out(view, subject, results=results_directory(study, store)) as place,
            shell_prefix(study, place, store=store) as prefix,
        ):
            print_laid_out(subject, place)
            code = go_through(place, given=given, prefix=prefix)
    if given == "commands" and code:
        raise click.exceptions.Exit(1)
