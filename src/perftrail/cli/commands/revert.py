"""`perftrail revert`: the share of a loss that comes back if its culprit is reverted."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from perftrail.cli.commands.backport import observed_unread, read_patch
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

if TYPE_CHECKING:
    from perftrail.cli.options import SessionOptions, SourceOptions
    from perftrail.model.patch import PatchPaths
    from perftrail.model.study import Study
    from perftrail.verbs.backport.patch import Fitted, RevertRequest
    from perftrail.verbs.backport.revert import Reverted, RevertReports


@click.command("revert", cls=Command)
@click.argument("culprit")
@study_argument
@click.option(
    "--onto",
    metavar="REVISION",
    help="Revision on which the change is reverted. [default: the study's newest]",
)
@click.option(
    "--inner",
    metavar="COMMIT",
    help="If CULPRIT is a merge: commit of the merged branch that is also reverted alone.",
)
@click.option("--patch", metavar="FILE", help="Apply this patch instead of the computed revert.")
@patch_path_options
@engine_option
@source_options
@session_options
@json_option
def command(
    culprit: str,
    study: str | None,
    onto: str | None,
    inner: str | None,
    patch: str | None,
    paths: PatchPaths,
    engine: str | None,
    sources: SourceOptions,
    options: SessionOptions,
    as_json: bool,
) -> None:
    """Revert the change of revision CULPRIT on the newest revision, and measure how much of the loss comes back.

    The change is the difference between CULPRIT and its first parent; for a merge, that is all of the merged branch.
    perftrail measures the newest revision, the same with the revert, and the revision before CULPRIT, in interleaved
    pairs, until the recovered share of the loss is known. It reports the metrics that the revert makes worse. It writes
    the patch to revert-CULPRIT.patch in the study's directory. Your repository does not change.

    An interrupted revert resumes. Exits with 1 if the change cannot be reverted, or if the reverted revision cannot be
    built or measured. perftrail then explains the conflict or the failure.
    """
    from perftrail.present.revert import print_reverts
    from perftrail.verbs.backport.patch import RevertRequest

    loaded = options.with_suites(options.apply_to(sources.load(study)), revisions_named(culprit, onto))
    request = RevertRequest(culprit=culprit, onto=onto, inner=inner, patch=read_patch(patch), paths=paths)
    reports = revert(loaded, request, options=options, engine=engine)
    if as_json:
        print_json("revert", reports.as_json())
    else:
        print_reverts(reports, source_kind=loaded.searched_source.kind, study_file=study)
    if not reports.measured:
        raise click.exceptions.Exit(1)


def revert(
    study: Study, request: RevertRequest, *, options: SessionOptions, engine: str | None
) -> RevertReports:
    """Fit, write and measure the revert of a culprit, and of the commit inside it if the request names one."""
    from perftrail.verbs.backport.patch import BackportConflict, fit_revert
    from perftrail.verbs.backport.revert import RevertReports

    fitted = fit_revert(study, request, store=options.store)
    conflicts = [each for each in (fitted.whole, fitted.inner) if isinstance(each, BackportConflict)]
    unread = frozenset(path for each in conflicts for path in observed_unread(study, each, options=options))
    if unread:
        request = replace(request, paths=replace(request.paths, unread=unread))
        fitted = fit_revert(study, request, store=options.store)
    return RevertReports(
        whole=_measured(study, fitted.whole, options=options, engine=engine),
        inner=None
        if fitted.inner is None
        else _measured(study, fitted.inner, options=options, engine=engine),
    )


def _measured(study: Study, fitted: Fitted, *, options: SessionOptions, engine: str | None) -> Reverted:
    from perftrail.measure.subjects import retry_stale_builds
    from perftrail.verbs.backport.backport import Backport
    from perftrail.verbs.backport.patch import BackportConflict, patch_file, write_patch
    from perftrail.verbs.backport.revert import RevertReport

    if isinstance(fitted, BackportConflict):
        return fitted
    file = None if fitted.from_file else patch_file(study, fitted)
    if file is not None:
        write_patch(file, fitted)
    report = options.run(
        study,
        lambda session: retry_stale_builds(
            session.subject_builder, lambda: Backport(session, fitted).events()
        ),
        patched=fitted.patched,
        engine=engine,
    )
    return RevertReport(backport=report, file=None if file is None else str(file))
