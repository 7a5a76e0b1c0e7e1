"""`perftrail bisect-step`: whether the checked-out revision is good or bad, for `git bisect run`."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING

import click

from perftrail.cli.command_words import WordsCommand, command_line_options
from perftrail.cli.commands.compare import comparison_options, comparison_request
from perftrail.cli.options import revisions_named, session_options, source_options, study_argument
from perftrail.errors import PerftrailError
from perftrail.model.wording import escaped

if TYPE_CHECKING:
    from typing import Unpack

    from perftrail.cli.command_words import LineOptions
    from perftrail.cli.commands.compare import CompareOptions
    from perftrail.cli.options import SessionOptions, SourceOptions
    from perftrail.results.gate import Gate

GOOD, BAD, SKIP, STOP = 0, 1, 125, 128
"""Exit codes as git bisect run reads them: 1 to 127 is bad, except 125, and a larger one ends the bisection."""

NAMES = {GOOD: "good", BAD: "bad", SKIP: "skip", STOP: "stop"}


class BisectCommand(WordsCommand):
    """A command whose errors end a bisection: git would read any other exit code as the verdict bad."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: object
    ) -> click.Context:
        """Parse the command line."""
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.ClickException as error:
            error.show()
            raise click.exceptions.Exit(STOP) from error

    def invoke(self, ctx: click.Context) -> object:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except (click.exceptions.Exit, click.Abort):
            raise
        except (PerftrailError, OSError) as error:
            click.echo(escaped(f"stop: {error}", longest=None, allowed="\n"), err=True)
            raise click.exceptions.Exit(STOP) from error
        except Exception as error:
            traceback.print_exc()
            raise click.exceptions.Exit(STOP) from error


@click.command("bisect-step", cls=BisectCommand)
@click.argument("good")
@study_argument
@comparison_options
@command_line_options
@source_options
@session_options
def command(
    good: str,
    study: str | None,
    line: LineOptions,
    sources: SourceOptions,
    options: SessionOptions,
    **comparison: Unpack[CompareOptions],
) -> None:
    """Compare the checked-out revision with GOOD; the exit code is the answer for git bisect run.

    The study's source is the repository in which git bisects. Samples are stored, so a repeated bisection measures
    nothing again. perftrail find weighs the samples of all revisions together, and states how sure its answer is.

    Exits with 0 if no metric is slower than in GOOD (good), 1 if one is (bad), 125 if the revision does not build or
    run (skip), and 128 if the answer is unclear, if GOOD does not work, or after any error: then the bisection stops.
    """
    from perftrail.measure.subjects import retry_stale_builds
    from perftrail.present.gate import headline
    from perftrail.verbs.compare import Compare

    loaded = options.with_suites(
        options.apply_to(sources.load(line.study(study))), revisions_named(good, "HEAD")
    )
    comparison["fail_on"] = "never"
    request = comparison_request(loaded, good, "HEAD", **comparison)
    gate = options.run(
        loaded,
        lambda session: retry_stale_builds(
            session.subject_builder, lambda: Compare(session, request).events()
        ),
    )
    code = bisect_code(gate)
    click.echo(f"{NAMES[code]}: {headline(gate)}")
    raise click.exceptions.Exit(code)


def bisect_code(gate: Gate) -> int:
    """Return the exit code for a comparison of a good revision, the base, with another one."""
    verdicts = {str(row.verdict) for row in gate.rows}
    sides = {each.side for each in gate.failed_sides}
    if "slower" in verdicts:
        return BAD
    if "base" in sides:
        return STOP
    if "head" in sides:
        return SKIP
    return STOP if "unclear" in verdicts or not verdicts else GOOD
