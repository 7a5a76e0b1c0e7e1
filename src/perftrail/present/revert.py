"""The result of a revert for people: the share of the loss that comes back, its cost, and the conflicts.

The revert of an improvement has no loss: then it is the share of the gain that the revert undoes.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from perftrail.model.wording import change, counted, escaped
from perftrail.present.answer_sentence import revision_name
from perftrail.present.backport import (
    MOST_NAMED,
    cost_words,
    metric_name,
    print_conflict,
    print_details,
    share,
    why_failed,
)
from perftrail.present.console import output
from perftrail.present.shared_sentences import change_words, first_named
from perftrail.stats.retained_gain import Share
from perftrail.verbs.backport.patch import BackportConflict

if TYPE_CHECKING:
    from perftrail.model.subject import Revision
    from perftrail.verbs.backport.result import BackportReport, MetricResult
    from perftrail.verbs.backport.revert import Reverted, RevertReport, RevertReports


def print_reverts(reports: RevertReports, *, source_kind: str, study_file: str | None) -> None:
    """Print the revert of a culprit, and of only the commit inside it if it was reverted, too."""
    _print_reverted(reports.whole, source_kind=source_kind, study_file=study_file)
    if reports.inner is not None:
        output().print()
        output().print(Text(f"Only the commit {_reverted_name(reports.inner)}:"))
        _print_reverted(reports.inner, source_kind=source_kind, study_file=study_file)


def revert_headline(reverted: Reverted) -> str:
    """Return the answer in one line: the share of the loss that comes back, costs, conflicts, and the patch."""
    if isinstance(reverted, BackportConflict):
        paths = [escaped(each.path, longest=100) for each in reverted.conflict.obstacles]
        onto = escaped(reverted.onto.label or reverted.onto.short)
        return f"not reverted on {onto}: conflicts in {counted(len(paths), 'file')}: {first_named(paths, MOST_NAMED)}"
    report = reverted.backport
    base = report.fitted.patched.base
    costs = cost_words(report, without=report.reverted_gain)
    parts = [f"reverted on {escaped(base.label or base.short)}: {_answer(report)}{costs}"]
    left_out = [escaped(each.path, longest=100) for each in report.fitted.patched.patch.left_out]
    if left_out:
        parts.append(f"left out: {first_named(left_out, MOST_NAMED)}")
    parts.append("conflicts: none")
    if reverted.file is not None:
        parts.append(f"patch: {escaped(Path(reverted.file).name, longest=1000)}")
    return "; ".join(parts)


def _print_reverted(reverted: Reverted, *, source_kind: str, study_file: str | None) -> None:
    if isinstance(reverted, BackportConflict):
        print_conflict(reverted, source_kind=source_kind, study_file=study_file)
    else:
        _print_report(reverted)


def _print_report(reverted: RevertReport) -> None:
    console = output()
    report = reverted.backport
    fitted = report.fitted
    assert fitted.fix is not None
    console.print(Text(revert_headline(reverted), style="bold"))
    name, size = _reverted_name(reverted), change_words(fitted.patched.patch.files)
    console.print(Text(f"{name}, compared with {revision_name(fitted.fix)} before the culprit: {size}"))
    print_details(report)
    if reverted.file is not None:
        base = fitted.patched.base
        console.print(Text(f"Patch: {escaped(reverted.file, longest=1000)}"))
        text = f"Next: git apply {shlex.quote(reverted.file)}    in a checkout of {escaped(base.label or base.short)}"
        console.print(Text(text, style="dim"))


def _reverted_name(reverted: Reverted) -> str:
    revision: Revision | None = (
        reverted.reverted if isinstance(reverted, BackportConflict) else reverted.backport.fitted.reverted
    )
    assert revision is not None
    return revision_name(revision)


def _answer(report: BackportReport) -> str:
    if not report.measured:
        return f"no answer, because {why_failed(report)}"
    if not report.compared:
        return "unclear which share of the loss comes back: the old revision could not be measured"
    head = report.headline
    if head is None:
        gain = report.reverted_gain
        return (
            _no_loss(report)
            if gain is None
            else _share_words(f"the gain in {metric_name(gain)} is lost", gain)
        )
    return _share_words(f"the loss in {metric_name(head)} comes back", head)


def _share_words(happens: str, metric: MetricResult) -> str:
    """Return which share of a gain or loss a revert undoes; `happens` states what happens to it."""
    if metric.retained is None:
        return f"unclear which share of {happens}"
    result = share(metric.retained)
    match metric.retained.share:
        case Share.NOTHING:
            return f"nothing of {happens}: {result}"
        case Share.UNCLEAR:
            return f"unclear which share of {happens}: {result}"
        case Share.PART | Share.WHOLE:
            return f"{result} of {happens}"


def _no_loss(report: BackportReport) -> str:
    """Return the answer if the newest revision is not worse than the old one, with what the revert changes."""
    found = [metric for metric in report.metrics if metric.leading and metric.fixed_against_old is not None]
    chosen = next((metric for metric in found if report.is_searched(metric)), next(iter(found), None))
    where = "" if chosen is None else f" in {metric_name(chosen)}"
    changed = "" if chosen is None else _changed(chosen)
    return f"no loss{where} since the old revision was detected{changed}"


def _changed(metric: MetricResult) -> str:
    compared = metric.patched_against_old
    judged = metric.judged(compared)
    if compared is None or judged not in ("better", "worse"):
        return ""
    return f", but the revert changes it: {change(round(compared.effect, 9))}, {judged}"
