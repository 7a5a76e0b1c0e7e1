"""`perftrail backport`: how much of a fix an old revision can have, and at what cost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perftrail.cli.options import engine_option, json_option, study_argument, walking_options, writing_options
from perftrail.errors import UsageError

if TYPE_CHECKING:
    from perftrail.cli.options import Walking, Writing
    from perftrail.verbs.backport.patch import Blocked, Wanted
    from perftrail.verbs.backport.result import BackportReport

LARGEST_PATCH_BYTES = 64 << 20


@click.command("backport")
@click.argument("fix", required=False)
@study_argument
@click.option("--onto", metavar="OLD", required=True, help="The old revision that is to have the change.")
@click.option("--patch", metavar="FILE", help="Apply this patch instead of what FIX changed.")
@click.option(
    "--output", metavar="FILE", help="Where the patch is written: perftrail-backport-OLD.patch by the study."
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
    """Carry the change of FIX onto an old revision and measure what it gains and costs there.

    The change is FIX against its first parent, of a merge all that it brought. Old, patched and fixed are measured
    side by side in every benchmark, metric and point of the study, until it is known how much of the gain is
    carried. The patch is written to a file. With --patch FILE, what is carried is that patch; FIX, where it is
    named, is what it is measured against. Of a single name beside --patch, an existing path is the study.

    Resumes by itself. Exits 0 when an answer was reached, 1 when the change does not apply, with the conflict
    explained, or when what comes of it cannot be built or measured.
    """
    from perftrail.verbs.backport.backport import Backport
    from perftrail.verbs.backport.patch import Carriage, make_patch, patch_file, write_patch

    if patch is not None and study is None and fix is not None and Path(fix).exists():
        fix, study = None, fix
    loaded = writing.contained(walking.load(study))
    made = make_patch(loaded, _wanted(fix, onto=onto, patch=patch), store=writing.store)
    if not isinstance(made, Carriage):
        _tell_blocked(made, kind=loaded.walked.kind, named=study, as_json=as_json)
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
    """Say why a change does not apply."""
    from perftrail.present.backport import print_blocked
    from perftrail.verbs.backport.result import blocked_json

    if as_json:
        click.echo(json.dumps(blocked_json(blocked), indent=1))
    else:
        print_blocked(blocked, kind=kind, named=named)


def _tell(report: BackportReport, *, written: str | None, given: str | None, as_json: bool) -> None:
    """Say what was measured; the patch is in the file that was `written`, or in the one that was `given`."""
    from perftrail.present.backport import print_report

    if as_json:
        click.echo(json.dumps(report.as_json(file=written), indent=1))
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
