"""`perftrail build`: build one subject, or run its recipe in a shell."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click
from rich.text import Text

from perftrail.cli.help import Command
from perftrail.cli.json_output import print_json
from perftrail.cli.options import (
    json_option,
    repeated_options,
    session_options,
    source_options,
    study_argument,
)
from perftrail.errors import UsageError
from perftrail.model.build import Built, Failure
from perftrail.model.wording import duration, escaped
from perftrail.present.answer_sentence import revision_name
from perftrail.present.console import errors, output
from perftrail.present.failures import excerpt_lines
from perftrail.present.output_settings import next_line
from perftrail.present.shared_sentences import shell_words
from perftrail.verbs.build import steps_script

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.cli.options import SessionOptions, SourceOptions
    from perftrail.model.build import ManualBuild
    from perftrail.model.study import Study
    from perftrail.model.subject import Subject
    from perftrail.verbs.build import BuildReport


@click.command("build", cls=Command)
@click.argument("revision", metavar="REVISION")
@study_argument
@click.option("--variant", metavar="NAME", help="Variant to build. [default: plain, or the only one]")
@click.option(
    "--shell",
    is_flag=True,
    help="Open a shell in which the recipe would run, before its first step. Commands may come from a pipe.",
)
@source_options
@session_options
@json_option
def command(
    revision: str,
    study: str | None,
    variant: str | None,
    shell: bool,
    sources: SourceOptions,
    options: SessionOptions,
    as_json: bool,
) -> None:
    """Build one revision; print its directory and log, or why the build failed.

    perftrail also builds revisions that the study skips. With --shell, perftrail checks the revision out into a new
    directory, applies the study's overlays and patches, prints the steps and opens a shell in their environment. It
    removes the directory when the shell ends. Without a sandbox, the shell has all your rights; in a sandbox, limits of
    memory, disk and processes do not apply.

    Exits with 1 if the build fails, or if a command from a pipe fails.
    """
    loaded = options.apply_to(sources.load(study))
    if shell:
        if as_json or options.retry_failed or not options.wait:
            raise UsageError("--shell stores nothing; omit --json, --retry-failed and --no-wait")
        _shell(loaded, revision, variant=variant, store=options.store)
        return
    from perftrail.verbs.build import build

    report = options.run(loaded, lambda session: build(session, revision, variant=variant))
    if as_json:
        print_json("build", report.as_json())
    else:
        print_build(report, shared_options=repeated_options(study, sources, options))
    if isinstance(report.outcome, Failure):
        raise click.exceptions.Exit(1)


def _shell(study: Study, revision: str, *, variant: str | None, store: str | None) -> None:
    from perftrail.builds.interactive_shell import run_shell, standard_input
    from perftrail.opening import open_build_view, results_directory, shell_prefix
    from perftrail.verbs.build import prepared_tree, subject_named

    stdin = standard_input()
    if stdin == "nothing":
        raise UsageError(
            "--shell needs a terminal, or commands from a pipe, for example: echo make | perftrail build …"
        )
    with open_build_view(study, store=store) as view:
        subject = subject_named(view, revision, variant=variant)
        with (
            prepared_tree(view, subject, results=results_directory(study, store)) as prepared,
            shell_prefix(study, prepared, store=store) as prefix,
        ):
            print_prepared_tree(subject, prepared)
            code = run_shell(prepared, input_kind=stdin, prefix=prefix)
    if stdin == "commands" and code:
        raise click.exceptions.Exit(1)


LONGEST_STEP = 300


def print_build(report: BuildReport, *, shared_options: Sequence[str]) -> None:
    """Print the result of a build: its directory, or its log excerpt."""
    console = output()
    subject, outcome = _subject_name(report.subject), report.outcome
    if isinstance(outcome, Built):
        verb = "was built earlier" if report.known or outcome.reused else "was built"
        console.print(Text(f"{subject} {verb} in {duration(outcome.seconds)}", style="bold"))
        lines = [("directory", outcome.directory), ("artefact", outcome.artefact)]
        if report.recipe.outputs:
            lines.append(("outputs", ", ".join(report.recipe.outputs)))
    else:
        verb = "cannot be checked out" if outcome.stage == "checkout" else "does not build"
        known = ", as in an earlier run; repeat the build with --retry-failed" if report.known else ""
        console.print(Text(f"{subject} {verb}{known}", style="bold"))
        for line in excerpt_lines(outcome):
            console.print(Text(f"  {line}"))
        lines = []
    lines.append(("log", outcome.log))
    if report.study_line:
        lines.append(("study", report.study_line))
    if report.skipped:
        lines.append(
            ("skipped", f"{escaped(report.skipped, longest=LONGEST_STEP)}; other commands skip this revision")
        )
    for name, text in lines:
        console.print(Text(f"{name:<12} {escaped(text, longest=4096)}"))
    words = [report.subject.revision.short, *shared_options]
    words += [] if report.subject.variant == "plain" else ["--variant", report.subject.variant]
    next_step = next_line(f"perftrail build{shell_words(words)} --shell    run its recipe by hand")
    console.print(Text(escaped(next_step, longest=4096), style="dim"))


def print_prepared_tree(subject: Subject, prepared: ManualBuild) -> None:
    """Print on stderr the shell's directory, earlier failures, and the steps."""
    console = errors()
    console.print(
        Text(
            f"{_subject_name(subject)}, in a separate tree, which is removed when the shell ends",
            style="bold",
        )
    )
    if prepared.failure is not None:
        console.print(Text("The tree could not be prepared:", style="yellow"))
        for line in excerpt_lines(prepared.failure):
            console.print(Text(f"  {line}", style="yellow"))
    console.print(Text(f"{'log':<12} {prepared.log}"))
    console.print(Text(f"{'directory':<12} {prepared.directory}"))
    for number, line in enumerate(prepared.lines, start=1):
        name = "steps" if number == 1 else ""
        console.print(Text(f"{name:<12} {number}  {escaped(line, longest=LONGEST_STEP)}"))
    if prepared.lines:
        console.print(Text(f"{'all steps':<12} sh {shlex.quote(str(steps_script(prepared)))}"))
    click.echo(err=True)


def _subject_name(subject: Subject) -> str:
    variant = "" if subject.variant == "plain" else f" ({subject.variant})"
    return f"{revision_name(subject.revision)}{variant}"
