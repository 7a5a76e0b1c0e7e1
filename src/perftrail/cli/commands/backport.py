"""`perftrail backport`: gain and costs of a fix in an old revision."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perftrail.cli.help import Command
from perftrail.cli.json_output import print_json
from perftrail.cli.options import (
    engine_option,
    json_option,
    patch_path_options,
    revisions_named,
    session_options,
    source_options,
    study_argument,
)
from perftrail.errors import UsageError
from perftrail.file_tree import open_to_read

if TYPE_CHECKING:
    from perftrail.cli.options import SessionOptions, SourceOptions
    from perftrail.model.patch import PatchPaths
    from perftrail.model.study import Study
    from perftrail.verbs.backport.patch import BackportConflict, BackportRequest
    from perftrail.verbs.backport.result import BackportReport

LARGEST_PATCH_BYTES = 64 << 20


@click.command("backport", cls=Command)
@click.argument("fix", required=False)
@study_argument
@click.option(
    "--onto", metavar="REVISION", required=True, help="Old revision to which the change is applied."
)
@click.option("--patch", metavar="FILE", help="Apply this patch instead of the change of FIX.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="File of the patch to write. [default: perftrail-backport-REVISION.patch in the study's directory]",
)
@patch_path_options
@engine_option
@source_options
@session_options
@json_option
def command(
    fix: str | None,
    study: str | None,
    onto: str,
    patch: str | None,
    output: str | None,
    paths: PatchPaths,
    engine: str | None,
    sources: SourceOptions,
    options: SessionOptions,
    as_json: bool,
) -> None:
    """Apply the change of revision FIX to an old revision, and measure its gain and costs there.

    The change is the difference between FIX and its first parent; for a merge, that is all of the merged branch.
    perftrail measures the old, the patched and the fixed revision in interleaved pairs, until the retained gain is
    known. It writes the patch to a file. Conflicts in files that no build reads do not count: --exclude and
    build.unaffected_by name such files, or perftrail observes the builds of both revisions with strace.

    With --patch FILE it applies that file, and FIX is only a reference. With --patch, a single argument is the study if
    that path exists.

    An interrupted back-port resumes. Exits with 1 if the change does not apply, or if the patched revision cannot be
    built or measured. perftrail then explains the conflict or the failure.
    """
    from perftrail.measure.subjects import retry_stale_builds
    from perftrail.verbs.backport.backport import Backport
    from perftrail.verbs.backport.patch import (
        BackportConflict,
        FittedPatch,
        fit_patch,
        patch_file,
        write_patch,
    )

    if patch is not None and study is None and fix is not None and Path(fix).exists():
        fix, study = None, fix
    loaded = options.with_suites(options.apply_to(sources.load(study)), revisions_named(fix, onto))
    request = _request(fix, onto=onto, patch=patch, paths=paths)
    fitted = fit_patch(loaded, request, store=options.store)
    if isinstance(fitted, BackportConflict):
        unread = observed_unread(loaded, fitted, options=options)
        if unread:
            request = replace(request, paths=replace(paths, unread=unread))
            fitted = fit_patch(loaded, request, store=options.store)
    if not isinstance(fitted, FittedPatch):
        _report_conflict(fitted, source_kind=loaded.searched_source.kind, study=study, as_json=as_json)
        raise click.exceptions.Exit(1)
    file = Path(output) if output is not None else patch_file(loaded, fitted)
    written = patch is None or output is not None
    if written:
        write_patch(file, fitted)
    report = options.run(
        loaded,
        lambda session: retry_stale_builds(
            session.subject_builder, lambda: Backport(session, fitted).events()
        ),
        patched=fitted.patched,
        engine=engine,
    )
    _print_report(report, written=str(file) if written else None, given=patch, as_json=as_json)
    if not report.measured:
        raise click.exceptions.Exit(1)


def observed_unread(study: Study, blocked: BackportConflict, *, options: SessionOptions) -> frozenset[str]:
    """Return the conflicting files that the observed builds do not read; then the conflict can be tried again."""
    from perftrail.builds.observing import observer
    from perftrail.verbs.backport.patch import maybe_unread, unread_conflicts, without_tree

    if blocked.fix is None or observer() is None or not maybe_unread(blocked.conflict):
        return frozenset()
    unread = options.run(study, lambda session: unread_conflicts(session, blocked))
    if unread:
        without_tree(blocked)
    return unread


def _report_conflict(
    conflict: BackportConflict, *, source_kind: str, study: str | None, as_json: bool
) -> None:
    """Print why a change does not apply."""
    from perftrail.present.backport import print_conflict
    from perftrail.verbs.backport.result import conflict_json

    if as_json:
        print_json("backport", conflict_json(conflict))
    else:
        print_conflict(conflict, source_kind=source_kind, study_file=study)


def _print_report(report: BackportReport, *, written: str | None, given: str | None, as_json: bool) -> None:
    """Print the result and the path of the patch: the file that was `written`, or the `given` one."""
    from perftrail.present.backport import print_report

    if as_json:
        print_json("backport", report.as_json(file=written))
    else:
        print_report(report, file=written or given)


def _request(fix: str | None, *, onto: str, patch: str | None, paths: PatchPaths) -> BackportRequest:
    from perftrail.verbs.backport.patch import BackportRequest

    return BackportRequest(onto=onto, fix=fix, patch=read_patch(patch), paths=paths)


def read_patch(patch: str | None) -> bytes | None:
    """Return the content of the file of --patch; `None` without one. Raises `UsageError` for an unreadable file."""
    if patch is None:
        return None
    try:
        with open_to_read(Path(patch)) as file:
            text = file.read(LARGEST_PATCH_BYTES + 1)
    except OSError as error:
        raise UsageError(f"--patch {patch}: cannot be read: {error.strerror}") from error
    if len(text) > LARGEST_PATCH_BYTES:
        raise UsageError(f"--patch {patch}: larger than {LARGEST_PATCH_BYTES >> 20} MiB")
    return text
