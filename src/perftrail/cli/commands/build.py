"""`perftrail build`: build one subject, or run its recipe in a shell."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click
from rich.text import Text

from perftrail.cli.help import Command
from perftrail.cli.json_output import print_json
from perftrail.cli.options import again, json_option, study_argument, walking_options, writing_options
from perftrail.errors import UsageError
from perftrail.model.build import Built, Failure
from perftrail.model.wording import duration, escaped
from perftrail.present.console import errors, output
from perftrail.present.failures import excerpt_lines
from perftrail.present.sentence import revision_name
from perftrail.present.speech import after
from perftrail.verbs.build import script_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.cli.options import Walking, Writing
    from perftrail.model.build import ManualBuild
    from perftrail.model.study import Study
    from perftrail.model.subject import Subject
    from perftrail.verbs.build import MakeReport


@click.command("build", cls=Command)
@click.argument("revision", metavar="REV")
@study_argument
@click.option("--variant", metavar="NAME", help="Variant to build. [default: plain, or the only one]")
@click.option(
    "--shell",
    is_flag=True,
    help="Open a shell where the recipe would run, before its first step. Commands may come through a pipe.",
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
    """Build one revision; print its directory and log, or why the build failed.

    This also builds revisions that the study skips. With --shell, perftrail checks the revision out into a new
    directory, applies the repairs, prints the steps and opens a shell in their environment. It removes the directory
    when the shell ends. Without a sandbox, the shell has all your rights; in a sandbox, limits of memory, disk and
    processes do not apply.

    Exits with 1 if the build fails, or if a command from a pipe fails.
    """
    loaded = writing.contained(walking.load(study))
    if shell:
        if as_json or writing.retry_failed or not writing.wait:
            raise UsageError("--shell stores nothing: --json, --retry-failed and --no-wait are not for it")
        _shell(loaded, revision, variant=variant, store=writing.store)
        return
    from perftrail.verbs.build import make

    report = writing.follow(loaded, lambda session: make(session, revision, variant=variant))
    if as_json:
        print_json("build", report.as_json())
    else:
        print_made(report, repeat=again(study, walking, writing))
    if isinstance(report.outcome, Failure):
        raise click.exceptions.Exit(1)


def _shell(study: Study, revision: str, *, variant: str | None, store: str | None) -> None:
    from perftrail.builds.interactive_shell import go_through, standard_input
    from perftrail.opening import open_build_view, results_directory, shell_prefix
    from perftrail.verbs.build import laid_out, subject_named

    given = standard_input()
    if given == "nothing":
        raise UsageError(
            "--shell needs a terminal, or commands through a pipe: echo make | perftrail build …"
        )
    with open_build_view(study, store=store) as view:
        subject = subject_named(view, revision, variant=variant)
        with (
            laid_out(view, subject, results=results_directory(study, store)) as place,
            shell_prefix(study, place, store=store) as prefix,
        ):
            print_laid_out(subject, place)
            code = go_through(place, given=given, prefix=prefix)
    if given == "commands" and code:
        raise click.exceptions.Exit(1)


LONGEST_STEP = 300


def print_made(report: MakeReport, *, repeat: Sequence[str]) -> None:
    """Print the result of a build: its directory, or its log excerpt."""
    console = output()
    who, outcome = _who(report.subject), report.outcome
    if isinstance(outcome, Built):
        words = "was built before" if report.known or outcome.reused else "is built"
        console.print(Text(f"{who} {words}, in {duration(outcome.seconds)}", style="bold"))
        lines = [("directory", outcome.directory), ("artefact", outcome.artefact)]
        if report.recipe.outputs:
            lines.append(("outputs", ", ".join(report.recipe.outputs)))
    else:
        words = "cannot be checked out" if outcome.stage == "checkout" else "does not build"
        known = ", as in an earlier run; --retry-failed tries again" if report.known else ""
        console.print(Text(f"{who} {words}{known}", style="bold"))
        for line in excerpt_lines(outcome):
            console.print(Text(f"  {line}"))
        lines = []
    lines.append(("log", outcome.log))
    if report.skipped:
        lines.append(
            ("skipped", f"{escaped(report.skipped, longest=LONGEST_STEP)}: other commands leave it out")
        )
    for name, text in lines:
        console.print(Text(f"{name:<12} {escaped(text, longest=4096)}"))
    asked = [report.subject.revision.short, *repeat]
    asked += [] if report.subject.variant == "plain" else ["--variant", report.subject.variant]
    end = f"Next: perftrail build{after(asked)} --shell    run its recipe by hand"
    console.print(Text(escaped(end, longest=4096), style="dim"))


def print_laid_out(subject: Subject, place: ManualBuild) -> None:
    """Print on stderr the shell's directory, earlier failures, and the steps."""
    console = errors()
    console.print(
        Text(f"{_who(subject)}, in its own tree, which is removed when the shell ends", style="bold")
    )
    if place.failure is not None:
        console.print(Text("It could not be made ready:", style="yellow"))
        for line in excerpt_lines(place.failure):
            console.print(Text(f"  {line}", style="yellow"))
    console.print(Text(f"{'log':<12} {place.log}"))
    console.print(Text(f"{'here':<12} {place.directory}"))
    for number, line in enumerate(place.lines, start=1):
        name = "steps" if number == 1 else ""
        console.print(Text(f"{name:<12} {number}  {escaped(line, longest=LONGEST_STEP)}"))
    if place.lines:
        console.print(Text(f"{'all of them':<12} sh {shlex.quote(str(script_of(place)))}"))
    click.echo(err=True)


def _who(subject: Subject) -> str:
    variant = "" if subject.variant == "plain" else f" ({subject.variant})"
    return f"{revision_name(subject.revision)}{variant}"
