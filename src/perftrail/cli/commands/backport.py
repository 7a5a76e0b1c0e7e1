"""`perftrail backport`: the gain and the cost of a fix in an old revision."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from perftrail.cli.help import Command
from perftrail.cli.json_output import print_json
from perftrail.cli.options import engine_option, json_option, study_argument, walking_options, writing_options
from perftrail.errors import UsageError

if TYPE_CHECKING:
    from perftrail.cli.options import Walking, Writing
    from perftrail.verbs.backport.patch import Blocked, Wanted
    from perftrail.verbs.backport.result import BackportReport

LARGEST_PATCH_BYTES = 64 << 20


@click.command("backport", cls=Command)
@click.argument("fix", required=False)
@study_argument
@click.option("--onto", metavar="REVISION", required=True, help="Old revision that gets the change.")
@click.option("--patch", metavar="FILE", help="Apply this patch instead of the change of FIX.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Where to write the patch. [default: perftrail-backport-OLD.patch in the study's directory]",
)
@engine_option
@walking_options
@writing_options
@json_option
def command(
    fix: str | None,
    study: str | None,
    onto: str,
    patch: str | None,
    output: str | None,
    engine: str | None,
    walking: Walking,
    writing: Writing,
    as_json: bool,
) -> None:
    """Apply the change of revision FIX to an old revision, and measure what it gains and costs there.

    The change is FIX against its first parent; for a merge, everything that it brought. perftrail measures the old,
    the patched and the fixed revision in interleaved pairs, until the retained share of the gain is known. It writes
    the patch to a file. With --patch FILE it applies that file; FIX is then only a reference. A single name together
    with --patch is the study if that path exists.

    An interrupted back-port resumes. Exits with 1 if the change does not apply, and explains the conflict, or if the
    patched revision cannot be built or measured.
    """
    from perftrail.verbs.backport.backport import Backport
    from perftrail.verbs.backport.patch import Carriage, make_patch, patch_file, write_patch

    if patch is not None and study is None and fix is not None and Path(fix).exists():
        fix, study = None, fix
    loaded = writing.contained(walking.load(study))
    made = make_patch(loaded, _wanted(fix, onto=onto, patch=patch), store=writing.store)
    if not isinstance(made, Carriage):
        _tell_blocked(made, kind=loaded.searched_source.kind, named=study, as_json=as_json)
        raise click.exceptions.Exit(1)
    file = Path(output) if output is not None else patch_file(loaded, made.patched.base)
    written = patch is None or output is not None
    if written:
        write_patch(file, made)
    report = writing.follow(
        loaded, lambda session: Backport(session, made).events(), own=made.patched, engine=engine
    )
    _tell(report, written=str(file) if written else None, given=patch, as_json=as_json)
    if not report.measured:
        raise click.exceptions.Exit(1)


def _tell_blocked(blocked: Blocked, *, kind: str, named: str | None, as_json: bool) -> None:
    """Print why a change does not apply."""
    from perftrail.present.backport import print_blocked
    from perftrail.verbs.backport.result import blocked_json

    if as_json:
        print_json("backport", blocked_json(blocked))
    else:
        print_blocked(blocked, kind=kind, named=named)


def _tell(report: BackportReport, *, written: str | None, given: str | None, as_json: bool) -> None:
    """Print the result; the patch is in the file that was `written`, or in the `given` one."""
    from perftrail.present.backport import print_report

    if as_json:
        print_json("backport", report.as_json(file=written))
    else:
        print_report(report, file=written or given)


def _wanted(fix: str | None, *, onto: str, patch: str | None) -> Wanted:
    from perftrail.verbs.backport.patch import Wanted

    if patch is None:
        return Wanted(onto=onto, fix=fix)
    try:
        with Path(patch).open("rb") as file:
            text = file.read(LARGEST_PATCH_BYTES + 1)
    except OSError as error:
        raise UsageError(f"--patch {patch}: cannot be read: {error.strerror}") from error
    if len(text) > LARGEST_PATCH_BYTES:
        raise UsageError(f"--patch {patch}: larger than {LARGEST_PATCH_BYTES >> 20} MiB")
    return Wanted(onto=onto, fix=fix, patch=text)
